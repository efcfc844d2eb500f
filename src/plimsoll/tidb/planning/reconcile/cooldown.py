"""The cooldown after a change. Each group has one clock, and both directions wait for it.

The time of the last change is in the status of the autoscaler and on the TidbCluster. After a crash between the two
writes, the later one counts. A wrong clock must not hold a group forever, so a time more than a day ahead is ignored.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.durations import add_seconds
from plimsoll.core.values import Value
from plimsoll.objects.api.meta import format_time
from plimsoll.operator.cooldowns import find_latest, is_cooling_down
from plimsoll.tidb.model.reasons import ReasonCode, make_reason
from plimsoll.tidb.planning.api.defaults import SCALE_IN_INTERVAL_S, SCALE_OUT_INTERVAL_S

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from plimsoll.core.plans import Reason
    from plimsoll.objects.api.tidb import ComponentAutoScaler

OUT: Final = "out"
IN: Final = "in"


class LastChange(Value):
    """`moment` None: there was no change. `jumped`: times too far ahead to be plausible."""

    moment: datetime | None = None
    jumped: tuple[datetime, ...] = ()

    def build_clock_notes(self) -> tuple[Reason, ...]:
        return tuple(
            make_reason(
                ReasonCode.CLOCK_JUMPED, f"the last change at {format_time(moment)} is too far ahead and ignored"
            )
            for moment in self.jumped
        )


def find_last_change(recorded_times: Iterable[datetime | None], *, now: datetime) -> LastChange:
    """The latest plausible time."""
    latest = find_latest(recorded_times, now=now)
    return LastChange(moment=latest.time, jumped=latest.ignored)


def get_interval_s(scaled: ComponentAutoScaler | None, direction: str) -> int:
    """How long a change in this direction waits after the last one."""
    given = None
    if scaled is not None:
        given = scaled.scale_in_interval_seconds if direction == IN else scaled.scale_out_interval_seconds
    default = SCALE_IN_INTERVAL_S if direction == IN else SCALE_OUT_INTERVAL_S
    return default if given is None else given


def check_cooldown(last: LastChange, *, interval_s: int, now: datetime) -> Reason | None:
    """Why a change must wait; None: it need not.

    Whole seconds are compared, so the end of the interval is soon enough.
    """
    if last.moment is None or not is_cooling_down(last.moment, delay_s=interval_s, now=now):
        return None
    until = format_time(add_seconds(last.moment, interval_s))
    return make_reason(ReasonCode.COOLING_DOWN, f"no change before {until}", until=until, intervalSeconds=interval_s)
