"""Simulated removals of nodes whose pods have rules about each other, by counts instead of a recount per pod.

`CountedRemovals` removes one node at a time, completely or not at all, as `simulator.RemovalSimulator` does, and gives
each pod the node it had in the last simulation, else the fullest one that takes it. Verdicts come from
`CountedCluster`. Candidates of a class are sorted once; a candidate that cannot take the class any more is not looked
at again. Effort is counted, never timed. Pods with ports or volumes are left to the plain rules.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.nodes.model.scale_down_plan import PodMove
from plimsoll.nodes.planning.scaledown.counted_cluster import CountedCluster
from plimsoll.nodes.planning.scaledown.simulator import MovedPods, Unplaceable

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.nodes.planning.scaledown.problem import PodToMove, ScaleDownProblem
    from plimsoll.nodes.planning.scaledown.term_counts import ClassRules
    from plimsoll.scheduling.cluster_view import PodKey
    from plimsoll.solver.problem import Flags, Ints

MAX_EFFORT: Final = 200_000
"""Pairs of pod and node that one plan looks at; sorting the candidates of a class counts as some of them."""
_ROWS_PER_EFFORT: Final = 50
_CHUNK: Final = 32


class _Queue:
    """Candidates that share their domains, the fullest first. Those before `start` cannot take the class any more."""

    __slots__ = ("_known", "_rows", "start")

    def __init__(self, rows: Ints) -> None:
        self._rows = rows
        self._known: list[int] = []
        self.start = 0

    def get(self, position: int) -> int:
        """The row at a position; -1 at the end."""
        known = self._known
        if position >= len(known):
            known += self._rows[len(known) : max(position + 1, 2 * len(known), _CHUNK)].tolist()
        return known[position] if position < len(known) else -1


@dataclass(slots=True, kw_only=True)
class _ClassSearch:
    """What a class needs of a node, and where it is looked for."""

    number: int
    rules: ClassRules
    needs: tuple[tuple[int, int], ...]
    """(column, amount) of each requested resource."""
    fits: Flags
    """[N]: rows that cordon, taints, node affinity and labels allow."""
    shared: ClassRules
    """The rules over domains of several nodes: one verdict holds for a whole queue."""
    own: ClassRules
    """The rules over domains of one node each."""
    queues: list[_Queue] | None = None
    version: tuple[int, ...] = ()
    """What the queues depend on, apart from what only ever fills up."""


@dataclass(slots=True)
class _Attempt:
    """The removal of one row while it is tried."""

    row: int
    placed: list[tuple[PodToMove, int]] = field(default_factory=list)
    touched: set[int] = field(default_factory=set)


class CountedRemovals:
    """A cluster whose nodes are removed one after the other. A failed attempt changes nothing."""

    def __init__(
        self,
        problem: ScaleDownProblem,
        *,
        receives: Flags,
        removed: Iterable[int] = (),
        moved_pods: Mapping[int, Sequence[PodToMove]] | None = None,
        hints: Mapping[PodKey, str] | None = None,
    ) -> None:
        """`removed`: rows that are removed already; `moved_pods`: pods moved to their rows before."""
        self._problem = problem
        self._counts = problem.get_term_counts()
        self.cluster = CountedCluster(self._counts)
        self._receives = receives.copy()
        self._hints = hints or {}
        self._free: list[list[int]] = problem.free.tolist()
        self._order = _sort_fullest_first(problem.free)
        self._rank: list[int] = np.argsort(self._order).tolist()
        self._searches: dict[int, _ClassSearch] = {}
        self.moved_pods: MovedPods = defaultdict(list)
        self.effort_left = MAX_EFFORT
        self._sizes = _compute_sizes(problem.requests)
        self._first_pods: list[int] = problem.first_pod.tolist()
        for row in removed:
            self.cluster.remove_node(row)
            self._receives[row] = False
        for row, listed in (moved_pods or {}).items():
            for pod in listed:
                self._put(pod, row)
                self.moved_pods[row].append(pod)

    def simulate_removal(self, row: int) -> tuple[PodMove, ...] | Unplaceable:
        """Move all pods of the row to other nodes, or none."""
        received = list(self.moved_pods.get(row, ()))
        pods = [*self._problem.list_pods_to_move(row), *received]
        attempt = _Attempt(row, touched={row})
        receives = bool(self._receives[row])
        self._receives[row] = False
        self.cluster.remove_node(row)
        for pod in received:
            self._put(pod, row, sign=-1)
        for pod in self._sort_largest_first(pods):
            target = self._find_place(pod, attempt)
            if target < 0:
                self._roll_back(attempt, received, receives=receives)
                return Unplaceable(pod=pod.placed.key, gave_up=self.effort_left < 0)
            self._put(pod, target)
            attempt.placed.append((pod, target))
            attempt.touched.add(target)
        return self._commit(attempt)

    def fits(self, number: int, row: int) -> bool:
        """Whether the row takes one more pod of a class now."""
        search = self._get_search(number)
        return bool(self._receives[row]) and self._takes(search, row) and not self.cluster.refuses(search.rules, row)

    def stays(self, row: int) -> bool:
        """Whether the row has not been removed."""
        return not self.cluster.is_gone(row)

    # ---- attempts

    def _commit(self, attempt: _Attempt) -> tuple[PodMove, ...]:
        names = self._problem.arrays.names
        self.moved_pods.pop(attempt.row, None)
        for pod, target in attempt.placed:
            self.moved_pods[target].append(pod)
        source = names[attempt.row]
        return tuple(PodMove(pod=pod.placed.key, source=source, target=names[target]) for pod, target in attempt.placed)

    def _roll_back(self, attempt: _Attempt, received: Sequence[PodToMove], *, receives: bool) -> None:
        for pod, target in reversed(attempt.placed):
            self._put(pod, target, sign=-1)
        for pod in received:
            self._put(pod, attempt.row)
        self.cluster.restore_node(attempt.row)
        self._receives[attempt.row] = receives

    def _put(self, pod: PodToMove, row: int, *, sign: int = 1) -> None:
        search = self._get_search(pod.class_number)
        free = self._free[row]
        for column, amount in search.needs:
            free[column] -= sign * amount
        self.cluster.place(search.rules, row, leaving=pod.placed.leaving, pods=sign)

    def _sort_largest_first(self, pods: list[PodToMove]) -> list[PodToMove]:
        sizes, first = self._sizes, self._first_pods
        return sorted(pods, key=lambda pod: (-sizes[pod.class_number], first[pod.class_number], pod.placed.key))

    # ---- search

    def _find_place(self, pod: PodToMove, attempt: _Attempt) -> int:
        """The hinted row, else the fullest row that takes the pod; -1 if there is none or the effort is used up."""
        search = self._get_search(pod.class_number)
        hint = self._problem.arrays.row_of.get(self._hints.get(pod.placed.key, ""), -1)
        if hint >= 0:
            self.effort_left -= 1
            if self._receives[hint] and self._takes(search, hint) and not self.cluster.refuses(search.rules, hint):
                return hint
        best = -1
        for queue in self._get_queues(search):
            row = self._find_first(search, queue, attempt)
            if row >= 0 and (best < 0 or self._rank[row] < self._rank[best]):
                best = row
            if self.effort_left < 0:
                return -1
        return best

    def _find_first(self, search: _ClassSearch, queue: _Queue, attempt: _Attempt) -> int:
        """The first row of a queue that takes the class.

        Rows that refuse it are left behind for good, unless this attempt is the cause: it may be rolled back.
        """
        first = queue.get(queue.start)
        if first < 0:
            return -1
        self.effort_left -= 1
        if self.cluster.refuses(search.shared, first):
            return -1
        position = queue.start
        is_final = True
        row = first
        while row >= 0:
            self.effort_left -= 1
            if self.effort_left < 0:
                return -1
            if self._receives[row] and self._takes(search, row) and not self.cluster.refuses(search.own, row):
                return row
            is_final = is_final and row not in attempt.touched
            position += 1
            if is_final:
                queue.start = position
            row = queue.get(position)
        return -1

    def _takes(self, search: _ClassSearch, row: int) -> bool:
        if not search.fits[row]:
            return False
        free = self._free[row]
        return all(free[column] >= amount for column, amount in search.needs)

    def _get_search(self, number: int) -> _ClassSearch:
        found = self._searches.get(number)
        if found is None:
            found = self._searches[number] = self._build_search(number)
        return found

    def _build_search(self, number: int) -> _ClassSearch:
        problem = self._problem
        rules = self._counts.get_rules(problem.predicates, number)
        fits = problem.find_static_fit(problem.running_classes.table.classes[number])
        if rules.labelled is not None:
            fits = fits & rules.labelled
        needs = problem.requests[number].tolist()
        shared, own = self._counts.split_by_domains(rules)
        return _ClassSearch(
            number=number,
            rules=rules,
            needs=tuple((column, amount) for column, amount in enumerate(needs) if amount > 0),
            fits=fits,
            shared=shared,
            own=own,
        )

    def _get_queues(self, search: _ClassSearch) -> list[_Queue]:
        version = self._get_version(search)
        if search.queues is None or search.version != version:
            self.effort_left -= 1 + len(self._order) // _ROWS_PER_EFFORT
            search.queues = [_Queue(rows) for rows in self._sort_candidates(search)]
            search.version = version
        return search.queues

    def _get_version(self, search: _ClassSearch) -> tuple[int, ...]:
        """Changes when a row that refused the class by its own domain may take it after all."""
        own = search.own
        if not own.spreads and not own.wanted:
            return ()
        lowest = (self.cluster.compute_minimum(rule) for rule in own.spreads)
        opened = (self.cluster.get_counter(number).opened for number in own.wanted)
        return (*lowest, *opened)

    def _sort_candidates(self, search: _ClassSearch) -> list[Ints]:
        """Rows with room at the beginning, the fullest first, by the domains that rules of the class look at."""
        problem = self._problem
        possible = self._receives & search.fits
        for column, amount in search.needs:
            possible = possible & (problem.free[:, column] >= amount)
        rows = self._order[possible[self._order]]
        keys = self._counts.list_topologies(search.shared)
        if not keys:
            return [rows]
        domains = np.zeros(len(rows), dtype=np.int64)
        for topology in keys:
            domains = np.unique(domains * (topology.count + 1) + topology.ids[rows] + 1, return_inverse=True)[1]
        order = np.argsort(domains, kind="stable")
        bounds = np.flatnonzero(np.diff(domains[order])) + 1
        return [part for part in np.split(rows[order], bounds) if len(part)]


def _sort_fullest_first(free: Ints) -> Ints:
    room = np.round((free / np.maximum(free.max(axis=0, initial=1), 1)).sum(axis=1), 9)
    return np.lexsort((np.arange(len(free)), room)).astype(np.int64)


def _compute_sizes(requests: Ints) -> list[float]:
    largest = np.maximum(requests.max(axis=0, initial=1), 1)
    sizes: list[float] = np.round((requests / largest).max(axis=1, initial=0.0), 9).tolist()
    return sizes
