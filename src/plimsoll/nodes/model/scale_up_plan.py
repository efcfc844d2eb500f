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
    """So many new nodes filled alike: pods per node, by the key of their Pending."""

    nodes: int
    pods: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScaleUp:
    """One group made larger, or made."""

    option: ScaleUpOption
    before: int
    after: int
    patterns: tuple[NodePattern, ...]
    reason: Reason
    requests: frozenset[str] = frozenset()
    """ProvisioningRequests with pods among those it is for, NAMESPACE/NAME."""
    for_others: bool = True
    """Other pods are among them too."""

    @property
    def added(self) -> int:
        return self.after - self.before

    def is_only_for(self, requests: Collection[str]) -> bool:
        """Whether nobody but these has use for it."""
        return bool(self.requests) and not self.for_others and all(request in requests for request in self.requests)

    @property
    def is_whole(self) -> bool:
        """Whether a part of it is of no use: who can grow all at once or not at all should."""
        return bool(self.requests) or self.option.zero_or_max


@dataclass(frozen=True, slots=True, kw_only=True)
class UnschedulablePods:
    """Pods that stay without a place, and all that stood in their way."""

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
    """The whole answer. `cost_per_hour` is real money of what is added; the bound holds for the pods helped."""

    result: Result
    scale_ups: tuple[GroupScaleUp, ...] = ()
    existing: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Node name to pods by key: places found without growing."""
    scheduled: int = 0
    """Pods that get a place, on new nodes or on existing ones."""
    unschedulable: tuple[UnschedulablePods, ...] = ()
    cost_per_hour: float = 0.0
    lower_bound_per_hour: float = 0.0
    label_sets: tuple[LabelSet, ...] = ()
    skipped_groups: tuple[SkippedGroup, ...] = ()
    budgets: Mapping[str, int] = field(default_factory=dict)
    """Counted effort the plan was made under, for replay."""
    verification_failures: int = 0
    """Classes whose bulk plan the verifier refused; the compatible estimator placed them instead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupProfile:
    """What the nodes of a group that does not exist yet would carry for the pods they are made for."""

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpOption:
    """Nodes of one kind in one place: `room` more of them may be added to `group`."""

    group: str
    """Its id; for a group to be made, the id it would get."""
    node: Node
    """A template: planned nodes get names and hostnames of their own."""
    daemons: tuple[Pod, ...]
    free: ResourceVector
    """What an empty node gives to pods: allocatable without the daemons."""
    capacity: ResourceVector
    """What it counts for towards the limits of the cluster."""
    price_per_hour: float
    """Real money, for reports."""
    planning_price: float
    """With the preferences of docs/design/nodes.md 8.4, for choosing."""
    size: int
    max_size: int
    room: int
    machine_type: str = ""
    zone: str = ""
    exists: bool = True
    profile: GroupProfile | None = None
    """For a group to be made."""
    tier: int = 0
    """From the priority expander: lower tiers are used first, whatever the money."""
    zero_or_max: bool = False
    capacity_type: CapacityType = CapacityType.ON_DEMAND


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedGroup:
    """A group or machine type that was looked at and left out, for all pods: "max size reached", "in backoff"."""

    group: str
    machine_type: str
    reason: str
    code: str
    """CamelCase: MaxSizeReached, InBackoff, NotReady, CpuResourceLimit, MemoryResourceLimit, MaxNodeGroups, ..."""
