"""How many replicas and bytes each broker shall have (docs/design/performance.md, joint balance, steps 3 and 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.solver.replicas.problem import BrokerState

if TYPE_CHECKING:
    from plimsoll.solver.problem import Flags, Floats, Ints
    from plimsoll.solver.replicas.problem import ReplicaProblem, Windows

_ROUNDS: Final = 80
_MARGIN_OF_WINDOW: Final = 0.15
"""Byte targets stay inside the window by this share of it, on each side ..."""
_MARGIN_OF_MEAN: Final = 0.003
"""... but by no more than this share of the mean."""
_RELIEF_AT_MOST: Final = 64
_LARGE: Final = 0.998
"""The quantile of sizes that an extra incoming replica is assumed to have."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stock:
    """What brokers hold: replicas in order of broker and size, ascending, of which only movable ones are listed."""

    order: Ints
    """Movable replicas by broker, size and index."""
    starts: Ints
    """[B + 1]: where the replicas of a broker begin in `order`."""
    sizes: Floats
    """Their sizes."""
    counts: Ints
    """[B]: all replicas, immovable ones included."""
    held: Floats
    """[B]: all bytes."""

    def get_sizes(self, broker: int) -> Floats:
        """Ascending."""
        return self.sizes[self.starts[broker] : self.starts[broker + 1]]

    def get_replicas(self, broker: int) -> Ints:
        """By ascending size."""
        return self.order[self.starts[broker] : self.starts[broker + 1]]


@dataclass(slots=True, kw_only=True)
class Targets:
    """Per broker [B]: replicas that leave, replicas that come, the bytes it shall have, and relief."""

    out: Ints
    """How many replicas leave, chosen so that the bytes come near the target."""
    slots: Ints
    """How many replicas come in."""
    target_bytes: Floats
    relief_smallest: Flags
    """The broker gives its smallest replicas: it needs bytes although it has too many replicas."""
    relief_largest: dict[int, Ints]
    """The positions of large replicas that a broker gives in exchange: it has too many bytes for its count."""
    extra: int = 0


def level(values: Floats, low: Floats, high: Floats, *, total: float, unit: Floats) -> Floats:
    """Targets within [low, high] with the given sum, nearest to the values.

    Values are clamped. If the sum is too high, the highest are lowered to one level (in units), else the lowest raised.
    """
    clamped = np.clip(values, low, high)
    missing = total - clamped.sum()
    if abs(missing) <= 1e-9 * max(1.0, abs(total)):
        return clamped
    scale = np.where(unit > 0, unit, 1.0)
    least, most = 0.0, float((np.maximum(high, clamped) / scale).max(initial=0.0))
    result = clamped
    for _ in range(_ROUNDS):
        middle = (least + most) / 2
        if missing < 0:
            result = np.minimum(clamped, np.maximum(low, middle * scale))
        else:
            result = np.maximum(clamped, np.minimum(high, middle * scale))
        if result.sum() < total:
            least = middle
        else:
            most = middle
    return result


def level_counts(values: Ints, low: Ints, high: Ints, *, total: int, unit: Floats) -> Ints:
    """`level` in whole numbers: rounded down, and the largest remainders rounded up."""
    exact = level(
        values.astype(np.float64),
        low.astype(np.float64),
        high.astype(np.float64),
        total=float(total),
        unit=unit,
    )
    result = np.clip(np.floor(exact + 1e-9).astype(np.int64), low, high)
    missing = total - int(result.sum())
    by_remainder = np.lexsort((np.arange(len(result)), result - exact))
    for broker in by_remainder if missing > 0 else by_remainder[::-1]:
        if missing == 0:
            break
        step = 1 if missing > 0 else -1
        if low[broker] <= result[broker] + step <= high[broker]:
            result[broker] += step
            missing -= step
    return result


def find_targets(problem: ReplicaProblem, windows: Windows, stock: Stock) -> Targets:
    """Targets of all groups."""
    brokers = len(problem.rack_of)
    targets = Targets(
        out=np.zeros(brokers, dtype=np.int64),
        slots=np.zeros(brokers, dtype=np.int64),
        target_bytes=stock.held.copy(),
        relief_smallest=np.zeros(brokers, dtype=np.bool_),
        relief_largest={},
    )
    large = float(np.quantile(problem.size, _LARGE)) if len(problem.size) else 0.0
    for group in windows.groups:
        wanted = _find_count_targets(problem, windows, stock, group)
        targets.out[group] = np.maximum(stock.counts[group] - wanted, 0)
        targets.slots[group] = np.maximum(wanted - stock.counts[group], 0)
        _find_byte_targets(problem, windows, stock, group, targets, large)
    return targets


def _find_count_targets(problem: ReplicaProblem, windows: Windows, stock: Stock, group: Ints) -> Ints:
    counts = stock.counts[group]
    movable = np.diff(stock.starts)[group]
    leaves = problem.state[group] == BrokerState.LEAVING
    low, high = windows.low_count[group].copy(), windows.high_count[group].copy()
    keeps = np.where(problem.may_give[group] | leaves, counts - movable, counts)
    most = np.where(problem.may_receive[group] & ~leaves, np.maximum(problem.max_replicas[group], counts), counts)
    low = np.clip(low, keeps, np.maximum(keeps, most))
    high = np.clip(high, keeps, np.maximum(keeps, most))
    high = np.where(leaves, keeps, high)
    low = np.where(leaves, keeps, low)
    total = int(counts.sum())
    if int(high.sum()) < total:  # Receivers go above their window, else replicas of leaving brokers have no place.
        high = np.where(leaves, keeps, np.maximum(high, most))
    if int(low.sum()) > total:
        low = keeps
    return level_counts(
        counts, low, np.maximum(low, high), total=total, unit=np.maximum(windows.mean_count[group], 1e-9)
    )


def _find_byte_targets(
    problem: ReplicaProblem, windows: Windows, stock: Stock, group: Ints, targets: Targets, large: float
) -> None:
    margin = np.minimum(
        (windows.high_bytes[group] - windows.low_bytes[group]) * _MARGIN_OF_WINDOW,
        _MARGIN_OF_MEAN * windows.mean_bytes[group],
    )
    low, high = windows.low_bytes[group] + margin, windows.high_bytes[group] - margin
    held = stock.held[group]
    reach_low, reach_high = _find_reachable_bytes(stock, group, targets)
    bottom = np.minimum(np.maximum(low, reach_low), reach_high)
    top = np.maximum(np.minimum(high, reach_high), bottom)
    if problem.relief:
        for place, broker in enumerate(group.tolist()):
            movable = len(stock.get_sizes(broker)) - int(targets.out[broker])
            room = min(movable, _RELIEF_AT_MOST, int(problem.max_replicas[broker] - stock.counts[broker]))
            may_exchange = bool(problem.may_give[broker] and problem.may_receive[broker])
            if problem.state[broker] == BrokerState.LEAVING or room <= 0 or not may_exchange:
                continue
            # A broker that nothing is dealt to needs no relief as long as it is inside its window.
            most = high[place] if targets.slots[broker] else windows.high_bytes[broker]
            if reach_high[place] < windows.low_bytes[broker] and targets.out[broker] > 0:
                count = min(room, int(np.ceil((low[place] - reach_high[place]) / max(large, 1.0))))
                targets.relief_smallest[broker] = True
                targets.out[broker] += count
            elif reach_low[place] > most and not targets.out[broker]:
                excess, width = reach_low[place] - high[place], high[place] - low[place]
                targets.relief_largest[broker] = _choose_largest(stock.get_sizes(broker), excess, width)[:room]
                count = len(targets.relief_largest[broker])
            else:
                continue
            targets.slots[broker] += count
            targets.extra += count
            bottom[place], top[place] = low[place], high[place]
    unit = np.maximum(windows.mean_bytes[group], 1e-9)
    targets.target_bytes[group] = level(held, bottom, top, total=float(held.sum()), unit=unit)


def _find_reachable_bytes(stock: Stock, group: Ints, targets: Targets) -> tuple[Floats, Floats]:
    """The least and the most bytes of each broker: a donor loses its smallest or its largest, a receiver loses none."""
    least = stock.held[group].copy()
    most = stock.held[group].copy()
    for place, broker in enumerate(group):
        count = int(targets.out[broker])
        if count:
            sizes = stock.get_sizes(broker)
            least[place] -= sizes[len(sizes) - count :].sum()
            most[place] -= sizes[:count].sum()
        elif targets.slots[broker]:
            most[place] = np.inf
    return least, most


def _choose_largest(sizes: Floats, excess: float, width: float) -> Ints:
    """Positions of a few large replicas whose sum removes the excess and stays within a window's width of it."""
    chosen: list[int] = []
    total = 0.0
    for position in range(len(sizes) - 1, -1, -1):
        if total >= excess or len(chosen) >= _RELIEF_AT_MOST:
            break
        if total + sizes[position] <= excess + width:
            total += float(sizes[position])
            chosen.append(position)
    return np.array(chosen, dtype=np.int64)
