"""Machines of Cluster API as the instances of a group. Pure.

A machine that failed for good, or that has no instance yet, has an id of our own making by which it is known again
when it is to be removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from plimsoll.nodes.providers.clusterapi.keys import FAILED_PREFIX, PENDING_PREFIX
from plimsoll.nodes.providers.values import ErrorClass, Instance, InstanceError, InstanceState

if TYPE_CHECKING:
    from plimsoll.objects.cluster_api import ClusterMachine


class MachineKey(NamedTuple):
    """Where a Machine is."""

    namespace: str
    name: str


def key_of(machine: ClusterMachine) -> MachineKey:
    return MachineKey(machine.metadata.namespace, machine.metadata.name)


def is_going(machine: ClusterMachine) -> bool:
    return machine.metadata.deletion_timestamp is not None


def key_in(provider_id: str) -> MachineKey | None:
    """The machine that an id of our own making tells; None for a cloud's id."""
    for prefix in (FAILED_PREFIX, PENDING_PREFIX):
        if provider_id.startswith(prefix):
            # No name of a namespace has an underscore.
            namespace, _, name = provider_id.removeprefix(prefix).partition("_")
            return MachineKey(namespace, name)
    return None


def instance_of(machine: ClusterMachine, *, node_provider_id: str = "") -> Instance:
    """`node_provider_id` is its node's, for infrastructure that writes none into the machine."""
    key = key_of(machine)
    node = machine.status.node_ref.name if machine.status.node_ref is not None else ""
    if machine.failure:
        state, error = _failing(machine)
        return Instance(id=f"{FAILED_PREFIX}{key.namespace}_{key.name}", name=node, state=state, error=error)
    provider_id = machine.spec.provider_id or node_provider_id
    if not provider_id:
        state = InstanceState.DELETING if is_going(machine) else InstanceState.CREATING
        return Instance(id=f"{PENDING_PREFIX}{key.namespace}_{key.name}", name=node, state=state)
    state = InstanceState.DELETING if is_going(machine) else InstanceState.RUNNING
    return Instance(id=provider_id, name=node, state=state)


def is_real(instance: Instance) -> bool:
    """Whether there is, and stays, an instance that is or becomes a node."""
    return key_in(instance.id) is None and instance.state is not InstanceState.DELETING


def _failing(machine: ClusterMachine) -> tuple[InstanceState, InstanceError | None]:
    if is_going(machine):
        return InstanceState.DELETING, _error("DeletingFailed", machine)
    if machine.status.node_ref is None:
        return InstanceState.CREATING, _error("ProvisioningFailed", machine)
    # It was a node once; what became of it the node itself shows.
    return InstanceState.UNSPECIFIED, None


def _error(code: str, machine: ClusterMachine) -> InstanceError:
    return InstanceError(error_class=ErrorClass.OTHER, code=code, message=machine.failure)
