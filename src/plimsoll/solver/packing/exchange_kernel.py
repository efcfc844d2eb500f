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
    keyed: IntMatrix
    """[B, K]"""


class Move(NamedTuple):
    """An item that goes to another bin, and one that comes back."""

    moved: int
    """The class of the item."""
    back: int
    """The class of the item that comes back, -1 if none does."""
    source: int
    target: int


@kernel(allocates=False)
def search(shelf: Shelf, bins: Bins, tries: int) -> None:
    """Try so many moves: an item to the bin of another one, or both exchanged."""
    items, seed = bins.item_class.size, 20_261_119
    for attempt in range(tries):
        seed = (seed * 1103515245 + 12345) % 2147483648
        first = (seed >> 4) % items
        chance = ((seed >> 8) % 65536) / 65536.0
        seed = (seed * 1103515245 + 12345) % 2147483648
        other = (seed >> 4) % items
        swapped = (seed >> 24) % 3 > 0
        back = bins.item_class[other] if swapped else -1
        move = Move(bins.item_class[first], back, bins.item_bin[first], bins.item_bin[other])
        if move.source == move.target or move.moved == back or not is_within_keys(shelf, bins, move):
            continue
        heat = shelf.heat * (1.0 - attempt / (COOLED * tries))
        shift_kinds(shelf, bins, move, 1)
        if settle(shelf, bins, move, heat * chance if heat > 0.0 else 0.0):
            shift_amounts(shelf, bins, move)
            bins.item_bin[first] = move.target
            if swapped:
                bins.item_bin[other] = move.source
        else:
            shift_kinds(shelf, bins, move, -1)


@kernel(allocates=False, inlined=True)
def is_within_keys(shelf: Shelf, bins: Bins, move: Move) -> bool:
    """Whether both bins hold at most one item of each key after the move."""
    for k in range(shelf.keys.shape[1]):
        goes = shelf.keys[move.moved, k]
        comes = move.back >= 0 and shelf.keys[move.back, k]
        if goes and not comes and bins.keyed[move.target, k] > 0:
            return False
        if comes and not goes and bins.keyed[move.source, k] > 0:
            return False
    return True


@kernel(allocates=False, inlined=True)
def shift_kinds(shelf: Shelf, bins: Bins, move: Move, by: int) -> None:
    """Count the kinds in both bins for a move that is made (1) or taken back (-1)."""
    bins.kinds[move.source, shelf.kind[move.moved]] -= by
    bins.kinds[move.target, shelf.kind[move.moved]] += by
    if move.back >= 0:
        bins.kinds[move.target, shelf.kind[move.back]] -= by
        bins.kinds[move.source, shelf.kind[move.back]] += by


@kernel(allocates=False, inlined=True)
def shift_amounts(shelf: Shelf, bins: Bins, move: Move) -> None:
    """Change the sums of both bins for a move that is made."""
    for r in range(shelf.takes.shape[1]):
        amount = shelf.takes[move.moved, r] - (shelf.takes[move.back, r] if move.back >= 0 else 0)
        bins.used[move.source, r] -= amount
        bins.used[move.target, r] += amount
    for k in range(shelf.keys.shape[1]):
        if shelf.keys[move.moved, k]:
            bins.keyed[move.source, k] -= 1
            bins.keyed[move.target, k] += 1
        if move.back >= 0 and shelf.keys[move.back, k]:
            bins.keyed[move.source, k] += 1
            bins.keyed[move.target, k] -= 1


@kernel(allocates=False, inlined=True)
def settle(shelf: Shelf, bins: Bins, move: Move, allowance: float) -> bool:
    """Give both bins their cheapest types, if that costs less than before, but for the allowance; whether it does."""
    source, target = move.source, move.target
    before = shelf.price[bins.type[source]] + shelf.price[bins.type[target]]
    now_target = find_type(shelf, bins, Arrival(target, move.moved, move.back), before + allowance)
    if now_target < 0:
        return False
    now_source = find_type(shelf, bins, Arrival(source, move.back, move.moved), before + allowance)
    if now_source == NONE_HOLDS:
        return False
    after = shelf.price[now_target] + (shelf.price[now_source] if now_source >= 0 else 0.0)
    if before - after + allowance <= TINY:
        return False
    bins.type[source], bins.type[target] = now_source, now_target
    return True


class Arrival(NamedTuple):
    """What a move changes in one bin: a class that comes and one that goes; -1 for none."""

    bin: int
    comes: int
    goes: int


@kernel(allocates=False, inlined=True)
def find_type(shelf: Shelf, bins: Bins, arrival: Arrival, ceiling: float) -> int:
    """The cheapest type near the present one that holds a bin after a move, whose kinds are counted already.

    -1 for an empty bin, `NONE_HOLDS` if no type that is cheaper than the ceiling does.
    """
    total = 0
    for kind in range(shelf.allowed.shape[0]):
        total += bins.kinds[arrival.bin, kind]
    if total == 0:
        return -1
    for type_ in range(max(bins.type[arrival.bin] - BACK, 0), shelf.price.size):
        if shelf.price[type_] >= ceiling:
            break
        if holds(shelf, bins, arrival, type_):
            return type_
    return NONE_HOLDS


@kernel(allocates=False, inlined=True)
def holds(shelf: Shelf, bins: Bins, arrival: Arrival, type_: int) -> bool:
    """Whether a type holds a bin after a move."""
    for r in range(shelf.takes.shape[1]):
        amount = bins.used[arrival.bin, r]
        if arrival.comes >= 0:
            amount += shelf.takes[arrival.comes, r]
        if arrival.goes >= 0:
            amount -= shelf.takes[arrival.goes, r]
        if amount > shelf.capacity[type_, r]:
            return False
    for kind in range(shelf.allowed.shape[0]):
        if bins.kinds[arrival.bin, kind] > 0 and not shelf.allowed[kind, type_]:
            return False
    return True
