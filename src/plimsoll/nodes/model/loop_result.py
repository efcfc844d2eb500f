"""What one turn of the node autoscaler saw, decided and did. Data only.

Made by the loop, step by step; read by everything in `telling`: events, metrics, the status ConfigMap, the journal, the
entry of a scenario's `loops`. Nothing reads a turn in order to decide.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from plimsoll.nodes.cluster_state.changes import Changes
from plimsoll.nodes.model.reasons import CANNOT_SEE
from plimsoll.nodes.model.scale_up_plan import Result, ScaleUpPlan
from plimsoll.nodes.planning.scaledown.selection import NodesToDelete
from plimsoll.nodes.providers.values import FailureKind
from plimsoll.nodes.requests.model import RequestsPart

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plimsoll.core.plans import Reason
    from plimsoll.nodes.actuation.cleanup import Cleaned
    from plimsoll.nodes.cluster_state.health import Standing
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_up_plan import GroupScaleUp
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.planning.scaledown.eligibility import ScaleDownState
    from plimsoll.nodes.planning.scaledown.planner import UnneededNode, UnremovableNode
    from plimsoll.nodes.planning.scaledown.selection import NodeRemoval
    from plimsoll.nodes.providers.values import CallFailed
    from plimsoll.objects.api.pods import Pod


class PodState(StrEnum):
    """What `unschedulable_pods_count` tells apart."""

    UNSCHEDULABLE = "unschedulable"
    UNPROCESSED = "scheduler_unprocessed"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """A pod that waits and is not planned for this turn: expendable, too new, consuming a request, a daemon pod."""

    pod: Pod
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpResult:
    """What became of one growth of the plan. `failure` None: the provider took it."""

    growth: GroupScaleUp
    group: str
    """Its id in the cloud: a provider may give a new group another one than was planned."""
    before: int
    after: int
    created: bool = False
    """The group was made in this turn."""
    failure: CallFailed | None = None
    held_back: Reason | None = None
    """Why nothing was called, where nothing failed: a brake is on, or nobody would have use for it any more."""
    is_overtaken: bool = False
    """The group was not as the plan knew it: nothing was called, and the next turn plans anew."""

    @property
    def is_done(self) -> bool:
        return self.failure is None and self.held_back is None

    @property
    def is_unknown(self) -> bool:
        """Whether no answer came: it may have been done."""
        return self.failure is not None and self.failure.kind is FailureKind.UNKNOWN

    @property
    def is_refused(self) -> bool:
        """Whether the cloud said no: it was not done, and asking again would not help now."""
        return self.failure is not None and not self.is_unknown and not self.is_overtaken


@dataclass(frozen=True, slots=True, kw_only=True)
class Repaired:
    """A size or an instance that the cluster state wanted put right, and whether it was."""

    group: str
    reason: Reason
    instances: tuple[str, ...] = ()
    """Deleted; empty where only a target was lowered."""
    before: int | None = None
    after: int | None = None
    failure: CallFailed | None = None


class RemovalResult(StrEnum):
    """How a removal ended."""

    REMOVED = "removed"
    FAILED = "failed"
    OVERTAKEN = "overtaken"
    """The node is needed again, or gone without our doing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EvictedPod:
    """A pod that was asked to leave its node."""

    pod: Pod
    failure: Reason | None = None
    """Why it did not go; None: it was told to, or was gone already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRemoval:
    """A removal that came to an end since the last turn (or in this one)."""

    removal: NodeRemoval
    result: RemovalResult
    reason: Reason | None = None
    """Of everything but a plain success."""
    evicted: int = 0
    failed_evictions: int = 0
    seconds: float = 0.0
    """From the taint to the end, by the steady clock; for a metric only."""
    was_unready: bool = False
    pods: tuple[EvictedPod, ...] = ()
    """Those that were to be evicted, in the order in which they were asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedGroup:
    """An empty auto-provisioned group that was deleted, or could not be."""

    group: str
    failure: CallFailed | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpPart:
    """Growth, this turn."""

    plan: ScaleUpPlan = field(default_factory=lambda: ScaleUpPlan(result=Result.NOT_NEEDED))
    skipped: Reason | None = None
    """Why nobody planned: MaxNodesTotalReached, pods too new, paused."""
    grown: tuple[ScaleUpResult, ...] = ()
    plan_seconds: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDownPart:
    """Shrinking, this turn."""

    unneeded: tuple[UnneededNode, ...] = ()
    unneeded_since: Mapping[str, datetime] = field(default_factory=dict)
    kept: tuple[UnremovableNode, ...] = ()
    """Nodes that are needed, each with its reason, then unneeded ones that do not go yet."""
    skipped: Reason | None = None
    """Why nothing was begun although nodes are unneeded: cool-down, a scale-up in this turn, unhealthy, paused."""
    departures: NodesToDelete = field(default_factory=NodesToDelete)
    """What was decided to go; begun in this turn unless `held_back`."""
    held_back: Mapping[str, Reason] = field(default_factory=dict)
    """By node: a brake kept it (dry run, max-removals-per-hour, pause)."""
    replacing: tuple[ScaleUpResult, ...] = ()
    """Cheaper nodes that consolidation asked for, before the dear ones go."""
    savings_per_hour: float = 0.0
    """What consolidation would save, with everything that it proposes."""
    ended: tuple[FinishedRemoval, ...] = ()
    under_way: int = 0
    is_in_cooldown: bool = False
    known: ScaleDownState | None = None
    """What was remembered when it was decided who is unneeded; for recordings."""

    @property
    def begun(self) -> tuple[NodeRemoval, ...]:
        """What was decided to go and not held back."""
        return tuple(
            node_removal for node_removal in self.departures.removals if node_removal.node not in self.held_back
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopResult:
    """All of one turn. What it did not come to has its default."""

    number: int
    at: datetime
    policy: Policy
    ended_early: Reason | None = None
    """Why the turn stopped before planning: provider not reachable, cluster unhealthy, no nodes, sizes repaired."""
    standing: Standing | None = None
    changes: Changes = field(default_factory=Changes)
    repaired: tuple[Repaired, ...] = ()
    cleaned: tuple[Cleaned, ...] = ()
    """Nodes that a taint of deletion was taken off, because nobody removes them."""
    snapshot: Snapshot | None = None
    pods_by_state: Mapping[PodState, int] = field(default_factory=dict)
    set_aside: tuple[SetAside, ...] = ()
    scale_up: ScaleUpPart = field(default_factory=ScaleUpPart)
    scale_down: ScaleDownPart = field(default_factory=ScaleDownPart)
    groups_gone: tuple[DeletedGroup, ...] = ()
    requests: RequestsPart = field(default_factory=RequestsPart)
    priority_problem: Reason | None = None
    """What is wrong with the priority expander's ConfigMap: PriorityConfigMapInvalid and its like."""
    function_seconds: Mapping[str, float] = field(default_factory=dict)
    """Measured by function label of `function_duration_seconds`; for metrics and `--timing` only."""

    @property
    def is_success(self) -> bool:
        """Whether it could look at everything: what the liveness probe asks for."""
        return self.ended_early is None or self.ended_early.code != CANNOT_SEE

    @property
    def grown(self) -> tuple[ScaleUpResult, ...]:
        """Everything that was asked to grow, for pods and for money."""
        return (*self.scale_up.grown, *self.scale_down.replacing)

    @property
    def did_something(self) -> bool:
        """Whether the next turn should follow at once."""
        if self.requests.did_something or any(result.is_done for result in self.grown):
            return True
        return any(
            node_removal.node not in self.scale_down.held_back for node_removal in self.scale_down.departures.removals
        )
