"""Which nodes hold the pods that requests have booked: `reserve(...) -> Reservations`. Pure.

Nodes that held them before hold them again where possible, so that no node is booked in one loop iteration and unneeded
in the next. A node that is gone is replaced by another node of its group that holds nothing, because upcoming nodes
change their names when they join. Pods without a node are then packed in queue order. Unlike a new request, a booked
one keeps what it can get: it is not rejected because a part of it found no room.

Counts per class and row, never per pod: half a million pods cost what their nodes cost.
"""

from __future__ import annotations

from collections import defaultdict, deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.nodes.model.scale_up_plan import Result, ScaleUpPlan
from plimsoll.nodes.planning.packing.binpacking import FailedClasses, PackingOptions
from plimsoll.nodes.planning.packing.place import place
from plimsoll.nodes.planning.packing.pod_relations import PodRelations
from plimsoll.nodes.planning.problem.placement import Placement
from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
from plimsoll.nodes.planning.problem.verifier import verify
from plimsoll.nodes.planning.state.placeholder_pods import PlaceholderPods

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.planner_cache import PlannerCache
    from plimsoll.nodes.model.snapshot import PendingPods, Snapshot
    from plimsoll.solver.problem import Flags, Ints

_ROUNDS: Final = 4
"""The number of attempts after the verifier refused places."""
_QUEUE_LIMIT: Final = 16
"""If room is short, this many requests that do not fit are placed one by one; later ones share the rest."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReservedNode:
    """Pods on one node by the key of their entry. `node` is empty for a node that was only requested."""

    group: str
    pods: Mapping[str, int]
    node: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reservations:
    """Booked pods per node and key, and the number of pods per key without a node."""

    by_node: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unplaced: Mapping[str, int] = field(default_factory=dict)


def reserve(
    snapshot: Snapshot,
    policy: Policy,
    wanted: Sequence[PendingPods],
    *,
    before: Sequence[ReservedNode] = (),
    cache: PlannerCache | None = None,
) -> Reservations:
    """Reserve room on the nodes of the snapshot; its own pending pods are ignored. `wanted` is in queue order."""
    if not wanted:
        return Reservations()
    alone = replace(snapshot, pending=tuple(wanted), groups=(), machine_types=(), nominations={})
    problem = ScaleUpProblem.from_snapshot(alone, replace(policy, nap=replace(policy.nap, enabled=False)), cache=cache)
    doubts = FailedClasses()
    distrusted: frozenset[int] = frozenset()
    for _ in range(_ROUNDS):
        booking = _Booking(problem, doubts)
        booking.keep(before, distrusted)
        booking.fill()
        refuted = booking.find_refuted()
        if not refuted:
            break
        # First on the nodes that held them before, then placed again, then one by one.
        again = refuted & distrusted
        doubts = FailedClasses(
            pod_by_pod=doubts.pod_by_pod | again, given_up=doubts.given_up | (again & doubts.pod_by_pod)
        )
        distrusted |= refuted
    else:
        booking = _Booking(problem, replace(doubts, pod_by_pod=doubts.pod_by_pod | distrusted, given_up=distrusted))
        booking.keep(before, distrusted)
        booking.fill()
    return booking.build_reservations()


class _Booking:
    """The booking in progress: pods per row."""

    def __init__(self, problem: ScaleUpProblem, doubts: FailedClasses) -> None:
        self._problem = problem
        self._doubts = doubts
        self._class_of = {
            pending.key: int(problem.table.class_of[at]) for at, pending in enumerate(problem.table.pending)
        }
        self._left = {pending.key: pending.count for pending in problem.table.pending}
        self._on: dict[int, dict[str, int]] = {}
        self._open: dict[int, Flags] = {}
        self._interacts = problem.rules.interacts

    # ---- earlier places

    def keep(self, before: Sequence[ReservedNode], distrusted: frozenset[int]) -> None:
        trusted = {key for key, number in self._class_of.items() if number not in distrusted and self._is_plain(number)}
        lines = [
            [(row, self._class_of[key], key, pods) for key, pods in filling.pods.items() if key in trusted and pods > 0]
            for row, filling in self._find_rows(before)
        ]
        free = self._problem.arrays.free.copy()
        found: list[tuple[int, str, int]] = []
        for position in range(max(map(len, lines), default=0)):
            # One entry per row, so that all rows can be counted at once.
            found += self._select_fitting([queue[position] for queue in lines if len(queue) > position], free)
        self._take(found)

    def _is_plain(self, number: int) -> bool:
        """Whether an earlier place can be kept. Volumes are checked again: attach limits change with other pods."""
        pod_class = self._problem.table.classes[number]
        return pod_class.problem is None and not pod_class.volumes

    def _find_rows(self, before: Sequence[ReservedNode]) -> list[tuple[int, ReservedNode]]:
        """Row and reserved pods: its own node if that exists, otherwise a free node of its group."""
        row_of = self._problem.arrays.row_of
        found = [(row_of[filling.node], filling) for filling in before if filling.node in row_of]
        without_node = [filling for filling in before if filling.node not in row_of]
        if not without_node:
            return found
        used = {row for row, _ in found}
        free = _find_free_rows(self._problem, {filling.group for filling in without_node}, used)
        largest_first = sorted(without_node, key=lambda filling: -sum(filling.pods.values()))
        found += [(free[filling.group].popleft(), filling) for filling in largest_first if free[filling.group]]
        return sorted(found, key=lambda pair: pair[0])

    def _select_fitting(self, lines: Sequence[tuple[int, int, str, int]], free: Ints) -> list[tuple[int, str, int]]:
        """(row, key, pods) as far as there is room, which is subtracted from `free`. Rows are distinct."""
        rules = self._problem.rules.node_predicates
        rows = np.array([queue[0] for queue in lines], dtype=np.int64)
        numbers = np.array([queue[1] for queue in lines], dtype=np.int64)
        pods = np.array([queue[3] for queue in lines], dtype=np.int64)
        for number in np.unique(numbers).tolist():
            at = np.flatnonzero(numbers == number)
            here = rows[at]
            request = rules.requests[number]
            requested = np.flatnonzero(request > 0)
            room = (free[here][:, requested] // request[requested]).min(axis=1) if len(requested) else pods[at]
            room = np.where(self._find_accepting_rows(number)[here], np.maximum(room, 0), 0)
            pods[at] = np.minimum(pods[at], np.minimum(room, 1) if rules.excludes_itself(number) else room)
            free[here] -= pods[at][:, None] * request
        return [(queue[0], queue[2], count) for queue, count in zip(lines, pods.tolist(), strict=True) if count]

    def _find_accepting_rows(self, number: int) -> Flags:
        """[N]: rows that would take a pod of the class if nothing were booked. Inter-pod rules are verified later."""
        if number not in self._open:
            rules = self._problem.rules
            looks = self._interacts[number]
            self._open[number] = (
                rules.node_predicates.find_fitting(number, self._problem.arrays.free, {})
                if looks
                else rules.find_fitting(number)
            )
        return self._open[number]

    def _take(self, found: Sequence[tuple[int, str, int]]) -> None:
        """Take no more than needed per key: running pods need no reservation, and the last nodes become free first."""
        for row, key, pods in sorted(found):
            taken = min(pods, self._left[key])
            if taken:
                self._left[key] -= taken
                here = self._on.setdefault(row, {})
                here[key] = here.get(key, 0) + taken

    # ---- unscheduled pods

    def fill(self) -> None:
        """Place all together; if not all fit, in queue order."""
        queue = self._list_queue()
        for _ in range(_QUEUE_LIMIT):
            if not queue:
                return
            first = self._reserve_longest_prefix(queue)
            if first == len(queue):
                return
            # The next request gets the room that is left.
            self._distribute(queue[first : first + 1], self._pack(queue[first : first + 1]))
            queue = queue[first + 1 :]
        self._distribute(queue, self._pack(queue))

    def _list_queue(self) -> list[list[str]]:
        """Keys of each request with unscheduled pods."""
        found: dict[str, list[str]] = {}
        for pending in self._problem.table.pending:
            if self._left[pending.key]:
                found.setdefault(pending.bundle or pending.key, []).append(pending.key)
        return list(found.values())

    def _reserve_longest_prefix(self, queue: Sequence[list[str]]) -> int:
        """The length of the longest prefix that fits together, by binary search; it is reserved."""
        low, high = 0, len(queue)
        best: dict[int, Mapping[int, int]] = {}
        while low < high:
            middle = high if not low and high == len(queue) else (low + high + 1) // 2
            packed = self._pack(queue[:middle])
            if self._is_whole(queue[:middle], packed):
                low, best = middle, packed
            else:
                high = middle - 1
        self._distribute(queue[:low], best)
        return low

    def _pack(self, queue: Sequence[list[str]]) -> dict[int, Mapping[int, int]]:
        """Row to pods by class, beyond those that are booked already."""
        problem = self._problem
        demand = np.zeros(len(problem.table), dtype=np.int64)
        for keys in queue:
            for key in keys:
                demand[self._class_of[key]] += self._left[key]
        means = PackingOptions(usable=np.zeros(0, dtype=np.bool_), failed=self._doubts)
        before = Placement(existing=self._group_by_class())
        placement = place(problem, self._relations, demand, means, before)
        return {
            row: more
            for row, content in placement.existing.items()
            if (more := _subtract(content, before.existing.get(row, {})))
        }

    @property
    def _relations(self) -> PodRelations:
        return PodRelations(self._problem.table, self._problem.rules, self._problem.snapshot.view)

    def _group_by_class(self) -> dict[int, dict[int, int]]:
        found: dict[int, dict[int, int]] = {}
        for row in sorted(self._on):
            content: dict[int, int] = {}
            for key, pods in self._on[row].items():
                number = self._class_of[key]
                content[number] = content.get(number, 0) + pods
            found[row] = {number: content[number] for number in sorted(content)}
        return found

    def _is_whole(self, queue: Sequence[list[str]], packed: Mapping[int, Mapping[int, int]]) -> bool:
        wanted = sum(self._left[key] for keys in queue for key in keys)
        return sum(sum(content.values()) for content in packed.values()) >= wanted

    def _distribute(self, queue: Sequence[list[str]], packed: Mapping[int, Mapping[int, int]]) -> None:
        """Assign the places of a class to its members in queue order."""
        waiting: dict[int, deque[str]] = defaultdict(deque)
        for keys in queue:
            for key in keys:
                waiting[self._class_of[key]].append(key)
        for row in sorted(packed):
            here = self._on.setdefault(row, {})
            for number, pods in packed[row].items():
                places = pods
                while places and waiting[number]:
                    key = waiting[number][0]
                    taken = min(places, self._left[key])
                    if taken:
                        here[key] = here.get(key, 0) + taken
                    self._left[key] -= taken
                    places -= taken
                    if not self._left[key]:
                        waiting[number].popleft()

    # ---- verification

    def find_refuted(self) -> frozenset[int]:
        """Classes with inter-pod rules whose places the verifier refutes."""
        looking = {key for key, number in self._class_of.items() if self._interacts[number]}
        places = {
            name: {key: pods for key, pods in counts.items() if key in looking} for name, counts in self._name_nodes()
        }
        places = {name: counts for name, counts in places.items() if counts}
        if not places:
            return frozenset()
        others = {
            name: {key: pods for key, pods in counts.items() if key not in looking}
            for name, counts in self._name_nodes()
        }
        others = {name: counts for name, counts in others.items() if counts}
        snapshot = self._problem.snapshot
        with_others = replace(snapshot, view=PlaceholderPods().add_to(snapshot.view, others, snapshot.pending))
        plan = ScaleUpPlan(result=Result.NOT_NEEDED, existing=places)
        return frozenset(self._class_of[refuted.key] for refuted in verify(with_others, plan))

    def build_reservations(self) -> Reservations:
        short = {key: left for key, left in self._left.items() if left}
        return Reservations(by_node=dict(self._name_nodes()), unplaced=short)

    def _name_nodes(self) -> list[tuple[str, dict[str, int]]]:
        names = self._problem.arrays.names
        return [(names[row], self._on[row]) for row in sorted(self._on) if self._on[row]]


def _find_free_rows(problem: ScaleUpProblem, groups: set[str], used: set[int]) -> dict[str, deque[int]]:
    """Rows of these groups without reserved pods, the emptiest first."""
    found: dict[str, list[tuple[int, int]]] = {group: [] for group in groups}
    group_of = problem.snapshot.group_of
    for row, state in enumerate(problem.arrays.states):
        group = group_of.get(state.name, "")
        if group in groups and row not in used and not state.problem:
            found[group].append((len(state.pods), row))
    return {group: deque(row for _, row in sorted(rows)) for group, rows in found.items()}


def _subtract(content: Mapping[int, int], before: Mapping[int, int]) -> dict[int, int]:
    return {number: more for number, pods in content.items() if (more := pods - before.get(number, 0)) > 0}
