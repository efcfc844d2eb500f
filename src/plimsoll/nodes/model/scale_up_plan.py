"""The scale-up plan and the options it chooses from. Data only; `plimsoll plan`, the loop and the journal render it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from plimsoll.nodes.model.snapshot import CapacityType

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from plimsoll.core.plans import Reason
    from plimsoll.core.resources import ResourceVector
    from plimsoll.objects.api.nodes import Node, Taint
    from plimsoll.objects.api.pods import Pod


class Result(StrEnum):
    """How a scale-up ended, in Cluster Autoscaler's words."""

    NEEDED = "ScaleUpNeeded"
    NOT_NEEDED = "NotNeeded"
    NO_OPTIONS = "NoOptions"


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePattern:
    """Equal new nodes: their number, and the pods on each by the key of their PendingPods."""

    nodes: int
    pods: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScaleUp:
    """The scale-up of one group, existing or new."""

    option: ScaleUpOption
    before: int
    after: int
    patterns: tuple[NodePattern, ...]
    reason: Reason
    requests: frozenset[str] = frozenset()
    """The ProvisioningRequests that it serves, NAMESPACE/NAME."""
    for_others: bool = True
    """Whether it also serves pods of no request."""

    @property
    def added(self) -> int:
        return self.after - self.before

    def is_only_for(self, requests: Collection[str]) -> bool:
        """Whether all its pods belong to these requests."""
        return bool(self.requests) and not self.for_others and all(request in requests for request in self.requests)

    @property
    def is_whole(self) -> bool:
        """Whether only the whole scale-up is of use, so that it should be atomic if the provider can do that."""
        return bool(self.requests) or self.option.zero_or_max


@dataclass(frozen=True, slots=True, kw_only=True)
class UnschedulablePods:
    """Unschedulable pods, and the reasons."""

    pods: int
    keys: Mapping[str, int]
    reasons: tuple[Reason, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LabelSet:
    """A label set that auto-provisioning computed: selectors merged into it, and those it fully serves."""

    labels: Mapping[str, str]
    merged: tuple[Mapping[str, str], ...]
    served: tuple[Mapping[str, str], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpPlan:
    """The plan. `cost_per_hour` is the real price of the added nodes; the lower bound is for the pods helped."""

    result: Result
    scale_ups: tuple[GroupScaleUp, ...] = ()
    existing: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Node name to pods by key: places on existing nodes."""
    scheduled: int = 0
    """Pods that get a place, on new nodes or on existing ones."""
    unschedulable: tuple[UnschedulablePods, ...] = ()
    cost_per_hour: float = 0.0
    lower_bound_per_hour: float = 0.0
    label_sets: tuple[LabelSet, ...] = ()
    skipped_groups: tuple[SkippedGroup, ...] = ()
    budgets: Mapping[str, int] = field(default_factory=dict)
    """The counted effort of the plan, for replay."""
    verification_failures: int = 0
    """Classes whose bulk plan the verifier refused; the compatible estimator placed them instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProfile:
    """Labels and taints that the nodes of a new group get for its pods."""

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpOption:
    """One group that could be scaled up: `room` more nodes may be added to it."""

    group: str
    """The id of the group; for a new group, the id it would get."""
    node: Node
    """A template: planned nodes get names and hostnames of their own."""
    daemons: tuple[Pod, ...]
    free: ResourceVector
    """Allocatable of an empty node, without its daemons."""
    capacity: ResourceVector
    """What a node counts towards the limits of the cluster."""
    price_per_hour: float
    """The real price, for reports."""
    planning_price: float
    """The price with the preferences of docs/design/nodes.md 8.4, for choosing."""
    size: int
    max_size: int
    room: int
    machine_type: str = ""
    zone: str = ""
    exists: bool = True
    profile: GroupProfile | None = None
    """Set for a new group."""
    tier: int = 0
    """From the priority expander: lower tiers are used first, whatever the price."""
    zero_or_max: bool = False
    capacity_type: CapacityType = CapacityType.ON_DEMAND


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedGroup:
    """A group or machine type that is not an option for any pod: "max size reached", "in backoff"."""

    group: str
    machine_type: str
    reason: str
    code: str
    """CamelCase: MaxSizeReached, InBackoff, NotReady, CpuResourceLimit, MemoryResourceLimit, MaxNodeGroups, ..."""
    zone: str = ""
    """The only zone it is skipped in; empty: all its zones."""
