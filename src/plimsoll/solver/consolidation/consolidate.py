"""Which nodes can be removed, and where their items go instead.

`consolidate` looks for the cheapest set of nodes that holds everything: resource prices come from a small linear
program, nodes with the least capacity for their price are emptied, and only into nodes meant to stay, so that nothing
moves twice. `remove_in_order` tries candidates in a given order, as Cluster Autoscaler does.

A node is removed as a whole or not at all. The caller says which nodes are `removable`, what a removal uses up
(`Limits`), and what money a disruption is worth. Nothing is added here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np

from plimsoll.solver.consolidation.emptying_kernel import (
    OVERFLOWN,
    MovableItems,
    RemovalNotes,
    RemovalOrder,
    empty_in_order,
)
from plimsoll.solver.filling.bin_grid import (
    ENTRIES,
    FREE,
    KIND,
    Edges,
    ItemClasses,
    Table,
    build_table,
    pack_key_bits,
    select_two_axes,
)
from plimsoll.solver.filling.fill import compute_size_shares
from plimsoll.solver.linear_program import INFINITE, LinearProgram, Sparse
from plimsoll.solver.problem import UNBOUNDED, Flags, Floats, Ints


class RemovalStatus(IntEnum):
    """The outcome for a node."""

    REMOVED = 1
    NO_ROOM = 2
    """One of its items fits nowhere else; `Removals.stuck` is the class of that item."""
    LIMITED = 3
    """A shared limit is exhausted."""
    NOT_WORTH_IT = 4
    SURVIVOR = 5
    """Selected to stay."""
    FIXED = 6
    """Not removable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeSet:
    """N nodes and their movable items, as C classes."""

    requests: Ints
    """[C, R]"""
    free: Ints
    """[N, R]: free in addition to everything on the node now."""
    price: Floats
    """[N]"""
    kind: Ints
    """[N]: row of `allowed`."""
    allowed: Flags
    """[kinds of nodes, C]"""
    starts: Ints
    """[N + 1]: node n has the lines from starts[n] up to starts[n + 1] of `movable`."""
    movable: Ints
    """[lines, 2]: (class, items)."""
    removable: Flags
    """[N]"""
    receives: Flags | None = None
    """[N]: whether items may be moved there; all, if not given."""
    per_bin: Ints | None = None
    """[C]: the cap of items in one node, including those that are there."""
    exclusive: Flags | None = None
    """[C, K]: a node takes one item of all that share a key."""
    taken: Flags | None = None
    """[N, K]: keys held on the node by anything, movable or not."""
    ties: Ints | None = None
    """[C]: which of two classes of one size comes first; by their numbers, if not given."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How far removals may go. Disruption budgets, minimum sizes and the like are columns of `use`."""

    removals: int = UNBOUNDED
    use: Ints | None = None
    """[N, L]: the use of each limit by the removal of a node."""
    spare: Ints | None = None
    """[L]: the remainder of each limit."""
    disruption: Floats | None = None
    """[N]: the disruption cost of removing a node."""
    least_saving: float = 0.0
    """A node is removed only if its price is at least this per unit of disruption."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Removals:
    """Removed nodes in the order in which they were emptied, and the moves of their items."""

    removed: Ints
    moves: Ints
    """[n, 4]: (class, from, to, items), in order. In `remove_in_order` an item may move on from where it went."""
    statuses: Ints
    """[N]: `RemovalStatus`"""
    stuck: Ints
    """[N]: the class that found no room, -1 elsewhere."""
    free: Ints
    """[N, R]: free resources afterwards; for removed nodes, without the moved items."""
    bound: float | None = None
    """A lower bound of the hourly price of nodes that hold everything, fractions of nodes allowed."""


def consolidate(cluster: NodeSet, limits: Limits | None = None, *, iterations: int = 200_000) -> Removals:
    """Empty the nodes with the least capacity for their price into nodes that stay. Nothing moves twice."""
    used = _compute_used(cluster)
    cover = _Cover.from_cluster(cluster, used, iterations)
    order = cover.order(cluster)
    stays = ~cluster.removable
    stays[_select_last_of_each(cover, order)] = True
    going = order[~stays[order]]
    limits = limits or Limits()
    if limits.use is None and limits.removals >= len(going):
        # All of them may go, so those with large items go while there is room for them: that fits more in the end.
        going = going[np.argsort(-_find_largest_item(cluster, used)[going], kind="stable")]
    found = _remove(cluster, limits, order=going, linked=stays)
    statuses = np.where(stays & cluster.removable, RemovalStatus.SURVIVOR, found.statuses)
    return replace(found, statuses=statuses, bound=cover.bound)


def remove_in_order(cluster: NodeSet, candidates: Ints, limits: Limits | None = None) -> Removals:
    """Try each candidate in turn; its items may go to every node that is left and receives."""
    order = np.asarray(candidates, dtype=np.int64)
    everywhere = np.ones(len(cluster.free), dtype=np.bool_)
    return _remove(cluster, limits or Limits(), order=order[cluster.removable[order]], linked=everywhere)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Cover:
    """The cheapest fractions of nodes per type that cover all used resources."""

    type_of: Ints
    """[N]"""
    keep: Floats
    """[types]: the number of nodes to keep."""
    value: Floats
    """[types]: the value of the capacity at the resource prices."""
    bound: float

    @classmethod
    def from_cluster(cls, cluster: NodeSet, used: Ints, iterations: int) -> _Cover:
        capacity = used + cluster.free
        fixed = ~cluster.removable
        given = cluster.free[fixed].clip(0).sum(axis=0)
        demand = used[cluster.removable].sum(axis=0) - given
        scarce = demand > 0
        type_of, first = _number_types(np.column_stack((cluster.price, capacity)))
        share = capacity[first][:, scarce].clip(0) / demand[scarce]
        many = np.bincount(type_of[cluster.removable], minlength=len(first)).astype(np.float64)
        paid = float(cluster.price[fixed].sum())
        program = LinearProgram(iterations=iterations)
        program.add_columns(cluster.price[first], upper=many)
        ones = np.ones(int(scarce.sum()))
        program.add_rows(ones, ones * INFINITE, Sparse.from_dense(share.T))
        solved = program.solve()
        if solved is None:
            return cls(type_of=type_of, keep=many * 0, value=share.sum(axis=1), bound=paid)
        return cls(type_of=type_of, keep=solved.primal, value=share @ solved.dual, bound=paid + solved.objective)

    def order(self, cluster: NodeSet) -> Ints:
        """Removable nodes: most expensive for what they are worth first, then those with fewest items.

        Nodes that cannot receive items come first, because they are useless as survivors.
        """
        items = np.concatenate(([0], np.cumsum(cluster.movable[:, 1])))[cluster.starts]
        value = self.value[self.type_of]
        ratio = np.where(value > 1e-12, cluster.price / np.maximum(value, 1e-12), np.inf)
        receives = np.ones(len(value), dtype=np.bool_) if cluster.receives is None else np.array(cluster.receives)
        ranked = np.lexsort((np.arange(len(value)), np.diff(items), -np.round(ratio, 9), receives))
        return ranked[cluster.removable[ranked]]


def _select_last_of_each(cover: _Cover, order: Ints) -> Ints:
    """The nodes to keep: of each type as many as the cover says, whole ones, those that come last in the order."""
    whole = np.floor(cover.keep + 1e-9).astype(np.int64)
    over = int(np.ceil(cover.keep.sum() - 1e-9)) - int(whole.sum())
    rest = np.round(cover.keep - whole, 9)
    most_missed = np.lexsort((np.arange(len(rest)), -rest))[: max(over, 0)]
    whole[most_missed[rest[most_missed] > 0]] += 1
    last = order[::-1]
    types = cover.type_of[last]
    by_type = np.argsort(types, kind="stable")
    place = np.empty(len(last), dtype=np.int64)
    starts = np.searchsorted(types[by_type], np.arange(len(whole)))
    place[by_type] = np.arange(len(last)) - starts[types[by_type]]
    return last[place < whole[types]]


def _remove(cluster: NodeSet, limits: Limits, *, order: Ints, linked: Flags) -> Removals:
    worth_it = _find_worthwhile(cluster, limits)
    movable = _build_movable_items(cluster, limits)
    edges = Edges.build(select_two_axes(cluster.free).max(axis=0, initial=1))
    classes = ItemClasses.from_requests(cluster.requests, per_bin=None, exclusive=cluster.exclusive)
    receives = np.ones(len(linked), dtype=np.bool_) if cluster.receives is None else np.array(cluster.receives)
    # Room for every item to move on once; trying all nodes of a half-empty cluster in turn comes to about that.
    entries = 2 * int(cluster.movable[:, 1].sum()) + 1
    while True:
        rows = _build_rows(cluster, entries)
        packing_input = classes.build_packing_input(cluster.allowed, edges, origins=len(linked))
        notes = RemovalNotes(
            statuses=np.zeros(len(linked), dtype=np.int64),
            stuck=np.full(len(linked), -1, dtype=np.int64),
            sources=np.zeros(entries + 1, dtype=np.int64),
        )
        state = movable._replace(room_left=movable.room_left.copy(), spare=movable.spare.copy())
        tried = RemovalOrder(
            nodes=order[worth_it[order]],
            most=limits.removals,
            linked=(linked | ~worth_it) & receives,
            receives=receives,
        )
        done = empty_in_order(packing_input, rows, edges.build_empty_grid(), state, tried, notes)
        if done != OVERFLOWN:
            return _build_removals(cluster, rows, notes, order, worth_it)
        # Items that move on fill the log faster than items that lie still; the same again with more room in it.
        entries *= 2


def _build_removals(cluster: NodeSet, rows: Table, notes: RemovalNotes, order: Ints, worth_it: Flags) -> Removals:
    nodes, log = rows
    resources = cluster.free.shape[1]
    done = slice(1, int(log[0, ENTRIES]))
    moves = np.column_stack((log[done, 0], notes.sources[done], log[done, 3], log[done, 1]))
    statuses = np.where(cluster.removable, notes.statuses, RemovalStatus.FIXED)
    statuses[order[~worth_it[order]]] = RemovalStatus.NOT_WORTH_IT
    free = nodes[:, FREE : FREE + resources].copy()
    gone = order[statuses[order] == RemovalStatus.REMOVED]
    if len(moves):
        # The moves from one node are consecutive: a node is emptied once.
        begins = np.flatnonzero(np.diff(moves[:, 1], prepend=-1))
        free[moves[begins, 1]] += np.add.reduceat(cluster.requests[moves[:, 0]] * moves[:, 3:4], begins, axis=0)
    return Removals(removed=gone, moves=moves, statuses=statuses, stuck=notes.stuck, free=free)


def _build_rows(cluster: NodeSet, entries: int) -> Table:
    keys = 0 if cluster.exclusive is None else cluster.exclusive.shape[1]
    taken = np.zeros((len(cluster.free), keys), dtype=np.bool_) if cluster.taken is None else cluster.taken
    rows = build_table(select_two_axes(cluster.free), pack_key_bits(taken), spare_rows=0, entries=entries)
    rows.nodes[:, KIND] = cluster.kind
    return rows


def _build_movable_items(cluster: NodeSet, limits: Limits) -> MovableItems:
    size = compute_size_shares(cluster.requests, cluster.requests.max(axis=0, initial=1))
    ties = np.arange(len(size)) if cluster.ties is None else cluster.ties
    largest_first = np.lexsort((ties, -size))
    movable = MovableItems.build(cluster.starts, cluster.movable, per_bin=cluster.per_bin, order=largest_first)
    if limits.use is None or limits.spare is None:
        return movable
    use = np.ascontiguousarray(limits.use, dtype=np.int64)
    return movable._replace(use=use, spare=np.array(limits.spare, dtype=np.int64))


def _find_worthwhile(cluster: NodeSet, limits: Limits) -> Flags:
    if limits.disruption is None:
        return np.ones(len(cluster.free), dtype=np.bool_)
    return np.asarray(np.round(cluster.price, 12) >= np.round(limits.least_saving * limits.disruption, 12))


def _compute_used(cluster: NodeSet) -> Ints:
    """[N, R]: the resources used by the items of each node."""
    used = np.zeros(cluster.free.shape, dtype=np.int64)
    occupied = np.flatnonzero(np.diff(cluster.starts))
    if len(occupied):
        kinds, items = cluster.movable[:, 0], cluster.movable[:, 1]
        for resource in range(cluster.free.shape[1]):
            taken = cluster.requests[:, resource][kinds] * items
            used[occupied, resource] = np.add.reduceat(taken, cluster.starts[occupied])
    return used


def _find_largest_item(cluster: NodeSet, used: Ints) -> Ints:
    """[N]: the size of the largest item on each node; 0 on empty ones."""
    size = compute_size_shares(cluster.requests, used.sum(axis=0))
    largest = np.zeros(len(cluster.free), dtype=np.int64)
    occupied = np.flatnonzero(np.diff(cluster.starts))
    if len(occupied):
        largest[occupied] = np.maximum.reduceat(size[cluster.movable[:, 0]], cluster.starts[occupied])
    return largest


def _number_types(shapes: Floats) -> tuple[Ints, Ints]:
    """Rows that are equal, as numbers from 0, and one row of each."""
    order = np.lexsort(shapes.T[::-1])
    ordered = shapes[order]
    is_new = np.ones(len(order), dtype=np.bool_)
    is_new[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    type_of = np.empty(len(order), dtype=np.int64)
    type_of[order] = np.cumsum(is_new) - 1
    return type_of, order[is_new]
