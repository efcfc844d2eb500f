"""How much of a demand fits on existing nodes, and where.

The cost grows with classes and rows of nodes, not with items. Nodes are chosen by `bin_grid`; no node exceeds its
capacity. Items left over do not prove that no other assignment exists: `exact.assignment_milp` searches further.
"""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from plimsoll.solver.filling.bin_grid import (
    FREE,
    HINT,
    KIND,
    MANY,
    ORIGIN,
    ROWS,
    TURN,
    ClassItems,
    Edges,
    Grid,
    ItemClasses,
    PackingInput,
    Table,
    build_table,
    fill_class,
    link_if_useful,
    list_chains,
    pack_key_bits,
    select_two_axes,
    take_and_link,
)
from plimsoll.solver.kernels import IntMatrix, IntVector, kernel
from plimsoll.solver.problem import UNBOUNDED, Flags, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class FillDemand:
    """C classes of items. Column 0 of amounts is cpu, column 1 memory."""

    requests: Ints
    """[C, R]: the request of one item."""
    counts: Ints
    """[C]"""
    allowed: Flags
    """[kinds of nodes, C]"""
    per_bin: Ints | None = None
    """[C]: the cap of items of this demand in one node."""
    exclusive: Flags | None = None
    """[C, K]: a node takes one item of all that share a key."""
    tighter: Ints | None = None
    """[n, 3]: (class, row of nodes, cap per node), where the cap is below `per_bin`."""
    hints: Ints | None = None
    """[C]: the row to try first, -1 for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExistingNodes:
    """N rows of existing nodes; a row stands for `multiplicity` equal nodes."""

    free: Ints
    """[N, R]"""
    kind: Ints
    """[N]: row of `FillDemand.allowed`."""
    multiplicity: Ints | None = None
    """[N]: 1 each if not given."""
    taken: Flags | None = None
    """[N, K]: keys an item on the node holds already."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FillResult:
    """Rows afterwards: the given ones first, in their order, then parts that were split off them."""

    origin: Ints
    """[M]: the given row this one is (a part of)."""
    multiplicity: Ints
    """[M]"""
    free: Ints
    """[M, R]"""
    placements: Ints
    """[P, 3]: (row of these M, class, items in each of its nodes), ascending, each pair of row and class once."""
    left: Ints
    """[C]: items that were not placed."""

    def count_placed(self) -> Ints:
        """[C]: placed items."""
        rows, classes, items = self.placements.T
        placed = np.zeros(len(self.left), dtype=np.int64)
        np.add.at(placed, classes, self.multiplicity[rows] * items)
        return placed


class FillOrder(NamedTuple):
    """The order in which classes are placed."""

    classes: IntVector
    smallest: IntMatrix
    """[classes + 1, R]: as of `find_smallest_remaining`."""


def fill(demand: FillDemand, nodes: ExistingNodes, order: Ints | None = None) -> FillResult:
    """Place classes, in order (`order_most_constrained_first` if none is given), on nodes as long as there is room."""
    taken_order = order_most_constrained_first(demand, nodes) if order is None else np.array(order, dtype=np.int64)
    classes = ItemClasses.from_requests(demand.requests, per_bin=demand.per_bin, exclusive=demand.exclusive)
    rows = _build_rows(demand, nodes)
    edges = Edges.build(select_two_axes(nodes.free).max(axis=0, initial=1))
    packing_input = classes.build_packing_input(demand.allowed, edges, origins=len(nodes.free), hints=demand.hints)
    left = np.array(demand.counts, dtype=np.int64)
    steps = FillOrder(taken_order, find_smallest_remaining(classes.requests, left, taken_order))
    _fill_in_order(packing_input, rows, edges.build_empty_grid(), steps, _find_tighter_caps(demand), left)
    return _build_result(rows, left, nodes.free.shape[1])


def order_most_constrained_first(demand: FillDemand, nodes: ExistingNodes, tiers: Ints | None = None) -> Ints:
    """Classes by tier if given, then by fewest allowed nodes, capped before uncapped, larger first, then by index."""
    classes = len(demand.counts)
    nodes_by_kind = np.zeros(len(demand.allowed), dtype=np.int64)
    np.add.at(nodes_by_kind, nodes.kind, 1 if nodes.multiplicity is None else nodes.multiplicity)
    choice = nodes_by_kind @ demand.allowed
    uncapped = np.ones(classes, dtype=np.bool_)
    if demand.per_bin is not None:
        uncapped &= demand.per_bin >= demand.counts
    if demand.exclusive is not None:
        uncapped &= ~demand.exclusive.any(axis=1)
    size = compute_size_shares(demand.requests, _sum_free(nodes))
    return np.lexsort((np.arange(classes), -size, uncapped, choice, np.zeros(classes) if tiers is None else tiers))


def compute_size_shares(requests: Ints, total: Ints) -> Ints:
    """[C]: the largest share of the total of any resource that one item takes, as integers so that ties are exact."""
    amounts = np.maximum(total, 1).astype(np.float64)
    # Shares are capped at a thousand times the total.
    parts = np.minimum((requests / amounts).max(axis=1, initial=0.0), 1024.0)
    return np.asarray(np.round(parts * 2.0**52), dtype=np.int64)


def find_smallest_remaining(requests: Ints, counts: Ints, order: Ints) -> Ints:
    """[len(order) + 1, R]: the least of each resource among classes from this place of the order on that have items."""
    wanted = np.where((counts > 0)[:, None], requests, UNBOUNDED << 20)[order]
    last = np.full((1, requests.shape[1]), UNBOUNDED << 20, dtype=np.int64)
    reverse = np.concatenate((last, wanted[::-1]))
    return np.ascontiguousarray(np.minimum.accumulate(reverse, axis=0)[::-1])


@kernel(allocates=False)
def _fill_in_order(
    packing_input: PackingInput, table: Table, grid: Grid, steps: FillOrder, tighter: IntMatrix, left: IntVector
) -> None:
    """Place each class on nodes as long as there is room; `left` counts down."""
    classes, _, caps = packing_input
    nodes, log = table
    order, smallest = steps
    for row in range(log[0, ROWS] - 1, -1, -1):
        if nodes[row, MANY] > 0:
            link_if_useful(nodes, grid, row, smallest[0])
    for place in range(order.shape[0]):
        cls = order[place]
        if left[cls] <= 0:
            continue
        log[0, TURN] += 1
        least = smallest[place + 1]
        _tighten(caps, tighter, cls, 1)
        hint = classes[cls, HINT]
        if hint >= 0 and nodes[hint, MANY] > 0:
            left[cls] -= take_and_link(packing_input, table, grid, hint, ClassItems(cls, left[cls]), least)
        left[cls] = fill_class(packing_input, table, grid, ClassItems(cls, left[cls]), least)
        _tighten(caps, tighter, cls, 0)


@kernel(allocates=False)
def _tighten(caps: IntVector, tighter: IntMatrix, cls: int, on: int) -> None:
    """Set or reset the caps of rows for the class. `tighter` ascends by class."""
    low = 0
    high = tighter.shape[0]
    while low < high:
        middle = (low + high) // 2
        if tighter[middle, 0] < cls:
            low = middle + 1
        else:
            high = middle
    while low < tighter.shape[0] and tighter[low, 0] == cls:
        row = tighter[low, 1]
        caps[row] = min(caps[row], tighter[low, 2]) if on == 1 else UNBOUNDED
        low += 1


def _build_rows(demand: FillDemand, standing: ExistingNodes) -> Table:
    count = len(standing.free)
    keys = 0 if demand.exclusive is None else demand.exclusive.shape[1]
    taken = np.zeros((count, keys), dtype=np.bool_) if standing.taken is None else standing.taken
    many = np.ones(count, dtype=np.int64) if standing.multiplicity is None else standing.multiplicity
    wanted = int((demand.counts > 0).sum())
    # A class splits only the row on which its items end, into three at most.
    spare = min(2 * wanted, int((many - 1).clip(0).sum()))
    entries = min(int(demand.counts.clip(0).sum()), wanted * (count + spare) + wanted)
    rows = build_table(select_two_axes(standing.free), pack_key_bits(taken), spare_rows=spare, entries=entries)
    rows.nodes[:count, MANY] = many
    rows.nodes[:count, KIND] = standing.kind
    return rows


def _sum_free(standing: ExistingNodes) -> Ints:
    many = 1 if standing.multiplicity is None else standing.multiplicity[:, None]
    return np.asarray((standing.free.clip(0) * many).sum(axis=0), dtype=np.int64)


def _find_tighter_caps(demand: FillDemand) -> Ints:
    if demand.tighter is None:
        return np.zeros((0, 3), dtype=np.int64)
    caps = np.asarray(demand.tighter, dtype=np.int64).reshape(-1, 3)
    return np.ascontiguousarray(caps[np.argsort(caps[:, 0], kind="stable")])


def _build_result(rows: Table, left: Ints, resources: int) -> FillResult:
    nodes, log = rows
    in_use = nodes[: int(log[0, ROWS])]
    return FillResult(
        origin=in_use[:, ORIGIN].copy(),
        multiplicity=in_use[:, MANY].copy(),
        free=in_use[:, FREE : FREE + resources].copy(),
        placements=list_chains(rows),
        left=left,
    )
