"""Which replicas leave a broker: so many, with so many bytes (docs/design/performance.md, joint balance, step 5)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

if TYPE_CHECKING:
    from plimsoll.solver.problem import Floats, Ints

_ROUNDS: Final = 48
_STEEPEST: Final = 8.0
_EXCHANGES: Final = 4
_CLOSE: Final = 1e-3
"""An exchange is not worth trying for a smaller gap, as a share of the wanted sum."""


def choose_by_sum(sizes: Floats, count: int, wanted: float) -> Ints:
    """Positions of `count` of the ascending sizes, with a sum near `wanted`.

    Ranks follow a power curve through all sizes: exponent 1 takes them evenly, a smaller one larger sizes. The sum
    falls as the exponent rises, so bisection finds it. Then a few exchanges close the gap.
    """
    length = len(sizes)
    if count >= length:
        return np.arange(length)
    positions = np.arange(count)
    if wanted <= sizes[:count].sum():
        return positions
    if wanted >= sizes[length - count :].sum():
        return np.arange(length - count, length)
    middles = (positions + 0.5) / count

    def find_ranks(exponent: float) -> Ints:
        ranks = np.floor(length * middles**exponent).astype(np.int64)
        rising = np.maximum.accumulate(ranks - positions) + positions
        return np.minimum(rising, length - count + positions)

    least, most = -_STEEPEST, _STEEPEST
    for _ in range(_ROUNDS):
        middle = (least + most) / 2
        if sizes[find_ranks(2.0**middle)].sum() > wanted:
            least = middle
        else:
            most = middle
    return _exchange(sizes, find_ranks(2.0**most), wanted)


def _exchange(sizes: Floats, chosen: Ints, wanted: float) -> Ints:
    """Exchange single chosen sizes for others while that brings the sum nearer."""
    gap = wanted - float(sizes[chosen].sum())
    is_free = np.ones(len(sizes), dtype=np.bool_)
    is_free[chosen] = False
    for _ in range(_EXCHANGES):
        if abs(gap) < _CLOSE * max(wanted, 1e-9):
            break
        free = np.flatnonzero(is_free)
        ideal = sizes[chosen] + gap
        nearest = np.clip(np.searchsorted(sizes[free], ideal), 0, len(free) - 1)
        errors = np.abs(sizes[free][nearest] - ideal)
        place = int(np.argmin(errors))
        if errors[place] >= abs(gap):
            break
        replacement = free[nearest[place]]
        gap -= float(sizes[replacement] - sizes[chosen[place]])
        is_free[chosen[place]] = True
        is_free[replacement] = False
        chosen[place] = replacement
        chosen = np.sort(chosen)
    return chosen
