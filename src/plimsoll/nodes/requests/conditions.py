"""Conditions of a ProvisioningRequest: the types and reasons there are, and sets that never change in place. Pure.

Server-side apply takes away what an apply does not name, so whoever writes a status writes all conditions that are
ours: `Conditions.of(status)` keeps them, `with_condition` makes the next set (specs/nodes.md 2.2, 2.3).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.api.meta import Condition, written_time

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

_LONGEST_MESSAGE: Final = 32_768


class Kind(StrEnum):
    """Types of conditions that are ours."""

    ACCEPTED = "Accepted"
    PROVISIONED = "Provisioned"
    FAILED = "Failed"
    BOOKING_EXPIRED = "BookingExpired"
    CAPACITY_REVOKED = "CapacityRevoked"
    CAPACITY_AVAILABLE = "CapacityAvailable"


class Why(StrEnum):
    """Reasons of conditions, exactly as others read them."""

    ACCEPTED = "Accepted"
    FOUND = "CapacityIsFound"
    PROVISIONED = "CapacityIsProvisioned"
    NOT_FOUND = "CapacityIsNotFound"
    CHECK_FAILED = "FailedToCheckCapacity"
    WAITING = "WaitingForNodes"
    NO_PODS = "FailedToCreatePods"
    NOT_BOOKED = "FailedToBookCapacity"
    EXPIRED = "Expired"
    NOT_ALLOWED = "ClassNotAllowed"
    TIME_OVER = "CapacityReservationTimeExpired"
    CONSUMED = "CapacityBookingConsumed"
    NODES_FAILED = "NodesFailed"
    NODES_LOST = "NodesLost"


@dataclass(frozen=True, slots=True)
class Conditions:
    """By type, each once, in the order in which they came; types that are not ours are left to who set them."""

    all: tuple[Condition, ...] = ()

    @classmethod
    def of(cls, listed: Iterable[Condition], *, own: Iterable[str] = ()) -> Conditions:
        """`own`: further types, of a class that is registered with us."""
        ours = {*map(str, Kind), *own}
        return cls(tuple({one.type: one for one in listed if one.type in ours}.values()))

    def get(self, kind: str) -> Condition | None:
        return next((one for one in self.all if one.type == kind), None)

    def is_true(self, kind: str) -> bool:
        found = self.get(kind)
        return found is not None and found.status == "True"

    def since(self, kind: str) -> datetime | None:
        found = self.get(kind)
        return None if found is None else found.last_transition_time

    def with_condition(self, made: Condition) -> Conditions:
        """In place of the one of its type. Its time is what it says: each failed attempt is a transition too."""
        kept = {one.type: one for one in self.all}
        kept[made.type] = made
        return Conditions(tuple(kept.values()))

    def written(self) -> list[dict[str, Any]]:
        return [_written(one) for one in self.all]


def condition(kind: str, status: bool | str, why: str, message: str, *, at: datetime, generation: int = 0) -> Condition:
    """One as of now."""
    text = status if isinstance(status, str) else str(status)
    return Condition(
        type=str(kind),
        status=text,
        reason=str(why),
        message=message[:_LONGEST_MESSAGE],
        last_transition_time=at,
        observed_generation=generation,
    )


def _written(one: Condition) -> dict[str, Any]:
    found: dict[str, Any] = {"type": one.type, "status": one.status, "reason": one.reason, "message": one.message}
    if one.last_transition_time is not None:
        found["lastTransitionTime"] = written_time(one.last_transition_time)
    if one.observed_generation:
        found["observedGeneration"] = one.observed_generation
    return found
