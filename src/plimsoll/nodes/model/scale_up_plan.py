"""The result of the scale-up planner. Data only; `plimsoll plan`, the loop and the journal all render it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from plimsoll.core.plans import Reason
    from plimsoll.nodes.model.scale_up_options import ScaleUpOption, SkippedGroup


class Result(StrEnum):
    """How a scale-up ended, in Cluster Autoscaler's words."""

    NEEDED = "ScaleUpNeeded"
    NOT_NEEDED = "NotNeeded"
    NO_OPTIONS = "NoOptions"


@dataclass(frozen=True, slots=True, kw_only=True)
class Pattern:
    """So many new nodes filled alike: pods per node, by the key of their Pending."""

    nodes: int
    pods: Mapping[str, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupScaleUp:
    """One group made larger, or made."""

    option: ScaleUpOption
    before: int
    after: int
    patterns: tuple[Pattern, ...]
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
