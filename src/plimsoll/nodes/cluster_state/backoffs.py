"""Back-off after failures: of node groups, and of kinds of groups that could not be created. Pure.

The first back-off lasts `first_s`. A failure after it has ended doubles it, up to `longest_s`. A failure during it
starts it again with the same length, because calls that fail together have one cause. `reset_s` after the last failure
it is forgotten (docs/design/nodes.md 6.9). As in Cluster Autoscaler, a back-off includes its last moment.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass
from dataclasses import replace as changed
from typing import TYPE_CHECKING, Generic, TypeVar

from plimsoll.core.durations import add_seconds

if TYPE_CHECKING:
    from datetime import datetime, timedelta

    from plimsoll.nodes.cluster_state.observed import ScaleUpError
    from plimsoll.nodes.config.policy import GroupRules

Key = TypeVar("Key", bound=Hashable)
CreationKey = tuple[str, str, str]
"""Machine type, zone, profile hash; an empty profile stands for any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackoffRule:
    """The lengths of back-offs."""

    first_s: float = 300.0
    longest_s: float = 1800.0
    reset_s: float = 10_800.0

    @classmethod
    def from_rules(cls, rules: GroupRules) -> BackoffRule:
        return cls(first_s=rules.first_backoff_s, longest_s=rules.longest_backoff_s, reset_s=rules.backoff_reset_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackedOff:
    """One back-off."""

    length_s: float
    failed_at: datetime
    error: ScaleUpError

    @property
    def until(self) -> datetime:
        return add_seconds(self.failed_at, self.length_s)

    def holds(self, now: datetime) -> bool:
        return now <= self.until

    def with_failure(self, error: ScaleUpError, rule: BackoffRule, now: datetime) -> BackedOff:
        longer_s = self.length_s if self.holds(now) else 2 * self.length_s
        return BackedOff(length_s=min(longer_s, rule.longest_s), failed_at=now, error=error)

    def __str__(self) -> str:
        return f"in backoff until {format_clock_time(self.until)}"


class Backoffs(Generic[Key]):
    """The back-offs of all keys that failed recently."""

    def __init__(self) -> None:
        self._waits: dict[Key, BackedOff] = {}

    def record_failure(self, key: Key, error: ScaleUpError, *, rule: BackoffRule, now: datetime) -> BackedOff:
        self.forget_old(rule, now)
        before = self._waits.get(key)
        if before is None:
            wait = BackedOff(length_s=min(rule.first_s, rule.longest_s), failed_at=now, error=error)
        else:
            wait = before.with_failure(error, rule, now)
        self._waits[key] = wait
        return wait

    def find_running(self, key: Key, now: datetime) -> BackedOff | None:
        wait = self._waits.get(key)
        return wait if wait is not None and wait.holds(now) else None

    def list_running(self, now: datetime) -> dict[Key, BackedOff]:
        return {key: wait for key, wait in self._waits.items() if wait.holds(now)}

    def forget_old(self, rule: BackoffRule, now: datetime) -> None:
        self._waits = {
            key: wait for key, wait in self._waits.items() if not add_seconds(wait.failed_at, rule.reset_s) < now
        }

    def postpone(self, by: timedelta) -> None:
        self._waits = {key: changed(wait, failed_at=wait.failed_at + by) for key, wait in self._waits.items()}

    def __len__(self) -> int:
        return len(self._waits)


def format_clock_time(moment: datetime) -> str:
    """02:10 UTC, or 02:10:05 UTC if the seconds are not 0."""
    return f"{moment:%H:%M:%S} UTC" if moment.second else f"{moment:%H:%M} UTC"
