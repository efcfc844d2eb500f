"""Growth that was asked of the cloud and has not all arrived: how much, since when, and when it is too late. Pure.

Asking for more moves the expected time of the whole; taking back part of it does not. A request ends when everything
arrived, when its time is over, or when so many of its instances failed that nothing is left of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as changed
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpRequest:
    """`increase` nodes asked for, the last of them at `since`, all expected by `expected`."""

    group: str
    increase: int
    since: datetime
    expected: datetime

    def is_overdue(self, now: datetime) -> bool:
        return self.expected < now


class ScaleUpRequests:
    """At most one a group."""

    def __init__(self) -> None:
        self._requests: dict[str, ScaleUpRequest] = {}

    def add(self, group: str, added: int, *, provision_time_s: float, now: datetime) -> None:
        before = self._requests.get(group)
        self._requests[group] = ScaleUpRequest(
            group=group,
            increase=added + (0 if before is None else before.increase),
            since=now,
            expected=now + timedelta(seconds=provision_time_s),
        )

    def reduce(self, group: str, by: int) -> None:
        before = self._requests.get(group)
        if before is None:
            return
        if before.increase <= by:
            del self._requests[group]
        else:
            self._requests[group] = changed(before, increase=before.increase - by)

    def remove(self, group: str) -> ScaleUpRequest | None:
        return self._requests.pop(group, None)

    def postpone(self, by: timedelta) -> None:
        self._requests = {
            group: changed(growth_request, since=growth_request.since + by, expected=growth_request.expected + by)
            for group, growth_request in self._requests.items()
        }

    def keep_only(self, groups: Collection[str]) -> None:
        self._requests = {group: growth_request for group, growth_request in self._requests.items() if group in groups}

    def of(self, group: str) -> ScaleUpRequest | None:
        return self._requests.get(group)

    def all(self) -> tuple[ScaleUpRequest, ...]:
        return tuple(self._requests[group] for group in sorted(self._requests))
