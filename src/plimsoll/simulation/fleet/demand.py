"""The requests of a day, drawn once: every variant gets the same."""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.fleet.model.clusters import Locator  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.runtime.entropy import SeededEntropy

if TYPE_CHECKING:
    from plimsoll.core.entropy import Entropy
    from plimsoll.simulation.fleet.document import DayDocument, DemandDocument

_HOUR_S: Final = 3600.0
_DAY_S: Final = 86_400.0


class Request(Value):
    """A request for a Kafka, which is deleted after `lives_s`, counted from its placement."""

    id: str
    at: datetime
    locator: Locator
    size_id: str
    lives_s: float


def draw_requests(day: DayDocument) -> tuple[Request, ...]:
    """In the order of their times."""
    found: list[Request] = []
    for number, demand in enumerate(day.demand):
        entropy = SeededEntropy(f"demand {day.seed} {number}")
        for moment_s in _draw_moments(demand, day.duration, entropy):
            found.append(
                Request(
                    id=f"{number}-{len(found):05d}",
                    at=day.start + timedelta(seconds=moment_s),
                    locator=demand.locator,
                    size_id=_draw_size(demand, entropy),
                    lives_s=_draw_exponential(entropy, demand.lifetime),
                )
            )
    return tuple(sorted(found, key=lambda request: (request.at, request.id)))


def _draw_moments(demand: DemandDocument, duration_s: float, entropy: Entropy) -> list[float]:
    """A Poisson process whose rate changes over the day, and from hour to hour."""
    most = demand.per_hour * (1 + demand.swing) * (1 + demand.noise)
    if most <= 0:
        return []
    hours = [1 + demand.noise * entropy.draw_uniform(-1.0, 1.0) for _ in range(math.ceil(duration_s / _HOUR_S))]
    moments: list[float] = []
    moment_s = 0.0
    while (moment_s := moment_s + _draw_exponential(entropy, _HOUR_S / most)) < duration_s:
        wave = 1 + demand.swing * math.cos(2 * math.pi * (moment_s - demand.peak) / _DAY_S)
        if entropy.draw_uniform(0.0, most) < demand.per_hour * wave * hours[int(moment_s // _HOUR_S)]:
            moments.append(moment_s)
    return moments


def _draw_exponential(entropy: Entropy, mean: float) -> float:
    return -mean * math.log(1.0 - entropy.draw_uniform(0.0, 1.0))


def _draw_size(demand: DemandDocument, entropy: Entropy) -> str:
    place = entropy.draw_uniform(0.0, sum(demand.sizes.values()))
    for size_id, weight in demand.sizes.items():
        place -= weight
        if place < 0:
            return size_id
    return next(reversed(demand.sizes))
