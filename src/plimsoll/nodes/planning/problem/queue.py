"""The scheduling queue: ProvisioningRequests and other pods in one order (docs/design/nodes.md 4.2, 4.5, 8.2). Pure.

A request is ordered by its rank, the highest priority of its pod sets, its creation time and its name. Other pods of
one priority form one unit at the position of their oldest pod; inside it, age and name decide. So a young request does
not wait for ever behind a stream of other pods, a request of low priority does not overtake pods of higher priority,
and at the same instant the request comes first, because it is all or nothing.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple

from plimsoll.scheduling.priorities import get_priority

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.model.snapshot import PendingPods


_LATEST: Final = datetime.max.replace(tzinfo=UTC)


class UnitPosition(NamedTuple):
    """The position of a unit; the lowest comes first."""

    rank: int
    below: int
    """The negated priority, so that the highest priority comes first."""
    since: datetime
    is_ordinary: bool
    bundle: str


class QueuePosition(NamedTuple):
    """The position of a pending entry: that of its unit, then its own within the unit."""

    unit: UnitPosition
    since: datetime
    key: str


def compute_queue_positions(pending: Sequence[PendingPods]) -> list[QueuePosition]:
    """The position of each entry. The pod sets of a request stay together, in the order of the request."""
    positions: dict[tuple[str, int], UnitPosition] = {}
    units = [_build_unit(pods) for pods in pending]
    for pending_pods, unit in zip(pending, units, strict=True):
        mine = UnitPosition(
            pending_pods.rank,
            -get_priority(pending_pods.pod),
            _read_creation_time(pending_pods),
            not pending_pods.bundle,
            pending_pods.bundle,
        )
        known = positions.get(unit, mine)
        positions[unit] = UnitPosition(
            rank=min(known.rank, mine.rank),
            below=min(known.below, mine.below),
            since=min(known.since, mine.since),
            is_ordinary=mine.is_ordinary,
            bundle=mine.bundle,
        )
    return [
        QueuePosition(
            positions[unit],
            *((_read_creation_time(pods), pods.key) if not pods.bundle else (positions[unit].since, "")),
        )
        for pods, unit in zip(pending, units, strict=True)
    ]


def order_classes(queue: Sequence[QueuePosition], class_of: Sequence[int]) -> tuple[int, ...]:
    """[C]: the rank of each class by its first entry, given the class of each entry [P]; ties keep the class order."""
    first: dict[int, tuple[UnitPosition, datetime]] = {}
    for place, number in zip(queue, class_of, strict=True):
        first[number] = min(place[:2], first.get(number, place[:2]))
    found = [0] * len(first)
    for rank, number in enumerate(sorted(first, key=lambda class_number: (first[class_number], class_number))):
        found[number] = rank
    return tuple(found)


def order_bundles(pending: Sequence[PendingPods]) -> list[str]:
    """The bundles in queue order."""
    return [unit.bundle for unit in sorted({place.unit for place in compute_queue_positions(pending)}) if unit.bundle]


def _build_unit(pods: PendingPods) -> tuple[str, int]:
    return pods.bundle, 0 if pods.bundle else get_priority(pods.pod)


def _read_creation_time(pods: PendingPods) -> datetime:
    return pods.created or pods.pod.metadata.creation_timestamp or _LATEST
