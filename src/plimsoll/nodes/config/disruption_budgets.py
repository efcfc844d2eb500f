"""How many nodes may be disturbed at once, for which reason, and when: budgets with windows given as cron schedules.

Data of `consolidation`. As in Karpenter: of all budgets that hold now for a group and a reason the smallest counts, a
percentage is rounded up, and a budget with a schedule holds only while its window is open. Times are UTC. Pure.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.objects.builtin.validation.cron import schedule_problem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

EMPTY: Final = "Empty"
UNDERUTILIZED: Final = "Underutilized"
UNLIMITED: Final = 1 << 40

_SHORTHANDS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_NAMES: Final = {
    name: str(number)
    for names in (
        ("sun", "mon", "tue", "wed", "thu", "fri", "sat"),
        ("", "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
    )
    for number, name in enumerate(names)
    if name
}
_SPANS: Final = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
_EVERY: Final = ("*", "?")
_ALL_PERCENT: Final = 100
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3600}
_MINUTE: Final = timedelta(minutes=1)


class Window:
    """Opens whenever its schedule fires, for so long. Raises `InvalidInput` for a schedule nobody can read."""

    __slots__ = ("_any_day", "_duration", "_fields")

    def __init__(self, schedule: str, *, duration_s: float) -> None:
        problem = schedule_problem(schedule)
        if problem is None and schedule.startswith("@every"):
            problem = "a window opens at given times, not at intervals"
        if problem is not None:
            raise InvalidInput(problem, path="schedule")
        parts = _SHORTHANDS.get(schedule, schedule).split()
        self._fields = tuple(_numbers(part, span) for part, span in zip(parts, _SPANS, strict=True))
        self._any_day = parts[2].startswith(_EVERY) or parts[4].startswith(_EVERY)
        self._duration = timedelta(seconds=duration_s)

    def is_open(self, now: datetime) -> bool:
        moment = now.astimezone(UTC).replace(second=0, microsecond=0)
        while moment + self._duration > now:
            if self._fires(moment):
                return True
            moment -= _MINUTE
        return False

    def _fires(self, moment: datetime) -> bool:
        minutes, hours, days, months, weekdays = self._fields
        if moment.minute not in minutes or moment.hour not in hours or moment.month not in months:
            return False
        by_day, by_weekday = moment.day in days, moment.isoweekday() % 7 in weekdays
        # Cron's old rule: where both days are given, either will do.
        return by_day and by_weekday if self._any_day else by_day or by_weekday


def _numbers(field: str, span: tuple[int, int]) -> frozenset[int]:
    found: set[int] = set()
    for expression in field.lower().split(","):
        ends, _, step = expression.partition("/")
        first, _, last = ends.partition("-")
        if first in _EVERY:
            low, high = span
        else:
            low = int(_NAMES.get(first, first))
            high = int(_NAMES.get(last, last)) if last else span[1] if step else low
        found.update(range(low, high + 1, int(step) if step else 1))
    return frozenset(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionBudget:
    """So many nodes of each group, or such a share of them."""

    nodes: int | None = None
    percent: float | None = None
    reasons: frozenset[str] = frozenset()
    """Empty: any."""
    groups: frozenset[str] = frozenset()
    """Empty: each."""
    window: Window | None = None
    """None: always."""

    def is_active(self, group: str, reason: str, now: datetime) -> bool:
        if (self.reasons and reason not in self.reasons) or (self.groups and group not in self.groups):
            return False
        return self.window is None or self.window.is_open(now)

    def max_nodes(self, size: int) -> int:
        share = UNLIMITED if self.percent is None else math.ceil(round(size * self.percent / 100, 9))
        return min(share, UNLIMITED if self.nodes is None else self.nodes)


def parse_budget(written: str) -> DisruptionBudget:
    """AMOUNT[:REASON][@SCHEDULE/DURATION]: `10%`, `2:Underutilized`, `0@0 9 * * mon-fri/8h`. Raises `InvalidInput`."""
    head, at, window = written.partition("@")
    amount, _, reason = head.partition(":")
    if reason and reason not in {EMPTY, UNDERUTILIZED}:
        raise InvalidInput(f"has a reason that is neither {EMPTY} nor {UNDERUTILIZED}")
    share, percent, rest = amount.partition("%")
    if not share.isdecimal() or rest or (percent and int(share) > _ALL_PERCENT):
        raise InvalidInput('is no budget like "10%", "2:Underutilized" or "0@0 9 * * mon-fri/8h"')
    return DisruptionBudget(
        nodes=None if percent else int(share),
        percent=float(share) if percent else None,
        reasons=frozenset({reason} if reason else ()),
        window=_read_window(window) if at else None,
    )


def _read_window(written: str) -> Window:
    schedule, _, lasting = written.rpartition("/")
    number, unit = lasting[:-1], lasting[-1:]
    if not schedule or not number.isdecimal() or unit not in _UNIT_S:
        raise InvalidInput('has a window that is not SCHEDULE/DURATION, like "0 9 * * mon-fri/8h"')
    try:
        return Window(schedule, duration_s=int(number) * _UNIT_S[unit])
    except InvalidInput as error:
        raise InvalidInput(f"has a schedule that cannot be read: {error.problem}") from error


DEFAULT_BUDGETS: Final = (DisruptionBudget(percent=10),)
"""What holds where nobody says anything."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetScope:
    """Whose nodes, how many there are, and why they would be disturbed."""

    group: str
    size: int
    reason: str


def allowed_disruptions(budgets: Iterable[DisruptionBudget], scope: BudgetScope, now: datetime) -> int:
    """Nodes of a group that may be disturbed at once for a reason."""
    holding = [
        disruption_budget.max_nodes(scope.size)
        for disruption_budget in budgets
        if disruption_budget.is_active(scope.group, scope.reason, now)
    ]
    return min(holding, default=UNLIMITED)
