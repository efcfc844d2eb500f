"""Nodes in a grid by their free resources, so that an item finds a suitable node without checking all of them.

A grid has 32 x 32 bins: half-octaves of free cpu (column 0 of every amount) by half-octaves of free memory (column 1).
An item looks along the diagonal of its own shape first, from its own bin upwards, then along the ones beside it: what
it leaves on the node then still has the shape of pods. That places a quarter more than first fit where room is scarce.

Kernels for filling, single types and survivors. A node row is one line of a table of whole numbers (the names of its
columns are below) and stands for `MANY` nodes alike; when only some of them get items, the row is split. What lies on a
row is a chain of log entries; the parts of a split row share the chain they had until then. Opens and removes no nodes.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple, Self

import numpy as np

from plimsoll.solver.kernels import FlagMatrix, IntMatrix, IntVector, kernel
from plimsoll.solver.problem import UNBOUNDED, Flags, Ints

NEXT: Final = 0
BEFORE: Final = 1
BIN: Final = 2
"""The bin of the grid that holds the row; -1 if none."""
MANY: Final = 3
ORIGIN: Final = 4
"""The row it was split from, or itself."""
KIND: Final = 5
"""Row of `allowed`."""
LOG: Final = 6
"""Its last log entry; 0 if nothing was put there."""
MET: Final = 7
"""The round in which items were put there last: the row took all it could."""
FREE: Final = 8
"""From here on the free resources of one node, then the bit words of taken keys."""

ROWS: Final = 0
ENTRIES: Final = 1
OPENED: Final = 2
TURN: Final = 3
"""Line 0 of a log counts: rows in use, the next entry, bins opened, and rounds (one per class that is placed)."""

MOST: Final = 0
"""Columns of a class: its cap per node, its bin by cpu and by memory, the row to try first, and how many of
the amounts that follow are resources; the rest are words of keys."""
BIN_A: Final = 1
BIN_B: Final = 2
HINT: Final = 3
RESOURCES: Final = 4
NEED: Final = 5

SIDE: Final = 32
EDGES: Final = SIDE - 1
DIAGONALS: Final = 2 * SIDE - 1
HEADS: Final = 2 * EDGES
MASKS: Final = HEADS + SIDE * SIDE
_BITS: Final = 62
_NOTHING: Final = np.zeros((0, 3), dtype=np.int64)

Grid = IntVector
"""Edges of the bins (31 by cpu, 31 by memory), the first row of each bin, and per diagonal the bins in use, as bits."""


class PackingInput(NamedTuple):
    """The classes of items, and where they may go."""

    classes: IntMatrix
    """[C, columns above]"""
    allowed: FlagMatrix
    """[kinds, C]"""
    caps: IntVector
    """[origins]: the room that given rows have for the class at hand."""


class Table(NamedTuple):
    """Node rows, and the log of what was put on them."""

    nodes: IntMatrix
    """[rows, columns above]"""
    log: IntMatrix
    """[entries, 4]: (class, items in each node, entry before it, row)."""


class ClassItems(NamedTuple):
    """A number of items of one class."""

    cls: int
    items: int


@kernel(allocates=False)
def find_bin(grid: Grid, axis: int, amount: int) -> int:
    low = axis * EDGES
    high = low + EDGES
    while low < high:
        middle = (low + high) // 2
        if grid[middle] <= amount:
            low = middle + 1
        else:
            high = middle
    return low - axis * EDGES


@kernel(allocates=False)
def link(nodes: IntMatrix, grid: Grid, row: int) -> None:
    a = find_bin(grid, 0, nodes[row, FREE])
    b = find_bin(grid, 1, nodes[row, FREE + 1])
    at = a * SIDE + b
    first = grid[HEADS + at]
    nodes[row, NEXT] = first
    nodes[row, BEFORE] = -1
    nodes[row, BIN] = at
    if first >= 0:
        nodes[first, BEFORE] = row
    grid[HEADS + at] = row
    grid[MASKS + a - b + SIDE - 1] |= 1 << a


@kernel(allocates=False)
def unlink(nodes: IntMatrix, grid: Grid, row: int) -> None:
    at = nodes[row, BIN]
    if at < 0:
        return
    following = nodes[row, NEXT]
    before = nodes[row, BEFORE]
    if following >= 0:
        nodes[following, BEFORE] = before
    if before >= 0:
        nodes[before, NEXT] = following
    else:
        grid[HEADS + at] = following
        if following < 0:
            a = at // SIDE
            grid[MASKS + a - at % SIDE + SIDE - 1] &= ~(1 << a)
    nodes[row, BIN] = -1


@kernel(allocates=False)
def link_if_useful(nodes: IntMatrix, grid: Grid, row: int, smallest: IntVector) -> None:
    """Link the row to its bin, unless it has less free than the smallest request of some resource."""
    unlink(nodes, grid, row)
    for resource in range(smallest.shape[0]):
        if smallest[resource] > 0 and nodes[row, FREE + resource] < smallest[resource]:
            return
    link(nodes, grid, row)


@kernel(allocates=False)
def count_room(packing_input: PackingInput, nodes: IntMatrix, cls: int, row: int) -> int:
    """The number of further items of the class that one node of the row takes."""
    classes, allowed, caps = packing_input
    if not allowed[nodes[row, KIND], cls]:
        return 0
    cap: int = caps[nodes[row, ORIGIN]]
    most: int = min(cap, classes[cls, MOST])
    resources = classes[cls, RESOURCES]
    for resource in range(resources):
        need = classes[cls, NEED + resource]
        if need > 0:
            free = nodes[row, FREE + resource]
            if free < need:
                return 0
            if free < need * most:
                most = free // need
    for word in range(resources, classes.shape[1] - NEED):
        if classes[cls, NEED + word] & nodes[row, FREE + word]:
            return 0
    return most


@kernel(allocates=False)
def put(classes: IntMatrix, table: Table, cls: int, row: int, items: int) -> None:
    """Put items of the class into each node of the row."""
    nodes, log = table
    resources = classes[cls, RESOURCES]
    for resource in range(resources):
        nodes[row, FREE + resource] -= items * classes[cls, NEED + resource]
    for word in range(resources, classes.shape[1] - NEED):
        nodes[row, FREE + word] |= classes[cls, NEED + word]
    entry = log[0, ENTRIES]
    log[entry, 0] = cls
    log[entry, 1] = items
    log[entry, 2] = nodes[row, LOG]
    log[entry, 3] = row
    nodes[row, LOG] = entry
    nodes[row, MET] = log[0, TURN]
    log[0, ENTRIES] = entry + 1


@kernel(allocates=False)
def split_off(table: Table, row: int, many: int) -> int:
    """A new row that stands for this number of the nodes; it is not linked yet."""
    nodes, log = table
    new: int = log[0, ROWS]
    log[0, ROWS] = new + 1
    for column in range(nodes.shape[1]):
        nodes[new, column] = nodes[row, column]
    nodes[new, MANY] = many
    nodes[new, BIN] = -1
    return new


@kernel(allocates=False)
def take(classes: IntMatrix, table: Table, row: int, what: ClassItems, most: int) -> int:
    """Put as many of the items as fit onto the row, at most a given number per node; returns their number.

    Full nodes keep the row. The node with the remainder and the untouched nodes become new rows at the end.
    """
    cls, items = what
    per_node = min(most, items)
    if per_node <= 0:
        return 0
    many: int = table.nodes[row, MANY]
    full = min(many, items // per_node)
    rest = items - full * per_node if full < many else 0
    untouched = many - full
    if rest > 0:
        put(classes, table, cls, split_off(table, row, 1), rest)
        untouched -= 1
    if untouched > 0:
        split_off(table, row, untouched)
    table.nodes[row, MANY] = full
    put(classes, table, cls, row, per_node)
    return full * per_node + rest


@kernel(allocates=False)
def holds_one(classes: IntMatrix, cls: int, nodes: IntMatrix, row: int, turn: int) -> bool:
    """Whether the resources of one item fit. Most rows fail here, so this check comes first."""
    if nodes[row, MET] == turn:
        return False
    for resource in range(classes[cls, RESOURCES]):
        need = classes[cls, NEED + resource]
        if need > nodes[row, FREE + resource] and need > 0:
            return False
    return True


@kernel(allocates=False)
def fill_class(packing_input: PackingInput, table: Table, grid: Grid, what: ClassItems, smallest: IntVector) -> int:
    """Put items of a class into rows of the grid, diagonal by diagonal; returns the number without room."""
    cls, items = what
    classes = packing_input.classes
    nodes, log = table
    least_a = classes[cls, BIN_A]
    least_b = classes[cls, BIN_B]
    step = -1
    while items > 0 and step < 2 * DIAGONALS:
        step += 1
        offset = (step + 1) // 2 if step % 2 == 1 else -(step // 2)
        lean = least_a - least_b - offset
        if abs(lean) >= SIDE or grid[MASKS + lean + SIDE - 1] == 0:
            continue
        a = max(least_a, least_b + lean)
        mask = grid[MASKS + lean + SIDE - 1] >> a
        while mask > 0 and items > 0:
            row = grid[HEADS + a * SIDE + a - lean] if mask & 1 else -1
            while row >= 0 and items > 0:
                following = nodes[row, NEXT]
                if holds_one(classes, cls, nodes, row, log[0, TURN]):
                    items -= take_and_link(packing_input, table, grid, row, ClassItems(cls, items), smallest)
                row = following
            mask >>= 1
            a += 1
    return items


@kernel(allocates=False)
def take_and_link(
    packing_input: PackingInput, table: Table, grid: Grid, row: int, what: ClassItems, smallest: IntVector
) -> int:
    """Put items of a class into one row of the grid, and link it and its split parts to their bins."""
    nodes, log = table
    end = log[0, ROWS]
    taken = take(packing_input.classes, table, row, what, count_room(packing_input, nodes, what.cls, row))
    if taken > 0:
        link_if_useful(nodes, grid, row, smallest)
        for new in range(end, log[0, ROWS]):
            link_if_useful(nodes, grid, new, smallest)
    return taken


@kernel(allocates=False)
def unroll(nodes: IntMatrix, log: IntMatrix, rows: int, out: IntMatrix) -> int:
    """Write (row, class, items per node) for all rows; returns the number of lines. An empty `out`: only count."""
    lines = 0
    for row in range(rows):
        entry = nodes[row, LOG]
        while entry > 0:
            if out.shape[0] > 0:
                out[lines, 0] = row
                out[lines, 1] = log[entry, 0]
                out[lines, 2] = log[entry, 1]
            lines += 1
            entry = log[entry, 2]
    return lines


@dataclass(frozen=True, slots=True)
class Edges:
    """The lower edges of bins. The largest amount falls into the last of 32."""

    array: Ints
    """[2, 31]"""

    @classmethod
    def build(cls, largest: Ints) -> Self:
        steps = np.arange(1 - SIDE, 0, dtype=np.float64) / 2
        amounts = np.maximum(largest[:2], 1).astype(np.float64)
        return cls(np.maximum(np.ceil(amounts[:, None] * 2.0**steps), 1).astype(np.int64))

    def build_empty_grid(self) -> Grid:
        heads = np.full(SIDE * SIDE, -1, dtype=np.int64)
        return np.concatenate((self.array.reshape(-1), heads, np.zeros(DIAGONALS, dtype=np.int64)))

    def find_bins(self, axis: int, amounts: Ints) -> Ints:
        return np.searchsorted(self.array[axis], amounts, side="right").astype(np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemClasses:
    """Classes in the form of the kernels: at least two resources, and keys as bits."""

    requests: Ints
    keys: Ints
    per_bin: Ints

    @classmethod
    def from_requests(cls, requests: Ints, *, per_bin: Ints | None, exclusive: Flags | None) -> Self:
        count = len(requests)
        keys = pack_key_bits(np.zeros((count, 0), dtype=np.bool_) if exclusive is None else exclusive)
        amounts = select_two_axes(requests)
        most = np.full(count, UNBOUNDED, dtype=np.int64) if per_bin is None else per_bin.clip(0)
        # Amounts times items are compared, and must stay within 64 bits.
        most = np.minimum(most, (1 << 62) // np.maximum(amounts.max(axis=1, initial=1), 1))
        return cls(requests=amounts, keys=keys, per_bin=np.where(keys.any(axis=1), np.minimum(most, 1), most))

    def build_packing_input(
        self, allowed: Flags, edges: Edges, *, origins: int, hints: Ints | None = None
    ) -> PackingInput:
        count, resources = self.requests.shape
        classes = np.empty((count, NEED + resources + self.keys.shape[1]), dtype=np.int64)
        classes[:, MOST] = self.per_bin
        classes[:, BIN_A] = edges.find_bins(0, self.requests[:, 0])
        classes[:, BIN_B] = edges.find_bins(1, self.requests[:, 1])
        classes[:, HINT] = -1 if hints is None else hints
        classes[:, RESOURCES] = resources
        classes[:, NEED : NEED + resources] = self.requests
        classes[:, NEED + resources :] = self.keys
        return PackingInput(
            classes,
            np.ascontiguousarray(allowed, dtype=np.bool_),
            np.full(origins, UNBOUNDED, dtype=np.int64),
        )


def select_two_axes(amounts: Ints) -> Ints:
    """A copy of the amounts with a column for cpu and one for memory, even if the input has fewer."""
    missing = max(0, 2 - amounts.shape[1])
    padded = np.pad(amounts, ((0, 0), (0, missing))) if missing else np.array(amounts)
    return np.ascontiguousarray(padded, dtype=np.int64)


def pack_key_bits(flags: Flags) -> Ints:
    """Flags [n, K] as bits of integers [n, W]; no columns if there are no keys."""
    words = -(-flags.shape[1] // _BITS)
    out = np.zeros((len(flags), words), dtype=np.int64)
    for key in range(flags.shape[1]):
        out[:, key // _BITS] |= flags[:, key].astype(np.int64) << (key % _BITS)
    return out


def build_table(free: Ints, keys: Ints, *, spare_rows: int, entries: int) -> Table:
    """One row of kind 0 per node, followed by spare rows, and an empty log."""
    count = len(free)
    nodes = np.zeros((count + spare_rows, FREE + free.shape[1] + keys.shape[1]), dtype=np.int64)
    nodes[:, (NEXT, BEFORE, BIN, MET)] = -1
    nodes[:count, MANY] = 1
    nodes[:count, ORIGIN] = np.arange(count)
    nodes[:count, FREE : FREE + free.shape[1]] = free
    nodes[:count, FREE + free.shape[1] :] = keys
    log = np.empty((entries + 1, 4), dtype=np.int64)
    log[0] = (count, 1, 0, 0)
    return Table(nodes, log)


def list_chains(filled: Table) -> Ints:
    """[lines, 3]: row, class, items in each node; rows ascend, and classes within a row."""
    nodes, log = filled
    rows = int(log[0, ROWS])
    out = np.empty((unroll(nodes, log, rows, _NOTHING.copy()), 3), dtype=np.int64)
    if len(out):
        unroll(nodes, log, rows, out)
    return out[np.lexsort((out[:, 1], out[:, 0]))]
