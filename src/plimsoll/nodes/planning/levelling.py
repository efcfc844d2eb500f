"""One layer of classes shared out over homes, domains and nodes, tried and learned from until it comes out even.

`placed_layer(board, meetings, demand, means, draft)`, for `placing`. Quotas and caps are made before anybody knows what
finds room (`folding`); a try shows it (`packing`), and the next one knows better. Tries are counted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.nodes.planning.folding import fold
from plimsoll.nodes.planning.level_nodes import is_level, tallest
from plimsoll.nodes.planning.packing import packed
from plimsoll.nodes.planning.profiles import HOSTNAME
from plimsoll.nodes.planning.scenes import Scene
from plimsoll.nodes.planning.shares import Learned

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.planning.boards import Board
    from plimsoll.nodes.planning.drafts import Draft
    from plimsoll.nodes.planning.meetings import Meetings
    from plimsoll.nodes.planning.packing import Means
    from plimsoll.nodes.planning.shares import Folded, Share
    from plimsoll.solver.problems import Ints

_HOMES: Final = 16
"""So many homes are tried for pods that want to be together in one domain."""
_WORK: Final = 4_000
"""Each try plans a layer anew: classes times offers, over all tries. Beyond it what seems best is taken untried."""
_TRIES: Final = 8
"""So often a layer is shared out anew because a domain took less than its quota."""


def placed_layer(
    board: Board, meetings: Meetings, demand: Mapping[int, int], means: Means, draft: Draft
) -> tuple[Draft, tuple[int, ...]]:
    """The best of what can be done; who wants to be together may have more than one home to choose from."""
    scene = Scene(board, draft, meetings)
    best, folded = _levelled(scene, demand, means, Learned())
    work = len(demand) * max(int(means.usable.sum()), 1)
    evenly = False
    if folded.shifted and work <= _WORK:
        tried, other = _levelled(scene, demand, means, Learned(evenly=True))
        if evenly := _merit(board, demand, tried) <= _merit(board, demand, best):
            best, folded = tried, other
    homes: dict[tuple[int, ...], str] = {}
    tries = _WORK // (work * max(len(folded.homes), 1))
    for family, names in folded.homes.items():
        homes[family] = names[0]
        for name in names[1 : min(_HOMES, 1 + tries)]:
            tried, other = _levelled(scene, demand, means, Learned(homes={**homes, family: name}, evenly=evenly))
            if _merit(board, demand, tried) < _merit(board, demand, best):
                best, folded, homes[family] = tried, other, name
    return best, tuple(folded.complex)


def _merit(board: Board, demand: Mapping[int, int], draft: Draft) -> tuple[int, float]:
    """Less is better: pods without a place, then money."""
    placed = draft.placed(len(board.table))
    prices = board.planning_prices
    money = float(draft.nodes_of(len(board.offers)) @ prices) if len(prices) else 0.0
    return sum(demand.values()) - sum(int(placed[number]) for number in demand), round(money, 9)


def _levelled(scene: Scene, demand: Mapping[int, int], means: Means, learned: Learned) -> tuple[Draft, Folded]:
    """Shared out over domains; where one takes less than its quota, the others are told, and all is tried again."""
    # Whoever else opens nodes, now or later, holds those down that are spread over nodes.
    learned.held_down = not means.is_last or len(demand) > 1
    for _ in range(_TRIES):
        folded = fold(scene, demand, learned)
        tried, left = packed(scene, folded.shares, means)
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
        of_class = [(shares[index], int(left[index])) for index in indices]
        higher = _higher(after, of_class)
        if higher > learned.heights.get(number, 0):
            learned.heights[number] = higher
            news = True
        elif not is_level(after, number) or _lost_its_room(of_class):
            learned.uneven.add(number)
            news = True
    return news


def _lost_its_room(shares: Sequence[tuple[Share, int]]) -> bool:
    """Whether pods that were to stay on existing nodes found others there, and may go nowhere else."""
    return any(left for _, left in shares) and not any(share.places.offers.any() for share, _ in shares)


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
