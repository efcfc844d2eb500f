"""Cooldowns: how long nothing is changed after an event. Pure: the time is a parameter."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

MAX_CLOCK_SKEW: Final = timedelta(hours=24)
"""A time that lies further ahead was written by a wrong clock, which must not hold an object for ever."""


def is_cooling_down(last: datetime | None, *, delay_s: float, now: datetime) -> bool:
    """Whether the event was less than `delay_s` ago; None: there was none."""
    return last is not None and (now - last).total_seconds() < delay_s


@dataclass(frozen=True, slots=True)
class LatestTime:
    """The latest of several records of an event. `ignored`: times that are too far ahead to be true, in order."""

    time: datetime | None = None
    ignored: tuple[datetime, ...] = ()


def find_latest(times: Iterable[datetime | None], *, now: datetime) -> LatestTime:
    """The latest time that can be true. A crash may lie between two records of one event: the later one counts."""
    known = {time for time in times if time is not None}
    credible = {time for time in known if time - now <= MAX_CLOCK_SKEW}
    return LatestTime(time=max(credible, default=None), ignored=tuple(sorted(known - credible)))


@dataclass(slots=True)
class EventTimes:
    """When a kind of event last happened, by key and anywhere."""

    by_key: dict[str, datetime] = field(default_factory=dict)
    anywhere: datetime | None = None

    def note(self, key: str, now: datetime) -> None:
        self.by_key[key] = self.anywhere = now

    def get_last(self, key: str = "") -> datetime | None:
        """The last time for a key; of any key without one."""
        return self.by_key.get(key) if key else self.anywhere

    def shift(self, by: timedelta) -> None:
        """Moves all times, because the clock was set or waits are postponed."""
        self.by_key = {key: time + by for key, time in self.by_key.items()}
        if self.anywhere is not None:
            self.anywhere += by
