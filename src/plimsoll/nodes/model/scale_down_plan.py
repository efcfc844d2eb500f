"""What the scale-down planners decide: which nodes are unneeded, which stay and why, which to delete now. Data only."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.core.plans import Reason
    from plimsoll.scheduling.cluster_view import PodKey


@dataclass(frozen=True, slots=True, kw_only=True)
class PodMove:
    """A pod that would move from one node to another."""

    pod: PodKey
    source: str
    target: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnneededNode:
    """A node that could be removed."""

    node: str
    group: str
    is_empty: bool
    """No pod on it needs another node."""
    utilization: float
    is_ready: bool
    pods: int
    """The number of pods that would have to move."""
    is_risky: bool = False
    """Its pods would use the last disruption that a PodDisruptionBudget allows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnremovableNode:
    """A node that stays, and why."""

    node: str
    reason: Reason
    retry_at: datetime | None = None
    """Set where checking again sooner is a waste; the controller returns it in `ScaleDownState.unremovable_until`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRemoval:
    """A node to delete now, and where its pods would go."""

    node: str
    group: str
    is_empty: bool
    moves: tuple[PodMove, ...] = ()
    """Pods to evict, with the nodes found for them; the scheduler makes the final decision."""
    daemons: tuple[PodKey, ...] = ()
    """Pods that may be evicted too and need no other node."""
    is_risky: bool = False
    atomic: bool = False
    """Its group is resized as a whole: either all removals of the group are carried out, or none."""
    reason: Reason


@dataclass(frozen=True, slots=True, kw_only=True)
class NodesToDelete:
    """The nodes to delete now, empty ones first. `unremovable` are unneeded nodes that stay for now."""

    removals: tuple[NodeRemoval, ...] = ()
    unremovable: tuple[UnremovableNode, ...] = ()
