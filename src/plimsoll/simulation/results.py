"""The result of a scenario."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 -- msgspec resolves the annotations of Values at run time
from typing import Any

from plimsoll.core.values import Value
from plimsoll.simulation.expectations import UnmetExpectation  # noqa: TC001 -- likewise
from plimsoll.simulation.times import format_time

Json = dict[str, Any]


class FailedExpectation(Value, frozen=True):
    """What did not hold, and when."""

    step: str
    time: datetime
    unmet: UnmetExpectation

    def __str__(self) -> str:
        return f"{self.step}.expect at {format_time(self.time)}: {self.unmet}"


class ScenarioResult(Value, frozen=True):
    """The result of a run. `warnings` are about steps that had no effect."""

    outcome: Json
    failed: tuple[FailedExpectation, ...] = ()
    expectations: int = 0
    warnings: tuple[str, ...] = ()
