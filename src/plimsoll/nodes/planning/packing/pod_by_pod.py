"""Places pods one by one with the plain rules: the few that cannot be packed in bulk, or whose bulk plan failed.

First fit on existing and planned nodes, else on a new node of the option with the least cost for such pods. This is
slow and exact; the number of checks is limited.

Bulk placement of pods that depend on each other uses heuristics. For small plans `improve_placement` therefore tries
several strategies pod by pod, and takes the best one that the verifier accepts and that does not give up a zone.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.node_labels import HOSTNAME
from plimsoll.nodes.model.node_templates import build_planned_node
from plimsoll.nodes.planning.packing.placement_view import PlacementView
from plimsoll.nodes.planning.problem.placement import NodeBatch, Placement, merge_pods
from plimsoll.nodes.planning.problem.pod_names import build_unexplained_plan
from plimsoll.nodes.planning.problem.scheduled_pods import assign_places
from plimsoll.nodes.planning.problem.verifier import verify
from plimsoll.scheduling import Fits, check_node
from plimsoll.scheduling.replay import Replay

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.nodes.planning.equivalence.pod_classes import PodClass
    from plimsoll.nodes.planning.packing.binpacking import PackingOptions
    from plimsoll.nodes.planning.packing.pod_relations import PodRelations
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.objects.api.nodes import Node
    from plimsoll.scheduling.replay import EquivalenceClass
    from plimsoll.solver.problem import Flags, Ints


MAX_CHECKS: Final = 200_000
"""The number of pairs of pod and node that are checked in one plan."""
TOO_MANY: Final = "TooManyToCheck"


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchStrategy:
    """How places are searched."""

    careful: bool = True
    """Fill new nodes only as far as spread allows next to an empty node; if False, the caller verifies the result."""
    new_nodes_first: bool = False
    """Nodes are tried from the last one: planned nodes before existing ones."""
    smallest_price: bool = False
    """A new node is the cheapest that takes the pod; if False, the cheapest for the share that the pod uses."""


def place_pod_by_pod(
    problem: ScaleUpProblem,
    wanted: Mapping[int, int],
    placement: Placement,
    *,
    usable: Flags,
    strategy: SearchStrategy | None = None,
) -> Placement:
    """Place the pods `wanted`, by class: the highest priority first, then in class order."""
    placer = _PodByPodPlacer(problem, placement, usable, strategy or SearchStrategy())
    left = {
        number: wanted[number]
        for number in sorted(
            wanted, key=lambda class_number: (-problem.table.classes[class_number].priority, class_number)
        )
    }
    progress = True
    while progress and left:
        # A pod with required affinity may have to wait for its target.
        taken = {number: placer.take(number, pods) for number, pods in left.items()}
        progress = any(taken.values())
        left = {number: pods - taken[number] for number, pods in left.items() if pods > taken[number]}
    return placer.build_placement()


@dataclass(slots=True, kw_only=True)
class _CandidateNode:
    """A node with what is placed on it here; `option` is -1 for one that exists."""

    name: str
    row: int = -1
    option: int = -1
    content: dict[int, int]


class _PodByPodPlacer:
    def __init__(self, problem: ScaleUpProblem, placement: Placement, usable: Flags, strategy: SearchStrategy) -> None:
        self._problem = problem
        self._strategy = strategy
        self._before = placement
        self._usable = usable
        self._refused: dict[int, Reason] = {}
        self._checks_left = MAX_CHECKS
        self._named = 0
        self._replay = Replay(problem.snapshot.view)
        self._groups: dict[tuple[int, int], EquivalenceClass] = {}
        self._put: dict[int, int] = {}
        self._nodes = np.zeros(len(problem.options), dtype=np.int64)
        whole = np.array([option.zero_or_max for option in problem.options], dtype=np.bool_)
        self._step = np.where(whole, problem.available, 1)
        self._candidates = [
            _CandidateNode(name=name, row=row, content={}) for row, name in enumerate(problem.arrays.names)
        ]
        for row, content in placement.existing.items():
            self._put_all(self._candidates[row], content)
        for batch in placement.batches:
            for _ in range(batch.nodes):
                self._put_all(self._open_nodes(batch.option), batch.content)

    def take(self, number: int, pods: int) -> int:
        """Place pods of a class; returns how many found a place."""
        static = self._problem.rules.node_predicates.find_codes(number, self._problem.arrays.free, {}) == 0
        allowed = self._problem.allowed[:, number]
        candidates = [
            candidate
            for candidate in self._candidates
            if (static[candidate.row] if candidate.row >= 0 else allowed[candidate.option])
        ]
        if self._strategy.new_nodes_first:
            candidates.reverse()
        first = 0
        for taken in range(pods):
            found = self._find_first_fit(number, candidates, first)
            if found is None:
                opened = self._open_for(number)
                if not opened:
                    return taken
                found = len(candidates)
                candidates += opened
            self._put_all(candidates[found], {number: 1})
            # The next pod is equal: a node that refused this one will mostly refuse it too.
            first = found
        return pods

    def build_placement(self) -> Placement:
        existing = {
            candidate.row: candidate.content
            for candidate in self._candidates
            if candidate.row >= 0 and candidate.content
        }
        batches: dict[tuple[int, tuple[tuple[int, int], ...]], int] = {}
        for candidate in self._candidates:
            if candidate.option >= 0:
                key = (candidate.option, tuple(sorted(candidate.content.items())))
                batches[key] = batches.get(key, 0) + 1
        made = replace(
            self._before,
            existing=existing,
            batches=tuple(
                NodeBatch(option=option, nodes=nodes, content=dict(content))
                for (option, content), nodes in batches.items()
            ),
        )
        for number, reason in self._refused.items():
            made = made.add_rejection(number, reason)
        return made

    def _find_first_fit(self, number: int, candidates: list[_CandidateNode], first: int) -> int | None:
        group = self._get_group(number)
        for place in chain(range(first, len(candidates)), range(first)):
            self._checks_left -= 1
            if self._checks_left < 0:
                self._refused[number] = Reason(
                    code=TOO_MANY, message=f"not looked at: more than {MAX_CHECKS} places to try"
                )
                return None
            if self._is_low(number, candidates[place]) and isinstance(
                self._replay.check(group, candidates[place].name), Fits
            ):
                return place
        return None

    def _is_low(self, number: int, candidate: _CandidateNode) -> bool:
        """Whether one more pod on a new node is within the skew even next to an empty node."""
        classes = self._problem.table.classes
        return (
            not self._strategy.careful
            or candidate.option < 0
            or all(
                sum(pods for other, pods in candidate.content.items() if spread_count.matches(classes[other].pod))
                + spread_count.counts_itself
                <= spread_count.max_skew
                for spread_count in self._problem.rules.get_spreads(number)
                if spread_count.key == HOSTNAME
            )
        )

    def _open_for(self, number: int) -> list[_CandidateNode]:
        """A new node of the cheapest option that takes the pod now; all nodes if the option is resized as a whole."""
        if self._checks_left < 0:
            return []
        problem = self._problem
        free = (
            self._usable
            & problem.allowed[:, number]
            & (self._nodes < problem.available)
            & self._find_options_within_limits()
        )
        shares = (problem.requests[number] / np.maximum(problem.capacity, 1)).max(axis=1)
        cost = np.round((1 if self._strategy.smallest_price else shares) * problem.planning_prices, 9)
        view = self._replay.build_view()
        for option in sorted(
            np.flatnonzero(free).tolist(), key=lambda index: (problem.options[index].tier, cost[index], index)
        ):
            if isinstance(check_node(self._get_group(number).pod, self._build_node(option), view), Fits):
                return [self._open_nodes(option) for _ in range(int(self._step[option]))]
        return []

    def _find_options_within_limits(self) -> Flags:
        limits = self._problem.limits
        left: Ints = limits.room - self._nodes @ limits.use
        return np.asarray((limits.use * self._step[:, None] <= left[None, :]).all(axis=1), dtype=np.bool_)

    def _build_node(self, option: int) -> Node:
        return build_planned_node(self._problem.options[option], int(self._nodes[option]))

    def _open_nodes(self, option: int) -> _CandidateNode:
        node = self._build_node(option)
        self._replay.add_node(node, self._problem.options[option].daemons)
        self._nodes[option] += 1
        candidate = _CandidateNode(name=node.metadata.name, option=option, content={})
        self._candidates.append(candidate)
        return candidate

    def _put_all(self, candidate: _CandidateNode, content: Mapping[int, int]) -> None:
        for number, pods in content.items():
            for _ in range(pods):
                self._named += 1
                self._replay.place(self._get_group(number), candidate.name, f"planned-{self._named}")
                self._put[number] = self._put.get(number, 0) + 1
        candidate.content = merge_pods(candidate.content, content)

    def _get_group(self, number: int) -> EquivalenceClass:
        """The next pod of a class. Members are exchangeable, except that they may have different volumes."""
        pods = self._problem.table.classes[number]
        pending = self._get_next_member(pods) if pods.volumes else pods.members[0].pending
        found = self._groups.get((number, pending))
        if found is None:
            pod = self._problem.table.pending[pending].pod if pods.volumes else pods.pod
            found = self._groups[number, pending] = self._replay.add_equivalence_class(pod)
        return found

    def _get_next_member(self, pods: PodClass) -> int:
        passed = self._put.get(pods.index, 0)
        for member in pods.members:
            if passed < member.count:
                return member.pending
            passed -= member.count
        return pods.members[-1].pending


_FEW_PODS: Final = 100
_FEW_NODES: Final = 50
_FEW_CLASSES: Final = 20
_FEW_OPTIONS: Final = 50
_STRATEGIES: Final = tuple(
    SearchStrategy(careful=careful, new_nodes_first=youngest, smallest_price=smallest)
    for youngest, smallest in ((False, False), (True, False), (False, True))
    for careful in (True, False)
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PlacementRequest:
    """The input of a placement: pods by class [C], the placement below it, and the packing options."""

    problem: ScaleUpProblem
    relations: PodRelations
    demand: Ints
    onto: Placement | None
    packing: PackingOptions

    @property
    def wanted(self) -> dict[int, int]:
        classes = self.problem.table.classes
        return {
            number: int(self.demand[number])
            for number in np.flatnonzero(self.demand).tolist()
            if classes[number].problem is None
        }


def improve_placement(request: PlacementRequest, placement: Placement) -> Placement:
    """The placement, or one that schedules more pods, or as many for less money."""
    if not is_worth_improving(request, placement):
        return placement
    problem = request.problem
    best = placement
    for strategy in _STRATEGIES:
        tried = place_pod_by_pod(
            problem, request.wanted, request.onto or Placement(), usable=request.packing.usable, strategy=strategy
        )
        if (
            score(problem, tried) > score(problem, best)
            and PlacementView(problem, placement, request.relations).keeps_zones(tried, request.wanted)
            and holds(request, tried)
        ):
            best = tried
    return best


def score(problem: ScaleUpProblem, placement: Placement) -> tuple[int, float]:
    """More pods, then less money."""
    return int(placement.count_placed(len(problem.table)).sum()), -round(placement.compute_cost(problem), 9)


def is_worth_improving(request: PlacementRequest, placement: Placement) -> bool:
    """Whether the problem is small, has pods that depend on others, and can still be improved."""
    problem, failed = request.problem, request.packing.failed
    placed = placement.count_placed(len(problem.table))
    if failed.pod_by_pod or failed.given_up or len({option.tier for option in problem.options}) > 1:
        return False
    small = (
        max(int(problem.table.counts.sum()), int(placed.sum())) <= _FEW_PODS
        and len(problem.arrays) <= _FEW_NODES
        and len(problem.table) <= _FEW_CLASSES
        and len(problem.options) <= _FEW_OPTIONS
    )
    if not small or not any(
        problem.table.classes[number].scheduling_key.has_pod_constraints for number in request.wanted
    ):
        return False
    before = 0 if request.onto is None else request.onto.count_placed(len(problem.table))
    paid = 0.0 if request.onto is None else request.onto.compute_cost(problem)
    return bool((request.demand + before > placed).any()) or placement.compute_cost(problem) > paid


def holds(request: PlacementRequest, placement: Placement) -> bool:
    """Whether the verifier accepts the placement."""
    problem = request.problem
    return not verify(problem.snapshot, build_unexplained_plan(problem, assign_places(problem, placement)))
