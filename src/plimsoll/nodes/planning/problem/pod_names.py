"""The pods of a placement by the key of the pending entry they come from.

A placement counts pods per class; users know pods by the key of their entry. The pods of a class are interchangeable,
so the entry that waits longest takes the next place, and nodes filled alike stay in one pattern as long as possible.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.scale_up_plan import GroupScaleUp, NodePattern, Result, ScaleUpPlan

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.nodes.planning.problem.scheduled_pods import ScheduledPods

SCALE_UP: Final = "ScaleUp"
CREATE: Final = "CreateAndScaleUp"


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPods:
    """Pods by key: on existing nodes, and in the patterns of new ones."""

    existing: Mapping[str, Mapping[str, int]]
    """Node name to pods by key."""
    patterns: Mapping[int, tuple[NodePattern, ...]]
    """Option index to patterns, in ascending order."""


def name_pods(problem: ScaleUpProblem, scheduled: ScheduledPods) -> NamedPods:
    placement = scheduled.placement
    queues = _KeyQueues(problem, scheduled.pods)
    names = problem.arrays.names
    existing = {names[row]: queues.take(content) for row, content in sorted(placement.existing.items()) if content}
    patterns: dict[int, tuple[NodePattern, ...]] = {}
    for option in sorted({batch.option for batch in placement.batches if batch.nodes}):
        batches = [batch for batch in placement.batches if batch.option == option]
        patterns[option] = _merge_patterns(
            pattern for batch in batches for pattern in queues.take_patterns(batch.nodes, batch.content)
        )
    return NamedPods(existing=existing, patterns=patterns)


def build_scale_up(
    problem: ScaleUpProblem, index: int, patterns: Sequence[NodePattern], *, because: tuple[Reason, ...] = ()
) -> GroupScaleUp:
    """The scale-up of one group. A group that is resized as a whole gets its idle nodes as one more pattern."""
    chosen = problem.options[index]
    nodes = sum(pattern.nodes for pattern in patterns)
    pods = sum(pattern.nodes * sum(pattern.pods.values()) for pattern in patterns)
    added = chosen.max_size - chosen.size if chosen.zero_or_max else nodes
    idle = (NodePattern(nodes=added - nodes, pods={}),) if added > nodes else ()
    return GroupScaleUp(
        option=chosen,
        before=chosen.size,
        after=chosen.size + added,
        patterns=(*patterns, *idle),
        reason=Reason(
            code=SCALE_UP if chosen.exists else CREATE,
            message=f"{nodes} node{'s' * (nodes != 1)} for {pods} pod{'s' * (pods != 1)}",
            facts={"nodes": nodes, "pods": pods, "pricePerHour": chosen.price_per_hour},
            because=because,
        ),
    )


def build_unexplained_plan(problem: ScaleUpProblem, scheduled: ScheduledPods) -> ScaleUpPlan:
    """Only what the verifier reads: which pods go where, without reasons and bounds."""
    named = name_pods(problem, scheduled)
    scale_ups = tuple(build_scale_up(problem, option, patterns) for option, patterns in named.patterns.items())
    return ScaleUpPlan(result=Result.NEEDED, scale_ups=scale_ups, existing=named.existing)


class _KeyQueues:
    """The keys of the scheduled pods of each class, in the order of the queue."""

    def __init__(self, problem: ScaleUpProblem, scheduled: Sequence[int]) -> None:
        self._keys = [pending.key for pending in problem.table.pending]
        self._waiting: list[deque[list[int]]] = [
            deque(
                [member.pending, scheduled[member.pending]] for member in pod_class.members if scheduled[member.pending]
            )
            for pod_class in problem.table
        ]

    def take(self, content: Mapping[int, int]) -> dict[str, int]:
        """The pods of one node."""
        named: dict[int, int] = {}
        for number, pods in content.items():
            wanted = pods
            head = self._waiting[number][0]
            if wanted < head[1]:
                # The usual case: the entry has pods for this node and for further ones.
                named[head[0]] = named.get(head[0], 0) + wanted
                head[1] -= wanted
                continue
            while wanted:
                head = self._waiting[number][0]
                step = min(wanted, head[1])
                named[head[0]] = named.get(head[0], 0) + step
                wanted -= step
                head[1] -= step
                if not head[1]:
                    self._waiting[number].popleft()
        return {self._keys[index]: named[index] for index in sorted(named)}

    def take_patterns(self, nodes: int, content: Mapping[int, int]) -> list[NodePattern]:
        """The patterns of nodes filled alike: each covers as many nodes as one entry of each class suffices for."""
        found: list[NodePattern] = []
        while nodes:
            equal_nodes = min((self._waiting[number][0][1] // pods for number, pods in content.items()), default=nodes)
            step = max(1, min(nodes, equal_nodes))
            found.append(
                NodePattern(
                    nodes=step, pods=self._take_for_equal_nodes(content, step) if equal_nodes else self.take(content)
                )
            )
            nodes -= step
        return found

    def _take_for_equal_nodes(self, content: Mapping[int, int], nodes: int) -> dict[str, int]:
        per_node: dict[int, int] = {}
        for number, pods in content.items():
            head = self._waiting[number][0]
            per_node[head[0]] = per_node.get(head[0], 0) + pods
            head[1] -= pods * nodes
            if not head[1]:
                self._waiting[number].popleft()
        return {self._keys[index]: per_node[index] for index in sorted(per_node)}


def _merge_patterns(patterns: Iterable[NodePattern]) -> tuple[NodePattern, ...]:
    """Each distinct pattern once."""
    nodes: dict[tuple[tuple[str, int], ...], int] = {}
    for pattern in patterns:
        key = tuple(pattern.pods.items())
        nodes[key] = nodes.get(key, 0) + pattern.nodes
    return tuple(NodePattern(nodes=count, pods=dict(key)) for key, count in nodes.items())
