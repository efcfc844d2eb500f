"""Simulated node removals: where each pod of a removed node would go. A node is emptied completely or not at all.

`remove_in_bulk` passes pods that have only resource requests and node constraints to the solver, for all nodes at once.
`RemovalSimulator` removes one node at a time with the plain rules of `scheduling`: for pods with inter-pod constraints
or volumes, and as the verifier of the final proposal. Neither decides which nodes to remove.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.nodes.model.scale_down_plan import PodMove
from plimsoll.nodes.planning.scaledown.problem import PodToMove
from plimsoll.nodes.planning.state.node_pods import remove_node_name
from plimsoll.scheduling import ClusterView, Fits
from plimsoll.scheduling.feasibility import prepare_pod
from plimsoll.scheduling.replay import Replay
from plimsoll.solver.consolidation.consolidate import NodeSet, remove_in_order

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.nodes.planning.scaledown.problem import ScaleDownProblem
    from plimsoll.scheduling.cluster_view import NodeState, PlacedPod, PodKey
    from plimsoll.scheduling.feasibility import Prepared
    from plimsoll.scheduling.replay import EquivalenceClass
    from plimsoll.solver.consolidation.consolidate import Limits, Removals
    from plimsoll.solver.problem import Flags, Floats, Ints

MAX_EFFORT: Final = 200_000
"""Pairs of pod and node that one plan checks one by one."""
VERIFICATION_EFFORT: Final = 100_000_000
"""The same for the few nodes that are about to be removed: a verification is not cut short."""
_PODS_PER_EFFORT: Final = 10
"""Rules about other pods are prepared by counting all pods, of which so many cost as much as one check."""
MANY_REMOVALS: Final = 200
"""From this many removals on, the first candidates are emptied into the last ones first."""

MovedPods = dict[int, list["PodToMove"]]
"""Row to the pods that were moved there and stayed, with their classes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unplaceable:
    """The pod for which no other node was found."""

    pod: PodKey
    gave_up: bool = False
    """The budget of checks was used up before all nodes were tried."""


def build_node_set(
    problem: ScaleDownProblem, removable: Flags, *, receives: Flags, price: Floats | None = None
) -> NodeSet:
    """The input of the solver. `removable` must not include rows with pods that have inter-pod rules."""
    starts, lines = problem.count_classes(removable)
    kind, allowed = problem.find_node_kinds()
    return NodeSet(
        requests=problem.requests,
        free=problem.free,
        price=np.ones(len(problem.arrays)) if price is None else price,
        kind=kind,
        allowed=allowed,
        starts=starts,
        movable=lines,
        removable=removable,
        receives=receives,
        ties=problem.first_pod,
    )


def remove_in_bulk(problem: ScaleDownProblem, order: Ints, limits: Limits, *, receives: Flags) -> Removals:
    """Remove rows in order; pods moved to a node that is removed later move on.

    If many nodes may be removed, pods of the first ones go only to nodes that stay, as far as total room allows;
    otherwise most pods would move from one removed node to the next. Nodes that fail are tried again without this.
    """
    removable = np.zeros(len(problem.arrays), dtype=np.bool_)
    removable[order] = True
    cluster = build_node_set(problem, removable, receives=receives)
    heads = _count_heads(cluster, order, receives) if min(limits.removals, len(order)) >= MANY_REMOVALS else 0
    if not heads:
        return remove_in_order(cluster, order, limits)
    closed = receives.copy()
    closed[order[:heads]] = False
    first = remove_in_order(replace(cluster, receives=closed), order[:heads], limits)
    return _remove_rest(cluster, order, limits, first)


def _count_heads(cluster: NodeSet, order: Ints, receives: Flags) -> int:
    """The number of first nodes whose pods the others could hold by total resources."""
    lines = cluster.requests[cluster.movable[:, 0]] * cluster.movable[:, 1:2]
    used = np.zeros(cluster.free.shape, dtype=np.int64)
    np.add.at(used, np.repeat(np.arange(len(used)), np.diff(cluster.starts)), lines)
    free = np.where(receives[:, None], cluster.free.clip(0), 0)
    requested = np.cumsum(used[order], axis=0)
    given = free.sum(axis=0) - np.cumsum(free[order], axis=0)
    return int((requested <= given).all(axis=1).sum())


def _remove_rest(cluster: NodeSet, order: Ints, limits: Limits, first: Removals) -> Removals:
    """Remove the remaining rows in the same order, with their own pods and those moved onto them."""
    assert cluster.receives is not None
    gone = np.zeros(len(cluster.free), dtype=np.bool_)
    gone[first.removed] = True
    starts, lines = _add_moved_pods(cluster, first.moves, ~gone & cluster.removable)
    left = replace(
        cluster,
        free=first.free,
        starts=starts,
        movable=lines,
        removable=cluster.removable & ~gone,
        receives=cluster.receives & ~gone,
    )
    spare = limits.spare
    if limits.use is not None and spare is not None:
        spare = spare - limits.use[first.removed].sum(axis=0)
    less = replace(limits, removals=limits.removals - len(first.removed), spare=spare)
    second = remove_in_order(left, order[~gone[order]], less)
    return replace(
        second,
        removed=np.concatenate((first.removed, second.removed)),
        moves=np.concatenate((first.moves, second.moves)),
        statuses=np.where(gone, first.statuses, second.statuses),
    )


def _add_moved_pods(cluster: NodeSet, moves: Ints, rows: Flags) -> tuple[Ints, Ints]:
    """The movable pods of chosen rows after some moves onto them."""
    classes = max(len(cluster.requests), 1)
    nodes = np.concatenate((np.repeat(np.arange(len(rows)), np.diff(cluster.starts)), moves[:, 2]))
    numbers = np.concatenate((cluster.movable[:, 0], moves[:, 0]))
    items = np.concatenate((cluster.movable[:, 1], moves[:, 3]))
    chosen = rows[nodes]
    cells, position = np.unique(nodes[chosen] * classes + numbers[chosen], return_inverse=True)
    totals = np.bincount(position, weights=items[chosen], minlength=len(cells)).astype(np.int64)
    starts = np.searchsorted(cells, np.arange(len(rows) + 1) * classes).astype(np.int64)
    return starts, np.column_stack((cells % classes, totals)).astype(np.int64)


def apply_moves(problem: ScaleDownProblem, moves: Ints) -> tuple[MovedPods, tuple[PodMove, ...]]:
    """The final node of each moved pod, and all moves by name, from the solver's moves (class, from, to, pods)."""
    waiting: dict[tuple[int, int], list[tuple[PlacedPod, int]]] = defaultdict(list)
    for row in dict.fromkeys(moves[:, 1].tolist()):
        for placed, number in reversed(problem.list_pods_to_move(row)):
            waiting[row, number].append((placed, row))
    for number, source, target, pods in moves.tolist():
        there = waiting[source, number]
        taken, there[len(there) - pods :] = there[len(there) - pods :], []
        waiting[target, number].extend(taken)
    gone = set(moves[:, 1].tolist())
    moved_pods: MovedPods = defaultdict(list)
    named: list[PodMove] = []
    names = problem.arrays.names
    for (row, number), listed in sorted(waiting.items(), key=lambda item: item[0]):
        for placed, source in listed:
            if source != row and row not in gone:
                moved_pods[row].append(PodToMove(placed, number))
                named.append(PodMove(pod=placed.key, source=names[source], target=names[row]))
    return moved_pods, tuple(named)


def find_refused_moves(problem: ScaleDownProblem, moved_pods: Mapping[int, Sequence[PodToMove]]) -> set[PodKey]:
    """Pods moved in bulk that the plain rules refuse on their new nodes. Each node is checked alone.

    That is enough, because pods with rules about other nodes are never moved in bulk.
    """
    view = problem.snapshot.view
    nowhere = ClusterView.from_objects(namespaces=view.namespaces, storage=view.storage)
    rules: dict[int, Prepared] = {}
    found: set[PodKey] = set()
    for row, listed in sorted(moved_pods.items()):
        state = problem.arrays.states[row]
        for placed, number in listed:
            known = rules.get(number) or rules.setdefault(number, prepare_pod(remove_node_name(placed.pod), nowhere))
            if isinstance(known.check(state), Fits):
                state = state.with_pods((placed,))
            else:
                found.add(placed.key)
    return found


class RemovalSimulator:
    """A cluster whose nodes are removed one after the other by the plain rules. A failed attempt changes nothing."""

    def __init__(
        self,
        problem: ScaleDownProblem,
        *,
        receives: Flags,
        removed: Iterable[int] = (),
        moved_pods: Mapping[int, Sequence[PodToMove]] | None = None,
        hints: Mapping[PodKey, str] | None = None,
        effort: int = MAX_EFFORT,
    ) -> None:
        """`removed`: rows that are removed already; `moved_pods`: pods moved to their rows before."""
        self._problem = problem
        self._receives = receives.copy()
        self._hints = hints or {}
        self.free: Ints = problem.free.copy()
        self.moved_pods: MovedPods = defaultdict(list)
        self.moves: list[PodMove] = []
        self.effort_left = effort
        self._states: dict[str, NodeState] = dict(problem.snapshot.view.nodes)
        self._repelling = {state.name: None for state in problem.snapshot.view.anti_affine_nodes}
        for row in removed:
            self._leave(row)
        for row, listed in (moved_pods or {}).items():
            self._settle(row, listed)

    def simulate_removal(self, row: int) -> tuple[PodMove, ...] | Unplaceable:
        """Move all pods of the row to other nodes, or none."""
        pods = [*self._problem.list_pods_to_move(row), *self.moved_pods.get(row, ())]
        replay = Replay(self._build_view(without=row))
        groups: dict[object, EquivalenceClass] = {}
        free = self.free.copy()
        placed_at: list[tuple[PodToMove, int]] = []
        preparation = 0
        for pod in self._sort_largest_first(pods):
            placed, number = pod
            # Pods of a class are exchangeable except for their claims.
            class_key = placed.key if placed.claims else number
            group = groups.get(class_key)
            if group is None:
                group = groups[class_key] = replay.add_equivalence_class(remove_node_name(placed.pod))
                preparation += self._count_preparation(number)
            found = self._find_first_fit(replay, group, pod, free, without=row)
            if found is None:
                gave_up = self.effort_left < 0
                self.effort_left -= preparation
                return Unplaceable(pod=placed.key, gave_up=gave_up)
            replay.place(group, self._problem.arrays.names[found], str(placed.key))
            free[found] -= self._problem.requests[number]
            placed_at.append((pod, found))
        # Charged at the end: however large the cluster is, each turn gets to one node at least.
        self.effort_left -= preparation
        return self._commit_moves(row, placed_at)

    def _count_preparation(self, number: int) -> int:
        """The effort of counting the pods that the rules of a class look at."""
        if not self._problem.running_classes.interacting[number]:
            return 0
        return len(self._problem.pods_by_node.kind) // _PODS_PER_EFFORT

    def _commit_moves(self, row: int, placed_at: list[tuple[PodToMove, int]]) -> tuple[PodMove, ...]:
        names = self._problem.arrays.names
        self._leave(row)
        self.moved_pods.pop(row, None)
        for pod, target in placed_at:
            self._settle(target, [pod])
        made = tuple(PodMove(pod=pod.placed.key, source=names[row], target=names[target]) for pod, target in placed_at)
        self.moves += made
        return made

    def _sort_largest_first(self, pods: list[PodToMove]) -> list[PodToMove]:
        requests = self._problem.requests
        largest = np.maximum(requests.max(axis=0, initial=1), 1)
        size = np.round((requests / largest).max(axis=1, initial=0.0), 9)
        first = self._problem.first_pod
        return sorted(pods, key=lambda pod: (-size[pod.class_number], first[pod.class_number], pod.placed.key))

    def _find_first_fit(
        self, replay: Replay, group: EquivalenceClass, pod: PodToMove, free: Ints, *, without: int
    ) -> int | None:
        """The hinted node first, then the fullest node that takes the pod."""
        placed, number = pod
        problem = self._problem
        needs = problem.requests[number]
        requested = needs > 0
        possible = self._receives & problem.find_static_fit(problem.running_classes.table.classes[number])
        possible &= (free[:, requested] >= needs[requested]).all(axis=1)
        possible[without] = False
        rows = np.flatnonzero(possible)
        room = np.round((free[rows] / np.maximum(free.max(axis=0, initial=1), 1)).sum(axis=1), 9)
        ordered = rows[np.lexsort((rows, room))].tolist()
        hint = problem.arrays.row_of.get(self._hints.get(placed.key, ""), -1)
        if hint >= 0 and possible[hint]:
            ordered.insert(0, hint)
        for row in ordered:
            self.effort_left -= 1
            if self.effort_left < 0:
                return None
            if isinstance(replay.check(group, problem.arrays.names[row]), Fits):
                return int(row)
        return None

    def _leave(self, row: int) -> None:
        self._states.pop(self._problem.arrays.names[row], None)
        self._repelling.pop(self._problem.arrays.names[row], None)
        self._receives[row] = False

    def _settle(self, row: int, listed: Sequence[PodToMove]) -> None:
        name = self._problem.arrays.names[row]
        self._states[name] = self._states[name].with_pods(placed for placed, _ in listed)
        self.moved_pods[row].extend(listed)
        if any(placed.anti_affinity for placed, _ in listed):
            self._repelling[name] = None
        for _, number in listed:
            self.free[row] -= self._problem.requests[number]

    def _build_view(self, *, without: int) -> ClusterView:
        view = self._problem.snapshot.view
        gone = self._problem.arrays.names[without]
        states = {name: state for name, state in self._states.items() if name != gone}
        repelling = {name: None for name in self._repelling if name != gone}
        return ClusterView(states, namespaces=view.namespaces, storage=view.storage, anti_affine=repelling)
