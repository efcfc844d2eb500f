"""The moves of `exchange`: an item to another bin, or two items of two bins exchanged, each judged on its own.

A move is kept if it does not make both bins dearer together. At first moves that cost a little are kept, too, ever less
of them (threshold accepting): most bins can only be improved by several moves.
"""

from typing import Final, NamedTuple

from plimsoll.solver.kernels import FlagMatrix, FloatVector, IntMatrix, IntVector, kernel

BACK: Final = 12
"""How many cheaper types are tried for a bin that has lost an item."""
COOLED: Final = 0.8
"""The share of the tries after which no move may cost anything."""
TINY: Final = 1e-12
NONE_HOLDS: Final = -2


class Shelf(NamedTuple):
    """Types from cheap to dear, and classes."""

    takes: IntMatrix
    """[C, R]"""
    capacity: IntMatrix
    """[T, R]"""
    price: FloatVector
    """[T]"""
    kind: IntVector
    """[C]: classes of one kind may use the same types."""
    allowed: FlagMatrix
    """[kinds, T]"""
    most: IntVector
    """[C]"""
    keys: FlagMatrix
    """[C, K]"""
    heat: float
    """What a move may cost at first."""


class Bins(NamedTuple):
    """Items and bins while they are exchanged."""

    item_class: IntVector
    item_bin: IntVector
    type: IntVector
    """[B]: -1 for an empty bin."""
    used: IntMatrix
    """[B, R]"""
    kinds: IntMatrix
    """[B, kinds]: items of each kind."""
    held: IntMatrix
    """[B, C]"""
    keyed: IntMatrix
    """[B, K]"""


@kernel()
def search(shelf: Shelf, bins: Bins, tries: int) -> None:
    """Try so many moves."""
    items, seed = bins.item_class.size, 20_261_119
    for attempt in range(tries):
        seed = (seed * 1103515245 + 12345) % 2147483648
        first = (seed >> 4) % items
        chance = ((seed >> 8) % 65536) / 65536.0
        seed = (seed * 1103515245 + 12345) % 2147483648
        other = (seed >> 4) % items
        if bins.item_bin[first] != bins.item_bin[other]:
            heat = shelf.heat * (1.0 - attempt / (COOLED * tries))
            try_move(shelf, bins, first, other, (seed >> 24) % 3 > 0, heat * chance if heat > 0.0 else 0.0)


@kernel()
def try_move(shelf: Shelf, bins: Bins, first: int, other: int, swapped: bool, allowance: float) -> None:
    """Move an item to the bin of another one, or exchange both; keep it if it is better, but for the allowance."""
    source, target = bins.item_bin[first], bins.item_bin[other]
    moved, back = bins.item_class[first], bins.item_class[other]
    if swapped and moved == back:
        return
    shift(shelf, bins, moved, source, target)
    if swapped:
        shift(shelf, bins, back, target, source)
    kept = False
    if is_within_caps(shelf, bins, moved, target) and (not swapped or is_within_caps(shelf, bins, back, source)):
        kept = settle(shelf, bins, source, target, allowance)
    if kept:
        bins.item_bin[first] = target
        if swapped:
            bins.item_bin[other] = source
    else:
        shift(shelf, bins, moved, target, source)
        if swapped:
            shift(shelf, bins, back, source, target)


@kernel()
def shift(shelf: Shelf, bins: Bins, item: int, source: int, target: int) -> None:
    """Change the sums of both bins for an item of a class that goes from one to the other."""
    for r in range(shelf.takes.shape[1]):
        bins.used[source, r] -= shelf.takes[item, r]
        bins.used[target, r] += shelf.takes[item, r]
    bins.kinds[source, shelf.kind[item]] -= 1
    bins.kinds[target, shelf.kind[item]] += 1
    bins.held[source, item] -= 1
    bins.held[target, item] += 1
    for k in range(shelf.keys.shape[1]):
        if shelf.keys[item, k]:
            bins.keyed[source, k] -= 1
            bins.keyed[target, k] += 1


@kernel()
def is_within_caps(shelf: Shelf, bins: Bins, item: int, bin_: int) -> bool:
    """Whether a bin may hold an item of the class beside what it holds now."""
    if bins.held[bin_, item] > shelf.most[item]:
        return False
    shared = 0
    for k in range(shelf.keys.shape[1]):
        if shelf.keys[item, k] and bins.keyed[bin_, k] > 1:
            shared += 1
    return shared == 0


@kernel()
def settle(shelf: Shelf, bins: Bins, source: int, target: int, allowance: float) -> bool:
    """Give both bins their cheapest types if that costs less than before, but for the allowance; whether it does."""
    now_target = find_type(shelf, bins, target)
    if now_target < 0:
        return False
    now_source = find_type(shelf, bins, source)
    if now_source == NONE_HOLDS:
        return False
    before = shelf.price[bins.type[source]] + shelf.price[bins.type[target]]
    after = shelf.price[now_target] + (shelf.price[now_source] if now_source >= 0 else 0.0)
    if before - after + allowance <= TINY:
        return False
    bins.type[source], bins.type[target] = now_source, now_target
    return True


@kernel()
def find_type(shelf: Shelf, bins: Bins, bin_: int) -> int:
    """The cheapest type near the present one that holds a bin; -1 for an empty bin, `NONE_HOLDS` if none does."""
    total = 0
    for kind in range(shelf.allowed.shape[0]):
        total += bins.kinds[bin_, kind]
    if total == 0:
        return -1
    for type_ in range(max(bins.type[bin_] - BACK, 0), shelf.price.size):
        holds = True
        for r in range(shelf.takes.shape[1]):
            if bins.used[bin_, r] > shelf.capacity[type_, r]:
                holds = False
                break
        if holds:
            for kind in range(shelf.allowed.shape[0]):
                if bins.kinds[bin_, kind] > 0 and not shelf.allowed[kind, type_]:
                    holds = False
                    break
        if holds:
            return type_
    return NONE_HOLDS
