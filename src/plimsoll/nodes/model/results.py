"""What became of the actions of one loop iteration: scale-ups, repairs, removals, evictions, clean-ups. Data only."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from plimsoll.nodes.model.call_outcomes import FailureKind
from plimsoll.nodes.model.scale_up_plan import Result, ScaleUpPlan

if TYPE_CHECKING:
    from plimsoll.core.plans import Reason, Ref
    from plimsoll.nodes.model.call_outcomes import CallFailed
    from plimsoll.nodes.model.scale_down_plan import NodeRemoval
    from plimsoll.nodes.model.scale_up_plan import GroupScaleUp
    from plimsoll.objects.api.meta import ObjectMeta
    from plimsoll.objects.api.pods import Pod


class PodState(StrEnum):
    """The values of the label of `unschedulable_pods_count`."""

    UNSCHEDULABLE = "unschedulable"
    UNPROCESSED = "scheduler_unprocessed"


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredPod:
    """A pending pod that is not planned for: expendable, too new, a consumer of a request, or a daemon pod."""

    pod: Pod
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class IgnoredField:
    """A field whose value is out of range or cannot be read; the object counts as one without it."""

    ref: Ref
    field: str
    problem: str
    consequence: str = "it is ignored"


def list_unknown_fields(ref: Ref, metadata: ObjectMeta) -> list[IgnoredField]:
    """The fields that could not be decoded, of an object that counts as one without them."""
    parts = [unknown.partition(": ") for unknown in metadata.unknown_fields]
    return [
        IgnoredField(ref=ref, field=field, problem=problem, consequence="it is unknown") for field, _, problem in parts
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpResult:
    """What became of one scale-up of the plan. `failure` is None if the provider accepted it."""

    scale_up: GroupScaleUp
    group: str
    """Its id in the cloud. A provider may give a new group another id than the planned one."""
    before: int
    after: int
    created: bool = False
    """The group was created in this loop iteration."""
    failure: CallFailed | None = None
    held_back: Reason | None = None
    """Why the provider was not called although nothing failed: paused, dry run, or the nodes are no longer needed."""
    is_overtaken: bool = False
    """The group changed after it was planned: the provider was not called, and the next loop iteration plans again."""

    @property
    def is_done(self) -> bool:
        return self.failure is None and self.held_back is None

    @property
    def is_unknown(self) -> bool:
        """Whether no answer came, so that the change may have happened."""
        return self.failure is not None and self.failure.kind is FailureKind.UNKNOWN

    @property
    def is_refused(self) -> bool:
        """Whether the cloud refused: nothing was changed, and another call would not help now."""
        return self.failure is not None and not self.is_unknown and not self.is_overtaken


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRepair:
    """A repair that the cluster state requested, of a target size or of instances, and whether it succeeded."""

    group: str
    reason: Reason
    instances: tuple[str, ...] = ()
    """The deleted instances; empty if only the target size was lowered."""
    before: int | None = None
    after: int | None = None
    failure: CallFailed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldDeletion:
    """A deletion, or a lower target size, that was not requested from the provider; `reason` says what runs there."""

    group: str
    reason: Reason
    instance: str = ""
    """Empty if it is about the group."""
    node: str = ""


class RemovalResult(StrEnum):
    """How a removal ended."""

    REMOVED = "removed"
    FAILED = "failed"
    OVERTAKEN = "overtaken"
    """The node is needed again, or was deleted by something else."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictedPod:
    """A pod for which an eviction was requested."""

    pod: Pod
    failure: Reason | None = None
    """Why the eviction failed; None if it was accepted or the pod did not exist any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRemoval:
    """A node removal that ended since the last loop iteration, or in this one."""

    removal: NodeRemoval
    result: RemovalResult
    reason: Reason | None = None
    """Set unless the removal simply succeeded."""
    evicted: int = 0
    failed_evictions: int = 0
    seconds: float = 0.0
    """From the taint to the end, by the monotonic clock; only for a metric."""
    was_unready: bool = False
    pods: tuple[EvictedPod, ...] = ()
    """The pods to evict, in the order of the requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedGroup:
    """An empty auto-provisioned group that was deleted, or could not be."""

    group: str
    failure: CallFailed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpPart:
    """The scale-up of one loop iteration."""

    plan: ScaleUpPlan = field(default_factory=lambda: ScaleUpPlan(result=Result.NOT_NEEDED))
    skipped: Reason | None = None
    """Why nothing was planned: MaxNodesTotalReached, pods too new, paused."""
    results: tuple[ScaleUpResult, ...] = ()
    plan_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CleanedNode:
    """A node whose deletion taint was to be removed. `failure` is None if that succeeded."""

    node: str
    failure: Reason | None = None
