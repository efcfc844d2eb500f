"""Which new groups to do without when a plan would make more of them than may be made. For `scale_up`.

Groups that are worth least in the plan go first, as long as everybody keeps a place: pods spread over zones keep one in
each zone that the plan has them in. What is left is planned again with the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.nodes.planning.profiles import HOSTNAME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plimsoll.nodes.planning.boards import Board
    from plimsoll.nodes.planning.drafts import Draft
    from plimsoll.solver.problems import Flags

_WAYS: Final = 8
"""So many groups are tried as the first to go."""


def made_groups(board: Board, draft: Draft) -> list[int]:
    """Offers of new groups that the draft uses, those with the most nodes last."""
    nodes = draft.nodes_of(len(board.offers))
    used = [index for index in np.flatnonzero(nodes).tolist() if not board.offers[index].exists]
    return sorted(used, key=lambda index: (int(nodes[index]), index))


def with_fewer_groups(board: Board, draft: Draft, usable: Flags) -> tuple[Flags, ...]:
    """Ways to do with as many new groups as may be made, the safest first; none where the draft makes no more.

    A zone that nobody has a node in holds nobody to it: other ways give such zones up. And what a group is worth in the
    draft says little of what it costs to do without it: each has its way in which it goes first.
    """
    made = made_groups(board, draft)
    too_many = len(made) - board.offered.new_groups_left
    if too_many <= 0:
        return ()
    # From now on only groups of this plan are made: no try has more of them than may be.
    kept = usable & np.array(
        [offer.exists or index in made for index, offer in enumerate(board.offers)], dtype=np.bool_
    )
    nodes = draft.nodes_of(len(board.offers))
    worth = {index: round(float(nodes[index] * board.offers[index].price_per_hour), 9) for index in made}
    order = sorted(made, key=lambda one: (worth[one], one))
    safest = _without(order, too_many, kept, list(_wishes(board, draft, by_domain=True)))
    wishes = list(_wishes(board, draft, by_domain=False))
    others = [_without([one, *order], too_many, kept, wishes) for one in order[:_WAYS]]
    return tuple({way.tobytes(): way for way in (safest, *others)}.values())


def _without(order: Sequence[int], too_many: int, kept: Flags, wishes: Sequence[Flags]) -> Flags:
    """Without so many of these, the first that can be spared first; if too few can be, also others."""
    left = kept.copy()
    for spares in (True, False):
        for index in order:
            if too_many and left[index] and (not spares or _can_spare(index, left, wishes)):
                left[index] = False
                too_many -= 1
    return left


def _can_spare(index: int, left: Flags, wishes: Sequence[Flags]) -> bool:
    """Whether everybody who may be on it may be elsewhere, too."""
    return all(not wish[index] or int((wish & left).sum()) > 1 for wish in wishes)


def _wishes(board: Board, draft: Draft, *, by_domain: bool) -> Iterator[Flags]:
    """[T] each: offers of which one must be left, for every class; maybe in every domain that it is spread over."""
    known: set[bytes] = set()
    batch_offers = np.array([batch.offer for batch in draft.batches], dtype=np.int64)
    for one in board.table:
        with_it = batch_offers[[one.index in batch.content for batch in draft.batches]]
        if not len(with_it):
            continue
        for inside in _domains(board, one.index, with_it.tolist() if by_domain else ()):
            wish = board.allowed[:, one.index] & inside
            if (key := wish.tobytes()) not in known:
                known.add(key)
                yield wish


def _domains(board: Board, number: int, offers: Sequence[int]) -> Iterator[Flags]:
    """[T] each: the domains of these offers, where the class is spread over any; else everywhere."""
    keys = sorted({one.key for one in board.rules.spreads(number)} - {HOSTNAME}) if offers else []
    if not keys:
        yield np.ones(len(board.offers), dtype=np.bool_)
    for key in keys:
        ids = board.offer_arrays.label_ids(key)
        for domain in sorted({int(ids[offer]) for offer in offers}):
            yield ids == domain
