"""Liveness of a control loop, as the health page answers it. Pure: the time is a parameter.

A loop is unhealthy without activity for `inactivity_s`, or without success for `failing_s`; before its first success it
has `startup_s` (docs/design/nodes.md 6.1). A process that does not lead is healthy: no loop is expected before `begin`
or after `end`. All seconds are of one monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass

from plimsoll.core.durations import format_duration


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthTimeouts:
    """How long a loop may be inactive, failing and starting."""

    inactivity_s: float
    failing_s: float
    startup_s: float


class Health:
    """The loop reports each iteration; the health page asks for a problem."""

    def __init__(self, timeouts: HealthTimeouts) -> None:
        self.timeouts = timeouts
        self._began_s: float | None = None
        self._active_s = 0.0
        self._succeeded_s: float | None = None
        self._started_s: float | None = None

    def begin(self, now_s: float) -> None:
        """The loop runs from now on."""
        self._began_s = self._active_s = now_s
        self._succeeded_s = None

    def end(self) -> None:
        self._began_s = self._started_s = None

    def on_loop_started(self, now_s: float) -> None:
        self._active_s = self._started_s = now_s

    def on_loop_finished(self, now_s: float, *, is_success: bool) -> None:
        self._active_s = now_s
        self._started_s = None
        if is_success:
            self._succeeded_s = now_s

    def measure_loop_s(self, now_s: float) -> float | None:
        """How long the current loop iteration has been under way; None between iterations."""
        return None if self._started_s is None else now_s - self._started_s

    def describe(self, now_s: float) -> str:
        """What the loop does now; empty before `begin` and after `end`."""
        if self._began_s is None:
            return ""
        loop_s = self.measure_loop_s(now_s)
        if loop_s is not None:
            return describe_loop(loop_s)
        if self._succeeded_s is None and self._active_s == self._began_s:
            return f"the first loop iteration waits for its caches ({format_duration(round(now_s - self._began_s))})"
        return f"the last loop iteration ended {format_duration(round(now_s - self._active_s))} ago"

    def find_problem(self, now_s: float) -> str:
        """The problem; empty if the loop is healthy."""
        limits = self.timeouts
        if self._began_s is None:
            return ""
        if (idle_s := now_s - self._active_s) > limits.inactivity_s:
            return _format_overdue("last activity", idle_s, limits.inactivity_s)
        if self._succeeded_s is None:
            if (waited_s := now_s - self._began_s) > limits.startup_s:
                return _format_overdue("no success since the start", waited_s, limits.startup_s)
            return ""
        if (failing_s := now_s - self._succeeded_s) > limits.failing_s:
            return _format_overdue("last success", failing_s, limits.failing_s)
        return ""


def describe_loop(loop_s: float) -> str:
    return f"a loop iteration is under way ({format_duration(round(loop_s))})"


def _format_overdue(what: str, waited_s: float, limit_s: float) -> str:
    return f"{what} {format_duration(waited_s)} ago, more than {format_duration(limit_s)}"
