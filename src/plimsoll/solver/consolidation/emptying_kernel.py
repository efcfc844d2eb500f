"""Empties nodes into other nodes, one after the other, each as a whole or not at all.

An attempt puts the items of a node, largest first, into rows of the grid; when one finds no room, everything put since
is undone in reverse. The caller gives the order of nodes, and which may receive items.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from plimsoll.solver.filling.bin_grid import (
    BIN,
    ENTRIES,
    FREE,
    LOG,
    NEED,
    PACKING_INPUT,
    RESOURCES,
    ROWS,
    TABLE,
    TURN,
    Grid,
    PackingInput,
    Table,
    fill_class,
    link_if_useful,
    unlink,
)
from plimsoll.solver.kernels import kernel
from plimsoll.solver.problem import UNBOUNDED, Flags, Ints

OVERFLOWN: Final = -1
_REMOVED: Final = 1
_NO_ROOM: Final = 2
_LIMITED: Final = 3

_CAPPED_AS: Final = 0
_RANK: Final = 1

Arrays = tuple[Ints, Ints, Ints, Ints, Ints, Ints]
"""Where each node's lines begin [N + 1], lines (class, items), what nodes take of capped classes [capped + 1, N], per
class its row there and its rank by size [C, 2], what removals use [N, L] and what is left for them [L]."""
ARRAYS: Final = "Tuple((i8[::1], i8[:,::1], i8[:,::1], i8[:,::1], i8[:,::1], i8[::1]))"


@dataclass(frozen=True, slots=True, kw_only=True)
class MovableItems:
    """Movable items on nodes, and the limits of removals."""

    starts: Ints
    lines: Ints
    room_left: Ints
    class_info: Ints
    use: Ints
    spare: Ints

    @classmethod
    def build(cls, starts: Ints, lines: Ints, *, per_bin: Ints | None, order: Ints) -> MovableItems:
        """Nothing limits removals yet; `order` is that of the classes, those with the largest items first."""
        classes, count = len(order), len(starts) - 1
        most = np.full(classes, UNBOUNDED, dtype=np.int64) if per_bin is None else per_bin
        capped = np.flatnonzero(most < UNBOUNDED)
        class_info = np.empty((classes, 2), dtype=np.int64)
        class_info[:, _CAPPED_AS] = len(capped)
        class_info[capped, _CAPPED_AS] = np.arange(len(capped))
        class_info[order, _RANK] = np.arange(classes)
        room_left = np.full((len(capped) + 1, count), UNBOUNDED, dtype=np.int64)
        if len(capped):
            room_left[:-1] = most[capped, None]
            rows = class_info[lines[:, 0], _CAPPED_AS]
            ours = rows < len(capped)
            nodes = np.repeat(np.arange(count), np.diff(starts))
            np.subtract.at(room_left, (rows[ours], nodes[ours]), lines[ours, 1])
        return cls(
            starts=np.ascontiguousarray(starts, dtype=np.int64),
            lines=np.array(lines, dtype=np.int64, order="C"),
            room_left=room_left,
            class_info=class_info,
            use=np.zeros((count, 0), dtype=np.int64),
            spare=np.zeros(0, dtype=np.int64),
        )

    def to_arrays(self) -> Arrays:
        return self.starts, self.lines, self.room_left, self.class_info, self.use, self.spare


@kernel(f"i8({PACKING_INPUT}, {TABLE}, i8[::1], {ARRAYS}, i8[::1], Tuple((b1[:,::1], i8[:,::1], i8)))")
def empty_in_order(
    packing_input: PackingInput, table: Table, grid: Grid, arrays: Arrays, order: Ints, terms: tuple[Flags, Ints, int]
) -> int:
    """How many nodes were emptied, or OVERFLOWN.

    `terms`: per node whether it hangs in the grid at first and whether it receives; notes to write (verdicts, classes
    that were stuck, and where each log entry came from); and how many nodes may go.
    """
    flags, notes, removals = terms
    nodes, log = table
    use, spare = arrays[4], arrays[5]
    smallest = _compute_least(packing_input[0], arrays[1])
    for row in range(log[0, ROWS] - 1, -1, -1):
        if flags[row, 0]:
            link_if_useful(nodes, grid, row, smallest)
    done = 0
    for place in range(order.shape[0]):
        node = order[place]
        if done >= removals:
            break
        if not _is_within(use, spare, node):
            notes[0, node] = _LIMITED
        elif log[0, ENTRIES] + _count_items(arrays, table, node) > log.shape[0]:
            return OVERFLOWN
        else:
            unlink(nodes, grid, node)
            stuck = _empty(packing_input, table, grid, arrays, node, (smallest, notes))
            notes[0, node] = _REMOVED if stuck < 0 else _NO_ROOM
            notes[1, node] = stuck
        if notes[0, node] == _REMOVED:
            done += 1
            for limit in range(spare.shape[0]):
                spare[limit] -= use[node, limit]
        elif flags[node, 1] and nodes[node, BIN] < 0:
            link_if_useful(nodes, grid, node, smallest)
    return done


@kernel(f"i8({PACKING_INPUT}, {TABLE}, i8[::1], {ARRAYS}, i8, Tuple((i8[::1], i8[:,::1])))", allocates=False)
def _empty(
    packing_input: PackingInput, table: Table, grid: Grid, arrays: Arrays, node: int, terms: tuple[Ints, Ints]
) -> int:
    """Everything on the node, and everything put there since, onto others; or nothing, and the class that was stuck."""
    starts, lines, _, class_info, _, _ = arrays
    nodes, log = table
    mark = log[0, ENTRIES]
    _sort_largest_first(lines, starts[node], starts[node + 1], class_info)
    for line in range(starts[node], starts[node + 1]):
        stuck: int = lines[line, 0]
        if not _move(packing_input, table, grid, arrays, (stuck, lines[line, 1], node), terms):
            _take_back(packing_input, table, grid, arrays, mark, terms[0])
            return stuck
    entry = nodes[node, LOG]
    while entry > 0:
        stuck = log[entry, 0]
        if not _move(packing_input, table, grid, arrays, (stuck, log[entry, 1], node), terms):
            _take_back(packing_input, table, grid, arrays, mark, terms[0])
            return stuck
        entry = log[entry, 2]
    return -1


@kernel(
    f"b1({PACKING_INPUT}, {TABLE}, i8[::1], {ARRAYS}, UniTuple(i8, 3), Tuple((i8[::1], i8[:,::1])))", allocates=False
)
def _move(
    packing_input: PackingInput,
    table: Table,
    grid: Grid,
    arrays: Arrays,
    what: tuple[int, int, int],
    terms: tuple[Ints, Ints],
) -> bool:
    """Move the items of one class off a node; returns whether all found room."""
    cls, items, node = what
    smallest, notes = terms
    classes, allowed, _ = packing_input
    room_left = arrays[2]
    log = table[1]
    capped = arrays[3][cls, _CAPPED_AS]
    first = log[0, ENTRIES]
    log[0, TURN] += 1
    left = fill_class((classes, allowed, room_left[capped]), table, grid, (cls, items), smallest)
    for entry in range(first, log[0, ENTRIES]):
        notes[2, entry] = node
        if capped < room_left.shape[0] - 1:
            room_left[capped, log[entry, 3]] -= log[entry, 1]
    return left == 0


@kernel(f"void({PACKING_INPUT}, {TABLE}, i8[::1], {ARRAYS}, i8, i8[::1])", allocates=False)
def _take_back(
    packing_input: PackingInput, table: Table, grid: Grid, arrays: Arrays, mark: int, smallest: Ints
) -> None:
    """Undo log entries, the last first, down to the mark."""
    classes = packing_input[0]
    room_left = arrays[2]
    nodes, log = table
    for entry in range(log[0, ENTRIES] - 1, mark - 1, -1):
        cls = log[entry, 0]
        items = log[entry, 1]
        row = log[entry, 3]
        resources = classes[cls, RESOURCES]
        for resource in range(resources):
            nodes[row, FREE + resource] += items * classes[cls, NEED + resource]
        for word in range(resources, classes.shape[1] - NEED):
            nodes[row, FREE + word] &= ~classes[cls, NEED + word]
        nodes[row, LOG] = log[entry, 2]
        capped = arrays[3][cls, _CAPPED_AS]
        if capped < room_left.shape[0] - 1:
            room_left[capped, row] += items
        link_if_useful(nodes, grid, row, smallest)
    log[0, ENTRIES] = mark


@kernel("void(i8[:,::1], i8, i8, i8[:,::1])", allocates=False)
def _sort_largest_first(lines: Ints, start: int, end: int, class_info: Ints) -> None:
    """Sort the few lines of a node in place."""
    for line in range(start + 1, end):
        cls = lines[line, 0]
        items = lines[line, 1]
        at = line
        while at > start and class_info[lines[at - 1, 0], _RANK] > class_info[cls, _RANK]:
            lines[at, 0] = lines[at - 1, 0]
            lines[at, 1] = lines[at - 1, 1]
            at -= 1
        lines[at, 0] = cls
        lines[at, 1] = items


@kernel("b1(i8[:,::1], i8[::1], i8)", allocates=False)
def _is_within(use: Ints, spare: Ints, node: int) -> bool:
    fits = True
    for limit in range(spare.shape[0]):
        fits = fits and (use[node, limit] <= spare[limit] or use[node, limit] <= 0)
    return fits


@kernel(f"i8({ARRAYS}, {TABLE}, i8)", allocates=False)
def _count_items(arrays: Arrays, table: Table, node: int) -> int:
    """The number of items on the node, which is at least the number of moves."""
    starts, lines, _, _, _, _ = arrays
    nodes, log = table
    items = 0
    for line in range(starts[node], starts[node + 1]):
        items += lines[line, 1]
    entry = nodes[node, LOG]
    while entry > 0:
        items += log[entry, 1]
        entry = log[entry, 2]
    return items


@kernel("i8[::1](i8[:,::1], i8[:,::1])")
def _compute_least(classes: Ints, lines: Ints) -> Ints:
    """[R]: the smallest request of any item per resource."""
    resources = classes[0, RESOURCES] if classes.shape[0] > 0 else 0
    least = np.full(resources, UNBOUNDED << 20, dtype=np.int64)
    for line in range(lines.shape[0]):
        for resource in range(resources):
            least[resource] = min(least[resource], classes[lines[line, 0], NEED + resource])
    return least
