"""Plays all variants of a day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.simulation.fleet.day import Day
from plimsoll.simulation.fleet.demand import draw_requests

if TYPE_CHECKING:
    from plimsoll.simulation.fleet.document import DayInput
    from plimsoll.simulation.fleet.outcome import DayOutcome


def simulate_day(day: DayInput) -> tuple[DayOutcome, ...]:
    """One outcome per variant, in their order."""
    requests = draw_requests(day.document)
    return tuple(Day(day.document, variant, requests).simulate() for variant in day.variants)
