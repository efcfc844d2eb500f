"""First fit decreasing onto bins of one type: what a policy of one node group at a time can do.

`estimate` gives what Cluster Autoscaler's estimator gives, which places pod by pod, but works on classes and rows of
equal bins. It never mixes types.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import Self

import numpy as np

from plimsoll.solver.filling.bin_grid import (
    MANY,
    NEXT,
    OPENED,
    ROWS,
    TURN,
    ClassItems,
    Edges,
    ItemClasses,
    PackingInput,
    Table,
    build_table,
    count_room,
    holds_one,
    list_chains,
    select_two_axes,
    split_off,
    take,
)
from plimsoll.solver.kernels import IntVector, kernel
from plimsoll.solver.problem import BinPattern, Floats, Ints, PackingProblem

_TEMPLATE = 0
"""The row of a table that is an empty bin; it stands for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What bins of one type, no more than were granted, do for a demand."""

    nodes: int
    fillings: tuple[BinPattern, ...]
    left: Ints
    """[C]: items without a bin."""


def estimate(problem: PackingProblem, kind: int, *, nodes: int, order: Ints | None = None) -> Estimate:
    """First fit decreasing onto at most so many nodes: on those already opened first, in the order they were opened.

    Exactly what placing one pod after the other does, where pods of a class follow each other in `order` (by
    `score_order` if not given).
    """
    chosen = score_order(problem.requests, problem.capacity[kind]) if order is None else np.array(order, dtype=np.int64)
    run = _Run.from_problem(problem, kind)
    _pack_first_fit(run.packing_input, run.table, chosen, run.left, nodes)
    return Estimate(nodes=run.nodes, fillings=run.list_patterns(kind), left=run.left)


def score_order(requests: Ints, allocatable: Ints) -> Ints:
    """Classes by cpu / allocatable cpu + memory / allocatable memory, the largest first; ties by index."""
    have = np.maximum(select_two_axes(allocatable.reshape(1, -1))[0, :2], 1)
    score: Floats = np.round((select_two_axes(requests)[:, :2] / have).sum(axis=1), 12)
    return np.lexsort((np.arange(len(requests)), -score))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One packing onto one type: the classes of items, the bins opened so far, and what is left."""

    packing_input: PackingInput
    table: Table
    left: Ints

    @classmethod
    def from_problem(cls, problem: PackingProblem, kind: int) -> Self:
        classes = ItemClasses.from_requests(problem.requests, per_bin=problem.per_bin, exclusive=problem.exclusive)
        capacity = select_two_axes(problem.capacity[kind].reshape(1, -1))
        edges = Edges.build(capacity[0])
        left = np.array(problem.counts, dtype=np.int64)
        # A class opens one row and splits one, into two more at most.
        wanted = int((left > 0).sum())
        spare = 2 * wanted + 1
        entries = min(int(left.clip(0).sum()), wanted * (spare + 1))
        empty = np.zeros((1, classes.keys.shape[1]), dtype=np.int64)
        bins = build_table(capacity, empty, spare_rows=spare, entries=entries)
        bins.nodes[_TEMPLATE, MANY] = 0
        return cls(
            packing_input=classes.build_packing_input(problem.allowed[kind : kind + 1], edges, origins=1),
            table=bins,
            left=left,
        )

    @property
    def nodes(self) -> int:
        return int(self.table.log[0, OPENED])

    def list_patterns(self, kind: int) -> tuple[BinPattern, ...]:
        lines = list_chains(self.table)
        rows, classes, items = lines[:, 0], lines[:, 1].tolist(), lines[:, 2].tolist()
        starts = np.flatnonzero(np.diff(rows, prepend=-1)).tolist()
        bins = self.table.nodes[rows[starts], MANY].tolist()
        return tuple(
            BinPattern(type=kind, bins=many, classes=tuple(classes[low:high]), items=tuple(items[low:high]))
            for many, (low, high) in zip(bins, pairwise([*starts, len(rows)]), strict=True)
        )


@kernel()
def _open(packing_input: PackingInput, table: Table, cls: int, items: int, limit: int) -> int:
    """A row of as many new bins as the items need, or as there may be; -1 if that is none. It is still empty."""
    nodes, log = table
    items_per_bin = count_room(packing_input, nodes, cls, _TEMPLATE)
    if items_per_bin <= 0 or log[0, OPENED] >= limit:
        return -1
    many = min(limit - log[0, OPENED], (items + items_per_bin - 1) // items_per_bin)
    log[0, OPENED] += many
    return split_off(table, _TEMPLATE, many)


@kernel()
def _pack_first_fit(packing_input: PackingInput, table: Table, order: IntVector, left: IntVector, limit: int) -> None:
    """Rows hang in one chain, in the order their bins were opened, behind the template."""
    nodes, log = table
    classes = packing_input.classes
    for place in range(order.shape[0]):
        cls = order[place]
        log[0, TURN] += 1
        last = _TEMPLATE
        row = nodes[_TEMPLATE, NEXT]
        while row >= 0 and left[cls] > 0:
            last = row
            if holds_one(classes, cls, nodes, row, log[0, TURN]):
                last = _take_in_chain(packing_input, table, cls, row, left)
            row = nodes[last, NEXT]
        if left[cls] > 0:
            row = _open(packing_input, table, cls, left[cls], limit)
            if row >= 0:
                nodes[last, NEXT] = row
                nodes[row, NEXT] = -1
                _take_in_chain(packing_input, table, cls, row, left)


@kernel()
def _take_in_chain(packing_input: PackingInput, table: Table, cls: int, row: int, left: IntVector) -> int:
    """Items into the row; parts split off it follow it in the chain. The last of them."""
    nodes, log = table
    end = log[0, ROWS]
    most = count_room(packing_input, nodes, cls, row)
    left[cls] -= take(packing_input.classes, table, row, ClassItems(cls, left[cls]), most)
    last = row
    for new in range(end, log[0, ROWS]):
        nodes[new, NEXT] = nodes[last, NEXT]
        nodes[last, NEXT] = new
        last = new
    return last
