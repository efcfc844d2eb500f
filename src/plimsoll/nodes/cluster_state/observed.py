"""The input of the cluster state: nodes from Kubernetes, groups and instances from the provider. Data only.

Values of the provider are converted here, so that the cluster state does not depend on the provider protocol.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.nodes.model.call_outcomes import CallFailed
    from plimsoll.nodes.providers.values import Instance, InstanceError
    from plimsoll.objects.api.nodes import Node


class InstanceState(IntEnum):
    """The numbers are the wire's (docs/design/nodes.md 9.1)."""

    RUNNING = 1
    CREATING = 2
    DELETING = 3


class ErrorClass(IntEnum):
    """Why an instance could not be made: the cloud has none left (or lets us have no more), or anything else."""

    OUT_OF_RESOURCE = 1
    OTHER = 99

    def __str__(self) -> str:
        return "OutOfResource" if self is ErrorClass.OUT_OF_RESOURCE else "Other"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpError:
    """What the cloud said when it could not do something."""

    error_class: ErrorClass = ErrorClass.OTHER
    code: str = ""
    message: str = ""

    def __str__(self) -> str:
        return f"{self.error_class}.{self.code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedInstance:
    """A machine of a group; `id` is what its node has as providerID."""

    id: str
    name: str = ""
    """What its node is called, where the provider knows that: nodes need not tell their machine's id."""
    state: InstanceState | None = InstanceState.RUNNING
    """None: the provider does not tell."""
    error: ScaleUpError | None = None

    @property
    def is_expected_to_register(self) -> bool:
        return self.state is not InstanceState.DELETING and self.error is None

    @property
    def failed_to_create(self) -> bool:
        return self.state is InstanceState.CREATING and self.error is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedGroup:
    """A group of the provider that exists, with its machines. Times are its own options; None: the program's."""

    id: str
    min_size: int = 0
    max_size: int
    target_size: int
    instances: tuple[ObservedInstance, ...] = ()
    provision_time_s: float | None = None
    startup_time_s: float | None = None
    machine_type: str = ""
    zone: str = ""
    autoscaled: bool = True
    """False: left as it is. Its nodes and what is upcoming there count, nothing of it is repaired or given up."""
    profile: str = ""
    """The hash by which auto-provisioning knows the kind of group; empty for groups it did not make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableNode:
    """A node that exists and cannot be decoded: it counts as present, and as unready."""

    name: str
    provider_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCluster:
    """One look at the world."""

    nodes: tuple[Node, ...] = ()
    unreadable: tuple[UnreadableNode, ...] = ()
    group_of: Mapping[str, str] = field(default_factory=dict)
    """Node name to group id; nodes of no group are missing."""
    groups: tuple[ObservedGroup, ...] = ()
    has_instance: Mapping[str, bool] = field(default_factory=dict)
    """Node name to whether its machine exists; missing where the provider cannot tell."""
    gpu_label: str = ""
    """The label by which the provider marks nodes that must have accelerators."""


TIMEOUT: Final = "timeout"
"""The code of a growth whose nodes did not come in time."""


def observed_instance(instance: Instance) -> ObservedInstance:
    error = None if instance.error is None else _instance_error(instance.error)
    return ObservedInstance(id=instance.id, name=instance.name, state=_STATES.get(int(instance.state)), error=error)


def call_error(failure: CallFailed) -> ScaleUpError:
    """A call that grew or made nothing, or of which nobody knows."""
    return ScaleUpError(
        error_class=ErrorClass(int(failure.error_class)), code=str(failure.kind), message=failure.message
    )


def _instance_error(error: InstanceError) -> ScaleUpError:
    return ScaleUpError(error_class=ErrorClass(int(error.error_class)), code=error.code, message=error.message)


_STATES = {int(state): state for state in InstanceState}
"""A provider that does not say has no state here."""
