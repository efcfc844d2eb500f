"""Since when reports of agents can have arrived. An agent is silent only for as long as it could have been heard.

After an hour in which no fleet manager ran, or its database did not answer, or its clock was set, the last report of
every agent is old. That says nothing about the agents, and no cluster is made in place of theirs.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.fleet.model.clusters import Cluster

_JUMP: Final = timedelta(minutes=1)
"""A wall clock that differs so much from the steady one was set, or the machine slept."""


class ListeningTime:
    """Since when this process can have heard agents."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._started = self._since = clock.now()
        self._started_s = clock.monotonic_s()

    def measure(self) -> datetime:
        """The moment from which on reports can have arrived."""
        now, now_s = self._clock.now(), self._clock.monotonic_s()
        expected = self._started + timedelta(seconds=now_s - self._started_s)
        if abs(now - expected) > _JUMP:
            self.restart()
        return self._since

    def restart(self) -> None:
        """Nothing could be heard until now."""
        self._started = self._since = self._clock.now()
        self._started_s = self._clock.monotonic_s()


def present_reports(cluster: Cluster, since: datetime) -> Cluster:
    """The cluster as if its agent had reported when we began to listen. One that never reported stays as it is."""
    last = cluster.last_report_at
    return replace(cluster, last_report_at=since) if last is not None and last < since else cluster
