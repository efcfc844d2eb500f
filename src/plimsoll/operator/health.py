"""Whether the autoscaler is alive, as `/health-check` answers and a kubelet asks. Pure: `now` comes from outside.

Without activity for `--max-inactivity`, or without a success for `--max-failing-time`, it is not, and had better be
started anew; before its first success it has `--max-startup-time` (specs/nodes.md 6.1). Who does not lead does nothing
and is well: nothing is expected before `begin`, nor after `end`. Seconds are of one monotonic clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.nodes.cluster_state.changes import spelled

if TYPE_CHECKING:
    from plimsoll.nodes.config.policy import Operation


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """The three times."""

    inactivity_s: float
    failing_s: float
    startup_s: float

    @classmethod
    def of(cls, operation: Operation) -> Patience:
        return cls(
            inactivity_s=operation.max_inactivity_s,
            failing_s=operation.max_failing_time_s,
            startup_s=operation.max_startup_time_s,
        )


class Health:
    """Told of every turn, asked by the probe."""

    def __init__(self, patience: Patience) -> None:
        self.patience = patience
        self._began_s: float | None = None
        self._active_s = 0.0
        self._succeeded_s: float | None = None

    def begin(self, now_s: float) -> None:
        """From now on turns are expected."""
        self._began_s = self._active_s = now_s
        self._succeeded_s = None

    def end(self) -> None:
        self._began_s = None

    def turn_begins(self, now_s: float) -> None:
        self._active_s = now_s

    def turn_ended(self, now_s: float, *, is_success: bool) -> None:
        self._active_s = now_s
        if is_success:
            self._succeeded_s = now_s

    def problem(self, now_s: float) -> str:
        """Empty: it is well."""
        if self._began_s is None:
            return ""
        if (idle_s := now_s - self._active_s) > self.patience.inactivity_s:
            return f"last activity {spelled(idle_s)} ago, more than {spelled(self.patience.inactivity_s)}"
        if self._succeeded_s is None:
            if (waited_s := now_s - self._began_s) > self.patience.startup_s:
                return (
                    f"no success since the start {spelled(waited_s)} ago, more than {spelled(self.patience.startup_s)}"
                )
            return ""
        if (failing_s := now_s - self._succeeded_s) > self.patience.failing_s:
            return f"last success {spelled(failing_s)} ago, more than {spelled(self.patience.failing_s)}"
        return ""
