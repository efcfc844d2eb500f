"""Pods onto existing nodes, then onto nodes already planned, then onto new ones: one layer of classes after the other.

`place(board, meetings, demand, ...)` gives a draft on top of another one. What does not fit stays without a place; who
is served first when not all can be is decided by `tiers`, outside.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.nodes.planning.drafts import Batch, Draft, joined
from plimsoll.nodes.planning.meetings import Meetings, layers
from plimsoll.nodes.planning.one_by_one import place_one_by_one
from plimsoll.nodes.planning.scenes import Scene
from plimsoll.nodes.planning.shares import Share, fold
from plimsoll.solver.filling import Demand, Filled, Standing, fill, most_constrained_first
from plimsoll.solver.planner import pack
from plimsoll.solver.problems import UNBOUNDED, Effort, Packing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.nodes.planning.boards import Board
    from plimsoll.solver.problems import Flags, Ints

_TRIES: Final = 8
"""So often a layer is shared out anew because a domain took less than its quota."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """With what a draft is made: how much effort, and which offers may be used."""

    effort: Effort = field(default_factory=Effort)
    usable: Flags
    """[T]"""
    complex: frozenset[int] = frozenset()
    """Classes to be placed pod by pod whatever they look like: the verifier refused their bulk plan."""


def place(board: Board, meetings: Meetings, demand: Ints, means: Means, onto: Draft | None = None) -> Draft:
    """`demand` [C]: pods of each class that need a place, on top of what the draft has placed."""
    draft = onto or Draft()
    numbers = [number for number in np.flatnonzero(demand).tolist() if board.table.classes[number].problem is None]
    found, later = layers([one for one in numbers if one not in means.complex], meetings)
    later += [one for one in numbers if one in means.complex]
    for layer in found:
        draft, complex_ = _placed_layer(board, meetings, {one: int(demand[one]) for one in layer}, means, draft)
        later += complex_
    if later:
        wanted = {number: int(demand[number]) for number in sorted(later)}
        draft = place_one_by_one(board, wanted, draft, usable=means.usable)
    return draft


def _placed_layer(
    board: Board, meetings: Meetings, demand: Mapping[int, int], means: Means, draft: Draft
) -> tuple[Draft, tuple[int, ...]]:
    """Shared out over domains; where one takes less than its quota, the others are told, and all is tried again."""
    scene = Scene(board, draft, meetings)
    most: dict[tuple[int, str], int] = {}
    for _ in range(_TRIES):
        folded = fold(scene, demand, most)
        tried, left = _packed(scene, folded.shares, means)
        short = {
            (share.number, share.domain): share.pods - int(left[index])
            for index, share in enumerate(folded.shares)
            if share.domain and left[index]
        }
        if not short or all(most.get(key) == pods for key, pods in short.items()):
            break
        most |= short
    for number, reasons in folded.refused.items():
        for reason in reasons:
            tried = tried.with_refusal(number, reason)
    return tried, folded.complex


def _packed(scene: Scene, shares: Sequence[Share], means: Means) -> tuple[Draft, Ints]:
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


def _filled(scene: Scene, shares: Sequence[Share], items: Ints) -> tuple[Draft, Ints]:
    board, draft = scene.board, scene.draft
    rows = len(board.arrays)
    allowed = np.stack([np.concatenate((one.places.rows, one.places.batches)) for one in shares], axis=1)
    demand = Demand(
        requests=_requests(board, shares),
        counts=items,
        allowed=allowed,
        per_bin=np.array([max(1, one.per_node // one.glued) for one in shares], dtype=np.int64),
        exclusive=_exclusive(shares),
        tighter=_tighter(shares),
    )
    free = np.concatenate((draft.free_rows(board), draft.free_batches(board)))
    sizes = np.array([1] * rows + [one.nodes for one in draft.batches], dtype=np.int64)
    standing = Standing(free=np.maximum(free, 0), kind=np.arange(len(free), dtype=np.int64), multiplicity=sizes)
    ranks = np.array([-board.table.classes[one.number].priority for one in shares], dtype=np.int64)
    answer = fill(demand, standing, most_constrained_first(demand, standing, ranks))
    return _with_filled(draft, shares, answer, rows), answer.left


def _with_filled(draft: Draft, shares: Sequence[Share], answer: Filled, rows: int) -> Draft:
    added: dict[int, dict[int, int]] = {}
    for row, index, items in answer.placements.tolist():
        share = shares[index]
        content = added.setdefault(row, {})
        content[share.number] = content.get(share.number, 0) + items * share.glued
    existing = dict(draft.existing)
    batches: list[Batch] = []
    for part, origin in enumerate(answer.origin.tolist()):
        more = added.get(part, {})
        if origin < rows:
            if more:
                existing[origin] = joined(existing.get(origin, {}), more)
        elif nodes := int(answer.multiplicity[part]):
            batch = draft.batches[origin - rows]
            batches.append(replace(batch, nodes=nodes, content=joined(batch.content, more)))
    return replace(draft, existing={row: existing[row] for row in sorted(existing)}, batches=tuple(batches))


def _tighter(shares: Sequence[Share]) -> Ints | None:
    entries = [
        (index, row, int(share.row_caps[row]))
        for index, share in enumerate(shares)
        if share.row_caps is not None
        for row in np.flatnonzero(share.places.rows).tolist()
    ]
    return np.array(entries, dtype=np.int64).reshape(-1, 3) if entries else None


# ---- new nodes


def _opened(board: Board, shares: Sequence[Share], items: Ints, on: tuple[Draft, Means, Flags]) -> tuple[Draft, Ints]:
    draft, means, usable = on
    chosen = np.flatnonzero(items)
    types = np.flatnonzero(usable)
    if not len(types):
        return draft, items
    asked = [shares[index] for index in chosen.tolist()]
    problem = Packing(
        requests=_requests(board, asked),
        counts=items[chosen],
        capacity=board.capacity[types],
        price=board.planning_prices[types],
        allowed=np.stack([one.places.offers[types] for one in asked], axis=1),
        per_bin=np.array([max(1, one.per_node // one.glued) for one in asked], dtype=np.int64),
        exclusive=_exclusive(asked),
        available=np.minimum(board.available - draft.nodes_of(len(board.offers)), UNBOUNDED)[types],
        use=board.limits.use[types],
        room=draft.room_left(board),
    )
    answer = pack(problem, means.effort).packed
    left = items.copy()
    left[chosen] = answer.left
    batches = [
        Batch(
            offer=int(types[one.type]),
            nodes=one.bins,
            content=_content((asked[index], count) for index, count in zip(one.classes, one.items, strict=True)),
        )
        for one in answer.fillings
    ]
    return replace(draft, batches=(*draft.batches, *batches)), left


def _content(items: Iterable[tuple[Share, int]]) -> dict[int, int]:
    content: dict[int, int] = {}
    for share, count in items:
        content[share.number] = content.get(share.number, 0) + count * share.glued
    return joined(content, {})


def _requests(board: Board, shares: Sequence[Share]) -> Ints:
    numbers = [one.number for one in shares]
    glued = np.array([one.glued for one in shares], dtype=np.int64)
    return board.requests[numbers] * glued[:, None]


def _exclusive(shares: Sequence[Share]) -> Flags:
    keys: dict[str, int] = {}
    for one in shares:
        for key in one.keys:
            keys.setdefault(key, len(keys))
    found = np.zeros((len(shares), len(keys)), dtype=np.bool_)
    for index, one in enumerate(shares):
        for key in one.keys:
            found[index, keys[key]] = True
    return found
