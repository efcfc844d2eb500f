"""Which unneeded nodes are deleted now: `select_nodes_to_delete(simulation, policy, state=..., now=...)`. Pure.

Timers are data (`ScaleDownState.unneeded_since`). Empty nodes come first, then nodes to drain, last those that would
use the remainder of a disruption budget. Group sizes, minimum resource limits and parallelism are counted node by node;
groups with atomic scaling go as a whole (docs/design/nodes.md 5.3, 6.8). Every drain is simulated again with the plain
scheduling rules and all deleted nodes removed at once: a node that fails is not proposed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.durations import add_seconds
from plimsoll.core.plans import Reason
from plimsoll.nodes.model.reasons import BELOW_MINIMUM
from plimsoll.nodes.model.scale_down_plan import NodeRemoval, NodesToDelete, PodMove, UnremovableNode
from plimsoll.nodes.planning.scaledown.eligibility import MIN_SIZE_REACHED, ScaleDownState
from plimsoll.nodes.planning.scaledown.planner import NO_PLACE
from plimsoll.nodes.planning.scaledown.simulator import VERIFICATION_EFFORT, RemovalSimulator, Unplaceable
from plimsoll.nodes.planning.state.resource_limits import (
    CountedNode,
    MinimumLimit,
    find_broken_minimums,
    find_minimums,
    measure_usage_of_arrays,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_down_plan import UnneededNode
    from plimsoll.nodes.planning.scaledown.planner import ScaleDownSimulation

NOT_LONG_ENOUGH: Final = "NotUnneededLongEnough"
NOT_UNREADY_LONG_ENOUGH: Final = "NotUnreadyLongEnough"
ATOMIC_FAILED: Final = "AtomicScaleDownFailed"
TOO_MANY_AT_ONCE: Final = "NodeGroupMaxDeletionCountReached"


def select_nodes_to_delete(
    simulation: ScaleDownSimulation, policy: Policy, *, now: datetime, state: ScaleDownState | None = None
) -> NodesToDelete:
    choice = _Selection(simulation, policy, state or ScaleDownState(), now)
    choice.pick(_sort_by_removal_order(simulation.unneeded))
    return choice.build_result()


def _sort_by_removal_order(unneeded: Iterable[UnneededNode]) -> list[UnneededNode]:
    return sorted(
        unneeded, key=lambda unneeded_node: (not unneeded_node.is_empty, unneeded_node.is_risky, unneeded_node.node)
    )


class _Selection:
    """Nodes selected in order until a limit is reached."""

    def __init__(self, simulation: ScaleDownSimulation, policy: Policy, known: ScaleDownState, now: datetime) -> None:
        self._simulation = simulation
        self._policy = policy
        self._known = known
        self._now = now
        self._unremovable: dict[str, Reason] = {}
        self._chosen: list[UnneededNode] = []
        self._spare = {group: room.spare for group, room in simulation.groups.items()}
        self._minimums = find_minimums(measure_usage_of_arrays(simulation.problem.arrays), policy)
        options = policy.scale_down
        self._left = max(options.parallelism - known.removals_under_way, 0)
        self._drains = max(options.drain_parallelism - known.drains_under_way, 0)
        self._moves: dict[str, tuple[PodMove, ...]] = {}

    def pick(self, line: Sequence[UnneededNode]) -> None:
        due = [node for node in line if self._is_due(node)]
        whole = {node.group for node in due if self._simulation.groups[node.group].group.zero_or_max}
        for group in sorted(whole):
            self._pick_group(group, [node for node in due if node.group == group])
        for unneeded_node in due:
            if unneeded_node.group not in whole:
                self._pick_node(unneeded_node)
        self._replay()

    def _is_due(self, candidate: UnneededNode) -> bool:
        """Whether the node has been unneeded for longer than required."""
        rules = self._simulation.groups[candidate.group].group.shrinking or self._policy.scale_down
        wait = rules.unneeded_time_s if candidate.is_ready else rules.unready_time_s
        since = self._known.unneeded_since.get(candidate.node)
        if since is not None and add_seconds(since, wait) < self._now:
            return True
        code = NOT_LONG_ENOUGH if candidate.is_ready else NOT_UNREADY_LONG_ENOUGH
        self._reject(candidate, code, f"not unneeded for {wait:g} s yet")
        return False

    def _pick_node(self, candidate: UnneededNode) -> None:
        if self._left <= 0 or (not candidate.is_empty and self._drains <= 0):
            what = "removed" if self._left <= 0 else "drained"
            self._reject(candidate, TOO_MANY_AT_ONCE, f"no more nodes are {what} at once")
        elif self._spare[candidate.group] <= 0:
            self._reject(candidate, MIN_SIZE_REACHED, f"group {candidate.group} would fall below its minimum size")
        elif broken := find_broken_minimums(self._minimums, self._build_counted_node(candidate)):
            self._reject(candidate, BELOW_MINIMUM, str(broken[0]))
        else:
            self._take([candidate])

    def _pick_group(self, group: str, due: list[UnneededNode]) -> None:
        """All nodes of the group or none. The first such group may exceed the limit of parallel deletions."""
        room = self._simulation.groups[group]
        drains = sum(1 for node in due if not node.is_empty)
        reason = ""
        if len(due) < room.group.target_size:
            reason = f"only {len(due)} of {room.group.target_size} nodes of group {group} can go"
        elif self._spare[group] < len(due):
            reason = f"group {group} would fall below its minimum size"
        elif len(due) > self._left or drains > self._drains:
            is_first = not self._chosen and not self._known.removals_under_way and self._left > 0
            may_drain = not drains or self._drains > 0
            reason = "" if is_first and may_drain else "no more nodes are removed at once"
        if not reason and (broken := self._find_broken_minimum(due)):
            reason = str(broken)
        if not reason:
            self._take(due)
            return
        for unneeded_node in due:
            self._reject(unneeded_node, ATOMIC_FAILED, reason)

    def _find_broken_minimum(self, due: Sequence[UnneededNode]) -> MinimumLimit | None:
        left = self._minimums
        for unneeded_node in due:
            node = self._build_counted_node(unneeded_node)
            if broken := find_broken_minimums(left, node):
                return broken[0]
            left = tuple(limit.subtract_node(node) for limit in left)
        return None

    def _take(self, nodes: Sequence[UnneededNode]) -> None:
        self._chosen += nodes
        for unneeded_node in nodes:
            node = self._build_counted_node(unneeded_node)
            self._left -= 1
            self._drains -= not unneeded_node.is_empty
            self._spare[unneeded_node.group] -= 1
            self._minimums = tuple(limit.subtract_node(node) for limit in self._minimums)

    def _replay(self) -> None:
        """Find places for the pods of all chosen nodes; a node that fails stays, and the rest is tried again."""
        while True:
            failed = self._find_failing()
            if failed is None:
                return
            whole = self._simulation.groups[failed.group].group.zero_or_max
            dropped = [node for node in self._chosen if node == failed or (whole and node.group == failed.group)]
            for unneeded_node in dropped:
                if unneeded_node != failed:
                    self._reject(unneeded_node, ATOMIC_FAILED, f"node {failed.node} of group {failed.group} cannot go")
            self._chosen = [node for node in self._chosen if node not in dropped]

    def _find_failing(self) -> UnneededNode | None:
        problem = self._simulation.problem
        row_of = problem.arrays.row_of
        drained = [node for node in self._chosen if not node.is_empty]
        self._moves = {}
        if not drained:
            return None
        simulator = RemovalSimulator(
            problem,
            receives=self._simulation.receives,
            removed=[row_of[node.node] for node in self._chosen],
            hints=self._simulation.build_pod_hints(),
            effort=VERIFICATION_EFFORT,
        )
        for unneeded_node in drained:
            found = simulator.simulate_removal(row_of[unneeded_node.node])
            if isinstance(found, Unplaceable):
                self._reject(unneeded_node, NO_PLACE, f"pod {found.pod} fits on no node that stays")
                return unneeded_node
            self._moves[unneeded_node.node] = found
        return None

    def _build_counted_node(self, candidate: UnneededNode) -> CountedNode:
        return CountedNode.from_node(self._simulation.problem.snapshot.view.nodes[candidate.node].node)

    def _reject(self, candidate: UnneededNode, code: str, message: str) -> None:
        self._unremovable[candidate.node] = Reason(code=code, message=message)

    def build_result(self) -> NodesToDelete:
        ordered = _sort_by_removal_order(self._chosen)
        return NodesToDelete(
            removals=tuple(self._build_removal(unneeded_node) for unneeded_node in ordered),
            unremovable=tuple(
                UnremovableNode(node=name, reason=reason) for name, reason in sorted(self._unremovable.items())
            ),
        )

    def _build_removal(self, candidate: UnneededNode) -> NodeRemoval:
        problem = self._simulation.problem
        row = problem.arrays.row_of[candidate.node]
        share = f"used to {candidate.utilization:.1%}"
        message = "empty" if candidate.is_empty else f"{share}, and its {candidate.pods} pods fit elsewhere"
        code = "Unready" if not candidate.is_ready else "Empty" if candidate.is_empty else "Underutilized"
        return NodeRemoval(
            node=candidate.node,
            group=candidate.group,
            is_empty=candidate.is_empty,
            moves=self._moves.get(candidate.node, ()),
            daemons=tuple(placed.key for placed in problem.list_disposable_pods(row)),
            is_risky=candidate.is_risky,
            atomic=self._simulation.groups[candidate.group].group.zero_or_max,
            reason=Reason(code=code, message=message, facts={"utilization": candidate.utilization}),
        )
