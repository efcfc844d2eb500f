"""Who stands where in line: requests and ordinary pods by one key (specs/nodes.md 4.2, 4.5 and 8.2). Pure.

Asked by `tiers` (who is served when not all can be), by `placing` and `verifying` (who is placed first), and by
`request_shares` (whose a node is). Nothing is served here.

A request stands by its rank, the highest priority of its pod sets, its creation and its name. Ordinary pods of one
priority are one unit that stands where the oldest of them would; inside it they stand by their own age and name. So no
young request waits for ever behind ordinary pods that come and come, none of low priority goes before them because it
is a request, and at the same instant the request goes first, as it is all or nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from plimsoll.scheduling.priorities import priority_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.planning.world import Pending

_LATEST: Final = datetime.max.replace(tzinfo=UTC)


class Stand(NamedTuple):
    """Where a unit stands: the least is served first."""

    rank: int
    below: int
    """The priority, the highest of which is the least."""
    since: datetime
    is_ordinary: bool
    bundle: str


class Place(NamedTuple):
    """Where so many pods that are alike stand: in which unit, and where in that."""

    stand: Stand
    since: datetime
    key: str


def places_in_line(pending: Sequence[Pending]) -> list[Place]:
    """Of each entry. Pod sets of a request stand together, as they are numbered in it."""
    stands: dict[tuple[str, int], Stand] = {}
    units = [_unit(one) for one in pending]
    for one, unit in zip(pending, units, strict=True):
        mine = Stand(one.rank, -priority_of(one.pod), _since(one), not one.bundle, one.bundle)
        known = stands.get(unit, mine)
        stands[unit] = Stand(
            rank=min(known.rank, mine.rank),
            below=min(known.below, mine.below),
            since=min(known.since, mine.since),
            is_ordinary=mine.is_ordinary,
            bundle=mine.bundle,
        )
    return [
        Place(stands[unit], *((_since(one), one.key) if not one.bundle else (stands[unit].since, "")))
        for one, unit in zip(pending, units, strict=True)
    ]


def turns(line: Sequence[Place], class_of: Sequence[int]) -> tuple[int, ...]:
    """[C]: by class of each entry [P], where the first of it stands; equals stand as they are numbered."""
    first: dict[int, tuple[Stand, datetime]] = {}
    for place, number in zip(line, class_of, strict=True):
        first[number] = min(place[:2], first.get(number, place[:2]))
    found = [0] * len(first)
    for turn, number in enumerate(sorted(first, key=lambda one: (first[one], one))):
        found[number] = turn
    return tuple(found)


def bundles_in_line(pending: Sequence[Pending]) -> list[str]:
    """The first in line first."""
    return [stand.bundle for stand in sorted({place.stand for place in places_in_line(pending)}) if stand.bundle]


def _unit(one: Pending) -> tuple[str, int]:
    return one.bundle, 0 if one.bundle else priority_of(one.pod)


def _since(one: Pending) -> datetime:
    return one.created or one.pod.metadata.creation_timestamp or _LATEST
