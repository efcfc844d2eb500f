"""Which classes of a layer are placed in one go, and which one after the other. For `placing`.

Who is counted by a spread constraint comes before who counts. Spread over nodes is hardest: a class that is alone on
its nodes may fill them as high as it likes if it fills them evenly, while every node that somebody else opens holds it
down. A few such classes so go apart, one after the other; of many none would have much of that, and all go together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.nodes.planning.profiles import HOSTNAME

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.planning.boards import Board
    from plimsoll.nodes.planning.meetings import Meetings

_APART: Final = 3
"""So many classes spread over nodes are levelled one after the other; more go together, one of an app to a node."""


def in_turn(board: Board, meetings: Meetings, layer: Sequence[int]) -> list[list[int]]:
    """A layer in parts: who is counted before who counts, and not two at once that count each other on a node."""
    if not any(board.table.classes[number].has_spread for number in layer):
        return [list(layer)]
    waiting = dict.fromkeys(meetings.party_of[number] for number in layer)
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


def _counts_nobody_in(waiting: Mapping[int, None], meetings: Meetings) -> int:
    """A party whose constraints count none of the others; where all count somebody, the first of them."""
    free = (one for one in waiting if not any(other in waiting and other != one for other in meetings.counted[one]))
    return next(free, next(iter(waiting)))
