"""Values of the provider interface: node references, instances, group options, blueprints, price spans.

Failures of changing calls are values (`call_outcomes.Outcome`); `ProviderFailed` is raised by reads without which a
loop iteration cannot continue.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 -- msgspec resolves the annotations of Values at run time
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import Unreachable
from plimsoll.core.values import Value
from plimsoll.nodes.model.instances import ErrorClass, InstanceState
from plimsoll.objects.api.nodes import Taint  # noqa: TC001 -- likewise

if TYPE_CHECKING:
    from plimsoll.objects.api.nodes import Node

SIMULATED: Final = "simulated"
EXTERNAL: Final = "externalgrpc"
CLUSTER_API: Final = "clusterapi"
"""The names of providers, as the flag has them."""
HOUR_S: Final = 3600.0


class ProviderFailed(Unreachable):
    """A read that the provider did not answer; nothing was changed."""


# ---- nodes and instances

ATTACH_LIMITS: Final = "plimsoll.io/attach-limits"
"""On a template: how many volumes of each driver its nodes take, as `driver=limit,…`."""


class NodeRef(Value):
    """A node as providers know it. An instance that never registered has its own id in place of a name."""

    provider_id: str
    name: str
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}

    @classmethod
    def from_node(cls, node: Node) -> NodeRef:
        meta = node.metadata
        return cls(provider_id=node.spec.provider_id, name=meta.name, labels=meta.labels, annotations=meta.annotations)

    @classmethod
    def from_instance(cls, instance: Instance) -> NodeRef:
        return cls(provider_id=instance.id, name=instance.name or instance.id)


class InstanceError(Value):
    """The reason why an instance is not created."""

    error_class: ErrorClass
    code: str
    message: str = ""


class Instance(Value):
    """A machine of a group. `id` is its provider id; `name` is empty where the provider knows none."""

    id: str
    name: str = ""
    state: InstanceState = InstanceState.RUNNING
    error: InstanceError | None = None


# ---- groups


class GroupOptions(Value):
    """Options of the autoscaler that a provider may override per group. Times in seconds."""

    utilization_threshold: float
    gpu_utilization_threshold: float
    unneeded_s: float
    unready_s: float
    provision_s: float
    startup_s: float
    ignore_daemon_sets: bool = False
    zero_or_max: bool = False
    """The group is scaled to its maximum or to zero, never in between."""
    allow_partial_scale_up: bool = False
    """If a scale-up to the maximum fails in part, the nodes that arrived stay."""


class Blueprint(Value):
    """A node group to create. The autoscaler chooses the id; a provider may use another."""

    id: str
    machine_type: str
    max_size: int
    labels: dict[str, str] = {}
    system_labels: dict[str, str] = {}
    """Labels that the machine type and the zone are expected to put on nodes by themselves."""
    taints: tuple[Taint, ...] = ()
    zones: tuple[str, ...] = ()
    """Empty: wherever the type is sold."""
    extra_resources: dict[str, str] = {}
    """Quantities by resource name."""


class Span(Value):
    """The period of a price."""

    start: datetime
    end: datetime

    @property
    def seconds(self) -> float:
        return (self.end - self.start).total_seconds()
