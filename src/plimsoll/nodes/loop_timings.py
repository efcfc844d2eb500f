"""Durations of the parts of a loop iteration, by Cluster Autoscaler's names. Only for metrics and `--timing`.

The clock measures: a real one where real seconds are wanted, also in virtual time; a virtual one says 0.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.core.clock import Clock


class LoopTimings:
    """One a loop iteration."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.seconds: dict[str, float] = {}

    @contextmanager
    def measure(self, function: str) -> Iterator[None]:
        began_s = self._clock.monotonic_s()
        try:
            yield
        finally:
            self.seconds[function] = self._clock.monotonic_s() - began_s
