"""What one loop iteration of the node autoscaler observed, decided and did. Data only.

The autoscaler fills it in step by step. Events, metrics, the status ConfigMap, the journal and the `loops` entries of a
scenario are made from it; no decision is.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plimsoll.nodes.cluster_state.changes import Changes
from plimsoll.nodes.model.reasons import CANNOT_SEE
from plimsoll.nodes.model.results import (
    DeletedGroup,
    FilteredPod,
    FinishedRemoval,
    GroupRepair,
    HeldDeletion,
    IgnoredField,
    PodState,
    ScaleUpPart,
    ScaleUpResult,
)
from plimsoll.nodes.model.scale_down_plan import NodesToDelete
from plimsoll.nodes.requests.model import RequestsPart

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plimsoll.core.plans import Reason
    from plimsoll.nodes.cluster_state.health import ClusterHealth
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.results import CleanedNode
    from plimsoll.nodes.model.scale_down_plan import NodeRemoval, UnneededNode, UnremovableNode
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.planning.scaledown.eligibility import ScaleDownState
    from plimsoll.objects.codec.decode_problems import BadObject


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleDownPart:
    """The scale-down of one loop iteration."""

    unneeded: tuple[UnneededNode, ...] = ()
    unneeded_since: Mapping[str, datetime] = field(default_factory=dict)
    postponed: tuple[str, ...] = ()
    """Nodes whose removal was not simulated because the effort of this turn was used up."""
    unremovable: tuple[UnremovableNode, ...] = ()
    """Nodes that are needed, each with its reason, then unneeded ones that stay for now."""
    skipped: Reason | None = None
    """Why no removal was started although nodes are unneeded: a cooldown, a scale-up just now, unhealthy, paused."""
    nodes_to_delete: NodesToDelete = field(default_factory=NodesToDelete)
    """The nodes chosen for deletion; removals start in this loop iteration unless they are in `held_back`."""
    held_back: Mapping[str, Reason] = field(default_factory=dict)
    """Node name to why its removal was not started: dry run, max-removals-per-hour, pause."""
    replacements: tuple[ScaleUpResult, ...] = ()
    """Scale-ups by cheaper nodes that consolidation requested before it removes more expensive ones."""
    savings_per_hour: float = 0.0
    """What everything that consolidation proposes would save."""
    finished: tuple[FinishedRemoval, ...] = ()
    under_way: int = 0
    is_in_cooldown: bool = False
    known: ScaleDownState | None = None
    """The state that the decision about unneeded nodes started from; for recordings."""

    @property
    def started(self) -> tuple[NodeRemoval, ...]:
        """The removals that were started: chosen, and not held back."""
        return tuple(
            node_removal for node_removal in self.nodes_to_delete.removals if node_removal.node not in self.held_back
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopResult:
    """The whole loop iteration. Steps that it did not reach have their defaults."""

    number: int
    at: datetime
    policy: Policy
    ended_early: Reason | None = None
    """Why it stopped before planning: provider not reachable, cluster unhealthy, no nodes, sizes repaired."""
    held_back: Reason | None = None
    """Why nothing is done whatever is planned: dry run, paused, another autoscaler is at work."""
    health: ClusterHealth | None = None
    changes: Changes = field(default_factory=Changes)
    repairs: tuple[GroupRepair, ...] = ()
    cleaned: tuple[CleanedNode, ...] = ()
    """Nodes whose deletion taint was removed because no removal is under way."""
    snapshot: Snapshot | None = None
    pods_by_state: Mapping[PodState, int] = field(default_factory=dict)
    filtered_pods: tuple[FilteredPod, ...] = ()
    ignored_fields: tuple[IgnoredField, ...] = ()
    bad_objects: tuple[BadObject, ...] = ()
    """Objects that cannot be decoded or judged: they are present, and nothing is done with them."""
    scale_up: ScaleUpPart = field(default_factory=ScaleUpPart)
    scale_down: ScaleDownPart = field(default_factory=ScaleDownPart)
    deleted_groups: tuple[DeletedGroup, ...] = ()
    hold: Reason | None = None
    """Why nothing shrinks in this loop: a list that is not believed."""
    held_deletions: tuple[HeldDeletion, ...] = ()
    """Instances, groups and target sizes that are kept because something may still run there."""
    requests: RequestsPart = field(default_factory=RequestsPart)
    priority_problem: Reason | None = None
    """What is wrong with the ConfigMap of the priority expander, such as PriorityConfigMapInvalid."""
    function_seconds: Mapping[str, float] = field(default_factory=dict)
    """Durations by function label of `function_duration_seconds`; only for metrics and `--timing`."""

    @property
    def is_success(self) -> bool:
        """Whether it could read everything, which the liveness probe requires."""
        return self.ended_early is None or self.ended_early.code != CANNOT_SEE

    @property
    def scale_up_results(self) -> tuple[ScaleUpResult, ...]:
        """All scale-ups: for pending pods, and for consolidation."""
        return (*self.scale_up.results, *self.scale_down.replacements)

    @property
    def did_something(self) -> bool:
        """Whether the next loop iteration should follow at once."""
        if self.requests.did_something or any(result.is_done for result in self.scale_up_results):
            return True
        return bool(self.scale_down.started)
