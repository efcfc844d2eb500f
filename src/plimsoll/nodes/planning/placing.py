"""Pods onto existing nodes, then onto nodes already planned, then onto new ones: one layer of classes after the other.

`place(board, meetings, demand, ...)` gives a draft on top of another one. What does not fit stays without a place; who
is served first when not all can be is decided by `tiers`, outside.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.nodes.planning.drafts import Batch, Draft, joined
from plimsoll.nodes.planning.level_nodes import is_level, tallest
from plimsoll.nodes.planning.meetings import Meetings, layers
from plimsoll.nodes.planning.one_by_one import place_one_by_one
from plimsoll.nodes.planning.profiles import HOSTNAME
from plimsoll.nodes.planning.scenes import Scene
from plimsoll.nodes.planning.shares import Folded, Learned, Share, fold
from plimsoll.solver.filling import Demand, Filled, Standing, fill, most_constrained_first
from plimsoll.solver.planner import pack
from plimsoll.solver.problems import UNBOUNDED, Effort, Packing

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.nodes.planning.boards import Board
    from plimsoll.solver.problems import Flags, Ints

_WOULD_UNBALANCE: Final = Reason(
    code="WouldUnbalance",
    message="its nodes would open a zone that pods served before it are not spread over; it waits until those run",
)
_GIVEN_UP: Final = Reason(
    code="VerificationFailed", message="every plan for these pods failed when it was checked pod by pod"
)
_HOMES: Final = 16
"""So many homes are tried for pods that want to be together in one domain."""
_WORK_OF_HOMES: Final = 20_000
"""Each try plans a layer anew: classes times offers, over all tries. Beyond it the home that seems best is taken."""
_APART: Final = 12
"""So many classes spread over nodes are levelled one after the other; more go together, one of an app to a node."""
_TRIES: Final = 8
"""So often a layer is shared out anew because a domain took less than its quota."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubts:
    """Classes whose plan the verifier refused: placed pod by pod instead, or, where that failed too, not at all."""

    one_by_one: frozenset[int] = frozenset()
    given_up: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """With what a draft is made: how much effort, and which offers may be used."""

    effort: Effort = field(default_factory=Effort)
    usable: Flags
    """[T]"""
    doubts: Doubts = field(default_factory=Doubts)
    is_last: bool = True
    """Nobody is placed afterwards: new nodes may rise as high as all of them do."""


def place(board: Board, meetings: Meetings, demand: Ints, means: Means, onto: Draft | None = None) -> Draft:
    """`demand` [C]: pods of each class that need a place, on top of what the draft has placed.

    Who comes later may not open a zone that pods placed before would have to be spread over: then it does without that
    zone, or waits until those run.
    """
    draft = _placed_onto(board, meetings, demand, means, onto)
    if onto is None or onto.is_empty or spread_holds(Scene(board, draft, meetings), onto):
        return draft
    before = Scene(board, onto, meetings)
    narrower = replace(means, usable=means.usable & before.in_existing_domains())
    tried = _placed_onto(board, meetings, demand, narrower, onto)
    draft = tried if spread_holds(Scene(board, tried, meetings), onto) else onto
    short = demand - (draft.placed(len(demand)) - onto.placed(len(demand)))
    for number in np.flatnonzero(short > 0).tolist():
        draft = draft.with_refusal(number, _WOULD_UNBALANCE)
    return draft


def _placed_onto(board: Board, meetings: Meetings, demand: Ints, means: Means, onto: Draft | None) -> Draft:
    draft = onto or Draft()
    numbers = [number for number in np.flatnonzero(demand).tolist() if board.table.classes[number].problem is None]
    doubts = means.doubts
    for number in doubts.given_up.intersection(numbers):
        draft = draft.with_refusal(number, _GIVEN_UP)
    found, later = layers([one for one in numbers if one not in doubts.one_by_one], meetings)
    later += [one for one in numbers if one in doubts.one_by_one - doubts.given_up]
    parts = [part for layer in found for part in _in_turn(board, meetings, layer)]
    for number, part in enumerate(parts, start=1):
        now = replace(means, is_last=onto is None and number == len(parts) and not later)
        draft, complex_ = _placed_layer(board, meetings, {one: int(demand[one]) for one in part}, now, draft)
        later += complex_
    if later:
        wanted = {number: int(demand[number]) for number in sorted(later)}
        draft = place_one_by_one(board, wanted, draft, usable=means.usable)
    return draft


def spread_holds(scene: Scene, of: Draft) -> bool:
    """Whether spread over zones still holds for pods that a draft had placed, with everything that came since."""
    for number in np.flatnonzero(of.placed(len(scene.board.table))).tolist():
        for one in scene.board.rules.spreads(number):
            if one.key == HOSTNAME or not one.counts_itself:
                continue
            levels = scene.spread_levels(number, one)
            lowest = min(levels.values(), default=0) if len(levels) >= one.min_domains else 0
            if any(levels.get(name, 0) > lowest + one.max_skew for name in scene.domains_with(number, one.key)):
                return False
    return True


def _in_turn(board: Board, meetings: Meetings, layer: Sequence[int]) -> list[list[int]]:
    """A layer in parts: who is counted before who counts, and not two at once that count each other on a node."""
    if not any(board.table.classes[number].has_spread for number in layer):
        return [list(layer)]
    waiting = {meetings.party_of[number]: None for number in layer}
    part_of: dict[int, int] = {}
    while waiting:
        party = _counts_nobody_in(waiting, meetings)
        del waiting[party]
        earlier = [part_of[one] for one in meetings.counted[party] if one in part_of and one != party]
        part_of[party] = max(earlier, default=-1) + 1
    levelled = [number for number in layer if _counts_itself_on_nodes(board, meetings, number)]
    apart = {*levelled} if len(levelled) <= _APART else set[int]()
    parts: dict[tuple[int, int], list[int]] = {}
    for number in layer:
        key = (part_of[meetings.party_of[number]], number if number in apart else -1)
        parts.setdefault(key, []).append(number)
    return [parts[key] for key in sorted(parts)]


def _counts_itself_on_nodes(board: Board, meetings: Meetings, number: int) -> bool:
    party = meetings.party_of[number]
    return party in meetings.counted[party] and any(one.key == HOSTNAME for one in board.rules.spreads(number))


def _counts_nobody_in(waiting: Iterable[int], meetings: Meetings) -> int:
    """A party whose constraints count none of the others; where all count somebody, the first of them."""
    known = list(waiting)
    others = {*known}
    return next((one for one in known if not others.intersection(meetings.counted[one]) - {one}), known[0])


def _placed_layer(
    board: Board, meetings: Meetings, demand: Mapping[int, int], means: Means, draft: Draft
) -> tuple[Draft, tuple[int, ...]]:
    """The best of what can be done; who wants to be together may have more than one home to choose from."""
    scene = Scene(board, draft, meetings)
    best, folded = _levelled(scene, demand, means, {})
    homes: dict[tuple[int, ...], str] = {}
    tries = _WORK_OF_HOMES // (len(demand) * max(len(folded.homes), 1) * max(int(means.usable.sum()), 1))
    for family, names in folded.homes.items():
        homes[family] = names[0]
        for name in names[1 : min(_HOMES, 1 + tries)]:
            tried, other = _levelled(scene, demand, means, {**homes, family: name})
            if _merit(board, demand, tried) < _merit(board, demand, best):
                best, folded, homes[family] = tried, other, name
    return best, folded.complex


def _merit(board: Board, demand: Mapping[int, int], draft: Draft) -> tuple[int, float]:
    """Less is better: pods without a place, then money."""
    placed = draft.placed(len(board.table))
    prices = board.planning_prices
    money = float(draft.nodes_of(len(board.offers)) @ prices) if len(prices) else 0.0
    return sum(demand.values()) - sum(int(placed[number]) for number in demand), round(money, 9)


def _levelled(
    scene: Scene, demand: Mapping[int, int], means: Means, homes: Mapping[tuple[int, ...], str]
) -> tuple[Draft, Folded]:
    """Shared out over domains; where one takes less than its quota, the others are told, and all is tried again."""
    learned = Learned(homes=dict(homes), uneven=set() if means.is_last else {*demand})
    for _ in range(_TRIES):
        folded = fold(scene, demand, learned)
        tried, left = _packed(scene, folded.shares, means)
        after = Scene(scene.board, tried, scene.meetings)
        news = _learns(learned, after, folded.shares, left)
        if not _learns_domains(learned, scene, after, folded.shares, left) and not news:
            break
    for number, reasons in folded.refused.items():
        for reason in reasons:
            tried = tried.with_refusal(number, reason)
    return tried, folded


def _learns(learned: Learned, after: Scene, shares: Sequence[Share], left: Ints) -> bool:
    """Whether a try has shown something new."""
    news = False
    by_class: dict[int, list[int]] = {}
    for index, share in enumerate(shares):
        by_class.setdefault(share.number, []).append(index)
        if share.domain and left[index] and learned.most.get((share.number, share.domain)) != share.pods - left[index]:
            learned.most[share.number, share.domain] = share.pods - int(left[index])
            news = True
    for number, indices in by_class.items():
        if any(shares[index].rises for index in indices) and not is_level(after, number):
            learned.uneven.add(number)
            news = True
        if not any(shares[index].even for index in indices):
            continue
        higher = _higher(after, [(shares[index], int(left[index])) for index in indices])
        if higher > learned.heights.get(number, 0):
            learned.heights[number] = higher
            news = True
        elif not is_level(after, number):
            learned.uneven.add(number)
            news = True
    return news


def _learns_domains(learned: Learned, before: Scene, after: Scene, shares: Sequence[Share], left: Ints) -> bool:
    """Whether others brought domains into being that now hold down the minimum of a class that has no pods there."""
    used: dict[int, set[str]] = {}
    for index, share in enumerate(shares):
        if share.domain:
            reached = {share.domain} if share.pods > left[index] else set()
            used[share.number] = used.get(share.number, set()) | reached
    news = False
    for number, names in used.items():
        known = names | learned.present.get(number, set())
        for one in after.board.rules.spreads(number):
            if one.key == HOSTNAME or not after.planned_domains(one.key) - before.existing_domains(one.key) - known:
                continue
            empty = {name for name, pods in after.spread_levels(number, one).items() if not pods}
            if appeared := empty - before.spread_levels(number, one).keys() - known:
                learned.present.setdefault(number, set()).update(appeared)
                news = True
    return news


def _higher(scene: Scene, shares: Sequence[tuple[Share, int]]) -> int:
    """How high new nodes would have to be filled, as no more of them are to be had; 0: that is of no use."""
    new = [(share, left) for share, left in shares if share.places.offers.any()]
    nodes = sum((share.pods - left) // share.glued for share, left in new)
    if not nodes or not any(left for _, left in new):
        return 0
    height = -(-sum(share.pods for share, _ in new) // nodes)
    return height if height <= max(tallest(scene, share) for share, _ in new) else 0


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
        per_bin=np.array(
            [UNBOUNDED if one.rises else max(1, one.per_node // one.glued) for one in shares], dtype=np.int64
        ),
        exclusive=_exclusive(shares),
        tighter=_tighter(shares),
    )
    free = np.concatenate((draft.free_rows(board), draft.free_batches(board)))
    sizes = np.array([1] * rows + [one.nodes for one in draft.batches], dtype=np.int64)
    standing = Standing(free=np.maximum(free, 0), kind=np.arange(len(free), dtype=np.int64), multiplicity=sizes)
    # Within one priority, who can be on no new node goes before who can.
    ranked = [-2 * board.table.classes[one.number].priority + int(one.places.offers.any()) for one in shares]
    ranks = np.array(ranked, dtype=np.int64)
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
        (index, row, int(share.caps[row]))
        for index, share in enumerate(shares)
        if share.caps is not None
        for row in np.flatnonzero(np.concatenate((share.places.rows, share.places.batches))).tolist()
    ]
    return np.array(entries, dtype=np.int64).reshape(-1, 3) if entries else None


# ---- new nodes


def _opened(board: Board, shares: Sequence[Share], items: Ints, on: tuple[Draft, Means, Flags]) -> tuple[Draft, Ints]:
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


def _whole(board: Board, shares: Sequence[Share], items: Ints, on: tuple[Draft, Means, Flags]) -> tuple[Draft, Ints]:
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
        batches = [Batch(offer=offer, nodes=nodes, content={}) for nodes, offer in idle]
        filled = replace(draft, batches=(*draft.batches, *batches))
        if (filled.nodes_of(len(board.offers)) @ board.limits.use <= board.limits.room).all():
            return filled, left
        usable = usable & (np.arange(len(board.offers)) != max(idle)[1])


def _packed_new(
    board: Board, shares: Sequence[Share], items: Ints, on: tuple[Draft, Means, Flags]
) -> tuple[Draft, Ints]:
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
