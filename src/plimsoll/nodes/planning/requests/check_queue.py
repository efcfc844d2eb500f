"""A queue of capacity checks on one problem: which requests fit, where, and why the others do not. Pure.

The longest prefix of the queue that fits at once is placed together; after it, each request is checked by itself. A
check of one class without inter-pod constraints is a sum (`RemainingCapacity`); all others are packed.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.node_labels import LEAVING
from plimsoll.nodes.model.node_templates import TEMPLATE_LABEL
from plimsoll.nodes.model.scale_up_plan import Result, ScaleUpPlan
from plimsoll.nodes.planning.packing.binpacking import FailedClasses, PackingOptions
from plimsoll.nodes.planning.packing.place import place
from plimsoll.nodes.planning.packing.pod_relations import PodRelations
from plimsoll.nodes.planning.problem.placement import Placement, merge_pods
from plimsoll.nodes.planning.problem.pod_names import name_pods
from plimsoll.nodes.planning.problem.scheduled_pods import ScheduledPods
from plimsoll.solver.exact.assignment_milp import (
    Impossible,
    Placed,
    Proof,
    SearchResult,
    Unknown,
    is_worth_searching,
    place_or_prove,
)
from plimsoll.solver.filling.fill import ExistingNodes, FillDemand
from plimsoll.solver.problem import Effort

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.nodes.model.snapshot import PendingPods
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.objects.api.pods import Pod
    from plimsoll.solver.problem import Flags, Ints


NO_CAPACITY: Final = "CapacityIsNotFound"
_AVOIDED: Final = {
    TEMPLATE_LABEL: "node(s) have not joined yet",
    LEAVING: "node(s) are being removed",
}
_PROOFS: Final = {
    Proof.SUMS: "these nodes have less left in all than the pods ask for",
    Proof.SEARCH: "no way to share them out over the nodes exists",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Check:
    """A capacity check. `reserves`: later requests cannot use the room it found."""

    name: str
    pods: tuple[PendingPods, ...]
    reserves: bool = True
    is_scale_up: bool = False
    """Whether it is a scale-up: it gets no result, but takes the room that it can use, all or a part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """The result of one check; it failed if there are reasons."""

    name: str
    pods: int
    placed: int
    reasons: tuple[Reason, ...] = ()
    places: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Node to pods by key: the room reserved for it."""
    blocking: Mapping[str, tuple[Reason, ...]] = field(default_factory=dict)
    """The reasons of unschedulable pods, by key."""

    @property
    def fits(self) -> bool:
        return not self.reasons


class CheckQueue:
    """Runs checks on one problem. `answers` are complete after construction."""

    def __init__(self, problem: ScaleUpProblem, checks: Sequence[Check], doubts: FailedClasses) -> None:
        self._problem = problem
        self._relations = PodRelations(problem.table, problem.rules, problem.snapshot.view)
        self._packing = PackingOptions(usable=np.zeros(0, dtype=np.bool_), failed=doubts)
        index_of = {pending.key: index for index, pending in enumerate(problem.table.pending)}
        self._entries = {check.name: [index_of[pending.key] for pending in check.pods] for check in checks}
        self.class_of = {key: int(problem.table.class_of[index]) for key, index in index_of.items()}
        self._left = RemainingCapacity(problem)
        self._pods = [0] * len(problem.table.pending)
        """By pending entry: pods with reserved room."""
        self._loose: list[ScaleUpPlan] = []
        self._known: dict[tuple[int, int], tuple[int, CheckResult]] = {}
        self.answers: list[CheckResult] = []
        first = self._reserve_longest_prefix(checks)
        for check in checks[first:]:
            self._answer_check(check)

    def build_plans(self) -> list[ScaleUpPlan]:
        """The reservations as a plan to verify; then one plan for each result without reservation, added to these."""
        return [self._plan(self._left.placement, self._pods), *self._loose]

    def _plan(self, placement: Placement, pods: Sequence[int]) -> ScaleUpPlan:
        on = name_pods(self._problem, ScheduledPods(placement=placement, pods=tuple(pods))).existing
        return ScaleUpPlan(result=Result.NOT_NEEDED, existing=on)

    # ---- one after the other

    def _reserve_longest_prefix(self, checks: Sequence[Check]) -> int:
        """Reserve room for the longest prefix of checks that fits together, by binary search; returns its length."""
        keepers = next(
            (number for number, check in enumerate(checks) if check.is_scale_up or not check.reserves), len(checks)
        )
        low, high, best = 0, keepers, self._left.placement
        while low < high:
            middle = high if high == keepers and not low else (low + high + 1) // 2
            tried = self._place_checks(checks[:middle])
            if self._is_whole(checks[:middle], tried):
                low, best = middle, tried
            else:
                high = middle - 1
        if low:
            self._left.set_placement(best)
        for check in checks[:low]:
            self._accept(check)
        return low

    def _accept(self, check: Check) -> None:
        for index in self._entries[check.name]:
            self._pods[index] = self._problem.table.pending[index].count
        self.answers.append(CheckResult(name=check.name, pods=_count_pods(check), placed=_count_pods(check)))

    def _answer_check(self, check: Check) -> None:
        number = self._find_only_class(check)
        if number is not None:
            self._count(check, number)
        elif check.is_scale_up:
            self._take(check)
        else:
            self._pack(check)

    def _find_only_class(self, check: Check) -> int | None:
        """The only class of its pods, if free resources alone decide where they fit."""
        numbers = {self.class_of[pending.key] for pending in check.pods}
        if len(numbers) != 1:
            return None
        (number,) = numbers
        doubts = self._packing.failed
        doubted = number in doubts.pod_by_pod or number in doubts.given_up
        return number if self._left.is_simple(number) and not doubted else None

    def _count(self, check: Check, number: int) -> None:
        pods = _count_pods(check)
        changes, known = self._known.get((number, pods), (-1, None))
        if known is not None and changes == self._left.changes and not check.is_scale_up:
            self.answers.append(replace(known, name=check.name))
            return
        room = self._left.count_room(number, pods)
        found = min(int(room.sum()), pods)
        if check.is_scale_up:
            self._record(check, {number: found})
            self._left.take(number, self._left.choose_rows(room, found))
        elif found < pods:
            refused = self._build_shortage_result(check, number, room)
            self._known[number, pods] = (self._left.changes, refused)
            self.answers.append(refused)
        elif check.reserves:
            self._left.take(number, self._left.choose_rows(room, pods))
            self._accept(check)
        else:
            self.answers.append(CheckResult(name=check.name, pods=pods, placed=pods))

    def _take(self, check: Check) -> None:
        before = self._left.placement
        tried = self._place_checks([check])
        classes = len(self._problem.table)
        got = tried.count_placed(classes) - before.count_placed(classes)
        self._record(check, dict(enumerate(got.tolist())))
        self._left.set_placement(tried)

    def _record(self, check: Check, got: dict[int, int]) -> None:
        """Assign the places of each class to its pod sets in order."""
        for index in self._entries[check.name]:
            pending = self._problem.table.pending[index]
            taken = min(got.get(self.class_of[pending.key], 0), pending.count)
            got[self.class_of[pending.key]] = got.get(self.class_of[pending.key], 0) - taken
            self._pods[index] = taken

    def _pack(self, check: Check) -> None:
        tried = self._place_checks([check])
        settled: SearchResult = Unknown()
        if not self._is_whole([check], tried):
            settled = self._search_exactly(check, tried)
            if isinstance(settled, Placed):
                tried = self._place_with(settled)
        if not self._is_whole([check], tried):
            missing = self._find_missing([check], tried)
            self.answers.append(self._refuse(check, settled, missing, tried))
        elif check.reserves:
            self._left.set_placement(tried)
            self._accept(check)
        else:
            pods = list(self._pods)
            for index in self._entries[check.name]:
                pods[index] = self._problem.table.pending[index].count
            self._loose.append(self._plan(tried, pods))
            self.answers.append(CheckResult(name=check.name, pods=_count_pods(check), placed=_count_pods(check)))

    # ---- packing

    def _place_checks(self, checks: Sequence[Check]) -> Placement:
        return place(self._problem, self._relations, self._sum_demand(checks), self._packing, self._left.placement)

    def _sum_demand(self, checks: Sequence[Check]) -> Ints:
        demand = np.zeros(len(self._problem.table), dtype=np.int64)
        for check in checks:
            for pending in check.pods:
                demand[self.class_of[pending.key]] += pending.count
        return demand

    def _find_missing(self, checks: Sequence[Check], tried: Placement) -> Ints:
        """[C]: unschedulable pods of these checks."""
        classes = len(self._problem.table)
        missing: Ints = (
            self._sum_demand(checks) - tried.count_placed(classes) + self._left.placement.count_placed(classes)
        )
        return missing.clip(0)

    def _is_whole(self, checks: Sequence[Check], tried: Placement) -> bool:
        return not self._find_missing(checks, tried).any()

    def _search_exactly(self, check: Check, tried: Placement) -> SearchResult:
        """An exact search, only for pods that depend on no others: each node can be checked by itself."""
        problem = self._problem
        demand = self._sum_demand([check])
        numbers = np.flatnonzero(demand)
        if self._packing.failed.given_up or problem.rules.interacts[numbers].any():
            return Unknown()
        if any(problem.table.classes[number].problem is not None for number in numbers.tolist()):
            return Unknown()
        allowed = [
            problem.rules.node_predicates.find_fitting(number, problem.arrays.free, {}) for number in numbers.tolist()
        ]
        rows = len(problem.arrays)
        requested = FillDemand(
            requests=problem.requests[numbers],
            counts=demand[numbers],
            allowed=np.stack(allowed, axis=1) if rows else np.zeros((0, len(numbers)), dtype=np.bool_),
        )
        if not rows or not is_worth_searching(requested.counts, self._find_missing([check], tried)[numbers]):
            return Unknown()
        free = np.maximum(self._left.placement.compute_free_rows(problem), 0)
        found = place_or_prove(requested, ExistingNodes(free=free, kind=np.arange(rows, dtype=np.int64)), Effort())
        if not isinstance(found, Placed):
            return found
        placements = found.filled.placements.copy()
        placements[:, 1] = numbers[placements[:, 1]]
        return Placed(filled=replace(found.filled, placements=placements))

    def _place_with(self, settled: Placed) -> Placement:
        before = self._left.placement
        existing = dict(before.existing)
        for row, number, pods in settled.filled.placements.tolist():
            at = int(settled.filled.origin[row])
            existing[at] = merge_pods(existing.get(at, {}), {number: pods})
        return replace(before, existing={row: existing[row] for row in sorted(existing)})

    # ---- reasons

    def _build_shortage_result(self, check: Check, number: int, room: Ints) -> CheckResult:
        """The result for pods whose room is a sum: the sum is too small."""
        counts = np.array([_count_pods(check)], dtype=np.int64)
        missing = counts - room.sum()
        searched = len(self._problem.arrays) and is_worth_searching(counts, missing)
        settled: SearchResult = Impossible(proof=Proof.SUMS) if searched else Unknown()
        free = self._left.free - room[:, None] * self._problem.rules.requests[number]
        return self._reject(check, settled, int(missing[0]), {number: self._explain_missing(number, free, {})})

    def _refuse(self, check: Check, settled: SearchResult, missing: Ints, tried: Placement) -> CheckResult:
        free, placed = self._left.subtract(tried), tried.index_by_class(len(self._problem.arrays))
        numbers = np.flatnonzero(missing).tolist()
        why = {
            number: [*tried.refused.get(number, ()), *self._explain_missing(number, free, placed)] for number in numbers
        }
        return self._reject(check, settled, int(missing.sum()), why)

    def _reject(
        self, check: Check, settled: SearchResult, missing: int, why: Mapping[int, Sequence[Reason]]
    ) -> CheckResult:
        """Reject a check. `why`: the reasons by class with unschedulable pods."""
        placed = _count_pods(check) - missing
        message = f"{placed} of {_count_pods(check)} pods fit on the nodes that are there, and all are wanted or none"
        reasons = [Reason(code=NO_CAPACITY, message=message, facts={"fit": placed, "pods": _count_pods(check)})]
        if isinstance(settled, Impossible):
            reasons.append(Reason(code=NO_CAPACITY, message=_PROOFS[settled.proof]))
        blocking = {number: _remove_duplicates((*reasons, *listed_)) for number, listed_ in why.items()}
        return CheckResult(
            name=check.name,
            pods=_count_pods(check),
            placed=placed,
            reasons=_remove_duplicates(reason for listed_ in blocking.values() for reason in listed_) or tuple(reasons),
            blocking={
                pending.key: blocking[of] for pending in check.pods if (of := self.class_of[pending.key]) in blocking
            },
        )

    def _explain_missing(self, number: int, free: Ints, placed: Mapping[int, Ints]) -> list[Reason]:
        """The refusals of all nodes for one more such pod beside the others, in kube-scheduler's words."""
        problem = self._problem
        refusal = problem.table.classes[number].problem
        if refusal is not None:
            return [Reason(code=refusal.code, message=str(refusal))]
        codes = problem.rules.find_codes(number, free=free, placed=placed)
        words: Counter[str] = Counter()
        avoided = self._find_avoided(number)
        for message in _AVOIDED.values():
            if rows := [row for row, reason in avoided.items() if reason == message]:
                words[message] = len(rows)
        codes = np.delete(codes, [*avoided])
        for code, nodes in zip(*(listed_.tolist() for listed_ in np.unique(codes, return_counts=True)), strict=True):
            if code:
                words.update(dict.fromkeys(problem.rules.get_refusal(code).messages, nodes))
        listed = sorted(f"{nodes} {message}" for message, nodes in words.items())
        message = f"0/{len(problem.arrays)} nodes are available" + (f": {', '.join(listed)}" if listed else "")
        return [Reason(code=NO_CAPACITY, message=message)]

    def _find_avoided(self, number: int) -> dict[int, str]:
        """Rows that the pods avoid by rules of requests, not of the user, and why."""
        keys = _find_avoided_labels(self._problem.table.classes[number].pod)
        found: dict[int, str] = {}
        for row, state in enumerate(self._problem.arrays.states):
            for key in keys & state.labels.keys():
                found[row] = _AVOIDED[key]
        return found


def _find_avoided_labels(pod: Pod) -> set[str]:
    of_nodes = pod.spec.affinity.node_affinity if pod.spec.affinity is not None else None
    required = of_nodes.required_during_scheduling_ignored_during_execution if of_nodes is not None else None
    terms = required.node_selector_terms if required is not None else ()
    return {
        requirement.key
        for term in terms
        for requirement in term.match_expressions
        if requirement.operator == "DoesNotExist" and requirement.key in _AVOIDED
    }


def _remove_duplicates(reasons: Iterable[Reason]) -> tuple[Reason, ...]:
    return tuple({reason.message: reason for reason in reasons}.values())


def _count_pods(check: Check) -> int:
    return sum(pending.count for pending in check.pods)


class RemainingCapacity:
    """The capacity of existing nodes that the placement so far leaves."""

    def __init__(self, problem: ScaleUpProblem) -> None:
        self._problem = problem
        self._existing: dict[int, dict[int, int]] = {}
        self._placement: Placement | None = Placement()
        self._open: dict[int, Flags] = {}
        interacts = problem.rules.interacts
        self._is_simple = [
            pod_class.problem is None and not interacts[pod_class.index] and not pod_class.volumes
            for pod_class in problem.table
        ]
        self.free: Ints = problem.arrays.free.copy()
        """[N, columns of the arrays]: free resources after the placement."""
        self.changes = 0
        """The number of changes: results from before a change may be outdated."""

    @property
    def placement(self) -> Placement:
        if self._placement is None:
            self._placement = Placement(existing={row: self._existing[row] for row in sorted(self._existing)})
        return self._placement

    def set_placement(self, placement: Placement) -> None:
        """Replace the placement."""
        self._placement = placement
        self._existing = {row: dict(content) for row, content in placement.existing.items()}
        self.free = self.subtract(placement)
        self.changes += 1

    def subtract(self, placement: Placement) -> Ints:
        """[N, columns]: free resources after a placement of this problem."""
        free = self._problem.arrays.free.copy()
        for row, content in placement.existing.items():
            for number, pods in content.items():
                free[row] -= self._problem.rules.requests[number] * pods
        return free

    def is_simple(self, number: int) -> bool:
        """Whether free resources alone decide how many pods of the class fit."""
        return self._is_simple[number]

    def count_room(self, number: int, most: int) -> Ints:
        """[N]: pods of a simple class that each row takes, at most `most`."""
        request = self._problem.rules.requests[number]
        requested = np.flatnonzero(request > 0)
        if number not in self._open:
            self._open[number] = self._problem.rules.find_fitting(number)
        room = np.minimum((self.free[:, requested] // request[requested]).min(axis=1, initial=most), most)
        return np.where(self._open[number], np.maximum(room, 0), 0)

    def choose_rows(self, room: Ints, pods: int) -> dict[int, int]:
        """Row to pods: rows with the least room first."""
        found: dict[int, int] = {}
        for row in np.argsort(np.where(room > 0, room, pods + 1), kind="stable").tolist():
            if not pods or not room[row]:
                break
            found[row] = min(pods, int(room[row]))
            pods -= found[row]
        return found

    def take(self, number: int, places: Mapping[int, int]) -> None:
        request = self._problem.rules.requests[number]
        for row, pods in places.items():
            self._existing[row] = merge_pods(self._existing.get(row, {}), {number: pods})
            self.free[row] -= request * pods
        self._placement = None
        self.changes += 1
