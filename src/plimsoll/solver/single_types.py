"""Everything onto bins of one type: what a policy of one node group at a time can do, and what it costs.

`screen` finds the type that holds all items for the least money without packing onto most of them. `estimate` answers
as a classic autoscaler's estimator does, pod by pod first fit decreasing, for the expanders that choose by its numbers.
Both work on classes and rows of bins alike; neither mixes types (`mixed` does).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from plimsoll.solver.bin_grids import (
    MANY,
    NEXT,
    OPENED,
    QUESTION,
    ROWS,
    TABLE,
    TURN,
    Asked,
    Edges,
    Grid,
    Question,
    Table,
    chains,
    fill_class,
    holds_one,
    link_if_useful,
    room,
    split_off,
    table,
    take,
    two_axes,
)
from plimsoll.solver.filling import shares, still_smallest
from plimsoll.solver.kernels import kernel
from plimsoll.solver.problems import UNBOUNDED, Filling, Floats, Ints, Packed, Packing

_TEMPLATE = 0
"""The row of a table that is an empty bin; it stands for none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What bins of one type, no more than were granted, do for a demand."""

    nodes: int
    fillings: tuple[Filling, ...]
    left: Ints
    """[C]: items without a bin."""


def screen(problem: Packing) -> Packed | None:
    """All items on the one type where that costs least; None if there is no type that holds them all.

    Types are tried by their bound, until it says that no later one can be cheaper; a packing is given up as soon as it
    needs more bins than the best one found is worth.
    """
    granted = _granted(problem)
    bounds = _least_bins(problem)
    asked = Asked.of(problem.requests, per_bin=problem.per_bin, exclusive=problem.exclusive)
    best: tuple[float, int, _Run] | None = None
    for index in np.lexsort((np.arange(len(bounds)), bounds * problem.price)):
        kind, price = int(index), float(problem.price[index])
        if bounds[kind] > granted[kind]:
            continue
        if best is not None and bounds[kind] * price >= best[0]:
            break
        limit = int(granted[kind]) if best is None else min(int(granted[kind]), _fewer_than(best[0], price))
        run = _Run.of(problem, kind, order=_largest_first(problem, kind), asked=asked)
        if run.pack_aligned(limit) and (best is None or run.nodes * price < best[0]):
            best = run.nodes * price, kind, run
    if best is None:
        return None
    cost, kind, run = best
    return Packed(fillings=run.fillings(kind), left=run.left, cost=cost)


def pack_on(problem: Packing, kind: int) -> Packed:
    """As many items as bins of one type hold, by aligned bins; for the type that `screen` does not get to choose."""
    run = _Run.of(problem, kind, order=_largest_first(problem, kind))
    run.pack_aligned(int(_granted(problem)[kind]), give_up=False)
    return Packed(fillings=run.fillings(kind), left=run.left, cost=run.nodes * float(problem.price[kind]))


def estimate(problem: Packing, kind: int, *, nodes: int, order: Ints | None = None) -> Estimate:
    """First fit decreasing onto at most so many nodes: on those already opened first, in the order they were opened.

    Exactly what placing one pod after the other does, where pods of a class follow each other in `order` (by
    `score_order` if not given).
    """
    chosen = score_order(problem.requests, problem.capacity[kind]) if order is None else np.array(order, dtype=np.int64)
    run = _Run.of(problem, kind, order=chosen)
    _first_fit(run.question, run.table, chosen, run.left, nodes)
    return Estimate(nodes=run.nodes, fillings=run.fillings(kind), left=run.left)


def score_order(requests: Ints, allocatable: Ints) -> Ints:
    """Classes by cpu / allocatable cpu + memory / allocatable memory, the largest first; ties by index."""
    have = np.maximum(two_axes(allocatable.reshape(1, -1))[0, :2], 1)
    score: Floats = np.round((two_axes(requests)[:, :2] / have).sum(axis=1), 12)
    return np.lexsort((np.arange(len(requests)), -score))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Run:
    """One packing onto one type: the question, the bins opened so far, and what is left."""

    order: Ints
    question: Question
    table: Table
    edges: Edges
    smallest: Ints
    left: Ints

    @classmethod
    def of(cls, problem: Packing, kind: int, *, order: Ints, asked: Asked | None = None) -> _Run:
        if asked is None:
            asked = Asked.of(problem.requests, per_bin=problem.per_bin, exclusive=problem.exclusive)
        capacity = two_axes(problem.capacity[kind].reshape(1, -1))
        edges = Edges.reaching(capacity[0])
        left = np.array(problem.counts, dtype=np.int64)
        # A class opens one row and splits one, into two more at most.
        wanted = int((left > 0).sum())
        spare = 2 * wanted + 1
        entries = min(int(left.clip(0).sum()), wanted * (spare + 1))
        empty = np.zeros((1, asked.keys.shape[1]), dtype=np.int64)
        bins = table(capacity, empty, spare_rows=spare, entries=entries)
        bins[0][_TEMPLATE, MANY] = 0
        return cls(
            order=order,
            question=asked.question(problem.allowed[kind : kind + 1], edges, origins=1),
            table=bins,
            edges=edges,
            smallest=still_smallest(asked.requests, left, order),
            left=left,
        )

    @property
    def nodes(self) -> int:
        return int(self.table[1][0, OPENED])

    def pack_aligned(self, limit: int, *, give_up: bool = True) -> bool:
        """Whether everything fits into so many bins; if not, what is there is as far as it went."""
        grid = self.edges.empty_grid()
        return bool(_aligned(self.question, self.table, grid, self.order, self.left, (self.smallest, limit, give_up)))

    def fillings(self, kind: int) -> tuple[Filling, ...]:
        lines = chains(self.table)
        rows, classes, items = lines[:, 0], lines[:, 1].tolist(), lines[:, 2].tolist()
        starts = np.flatnonzero(np.diff(rows, prepend=-1)).tolist()
        bins = self.table[0][rows[starts], MANY].tolist()
        return tuple(
            Filling(type=kind, bins=many, classes=tuple(classes[low:high]), items=tuple(items[low:high]))
            for many, (low, high) in zip(bins, pairwise([*starts, len(rows)]), strict=True)
        )


@kernel(f"i8({QUESTION}, {TABLE}, i8, i8, i8)")
def _open(question: Question, table: Table, cls: int, items: int, limit: int) -> int:
    """A row of as many new bins as the items need, or as there may be; -1 if that is none. It is still empty."""
    nodes, log = table
    each = room(question, nodes, cls, _TEMPLATE)
    if each <= 0 or log[0, OPENED] >= limit:
        return -1
    many = min(limit - log[0, OPENED], (items + each - 1) // each)
    log[0, OPENED] += many
    return split_off(nodes, log, _TEMPLATE, many)


@kernel(f"b1({QUESTION}, {TABLE}, i8[::1], i8[::1], i8[::1], Tuple((i8[:,::1], i8, b1)))")
def _aligned(
    question: Question, table: Table, grid: Grid, order: Ints, left: Ints, terms: tuple[Ints, int, bool]
) -> bool:
    nodes, log = table
    smallest, limit, give_up = terms
    whole = True
    for place in range(order.shape[0]):
        cls = order[place]
        if left[cls] <= 0:
            continue
        log[0, TURN] += 1
        least = smallest[place + 1]
        left[cls] = fill_class(question, table, grid, (cls, left[cls]), least)
        if left[cls] > 0:
            end = log[0, ROWS]
            row = _open(question, table, cls, left[cls], limit)
            if row >= 0:
                left[cls] -= take(question[0], nodes, log, cls, row, (left[cls], room(question, nodes, cls, row)))
            for new in range(end, log[0, ROWS]):
                link_if_useful(nodes, grid, new, least)
        if left[cls] > 0:
            whole = False
            if give_up:
                break
    return whole


@kernel(f"void({QUESTION}, {TABLE}, i8[::1], i8[::1], i8)")
def _first_fit(question: Question, table: Table, order: Ints, left: Ints, limit: int) -> None:
    """Rows hang in one chain, in the order their bins were opened, behind the template."""
    nodes, log = table
    classes = question[0]
    for place in range(order.shape[0]):
        cls = order[place]
        log[0, TURN] += 1
        last = _TEMPLATE
        row = nodes[_TEMPLATE, NEXT]
        while row >= 0 and left[cls] > 0:
            last = row
            if holds_one(classes, cls, nodes, row, log[0, TURN]):
                last = _take_in_chain(question, table, cls, row, left)
            row = nodes[last, NEXT]
        if left[cls] > 0:
            row = _open(question, table, cls, left[cls], limit)
            if row >= 0:
                nodes[last, NEXT] = row
                nodes[row, NEXT] = -1
                _take_in_chain(question, table, cls, row, left)


@kernel(f"i8({QUESTION}, {TABLE}, i8, i8, i8[::1])")
def _take_in_chain(question: Question, table: Table, cls: int, row: int, left: Ints) -> int:
    """Items into the row; parts split off it follow it in the chain. The last of them."""
    nodes, log = table
    end = log[0, ROWS]
    left[cls] -= take(question[0], nodes, log, cls, row, (left[cls], room(question, nodes, cls, row)))
    last = row
    for new in range(end, log[0, ROWS]):
        nodes[new, NEXT] = nodes[last, NEXT]
        nodes[last, NEXT] = new
        last = new
    return last


def _granted(problem: Packing) -> Ints:
    """[T]: so many bins of a type alone may be opened, by its own limit and those it shares."""
    by_limit = np.where(problem.use > 0, problem.room.clip(0) // np.maximum(problem.use, 1), UNBOUNDED)
    alone: Ints = np.minimum(problem.available, by_limit.min(axis=1, initial=UNBOUNDED)).clip(0)
    return alone


def _least_bins(problem: Packing) -> Ints:
    """[T]: no packing of all items needs fewer bins of the type; more than UNBOUNDED where some class fits none."""
    wanted = problem.counts > 0
    requests, counts = problem.requests[wanted], problem.counts[wanted]
    demand = (requests * counts[:, None]).sum(axis=0)
    bins = -(-demand // np.maximum(problem.capacity, 1))
    alone = np.where(problem.exclusive.any(axis=1), 1, problem.per_bin)[wanted]
    capped = -(-counts // np.maximum(alone, 1))
    sharing = counts @ problem.exclusive[wanted]
    least = np.maximum(bins.max(axis=1, initial=0), max(capped.max(initial=0), sharing.max(initial=0)))
    largest = requests.max(axis=0, initial=0)
    holds = (largest <= problem.capacity).all(axis=1) & problem.allowed[:, wanted].all(axis=1)
    return np.where(holds & (alone > 0).all(), least, 2 * UNBOUNDED)


def _fewer_than(cost: float, price: float) -> int:
    """The most bins that still cost less."""
    return UNBOUNDED if price <= 0 else min(UNBOUNDED, int(np.ceil(cost / price)) - 1)


def _largest_first(problem: Packing, kind: int) -> Ints:
    """Classes that share keys or have caps first (they spread; others fill up between them), then by share of a bin."""
    uncapped = ~problem.exclusive.any(axis=1) & (problem.per_bin >= problem.counts)
    size = shares(problem.requests, problem.capacity[kind])
    return np.lexsort((np.arange(len(size)), -size, uncapped))
