"""A lease that another process takes by force, as the guard of a client knows it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from plimsoll.kube.errors import NotAllowed

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock

RETRY_PERIOD_S = 2.0


class StolenLease:
    """The guard of a process that leads until `steal`.

    A read of the Lease shows the theft at once. The process itself notices it at its next renewal, and acts until then.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._stolen_at_s = math.inf

    def steal(self) -> None:
        self._stolen_at_s = min(self._stolen_at_s, self._clock.monotonic_s())

    @property
    def is_stolen(self) -> bool:
        return self._clock.monotonic_s() >= self._stolen_at_s

    def limit_duration_s(self, wanted_s: float) -> float:
        self._refuse_from(self._stolen_at_s + RETRY_PERIOD_S)
        return wanted_s

    async def confirm(self) -> None:
        self._refuse_from(self._stolen_at_s)

    def _refuse_from(self, moment_s: float) -> None:
        if self._clock.monotonic_s() >= moment_s:
            raise NotAllowed("the lease is held by another process")
