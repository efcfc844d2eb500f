"""What planners keep from one turn to the next, so that a turn costs by what changed: `PlannerCache`.

Everything in it is either an answer by content or made from objects that are compared before it is used again: with a
memory, without one, or with one of another cluster, a plan comes out the same. It is not a part of the world, and a
snapshot does not have to have one. One turn at a time may use it; `snapshots` keeps one for a controller.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.nodes.planning.equivalence.scheduling_keys import Forms
from plimsoll.nodes.planning.predicates.static_predicates import Verdicts
from plimsoll.nodes.planning.scaledown.drainability_cache import DrainVerdicts
from plimsoll.nodes.planning.state.node_arrays import NodeArrays
from plimsoll.nodes.planning.state.node_pods import PodsByNode

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.nodes.planning.equivalence.running_classes import Sorted
    from plimsoll.scheduling.cluster_view import ClusterView

# Answers are only ever added; past this many they are asked for anew.
_MOST_VERDICTS: Final = 200_000


class PlannerCache:
    """Of one planner, or of several that take turns."""

    def __init__(self) -> None:
        self.waiting_forms = Forms()
        self.asking_forms = Forms()
        """Of pods that requests ask for: planned apart from those that wait."""
        self.running_forms = Forms()
        self.drains = DrainVerdicts()
        self.sorted: Sorted | None = None
        self._verdicts = Verdicts()
        self._arrays: NodeArrays | None = None
        self._homes: PodsByNode | None = None

    @property
    def verdicts(self) -> Verdicts:
        """Of the rules that read only the node object and the pod."""
        if len(self._verdicts.known) > _MOST_VERDICTS:
            self._verdicts = Verdicts()
        return self._verdicts

    def arrays(self, view: ClusterView, *, resources: Iterable[str] = ()) -> NodeArrays:
        """The nodes of a view; only those are read that changed since somebody asked last."""
        before = self._arrays
        self._arrays = (
            NodeArrays.of(view, resources=resources) if before is None else before.updated(view, resources=resources)
        )
        return self._arrays

    def homes(self, view: ClusterView) -> PodsByNode:
        """Likewise the pods on them."""
        self._homes = PodsByNode.of(view, self._homes)
        return self._homes
