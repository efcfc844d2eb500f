"""The moves of `exchange`: an item to another bin, or two items of two bins exchanged, each judged on its own.

A move is kept if it lowers the prices of both bins, or if it gathers what they waste in one of them: the waste of one
bin becomes a smaller type sooner than that of two.
"""

from typing import Final, NamedTuple

from plimsoll.solver.kernels import FlagMatrix, FloatVector, IntMatrix, IntVector, kernel

_BACK: Final = 12
"""How many cheaper types are tried for a bin that has lost an item."""
_TINY: Final = 1e-12


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
    value: FloatVector
    """[C]"""
    gathered: float
    """The worth of a square of waste."""


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
    waste: FloatVector
    """[B]: the price above the values of the items."""


@kernel()
def search(shelf: Shelf, bins: Bins, tries: int) -> float:
    """Try so many moves; returns what they save."""
    items, saved, seed = bins.item_class.size, 0.0, 20_261_119
    for _ in range(tries):
        seed = (seed * 1103515245 + 12345) % 2147483648
        first = (seed >> 4) % items
        seed = (seed * 1103515245 + 12345) % 2147483648
        other = (seed >> 4) % items
        if bins.item_bin[first] == bins.item_bin[other]:
            continue
        swapped = (seed >> 24) % 3 > 0
        saved += try_move(shelf, bins, first, other, swapped)
    return saved


@kernel()
def try_move(shelf: Shelf, bins: Bins, first: int, other: int, swapped: bool) -> float:
    """Move an item to the bin of another one, or exchange both; keep it if it is better. Returns what it saves."""
    source, target = bins.item_bin[first], bins.item_bin[other]
    moved, back = bins.item_class[first], bins.item_class[other]
    if swapped and moved == back:
        return 0.0
    shift(shelf, bins, moved, source, target)
    if swapped:
        shift(shelf, bins, back, target, source)
    kept = -1.0
    if is_within_caps(shelf, bins, moved, target) and (not swapped or is_within_caps(shelf, bins, back, source)):
        value = shelf.value[moved] - (shelf.value[back] if swapped else 0.0)
        kept = settle(shelf, bins, source, target, value)
    if kept < 0.0:
        shift(shelf, bins, moved, target, source)
        if swapped:
            shift(shelf, bins, back, source, target)
        return 0.0
    bins.item_bin[first] = target
    if swapped:
        bins.item_bin[other] = source
    return kept


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
def settle(shelf: Shelf, bins: Bins, source: int, target: int, value: float) -> float:
    """Give both bins their cheapest types if that is better than before; returns what it saves, -1 if it is not.

    `value`: of what went from the source to the target.
    """
    before_source, before_target = bins.type[source], bins.type[target]
    now_target = find_type(shelf, bins, target)
    if now_target < 0:
        return -1.0
    now_source = find_type(shelf, bins, source)
    if now_source == -2:
        return -1.0
    price_source = shelf.price[now_source] if now_source >= 0 else 0.0
    change_source = price_source - shelf.price[before_source]
    change_target = shelf.price[now_target] - shelf.price[before_target]
    waste_source = bins.waste[source] + change_source + value
    waste_target = bins.waste[target] + change_target - value
    saved: float = -(change_source + change_target)
    gain = (
        waste_source * waste_source
        + waste_target * waste_target
        - bins.waste[source] * bins.waste[source]
        - bins.waste[target] * bins.waste[target]
    )
    if saved + shelf.gathered * gain <= _TINY or saved < -_TINY:
        return -1.0
    bins.type[source], bins.type[target] = now_source, now_target
    bins.waste[source], bins.waste[target] = waste_source, waste_target
    return max(0.0, saved)


@kernel()
def find_type(shelf: Shelf, bins: Bins, bin_: int) -> int:
    """The cheapest type near the present one that holds a bin; -1 for an empty bin, -2 if none does."""
    total = 0
    for kind in range(shelf.allowed.shape[0]):
        total += bins.kinds[bin_, kind]
    if total == 0:
        return -1
    for type_ in range(max(bins.type[bin_] - _BACK, 0), shelf.price.size):
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
    return -2
