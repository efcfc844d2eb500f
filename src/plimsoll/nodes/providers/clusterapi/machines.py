"""Which machine is behind a node, and which group a machine belongs to. Pure.

A node is found by its provider id, by the reference of a Machine to it, or by the annotations that Cluster API wrote on
the node. A Machine belongs to its owner: a MachineSet, the MachineDeployment above that, or a MachinePool. If two
machines have the same node name (in two clusters), neither is found by it.

Machines are the instances of a group. A machine that failed permanently, or that has no instance yet, gets an id made
from its name, so that it can be found when it is deleted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, NamedTuple

from plimsoll.nodes.model.instances import ErrorClass, InstanceState
from plimsoll.nodes.providers.clusterapi.annotations import FAILED_PREFIX, PENDING_PREFIX, get_group_id
from plimsoll.nodes.providers.values import Instance, InstanceError
from plimsoll.objects.api.cluster_api import MachinePool, MachineSet

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.nodes.providers.clusterapi.annotations import Keys
    from plimsoll.nodes.providers.values import NodeRef
    from plimsoll.objects.api.cluster_api import ClusterMachine, Scalable
    from plimsoll.objects.api.meta import ObjectMeta


class MachineKey(NamedTuple):
    """Where a Machine is."""

    namespace: str
    name: str


def get_key(machine: ClusterMachine) -> MachineKey:
    return MachineKey(machine.metadata.namespace, machine.metadata.name)


def is_going(machine: ClusterMachine) -> bool:
    return machine.metadata.deletion_timestamp is not None


def parse_key(provider_id: str) -> MachineKey | None:
    """The machine of an id that this provider made; None for an id of a cloud."""
    for prefix in (FAILED_PREFIX, PENDING_PREFIX):
        if provider_id.startswith(prefix):
            # No name of a namespace has an underscore.
            namespace, _, name = provider_id.removeprefix(prefix).partition("_")
            return MachineKey(namespace, name)
    return None


def build_instance(machine: ClusterMachine, *, node_provider_id: str = "") -> Instance:
    """`node_provider_id` is the node's, for infrastructure that does not write it into the machine."""
    key = get_key(machine)
    node = machine.status.node_ref.name if machine.status.node_ref is not None else ""
    if machine.failure:
        state, error = _find_failure(machine)
        return Instance(id=f"{FAILED_PREFIX}{key.namespace}_{key.name}", name=node, state=state, error=error)
    provider_id = machine.spec.provider_id or node_provider_id
    if not provider_id:
        state = InstanceState.DELETING if is_going(machine) else InstanceState.CREATING
        return Instance(id=f"{PENDING_PREFIX}{key.namespace}_{key.name}", name=node, state=state)
    state = InstanceState.DELETING if is_going(machine) else InstanceState.RUNNING
    return Instance(id=provider_id, name=node, state=state)


def is_real(instance: Instance) -> bool:
    """Whether the machine has an instance that is, or will become, a node and is not being deleted."""
    return parse_key(instance.id) is None and instance.state is not InstanceState.DELETING


def _find_failure(machine: ClusterMachine) -> tuple[InstanceState, InstanceError | None]:
    if is_going(machine):
        return InstanceState.DELETING, _build_error("DeletingFailed", machine)
    if machine.status.node_ref is None:
        return InstanceState.CREATING, _build_error("ProvisioningFailed", machine)
    # It was a node once; what became of it the node itself shows.
    return InstanceState.UNSPECIFIED, None


def _build_error(code: str, machine: ClusterMachine) -> InstanceError:
    return InstanceError(error_class=ErrorClass.OTHER, code=code, message=machine.failure)


_SET, _DEPLOYMENT, _POOL = "MachineSet", "MachineDeployment", "MachinePool"
_NOBODY: Final = MachineKey("", "")


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineIndex:
    """All machines of one moment, found by any name."""

    machines: Mapping[MachineKey, ClusterMachine]
    keys: Keys
    _sets: Mapping[tuple[str, str], MachineSet]
    _group_of: Mapping[MachineKey, str]
    _pool_of: Mapping[str, str]
    """Provider id to the pool that lists it."""
    _by_id: Mapping[str, MachineKey]
    _by_ending: Mapping[str, MachineKey]
    """Machines by the last part of the provider id: some clouds write the rest differently in machines and nodes."""
    _by_node: Mapping[str, MachineKey]
    _of_group: Mapping[str, Sequence[MachineKey]]

    @classmethod
    def build(cls, scalables: Iterable[Scalable], machines: Iterable[ClusterMachine], *, keys: Keys) -> MachineIndex:
        known, objects = {get_key(cluster_machine): cluster_machine for cluster_machine in machines}, tuple(scalables)
        sets = {
            (scalable.metadata.namespace, scalable.metadata.name): scalable
            for scalable in objects
            if isinstance(scalable, MachineSet)
        }
        group_of = {key: _find_owner_id(cluster_machine.metadata, sets) for key, cluster_machine in known.items()}
        pools = [scalable for scalable in objects if isinstance(scalable, MachinePool)]
        ids = [
            (cluster_machine.spec.provider_id, key)
            for key, cluster_machine in known.items()
            if cluster_machine.spec.provider_id
        ]
        refs = [
            (cluster_machine.status.node_ref.name, key)
            for key, cluster_machine in known.items()
            if cluster_machine.status.node_ref is not None
        ]
        of_group: dict[str, list[MachineKey]] = {}
        for key, group in sorted(group_of.items()):
            of_group.setdefault(group, []).append(key)
        return cls(
            machines=known,
            keys=keys,
            _sets=sets,
            _group_of=group_of,
            _pool_of={listed: get_group_id(pool) for pool in pools for listed in pool.spec.provider_id_list},
            _by_id=_index_unique(ids),
            _by_ending=_index_unique((_get_id_suffix(provider_id), key) for provider_id, key in ids),
            _by_node=_index_unique(refs),
            _of_group=of_group,
        )

    def find_machine(self, node: NodeRef) -> ClusterMachine | None:
        pending_key = parse_key(node.provider_id)
        if pending_key is not None:
            return self.machines.get(pending_key)
        for index, name in (
            (self._by_id, node.provider_id),
            (self._by_ending, _get_id_suffix(node.provider_id)),
            (self._by_node, node.name),
        ):
            if name and (key := index.get(name, _NOBODY)) != _NOBODY:
                return self.machines[key]
        written = node.annotations.get(self.keys.machine, "")
        namespace = node.annotations.get(self.keys.cluster_namespace, "")
        return self.machines.get(MachineKey(namespace, written)) if written else None

    def find_group(self, node: NodeRef) -> str:
        """The id of the group, whether it is autoscaled or not; empty without a group."""
        machine = self.find_machine(node)
        if machine is None:
            return self._pool_of.get(node.provider_id, "")
        return self._group_of.get(get_key(machine), "")

    def find_owner(self, machine: ClusterMachine) -> str:
        """The same for a machine that may have come since; whose the machine sets are, was seen before."""
        return _find_owner_id(machine.metadata, self._sets)

    def list_machines(self, group: str) -> list[ClusterMachine]:
        return [self.machines[key] for key in self._of_group.get(group, ())]


def _find_owner_id(meta: ObjectMeta, sets: Mapping[tuple[str, str], MachineSet]) -> str:
    """The id of what a machine is made by; empty for one that was made by hand."""
    owners = {owner.kind: owner.name for owner in meta.owner_references}
    if name := owners.get(_SET):
        above = sets.get((meta.namespace, name))
        higher = {owner.kind: owner.name for owner in above.metadata.owner_references} if above is not None else {}
        if deployment := higher.get(_DEPLOYMENT):
            return f"{_DEPLOYMENT}/{meta.namespace}/{deployment}"
        return f"{_SET}/{meta.namespace}/{name}"
    return f"{_POOL}/{meta.namespace}/{owners[_POOL]}" if _POOL in owners else ""


def _index_unique(pairs: Iterable[tuple[str, MachineKey]]) -> dict[str, MachineKey]:
    found: dict[str, MachineKey] = {}
    for name, key in pairs:
        found[name] = key if found.get(name, key) == key else _NOBODY
    return found


def _get_id_suffix(provider_id: str) -> str:
    return provider_id.rpartition("/")[2]
