"""Mends what dealing left: replicas without a place, and receivers outside their byte window (steps 7 and 8)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.solver.replicas.problem import BrokerState

if TYPE_CHECKING:
    from plimsoll.solver.problem import Flags, Floats, Ints
    from plimsoll.solver.replicas.problem import ReplicaProblem, Windows

_SWAPS_AT_MOST: Final = 400
_PARTNERS: Final = 8
"""Replicas of nearest size that are tried as partners of a swap."""
_SWAPS_TRIED: Final = 256
"""Swaps of one receiver whose legality is examined."""
_DETOURS: Final = 512
"""Dealt replicas of nearest size that are tried as a detour."""


@dataclass(slots=True, kw_only=True)
class Assignment:
    """The assignment while it is mended. `replicas`, `source`, `destination` and `size` are of the moved ones [M]."""

    problem: ReplicaProblem
    rack_cap: Ints
    broker_of: Ints
    replicas: Ints
    partition_of: Ints
    source: Ints
    destination: Ints
    size: Floats
    counts: Ints
    """[B]."""
    held: Floats
    """[B]."""
    tried: int = 0
    row_of: Ints = field(init=False)
    """[M]: the row of the replica's partition in `rack_counts`."""
    rack_counts: Ints = field(init=False)
    """[partitions that move, racks]: replicas per rack, kept up to date."""

    def __post_init__(self) -> None:
        problem = self.problem
        partitions, self.row_of = np.unique(self.partition_of, return_inverse=True)
        self.rack_counts = np.zeros((len(partitions), int(problem.rack_of.max(initial=0)) + 1), dtype=np.int64)
        lengths = problem.offsets[partitions + 1] - problem.offsets[partitions]
        starts = np.repeat(problem.offsets[partitions] - np.cumsum(lengths) + lengths, lengths)
        rows = starts + np.arange(int(lengths.sum()))
        racks = problem.rack_of[self.broker_of[rows]]
        np.add.at(self.rack_counts, (np.repeat(np.arange(len(partitions)), lengths), racks), 1)

    def find_hosts(self, item: int) -> Flags:
        """[B]: the brokers that may host a moved replica, wherever it is now.

        Rack awareness must hold afterwards, or be violated no more than before the replica moved.
        """
        self.tried += 1
        problem = self.problem
        partition = int(self.partition_of[item])
        rows = np.arange(problem.offsets[partition], problem.offsets[partition + 1])
        rows = rows[rows != self.replicas[item]]
        others = self.broker_of[rows]
        source = int(self.source[item])
        source_rack = problem.rack_of[source]
        cap = int(self.rack_cap[partition])
        in_rack = self.rack_counts[self.row_of[item]].copy()
        in_rack[problem.rack_of[self.broker_of[self.replicas[item]]]] -= 1
        open_racks = in_rack < cap
        if cap > 1 and problem.state[source] != BrokerState.LEAVING:
            open_racks &= in_rack <= in_rack[source_rack]
        before = int((problem.rack_of[problem.broker_of[rows]] == source_rack).sum())
        open_racks[source_rack] |= in_rack[source_rack] <= before
        hosts: Flags = open_racks[problem.rack_of]
        hosts[others] = False
        hosts[source] = False
        return hosts

    def may_host(self, item: int, broker: int) -> bool:
        """Whether a moved replica may be on a broker."""
        return bool(self.find_hosts(item)[broker])

    def move(self, item: int, broker: int) -> None:
        """Give a moved replica another destination."""
        before = int(self.broker_of[self.replicas[item]])
        counts = self.rack_counts[self.row_of[item]]
        counts[self.problem.rack_of[before]] -= 1
        counts[self.problem.rack_of[broker]] += 1
        self.counts[before] -= 1
        self.held[before] -= self.size[item]
        self.counts[broker] += 1
        self.held[broker] += self.size[item]
        self.broker_of[self.replicas[item]] = broker
        self.destination[item] = broker


def place_undealt(assignment: Assignment, slots: Ints) -> Ints:
    """Find places for undealt replicas; returns those of leaving brokers that have none. `slots` is per broker [B].

    A replica takes the place of a dealt one of nearest size, which moves on to a broker with room. If there is none, a
    replica of a leaving broker goes wherever it may, and another one stays where it is.
    """
    stranded: list[int] = []
    for item in np.flatnonzero(assignment.destination < 0):
        if _place_directly(assignment, int(item), slots) or _place_by_detour(assignment, int(item), slots):
            continue
        if assignment.problem.state[assignment.source[item]] != BrokerState.LEAVING:
            continue
        broker = _find_any_place(assignment, int(item))
        if broker is None:
            stranded.append(int(assignment.replicas[item]))
        else:
            assignment.move(int(item), broker)
    return np.array(stranded, dtype=np.int64)


def _place_directly(assignment: Assignment, item: int, slots: Ints) -> bool:
    for broker in np.flatnonzero((slots > 0) & assignment.find_hosts(item)).tolist():
        if _has_room(assignment, item, broker):
            assignment.move(item, broker)
            slots[broker] -= 1
            return True
    return False


def _place_by_detour(assignment: Assignment, item: int, slots: Ints) -> bool:
    """Moved replicas are sorted by size, so those with near positions have near sizes."""
    problem = assignment.problem
    hosts = assignment.find_hosts(item)
    places = assignment.destination
    usable = (places >= 0) & hosts[places] & (assignment.partition_of != assignment.partition_of[item])
    usable &= assignment.held[places] - assignment.size + assignment.size[item] <= problem.max_bytes[places]
    with_slots = np.flatnonzero(slots > 0)
    usable &= _may_move_on(assignment, problem.rack_of[with_slots])
    candidates = np.flatnonzero(usable)
    middle = int(np.searchsorted(candidates, item))
    near = candidates[max(0, middle - _DETOURS) : middle + _DETOURS]
    for other in near[np.argsort(np.abs(near - item), kind="stable")].tolist():
        place = int(places[other])
        onward = assignment.find_hosts(other)[with_slots]
        for broker in with_slots[onward].tolist():
            if place != broker and _has_room(assignment, other, broker):
                assignment.move(other, broker)
                assignment.move(item, place)
                slots[broker] -= 1
                return True
    return False


def _may_move_on(assignment: Assignment, racks: Ints) -> Flags:
    """[M]: whether the partition of a moved replica has room in any of the racks, the replica itself left out."""
    own_rack = assignment.problem.rack_of[assignment.broker_of[assignment.replicas]]
    result = np.zeros(len(assignment.replicas), dtype=np.bool_)
    for rack in np.unique(racks):
        others = assignment.rack_counts[assignment.row_of, rack] - (own_rack == rack)
        result |= (others < assignment.rack_cap[assignment.partition_of]) | (own_rack == rack)
    return result


def _find_any_place(assignment: Assignment, item: int) -> int | None:
    """The broker with the fewest replicas for its weight that may take it, regardless of windows."""
    problem = assignment.problem
    use = assignment.counts / np.maximum(problem.weight, 1e-9)
    usable = assignment.find_hosts(item) & problem.may_receive & (problem.state != BrokerState.LEAVING)
    usable &= assignment.counts < problem.max_replicas
    usable &= assignment.held + assignment.size[item] <= problem.max_bytes
    return int(np.argmin(np.where(usable, use, np.inf))) if usable.any() else None


def _has_room(assignment: Assignment, item: int, broker: int) -> bool:
    return bool(assignment.held[broker] + assignment.size[item] <= assignment.problem.max_bytes[broker])


def swap_destinations(assignment: Assignment, windows: Windows) -> int:
    """Swap destinations of moved replicas while that lowers the violation of byte windows; returns the number of swaps.

    Nothing moves that would not move anyway.
    """
    order = np.lexsort((np.arange(len(assignment.size)), assignment.size))
    order = order[assignment.destination[order] >= 0]
    given_up = np.zeros(len(assignment.held), dtype=np.bool_)
    receives = np.zeros(len(assignment.held), dtype=np.bool_)
    receives[assignment.destination[order]] = True
    swaps = 0
    while swaps < _SWAPS_AT_MOST:
        violation = _find_violation(assignment.held, windows)
        ranked = np.where(receives & ~given_up, violation / np.maximum(windows.high_bytes, 1e-9), 0.0)
        worst = int(np.argmax(ranked))
        if ranked[worst] <= 1e-12:
            break
        if _swap_best(assignment, windows, order, worst):
            swaps += 1
        else:
            given_up[worst] = True
    return swaps


def _find_violation(held: Floats, windows: Windows) -> Floats:
    result: Floats = np.maximum(np.maximum(held - windows.high_bytes, windows.low_bytes - held), 0.0)
    return result


def _swap_best(assignment: Assignment, windows: Windows, order: Ints, worst: int) -> bool:
    """Swap the worst receiver's replica whose exchange for one of near size lowers the violation the most."""
    destination = assignment.destination[order]
    is_other: Flags = destination != worst
    ours, others = order[~is_other], order[is_other]
    if not len(ours) or not len(others):
        return False
    held = assignment.held[worst]
    is_over = held > windows.high_bytes[worst]
    gap = held - (windows.high_bytes[worst] if is_over else windows.low_bytes[worst])
    nearest = np.searchsorted(assignment.size[others], assignment.size[ours] - gap)
    columns = nearest[:, None] + np.arange(-_PARTNERS // 2, _PARTNERS // 2)
    partners = others[np.clip(columns, 0, len(others) - 1)]
    gains = _find_gains(assignment, windows, ours, partners)
    gains[(columns < 0) | (columns >= len(others))] = 0.0
    flat = gains.ravel()
    useful = np.flatnonzero(flat > 1e-6 * max(1.0, abs(gap)))
    for choice in useful[np.lexsort((useful, -flat[useful]))][:_SWAPS_TRIED].tolist():
        item, other = int(ours[choice // _PARTNERS]), int(partners.ravel()[choice])
        place = int(assignment.destination[other])
        if assignment.may_host(item, place) and assignment.may_host(other, worst):
            assignment.move(other, worst)
            assignment.move(item, place)
            return True
    return False


def _find_gains(assignment: Assignment, windows: Windows, ours: Ints, partners: Ints) -> Floats:
    """[ours, partners]: by how much a swap lowers the violation of both brokers; 0 if it is impossible."""
    here, there = assignment.destination[ours][:, None], assignment.destination[partners]
    difference = assignment.size[ours][:, None] - assignment.size[partners]
    gains = np.zeros(partners.shape)
    possible = assignment.partition_of[ours][:, None] != assignment.partition_of[partners]
    for brokers, change in ((here, -difference), (there, difference)):
        held = assignment.held[brokers]
        low, high = windows.low_bytes[brokers], windows.high_bytes[brokers]
        after = held + change
        possible = possible & (after <= assignment.problem.max_bytes[brokers])
        gains += np.maximum(np.maximum(held - high, low - held), 0.0)
        gains -= np.maximum(np.maximum(after - high, low - after), 0.0)
    return np.where(possible, gains, 0.0)
