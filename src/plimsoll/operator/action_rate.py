"""The brake `--max-removals-per-hour`: how many removals were begun in the last hour, also by processes before this.

`RemovalTimes` counts, and is pure. `HourlyActionLimit` keeps it in a ConfigMap of its own, because the status ConfigMap
is deleted on a clean exit. It is written before removals begin: a crash may count a removal that never came, but none
comes that was not counted. Without a limit nothing is read or written.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final, Self

import structlog

from plimsoll.core.plans import Reason
from plimsoll.kube.errors import NotFound
from plimsoll.nodes.acting.kube_trouble import CALL_FAILED
from plimsoll.nodes.brakes import TOO_MANY_REMOVALS
from plimsoll.objects.api.core import ConfigMap

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.nodes.planning.scaledown.selection import NodeRemoval

log = structlog.get_logger(__name__)

LEDGER_NAME: Final = "cluster-autoscaler-removals"
LEDGER_FAILED: Final = "RemovalsNotCounted"
_KEY: Final = "removals"
_WINDOW: Final = timedelta(hours=1)
_LONGEST: Final = 10


@dataclass(frozen=True, slots=True)
class RemovalTimes:
    """When removals were begun, the oldest first, in whole seconds: (time, how many)."""

    begun: tuple[tuple[datetime, int], ...] = ()

    def in_last_hour(self, now: datetime) -> int:
        return sum(count for at, count in self.begun if at > now - _WINDOW)

    def room(self, limit: int, now: datetime) -> int:
        return max(limit - self.in_last_hour(now), 0)

    def after(self, count: int, now: datetime) -> Self:
        recent = [(at, known) for at, known in self.begun if at > now - _WINDOW]
        return type(self)((*recent, (now.replace(microsecond=0), count)))

    def shifted(self, by: timedelta) -> Self:
        """The same moments by a clock that was set."""
        return type(self)(tuple(((at + by).replace(microsecond=0), count) for at, count in self.begun))

    def text(self) -> str:
        """`<unix seconds>:<how many>`, by commas."""
        return ",".join(f"{int(at.timestamp())}:{count}" for at, count in self.begun)

    @classmethod
    def parse(cls, text: str) -> Self:
        """What cannot be read was written by hand, and counts nothing."""
        pairs = [item.strip().split(":") for item in text.split(",")]
        read = [(int(pair[0]), int(pair[1])) for pair in pairs if len(pair) == 2 and all(map(_is_number, pair))]
        return cls(tuple((datetime.fromtimestamp(at, UTC), count) for at, count in sorted(read)))


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= _LONGEST


def _fitting(removals: Sequence[NodeRemoval], room: int) -> tuple[NodeRemoval, ...]:
    """In their order; of a group that goes whole all of them or none."""
    sizes = Counter(removal.group for removal in removals if removal.goes_whole)
    chosen: list[NodeRemoval] = []
    whole: set[str] = set()
    for node_removal in removals:
        if node_removal.goes_whole and node_removal.group not in whole and sizes[node_removal.group] <= room:
            whole.add(node_removal.group)
            room -= sizes[node_removal.group]
        if node_removal.group in whole and node_removal.goes_whole:
            chosen.append(node_removal)
        elif not node_removal.goes_whole and room > 0:
            chosen.append(node_removal)
            room -= 1
    return tuple(chosen)


class HourlyActionLimit:
    """Read once, then written through."""

    def __init__(self, client: Client, *, clock: Clock, namespace: str, name: str = LEDGER_NAME) -> None:
        self._client = client
        self._clock = clock
        self._namespace = namespace
        self._name = name
        self._times: RemovalTimes | None = None

    async def allowed(
        self, removals: Sequence[NodeRemoval], most: int | None
    ) -> tuple[tuple[NodeRemoval, ...], dict[str, Reason]]:
        """Those that may begin, counted from now on, and why the others may not."""
        if most is None or not removals:
            return tuple(removals), {}
        now = self._clock.now()
        try:
            times = self._times = self._times or await self._read()
            chosen = _fitting(removals, times.room(most, now))
            if chosen:
                times = times.after(len(chosen), now)
                await self._write(times)
        except CALL_FAILED as error:
            reason = Reason(code=LEDGER_FAILED, message=f"removals of the last hour could not be counted: {error}")
            return (), dict.fromkeys((node_removal.node for node_removal in removals), reason)
        self._times = times
        reason = Reason(
            code=TOO_MANY_REMOVALS,
            message=f"max-removals-per-hour is {most}, and so many nodes were removed in the last hour",
            facts={"maxRemovalsPerHour": most},
        )
        return chosen, {node_removal.node: reason for node_removal in removals if node_removal not in chosen}

    def clock_was_set(self, by: timedelta) -> None:
        """What is kept in the cluster follows with the next removal."""
        if self._times is not None:
            self._times = self._times.shifted(by)

    async def _read(self) -> RemovalTimes:
        try:
            kept = await self._client.get(ConfigMap, self._name, namespace=self._namespace)
        except NotFound:
            return RemovalTimes()
        return RemovalTimes.parse(kept.data.get(_KEY, ""))

    async def _write(self, times: RemovalTimes) -> None:
        data = {"data": {_KEY: times.text()}}
        try:
            await self._client.merge_patch(ConfigMap, self._name, data, namespace=self._namespace)
        except NotFound:
            body = {"metadata": {"name": self._name, "namespace": self._namespace}, **data}
            await self._client.create(ConfigMap, body, namespace=self._namespace)
