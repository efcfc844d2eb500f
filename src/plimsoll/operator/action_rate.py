"""A limit on actions per hour that holds across restarts.

`ActionTimes` counts and is pure. `HourlyActionLimit` keeps the counts in a ConfigMap of its own: it outlives the
process, and a status object would be deleted on a clean exit. The count is written before the actions start, so a crash
may count an action that never ran, but no action runs uncounted. Without a limit nothing is read or written.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Self, TypeVar

from plimsoll.kube.errors import ApiCallFailed, NotFound
from plimsoll.objects.api.core import ConfigMap

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client

T = TypeVar("T")

_WINDOW: Final = timedelta(hours=1)
_MAX_DIGITS: Final = 10


@dataclass(frozen=True, slots=True)
class ActionTimes:
    """The times at which actions started, the oldest first, in whole seconds: (time, number of actions)."""

    started: tuple[tuple[datetime, int], ...] = ()

    def count_last_hour(self, now: datetime) -> int:
        return sum(count for at, count in self.started if at > now - _WINDOW)

    def count_remaining(self, limit: int, now: datetime) -> int:
        """The number of actions that may still start."""
        return max(limit - self.count_last_hour(now), 0)

    def with_actions(self, count: int, now: datetime) -> Self:
        """These times with `count` actions that start now, without what is older than an hour."""
        recent = [(at, known) for at, known in self.started if at > now - _WINDOW]
        return type(self)((*recent, (now.replace(microsecond=0), count)))

    def shift(self, by: timedelta) -> Self:
        """The same times after the clock was set."""
        return type(self)(tuple(((at + by).replace(microsecond=0), count) for at, count in self.started))

    def format_times(self) -> str:
        """`<unix seconds>:<count>`, separated by commas."""
        return ",".join(f"{int(at.timestamp())}:{count}" for at, count in self.started)

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parts that are not numbers were written by hand and count nothing."""
        pairs = [item.strip().split(":") for item in text.split(",")]
        read = [(int(pair[0]), int(pair[1])) for pair in pairs if len(pair) == 2 and all(map(_is_number, pair))]
        return cls(tuple((datetime.fromtimestamp(at, UTC), count) for at, count in sorted(read)))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _MAX_DIGITS


@dataclass(frozen=True, slots=True)
class CountFailed:
    """The actions of the last hour could not be read or written, so none may start."""

    problem: str


class HourlyActionLimit:
    """Reads the ConfigMap once and writes it through. `name` and `key`: where the counts are kept."""

    def __init__(self, client: Client, *, clock: Clock, namespace: str, name: str, key: str) -> None:
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._name = name
        self._key = key
        self._times: ActionTimes | None = None

    async def reserve(self, limit: int, choose: Callable[[int], tuple[T, ...]]) -> tuple[T, ...] | CountFailed:
        """The actions that may start, counted from now on. `choose` picks them for a number of free places."""
        now = self._clock.now()
        try:
            times = self._times = self._times or await self._read()
            chosen = choose(times.count_remaining(limit, now))
            if chosen:
                times = times.with_actions(len(chosen), now)
                await self._write(times)
        except ApiCallFailed as error:
            return CountFailed(str(error))
        self._times = times
        return chosen

    def on_clock_set(self, by: timedelta) -> None:
        """Moves the known times with the clock. The ConfigMap follows with the next action."""
        if self._times is not None:
            self._times = self._times.shift(by)

    async def _read(self) -> ActionTimes:
        try:
            config_map = await self._client.get(ConfigMap, self._name, namespace=self._namespace)
        except NotFound:
            return ActionTimes()
        return ActionTimes.parse(config_map.data.get(self._key, ""))

    async def _write(self, times: ActionTimes) -> None:
        data = {"data": {self._key: times.format_times()}}
        try:
            await self._client.merge_patch(ConfigMap, self._name, data, namespace=self._namespace)
        except NotFound:
            body = {"metadata": {"name": self._name, "namespace": self._namespace}, **data}
            await self._client.create(ConfigMap, body, namespace=self._namespace)
