"""Balances replica counts and bytes at once, with the fewest moves (docs/design/performance.md, joint balance).

A window is the number of replicas and bytes that a broker may have. Each broker gets a target within its windows, such
that the fewest bytes move. Brokers above their target give replicas away, brokers below it receive them, and swaps
correct the rest. Neither time nor chance has an influence, and the lower index wins a tie: equal input gives an equal
plan.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.solver.kernels import is_compiled
from plimsoll.solver.replicas.choosing import choose_by_sum
from plimsoll.solver.replicas.dealing_kernel import DealArrays, deal_compiled, deal_plain
from plimsoll.solver.replicas.problem import BrokerState, ReplicaSolution, find_rack_caps
from plimsoll.solver.replicas.repair import Assignment, place_undealt, swap_destinations
from plimsoll.solver.replicas.targets import Stock, find_targets
from plimsoll.solver.replicas.windows import find_windows

if TYPE_CHECKING:
    from plimsoll.solver.problem import Flags, Floats, Ints
    from plimsoll.solver.replicas.problem import ReplicaProblem, Windows
    from plimsoll.solver.replicas.targets import Targets


def balance(problem: ReplicaProblem) -> ReplicaSolution:
    """Where replicas go."""
    stock = _take_stock(problem)
    windows = find_windows(problem, counts=stock.counts, held=stock.held)
    solution = _balance_within(problem, windows, stock)
    if solution.extra_moves and _find_count_violation(problem, solution):
        # Replicas that should have made room found no place. The plan without extra moves may be better.
        strict = _balance_within(dataclasses.replace(problem, relief=False), windows, stock)
        if _find_count_violation(problem, strict) < _find_count_violation(problem, solution):
            return strict
    return solution


def _balance_within(problem: ReplicaProblem, windows: Windows, stock: Stock) -> ReplicaSolution:
    targets = find_targets(problem, windows, stock)
    leaving = _choose_leaving(problem, stock, targets)
    assignment, slots = _deal(problem, windows, stock, targets, leaving)
    stranded = place_undealt(assignment, slots)
    swaps = swap_destinations(assignment, windows)
    moved = assignment.broker_of != problem.broker_of
    sizes = np.repeat(problem.size, np.diff(problem.offsets))
    counts, held = _sum_up(assignment.broker_of, sizes, brokers=len(problem.rack_of))
    return ReplicaSolution(
        broker_of=assignment.broker_of,
        moves=int(moved.sum()),
        moved_bytes=float(sizes[moved].sum()),
        least_moves=int(_find_least(windows, stock.counts, windows.find_counts_inside(counts), is_bytes=False)),
        least_bytes=_find_least(windows, stock.held, windows.are_bytes_inside(held), is_bytes=True),
        windows=windows,
        stranded=stranded,
        extra_moves=targets.extra,
        swaps=swaps,
        candidates_tried=assignment.tried + len(leaving) * int((targets.slots > 0).sum()),
    )


def _find_count_violation(problem: ReplicaProblem, solution: ReplicaSolution) -> int:
    """By how many replicas brokers are outside their windows."""
    counts = np.bincount(solution.broker_of, minlength=len(problem.rack_of))
    outside = np.maximum(counts - solution.windows.high_count, solution.windows.low_count - counts)
    return int(np.maximum(outside, 0).sum())


def _take_stock(problem: ReplicaProblem) -> Stock:
    brokers = len(problem.rack_of)
    factor = np.diff(problem.offsets)
    partition_of = np.repeat(np.arange(len(factor)), factor)
    sizes = problem.size[partition_of]
    counts, held = _sum_up(problem.broker_of, sizes, brokers=brokers)
    # By size first, then a stable sort by broker: a sort by small whole numbers is fast.
    by_size = np.argsort(sizes, kind="stable")
    by_size = by_size[problem.movable[by_size]]
    keys = problem.broker_of[by_size]
    order = by_size[np.argsort(keys.astype(np.int16) if brokers < 1 << 15 else keys, kind="stable")]
    listed = np.bincount(keys, minlength=brokers)
    return Stock(
        order=order,
        starts=np.concatenate(([0], np.cumsum(listed))).astype(np.int64),
        sizes=sizes[order],
        counts=counts,
        held=held,
    )


def _choose_leaving(problem: ReplicaProblem, stock: Stock, targets: Targets) -> Ints:
    """The replicas that leave their broker, broker by broker."""
    chosen: list[Ints] = [np.zeros(0, dtype=np.int64)]
    for broker in range(len(problem.rack_of)):
        replicas, sizes = stock.get_replicas(broker), stock.get_sizes(broker)
        count = int(targets.out[broker])
        if problem.state[broker] == BrokerState.LEAVING:
            chosen.append(replicas)
        elif broker in targets.relief_largest:
            chosen.append(replicas[targets.relief_largest[broker]])
        elif targets.relief_smallest[broker]:
            chosen.append(replicas[:count])
        elif count:
            chosen.append(replicas[choose_by_sum(sizes, count, stock.held[broker] - targets.target_bytes[broker])])
    return np.concatenate(chosen)


def _deal(
    problem: ReplicaProblem, windows: Windows, stock: Stock, targets: Targets, leaving: Ints
) -> tuple[Assignment, Ints]:
    """Deal the leaving replicas by falling size; returns the assignment and the slots [B] that are still free."""
    partition_of = np.repeat(np.arange(len(problem.size)), np.diff(problem.offsets))
    sizes = problem.size[partition_of[leaving]]
    leaving = leaving[np.lexsort((leaving, -sizes))]
    partitions = partition_of[leaving]
    sizes = problem.size[partitions]
    source = problem.broker_of[leaving]
    receivers = np.flatnonzero(targets.slots > 0)
    kept = stock.held - np.bincount(source, sizes, minlength=len(problem.rack_of))
    topics, topic_rows = np.unique(problem.topic_of[partitions], return_inverse=True)
    arrays = DealArrays(
        replicas=leaving,
        partition_of=partitions,
        source=source,
        size=sizes,
        topic=topic_rows.astype(np.int64),
        topic_cap=problem.topic_cap[topics],
        offsets=problem.offsets,
        broker_of=problem.broker_of.copy(),
        rack_of=problem.rack_of,
        rack_cap=find_rack_caps(problem),
        leaves=problem.state == BrokerState.LEAVING,
        receivers=receivers,
        slots=targets.slots[receivers],
        need=targets.target_bytes[receivers] - kept[receivers],
        tolerance=(windows.high_bytes[receivers] - windows.low_bytes[receivers]) / 8,
        held=stock.held[receivers],
        max_bytes=problem.max_bytes[receivers],
        topic_counts=_count_topics(problem, partition_of, leaving, topics, receivers),
        destination=np.full(len(leaving), -1, dtype=np.int64),
    )
    if is_compiled():
        racks = int(problem.rack_of.max(initial=0)) + 1
        deal_compiled(arrays, np.zeros(racks, dtype=np.int64), np.zeros(len(problem.rack_of), dtype=np.bool_))
    else:
        deal_plain(arrays)
    free = np.zeros(len(problem.rack_of), dtype=np.int64)
    free[receivers] = arrays.slots
    return _build_assignment(problem, arrays), free


def _count_topics(problem: ReplicaProblem, partition_of: Ints, leaving: Ints, topics: Ints, receivers: Ints) -> Ints:
    """[topics, receivers]: replicas of each topic that are there and stay."""
    row_of = np.full(int(problem.topic_of.max(initial=0)) + 1, -1, dtype=np.int64)
    row_of[topics] = np.arange(len(topics))
    column_of = np.full(len(problem.rack_of), -1, dtype=np.int64)
    column_of[receivers] = np.arange(len(receivers))
    stays: Flags = np.ones(len(problem.broker_of), dtype=np.bool_)
    stays[leaving] = False
    rows = row_of[problem.topic_of[partition_of]]
    columns = column_of[problem.broker_of]
    counted = stays & (rows >= 0) & (columns >= 0)
    cells = rows[counted] * len(receivers) + columns[counted]
    counts = np.bincount(cells, minlength=len(topics) * len(receivers))
    return counts.reshape(len(topics), len(receivers)).astype(np.int64)


def _build_assignment(problem: ReplicaProblem, arrays: DealArrays) -> Assignment:
    brokers = len(problem.rack_of)
    counts, held = _sum_up(arrays.broker_of, np.repeat(problem.size, np.diff(problem.offsets)), brokers=brokers)
    return Assignment(
        problem=problem,
        rack_cap=arrays.rack_cap,
        broker_of=arrays.broker_of,
        replicas=arrays.replicas,
        partition_of=arrays.partition_of,
        source=arrays.source,
        destination=arrays.destination,
        size=arrays.size,
        counts=counts,
        held=held,
    )


def _sum_up(broker_of: Ints, sizes: Floats, *, brokers: int) -> tuple[Ints, Floats]:
    """Replicas and bytes per broker."""
    counts = np.bincount(broker_of, minlength=brokers).astype(np.int64)
    return counts, np.bincount(broker_of, sizes, minlength=brokers).astype(np.float64)


def _find_least(windows: Windows, amounts: Ints | Floats, is_inside: Flags, *, is_bytes: bool) -> float:
    """The least that any plan must move which leaves the same brokers inside their windows.

    Within a group, each move takes from one broker and gives to one: all surpluses must go, all deficits must come.
    """
    low = windows.low_bytes - windows.byte_slack if is_bytes else windows.low_count
    high = windows.high_bytes + windows.byte_slack if is_bytes else windows.high_count
    surplus = np.where(is_inside, np.maximum(amounts - high, 0), 0)
    deficit = np.where(is_inside, np.maximum(low - amounts, 0), 0)
    return float(sum(max(surplus[group].sum(), deficit[group].sum()) for group in windows.groups))
