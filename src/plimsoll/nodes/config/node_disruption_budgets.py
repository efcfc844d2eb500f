"""Disruption budgets: how many nodes may be disrupted at once, for which reason, and in which windows of time. Pure.

As in Karpenter: a percentage is rounded up, and a budget with a schedule is active only while its window is open. Times
are UTC.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import UTC, timedelta
from typing import TYPE_CHECKING, Final

from cronsim import CronSim, CronSimError
from cronsim.cronsim import Field

from plimsoll.core.durations import add_seconds
from plimsoll.core.errors import InvalidInput
from plimsoll.objects.builtin.validation.cron import find_schedule_problem

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

EMPTY: Final = "Empty"
UNDERUTILIZED: Final = "Underutilized"
UNLIMITED: Final = 1 << 40

_DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_FIELDS: Final = (Field.MINUTE, Field.HOUR, Field.DAY, Field.MONTH, Field.DOW)
_LAST_VALUES: Final = {Field.MINUTE: 59, Field.HOUR: 23, Field.DAY: 31, Field.MONTH: 12, Field.DOW: 6}
_ALL_PERCENT: Final = 100
_UNIT_S: Final = {"s": 1, "m": 60, "h": 3600}
_SECOND: Final = timedelta(seconds=1)


class Window:
    """A window that opens whenever its schedule fires. Raises `InvalidInput` for a schedule that cannot be parsed."""

    __slots__ = ("_duration_s", "_schedule")

    def __init__(self, schedule: str, *, duration_s: float) -> None:
        problem = find_schedule_problem(schedule)
        if problem is None and schedule.startswith("@every"):
            problem = "a window opens at given times, not at intervals"
        if problem is not None:
            raise InvalidInput(problem, path="schedule")
        fields = _DESCRIPTORS.get(schedule, schedule).split()
        self._schedule = " ".join(
            _convert_for_cronsim(text, field) for text, field in zip(fields, _FIELDS, strict=True)
        )
        self._duration_s = duration_s

    def is_open(self, now: datetime) -> bool:
        start = now.astimezone(UTC).replace(microsecond=0) + _SECOND
        try:
            fired = next(CronSim(self._schedule, start, reverse=True), None)
        except CronSimError:
            # The schedule names a day that no month has.
            return False
        return fired is not None and add_seconds(fired, self._duration_s) > now


def _convert_for_cronsim(text: str, field: Field) -> str:
    """The field in a form in which cronsim sees what Kubernetes sees: without "?" and without steps.

    cronsim counts the days of the week up to 7, so that "1/2" would reach Sunday, and it reads "5-5/2" as "5/2".
    """
    return ",".join(_without_step(expression, field) for expression in text.replace("?", "*").upper().split(","))


def _without_step(expression: str, field: Field) -> str:
    values, slash, step = expression.partition("/")
    if not slash or values.startswith("*"):
        return expression
    first, _, last = values.partition("-")
    end = field.int(last) if last else _LAST_VALUES[field]
    return ",".join(map(str, range(field.int(first), end + 1, int(step))))


@dataclass(frozen=True, slots=True, kw_only=True)
class DisruptionBudget:
    """A number of nodes per group, or a percentage of them."""

    nodes: int | None = None
    percent: float | None = None
    reasons: frozenset[str] = frozenset()
    """Empty: all reasons."""
    groups: frozenset[str] = frozenset()
    """Empty: all groups."""
    window: Window | None = None
    """None: always."""

    def is_active(self, group: str, reason: str, now: datetime) -> bool:
        if (self.reasons and reason not in self.reasons) or (self.groups and group not in self.groups):
            return False
        return self.window is None or self.window.is_open(now)

    def compute_max_nodes(self, size: int) -> int:
        share = UNLIMITED if self.percent is None else math.ceil(round(size * self.percent / 100, 9))
        return min(share, UNLIMITED if self.nodes is None else self.nodes)


DEFAULT_BUDGETS: Final = (DisruptionBudget(percent=10),)
"""The budgets that apply where none is configured."""


def parse_budget(written: str) -> DisruptionBudget:
    """AMOUNT[:REASON][@SCHEDULE/DURATION]: `10%`, `2:Underutilized`, `0@0 9 * * mon-fri/8h`. Raises `InvalidInput`."""
    head, at, window = written.partition("@")
    amount, _, reason = head.partition(":")
    if reason and reason not in {EMPTY, UNDERUTILIZED}:
        raise InvalidInput(f"has a reason that is neither {EMPTY} nor {UNDERUTILIZED}")
    share, percent, rest = amount.partition("%")
    if not share.isdecimal() or rest or (percent and int(share) > _ALL_PERCENT):
        raise InvalidInput('is not a budget like "10%", "2:Underutilized" or "0@0 9 * * mon-fri/8h"')
    return DisruptionBudget(
        nodes=None if percent else int(share),
        percent=float(share) if percent else None,
        reasons=frozenset({reason} if reason else ()),
        window=_parse_window(window) if at else None,
    )


def _parse_window(written: str) -> Window:
    schedule, _, duration = written.rpartition("/")
    number, unit = duration[:-1], duration[-1:]
    if not schedule or not number.isdecimal() or unit not in _UNIT_S:
        raise InvalidInput('has a window that is not SCHEDULE/DURATION, like "0 9 * * mon-fri/8h"')
    try:
        return Window(schedule, duration_s=int(number) * _UNIT_S[unit])
    except InvalidInput as error:
        raise InvalidInput(f"has a schedule that cannot be read: {error.problem}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetScope:
    """A group, its number of nodes, and the reason for which they would be disrupted."""

    group: str
    size: int
    reason: str


def compute_allowed_disruptions(budgets: Iterable[DisruptionBudget], scope: BudgetScope, now: datetime) -> int:
    """The smallest of all budgets that are active for the group and the reason."""
    active = (budget for budget in budgets if budget.is_active(scope.group, scope.reason, now))
    return min((budget.compute_max_nodes(scope.size) for budget in active), default=UNLIMITED)
