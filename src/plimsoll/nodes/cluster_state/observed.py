"""The input of the cluster state: nodes from Kubernetes, groups and instances from the provider. Data only.

Values of the provider are converted here, so that the cluster state does not depend on the provider protocol.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from plimsoll.nodes.model.instances import ErrorClass, InstanceState

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.nodes.model.call_outcomes import CallFailed
    from plimsoll.nodes.providers.values import Instance, InstanceError
    from plimsoll.objects.api.nodes import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpError:
    """The cloud's error for instances that it could not create."""

    error_class: ErrorClass = ErrorClass.OTHER
    code: str = ""
    message: str = ""

    def __str__(self) -> str:
        return f"{self.error_class}.{self.code}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedInstance:
    """A machine of a group; `id` is the providerID of its node."""

    id: str
    name: str = ""
    """The name of its node, if the provider knows it: a node need not state the id of its machine."""
    state: InstanceState | None = InstanceState.RUNNING
    """None: the provider does not say."""
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
    """False: the group is not managed. Its nodes, existing and upcoming, count; none is repaired or given up."""
    profile: str = ""
    """The hash by which auto-provisioning knows the kind of group; empty for groups it did not make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnreadableNode:
    """A node that exists and cannot be decoded: it counts as present, and as unready."""

    name: str
    provider_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedCluster:
    """The cluster at one time: nodes from Kubernetes, groups and instances from the provider."""

    nodes: tuple[Node, ...] = ()
    unreadable: tuple[UnreadableNode, ...] = ()
    group_of: Mapping[str, str] = field(default_factory=dict)
    """Node name to group id; nodes of no group are missing."""
    groups: tuple[ObservedGroup, ...] = ()
    has_instance: Mapping[str, bool] = field(default_factory=dict)
    """Node name to whether its machine exists; missing where the provider does not know."""
    gpu_label: str = ""
    """The label by which the provider marks nodes that must have accelerators."""


TIMEOUT: Final = "timeout"
"""The code of a scale-up whose nodes did not come in time."""


def to_observed_instance(instance: Instance) -> ObservedInstance:
    error = None if instance.error is None else _to_scale_up_error(instance.error)
    state = None if instance.state is InstanceState.UNSPECIFIED else instance.state
    return ObservedInstance(id=instance.id, name=instance.name, state=state, error=error)


def build_call_error(failure: CallFailed) -> ScaleUpError:
    """The error of a call that created nothing, or whose result is unknown."""
    return ScaleUpError(error_class=failure.error_class, code=str(failure.kind), message=failure.message)


def _to_scale_up_error(error: InstanceError) -> ScaleUpError:
    return ScaleUpError(error_class=error.error_class, code=error.code, message=error.message)
