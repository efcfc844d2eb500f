"""`status.provisioningClassDetails`: what a request remembers between turns and what people ask about it. Pure.

Texts in a map (specs/nodes.md 2.2, 3.3, 3.7). Nothing of a request is remembered anywhere else: a controller that
starts anew reads here how often it was tried, what it grew and what it has yet to finish or to take back.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.objects.api.meta import Time, written_time

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

_OURS: Final = (
    "attempts",
    "lastAttemptTime",
    "nextAttemptTime",
    "planCostPerHour",
    "costLowerBoundPerHour",
    "nodeGroups",
    "bookedUntil",
    "intent",
    "blocking",
)
_LONGEST: Final = 32_768


class GroupStep(msgspec.Struct, frozen=True, kw_only=True, rename={"before": "from", "after": "to"}):
    """A group's size before an attempt, and after it. `back`: roll-back was begun, down to this size."""

    before: int
    after: int
    back: int | None = None


class Intent(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What an attempt is about to do, written before the first call to the cloud; gone when it is answered."""

    attempt: int
    groups: dict[str, GroupStep] = {}
    created: tuple[str, ...] = ()
    """Groups that the attempt makes, by the id it asks for."""

    @property
    def is_rolled_back(self) -> bool:
        """Whether it is on its way back: nothing of it is finished any more."""
        return any(group_step.back is not None for group_step in self.groups.values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """What we know of the map; what we do not know is kept in `others` as it stands."""

    attempts: int = 0
    last_attempt: datetime | None = None
    next_attempt: datetime | None = None
    plan_cost_per_hour: str = ""
    cost_lower_bound_per_hour: str = ""
    node_groups: Mapping[str, int] = field(default_factory=dict)
    """Nodes that were added for it, by group; 0 where it has room on nodes of others."""
    booked_until: datetime | None = None
    intent: Intent | None = None
    blocking: str = ""
    """Short JSON: what stands in its way."""
    others: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, texts: Mapping[str, str]) -> Details:
        """What cannot be read counts as not there: the map is ours to write, but anybody may have."""
        return cls(
            attempts=_read(texts.get("attempts", ""), int) or 0,
            last_attempt=_time(texts.get("lastAttemptTime", "")),
            next_attempt=_time(texts.get("nextAttemptTime", "")),
            plan_cost_per_hour=texts.get("planCostPerHour", ""),
            cost_lower_bound_per_hour=texts.get("costLowerBoundPerHour", ""),
            node_groups=_read(texts.get("nodeGroups", ""), dict[str, int]) or {},
            booked_until=_time(texts.get("bookedUntil", "")),
            intent=_read(texts.get("intent", ""), Intent),
            blocking=texts.get("blocking", ""),
            others={key: text for key, text in texts.items() if key not in _OURS},
        )

    def but(self, **changes: Any) -> Details:
        return replace(self, **changes)

    def written(self) -> dict[str, str]:
        """The map; without what is empty."""
        texts = {
            "attempts": str(self.attempts) if self.attempts else "",
            "lastAttemptTime": _text(self.last_attempt),
            "nextAttemptTime": _text(self.next_attempt),
            "planCostPerHour": self.plan_cost_per_hour,
            "costLowerBoundPerHour": self.cost_lower_bound_per_hour,
            "nodeGroups": _compact(dict(self.node_groups)) if self.node_groups else "",
            "bookedUntil": _text(self.booked_until),
            "intent": _compact(self.intent) if self.intent is not None else "",
            "blocking": self.blocking,
        }
        return {**self.others, **{key: text[:_LONGEST] for key, text in texts.items() if text}}


def _read(text: str, kind: Any) -> Any:
    if not text:
        return None
    try:
        return msgspec.json.decode(text, type=kind)
    except (msgspec.MsgspecError, RecursionError):
        return None


def _time(text: str) -> datetime | None:
    if not text:
        return None
    try:
        found: datetime = msgspec.convert(text, Time)
    except (msgspec.ValidationError, OverflowError):
        return None
    return found


def _text(time: datetime | None) -> str:
    return "" if time is None else written_time(time)


def _compact(value: Any) -> str:
    return msgspec.json.encode(value).decode()
