"""Scale-ups that were requested and have not fully arrived: how many nodes, since when, and the deadline. Pure.

A further scale-up moves the deadline of the whole request; a reduction does not. A request ends when all nodes have
arrived, when its deadline has passed, or when so many instances failed that none is left.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as changed
from typing import TYPE_CHECKING

from plimsoll.core.durations import add_seconds

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime, timedelta


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpRequest:
    """A request for `increase` nodes, last extended at `since`; all nodes are expected by `expected`."""

    group: str
    increase: int
    since: datetime
    expected: datetime

    def is_overdue(self, now: datetime) -> bool:
        return self.expected < now


class ScaleUpRequests:
    """The requests by group, at most one per group."""

    def __init__(self) -> None:
        self._requests: dict[str, ScaleUpRequest] = {}

    def add(self, group: str, added: int, *, provision_time_s: float, now: datetime) -> None:
        before = self._requests.get(group)
        self._requests[group] = ScaleUpRequest(
            group=group,
            increase=added + (0 if before is None else before.increase),
            since=now,
            expected=add_seconds(now, provision_time_s),
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
            group: changed(request, since=request.since + by, expected=request.expected + by)
            for group, request in self._requests.items()
        }

    def keep_only(self, groups: Collection[str]) -> None:
        self._requests = {group: request for group, request in self._requests.items() if group in groups}

    def get(self, group: str) -> ScaleUpRequest | None:
        return self._requests.get(group)

    def list_all(self) -> tuple[ScaleUpRequest, ...]:
        return tuple(self._requests[group] for group in sorted(self._requests))
