"""Empties nodes into other nodes, one after the other, each as a whole or not at all.

An attempt puts the items of a node, largest first, into rows of the grid; when one finds no room, everything put since
is undone in reverse. The caller gives the order of nodes, and which may receive items.
"""

from typing import Final, NamedTuple, Self

import numpy as np

from plimsoll.solver.filling.bin_grid import (
    BIN,
    ENTRIES,
    FREE,
    LOG,
    NEED,
    RESOURCES,
    ROWS,
    TURN,
    ClassItems,
    Grid,
    PackingInput,
    Table,
    fill_class,
    link_if_useful,
    unlink,
)
from plimsoll.solver.kernels import FlagVector, IntMatrix, IntVector, kernel
from plimsoll.solver.problem import UNBOUNDED, Ints

OVERFLOWN: Final = -1
_REMOVED: Final = 1
_NO_ROOM: Final = 2
_LIMITED: Final = 3

_CAPPED_AS: Final = 0
_RANK: Final = 1


class MovableItems(NamedTuple):
    """Movable items on nodes, and the limits of removals."""

    starts: IntVector
    """[N + 1]: where the lines of each node begin."""
    lines: IntMatrix
    """[lines, 2]: (class, items)."""
    room_left: IntMatrix
    """[capped classes + 1, N]: what nodes take of capped classes."""
    class_info: IntMatrix
    """[C, 2]: the row of a class in `room_left`, and its rank by size."""
    use: IntMatrix
    """[N, L]: what removals use of each limit."""
    spare: IntVector
    """[L]: what is left for removals."""

    @classmethod
    def build(cls, starts: Ints, lines: Ints, *, per_bin: Ints | None, order: Ints) -> Self:
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


class RemovalOrder(NamedTuple):
    """Which nodes are tried, and which of all nodes receive their items."""

    nodes: IntVector
    """The nodes to empty, in this order."""
    most: int
    """How many of them may be removed."""
    linked: FlagVector
    """[N]: whether the node receives items from the beginning."""
    receives: FlagVector
    """[N]: whether the node receives items if it is not removed."""


class RemovalNotes(NamedTuple):
    """What the kernel writes down."""

    statuses: IntVector
    """[N]: 0 for a node that was not tried."""
    stuck: IntVector
    """[N]: the class that found no room, or -1."""
    sources: IntVector
    """[log entries]: the node that the items come from."""


@kernel()
def empty_in_order(
    packing_input: PackingInput,
    table: Table,
    grid: Grid,
    movable: MovableItems,
    order: RemovalOrder,
    notes: RemovalNotes,
) -> int:
    """Empty nodes in order; returns how many were emptied, or OVERFLOWN."""
    nodes, log = table
    use, spare = movable.use, movable.spare
    smallest = _compute_least(packing_input.classes, movable.lines)
    for row in range(log[0, ROWS] - 1, -1, -1):
        if order.linked[row]:
            link_if_useful(nodes, grid, row, smallest)
    done = 0
    for place in range(order.nodes.shape[0]):
        node = order.nodes[place]
        if done >= order.most:
            break
        if not _is_within(use, spare, node):
            notes.statuses[node] = _LIMITED
        elif log[0, ENTRIES] + _count_items(movable, table, node) > log.shape[0]:
            return OVERFLOWN
        else:
            unlink(nodes, grid, node)
            first = log[0, ENTRIES]
            stuck = _empty(packing_input, table, grid, movable, node, smallest)
            for entry in range(first, log[0, ENTRIES]):
                notes.sources[entry] = node
            notes.statuses[node] = _REMOVED if stuck < 0 else _NO_ROOM
            notes.stuck[node] = stuck
        if notes.statuses[node] == _REMOVED:
            done += 1
            for limit in range(spare.shape[0]):
                spare[limit] -= use[node, limit]
        elif order.receives[node] and nodes[node, BIN] < 0:
            link_if_useful(nodes, grid, node, smallest)
    return done


@kernel(allocates=False)
def _empty(
    packing_input: PackingInput, table: Table, grid: Grid, movable: MovableItems, node: int, smallest: IntVector
) -> int:
    """Everything on the node, and everything put there since, onto others; or nothing, and the class that was stuck."""
    starts, lines = movable.starts, movable.lines
    nodes, log = table
    mark = log[0, ENTRIES]
    _sort_largest_first(lines, starts[node], starts[node + 1], movable.class_info)
    for line in range(starts[node], starts[node + 1]):
        stuck: int = lines[line, 0]
        if not _move(packing_input, table, grid, movable, ClassItems(stuck, lines[line, 1]), smallest):
            _take_back(packing_input, table, grid, movable, mark, smallest)
            return stuck
    entry = nodes[node, LOG]
    while entry > 0:
        stuck = log[entry, 0]
        if not _move(packing_input, table, grid, movable, ClassItems(stuck, log[entry, 1]), smallest):
            _take_back(packing_input, table, grid, movable, mark, smallest)
            return stuck
        entry = log[entry, 2]
    return -1


@kernel(allocates=False)
def _move(
    packing_input: PackingInput,
    table: Table,
    grid: Grid,
    movable: MovableItems,
    what: ClassItems,
    smallest: IntVector,
) -> bool:
    """Move items of one class into the grid; returns whether all found room."""
    room_left = movable.room_left
    log = table.log
    capped = movable.class_info[what.cls, _CAPPED_AS]
    first = log[0, ENTRIES]
    log[0, TURN] += 1
    with_room = PackingInput(packing_input.classes, packing_input.allowed, room_left[capped])
    left = fill_class(with_room, table, grid, what, smallest)
    for entry in range(first, log[0, ENTRIES]):
        if capped < room_left.shape[0] - 1:
            room_left[capped, log[entry, 3]] -= log[entry, 1]
    return left == 0


@kernel(allocates=False)
def _take_back(
    packing_input: PackingInput, table: Table, grid: Grid, movable: MovableItems, mark: int, smallest: IntVector
) -> None:
    """Undo log entries, the last first, down to the mark."""
    classes = packing_input.classes
    room_left = movable.room_left
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
        capped = movable.class_info[cls, _CAPPED_AS]
        if capped < room_left.shape[0] - 1:
            room_left[capped, row] += items
        link_if_useful(nodes, grid, row, smallest)
    log[0, ENTRIES] = mark


@kernel(allocates=False)
def _sort_largest_first(lines: IntMatrix, start: int, end: int, class_info: IntMatrix) -> None:
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


@kernel(allocates=False)
def _is_within(use: IntMatrix, spare: IntVector, node: int) -> bool:
    fits = True
    for limit in range(spare.shape[0]):
        fits = fits and (use[node, limit] <= spare[limit] or use[node, limit] <= 0)
    return fits


@kernel(allocates=False)
def _count_items(movable: MovableItems, table: Table, node: int) -> int:
    """The number of items on the node, which is at least the number of moves."""
    starts, lines = movable.starts, movable.lines
    nodes, log = table
    items = 0
    for line in range(starts[node], starts[node + 1]):
        items += lines[line, 1]
    entry = nodes[node, LOG]
    while entry > 0:
        items += log[entry, 1]
        entry = log[entry, 2]
    return items


@kernel()
def _compute_least(classes: IntMatrix, lines: IntMatrix) -> IntVector:
    """[R]: the smallest request of any item per resource."""
    resources = classes[0, RESOURCES] if classes.shape[0] > 0 else 0
    least = np.full(resources, UNBOUNDED << 20, dtype=np.int64)
    for line in range(lines.shape[0]):
        for resource in range(resources):
            least[resource] = min(least[resource], classes[lines[line, 0], NEED + resource])
    return least
