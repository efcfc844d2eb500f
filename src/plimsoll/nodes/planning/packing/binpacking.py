"""Shares of pods onto nodes that stand or are planned, then onto new ones: as numbers for the solver, and back.

`packed(scene, shares, means)` is what `levelling` asks, try by try. What does not fit is left; nothing is decided here
about who is served first, nor how a class is shared out.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.planning.problem.placement import NodeBatch, Placement, joined
from plimsoll.solver.filling.fill import Demand, Filled, Standing, fill, most_constrained_first
from plimsoll.solver.pack import pack
from plimsoll.solver.problem import UNBOUNDED, Effort, PackingProblem

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.nodes.planning.packing.demand_slices import DemandSlice
    from plimsoll.nodes.planning.packing.placement_view import PlacementView
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.problem import Flags, Floats, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedClasses:
    """Classes whose plan the verifier refused: placed pod by pod instead, or, where that failed too, not at all."""

    one_by_one: frozenset[int] = frozenset()
    given_up: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingOptions:
    """With what a draft is made: how much effort, and which offers may be used."""

    effort: Effort = field(default_factory=Effort)
    usable: Flags
    """[T]"""
    doubts: FailedClasses = field(default_factory=FailedClasses)
    is_last: bool = True
    """Nobody is placed afterwards: new nodes may rise as high as all of them do."""


def packed(scene: PlacementView, shares: Sequence[DemandSlice], means: PackingOptions) -> tuple[Placement, Ints]:
    """The draft with the shares on it, and [S] pods that found no place."""
    draft = scene.draft
    left = np.array([share.items for share in shares], dtype=np.int64)
    if not shares:
        return draft, left
    if len(scene.board.arrays) or draft.batches:
        draft, left = _filled(scene, shares, left)
    for tier in sorted({offer.tier for offer in scene.board.offers}):
        if left.any():
            in_tier = np.array([offer.tier == tier for offer in scene.board.offers], dtype=np.bool_)
            draft, left = _opened(scene.board, shares, left, (draft, means, means.usable & in_tier))
    return draft, left * np.array([share.glued for share in shares], dtype=np.int64)


# ---- nodes that stand or are planned


def _filled(scene: PlacementView, shares: Sequence[DemandSlice], items: Ints) -> tuple[Placement, Ints]:
    board, draft = scene.board, scene.draft
    rows = len(board.arrays)
    batches = np.stack([demand_slice.places.batches for demand_slice in shares])
    allowed = np.concatenate((np.stack([demand_slice.places.rows for demand_slice in shares]), batches), axis=1).T
    demand = Demand(
        requests=_requests(board, shares),
        counts=items,
        allowed=allowed,
        per_bin=np.array(
            [
                UNBOUNDED if demand_slice.rises else max(1, demand_slice.per_node // demand_slice.glued)
                for demand_slice in shares
            ],
            dtype=np.int64,
        ),
        exclusive=_exclusive(shares),
        tighter=_tighter(shares),
    )
    free = np.concatenate((draft.free_rows(board), draft.free_batches(board)))
    sizes = np.array([1] * rows + [batch.nodes for batch in draft.batches], dtype=np.int64)
    standing = Standing(free=np.maximum(free, 0), kind=np.arange(len(free), dtype=np.int64), multiplicity=sizes)
    turns = _turns(board, shares, _nodes_open(sizes, allowed))
    answer = fill(demand, standing, most_constrained_first(demand, standing, turns))
    return _with_filled(draft, shares, answer, rows), answer.left


def _nodes_open(sizes: Ints, allowed: Flags) -> Ints:
    """[S]: nodes that each share may be on. As floating point, which is exact here and multiplied far faster."""
    return np.asarray(sizes.astype(np.float64) @ allowed.astype(np.float64), dtype=np.int64)


def _turns(board: ScaleUpProblem, shares: Sequence[DemandSlice], choice: Ints) -> Ints:
    """[S]: by priority; then who can be on no new node, on fewest nodes that are there, on fewest kinds of new ones."""
    offers = np.stack([demand_slice.places.offers for demand_slice in shares]).sum(axis=1).tolist()
    ranked = [
        (-board.table.classes[demand_slice.number].priority, new > 0, int(nodes), new)
        for demand_slice, new, nodes in zip(shares, offers, choice, strict=True)
    ]
    turn_of = {rank: turn for turn, rank in enumerate(sorted(set(ranked)))}
    return np.array([turn_of[rank] for rank in ranked], dtype=np.int64)


def _with_filled(draft: Placement, shares: Sequence[DemandSlice], answer: Filled, rows: int) -> Placement:
    added = _contents(shares, answer)
    existing = dict(draft.existing)
    for row in (part for part in added if part < rows):
        before = existing.get(row)
        existing[row] = added[row] if before is None else joined(before, added[row])
    batches: list[NodeBatch] = []
    # Nodes that stand are one each, and never split: what comes behind them are batches and parts of these.
    for part, origin in enumerate(answer.origin[rows:].tolist(), start=rows):
        if nodes := int(answer.multiplicity[part]):
            batch = draft.batches[origin - rows]
            batches.append(replace(batch, nodes=nodes, content=joined(batch.content, added.get(part, {}))))
    return replace(draft, existing={row: existing[row] for row in sorted(existing)}, batches=tuple(batches))


def _contents(shares: Sequence[DemandSlice], answer: Filled) -> dict[int, dict[int, int]]:
    """Row of the answer to pods by class in each of its nodes, both ascending; shares of one class together."""
    if not len(answer.placements):
        return {}
    rows, indices, items = answer.placements.T
    numbers = np.array([share.number for share in shares], dtype=np.int64)
    glued = np.array([share.glued for share in shares], dtype=np.int64)
    classes = int(numbers.max()) + 1
    cells = rows * classes + numbers[indices]
    order = np.argsort(cells, kind="stable")
    cells, first = np.unique(cells[order], return_index=True)
    pods = np.add.reduceat((items * glued[indices])[order], first).tolist()
    found, starts = np.unique(cells // classes, return_index=True)
    ends = [*starts[1:].tolist(), len(cells)]
    names = (cells % classes).tolist()
    return {
        row: dict(zip(names[start:end], pods[start:end], strict=True))
        for row, start, end in zip(found.tolist(), starts.tolist(), ends, strict=True)
    }


def _tighter(shares: Sequence[DemandSlice]) -> Ints | None:
    entries = [
        (index, row, int(share.caps[row]))
        for index, share in enumerate(shares)
        if share.caps is not None
        for row in np.flatnonzero(np.concatenate((share.places.rows, share.places.batches))).tolist()
    ]
    return np.array(entries, dtype=np.int64).reshape(-1, 3) if entries else None


# ---- new nodes


def _opened(
    board: ScaleUpProblem, shares: Sequence[DemandSlice], items: Ints, on: tuple[Placement, PackingOptions, Flags]
) -> tuple[Placement, Ints]:
    """New nodes. Groups that grow whole or not at all are used where nothing cheaper does the same."""
    usable = on[2]
    draft, left = _whole(board, shares, items, on)
    whole = np.array([offer.zero_or_max for offer in board.offers], dtype=np.bool_)
    if not draft.nodes_of(len(board.offers))[whole].any() or on[0].nodes_of(len(board.offers))[whole].any():
        return draft, left
    other, other_left = _packed_new(board, shares, items, (on[0], on[1], usable & ~whole))
    if (other_left <= left).all() and other.cost(board) < draft.cost(board):
        return other, other_left
    return draft, left


def _whole(
    board: ScaleUpProblem, shares: Sequence[DemandSlice], items: Ints, on: tuple[Placement, PackingOptions, Flags]
) -> tuple[Placement, Ints]:
    """Nodes nobody asked for are opened with the others where a group grows to its maximum or not at all."""
    before, means, usable = on
    while True:
        draft, left = _packed_new(board, shares, items, (before, means, usable))
        missing = (board.available - draft.nodes_of(len(board.offers))) * (draft.nodes_of(len(board.offers)) > 0)
        idle = [
            (int(missing[offer]), offer)
            for offer in np.flatnonzero(missing).tolist()
            if board.offers[offer].zero_or_max
        ]
        batches = [NodeBatch(offer=offer, nodes=nodes, content={}) for nodes, offer in idle]
        filled = replace(draft, batches=(*draft.batches, *batches))
        if (filled.nodes_of(len(board.offers)) @ board.limits.use <= board.limits.room).all():
            return filled, left
        usable = usable & (np.arange(len(board.offers)) != max(idle)[1])


def _packed_new(
    board: ScaleUpProblem, shares: Sequence[DemandSlice], items: Ints, on: tuple[Placement, PackingOptions, Flags]
) -> tuple[Placement, Ints]:
    draft, means, usable = on
    chosen = np.flatnonzero(items)
    types = np.flatnonzero(usable)
    if not len(types):
        return draft, items
    asked = [shares[index] for index in chosen.tolist()]
    problem = PackingProblem(
        requests=_requests(board, asked),
        counts=items[chosen],
        capacity=board.capacity[types],
        price=board.planning_prices[types],
        allowed=np.stack([demand_slice.places.offers[types] for demand_slice in asked], axis=1),
        per_bin=np.array(
            [max(1, demand_slice.per_node // demand_slice.glued) for demand_slice in asked], dtype=np.int64
        ),
        exclusive=_exclusive(asked),
        available=np.minimum(board.available - draft.nodes_of(len(board.offers)), UNBOUNDED)[types],
        use=board.limits.use[types],
        room=draft.room_left(board),
    )
    found = pack(problem, means.effort)
    answer = found.packed
    left = items.copy()
    left[chosen] = answer.left
    batches = [
        NodeBatch(
            offer=int(types[pattern.type]),
            nodes=pattern.bins,
            content=_content(
                (asked[index], count) for index, count in zip(pattern.classes, pattern.items, strict=True)
            ),
        )
        for pattern in answer.fillings
    ]
    # What pods are worth to some offers shows nothing about the others.
    worths = {}
    if len(types) == len(board.offers):
        worths = {**draft.worths, **_worths(asked, items[chosen] - answer.left, found.worth)}
    return replace(draft, batches=(*draft.batches, *batches), worths=worths), left


def _worths(shares: Sequence[DemandSlice], items: Ints, worth: Floats) -> dict[int, float]:
    """Of one pod, by class; where its shares differ, on average."""
    pods: dict[int, int] = {}
    total: dict[int, float] = {}
    for share, count, each in zip(shares, items.tolist(), worth.tolist(), strict=True):
        pods[share.number] = pods.get(share.number, 0) + count * share.glued
        total[share.number] = total.get(share.number, 0.0) + count * each
    return {number: total[number] / pods[number] for number in pods if pods[number]}


def _content(items: Iterable[tuple[DemandSlice, int]]) -> dict[int, int]:
    content: dict[int, int] = {}
    for share, count in items:
        content[share.number] = content.get(share.number, 0) + count * share.glued
    return joined(content, {})


def _requests(board: ScaleUpProblem, shares: Sequence[DemandSlice]) -> Ints:
    numbers = [demand_slice.number for demand_slice in shares]
    glued = np.array([demand_slice.glued for demand_slice in shares], dtype=np.int64)
    return board.requests[numbers] * glued[:, None]


def _exclusive(shares: Sequence[DemandSlice]) -> Flags:
    keys: dict[str, int] = {}
    for demand_slice in shares:
        for key in demand_slice.keys:
            keys.setdefault(key, len(keys))
    found = np.zeros((len(shares), len(keys)), dtype=np.bool_)
    for index, one in enumerate(shares):
        for key in one.keys:
            found[index, keys[key]] = True
    return found
