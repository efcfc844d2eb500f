"""How long nothing is changed after a change. One clock for each group, and both directions wait on it.

It stands in the autoscaler's status and on the TidbCluster: if a crash came between the two writes, the later one
counts. A clock that was wrong must not hold a group for ever, so a time of more than a day ahead is none.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from math import floor
from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.objects.api.meta import written_time
from plimsoll.tidb.model.reasons import ReasonCode, told
from plimsoll.tidb.planning.api.defaults import SCALE_IN_INTERVAL_S, SCALE_OUT_INTERVAL_S

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.core.plans import Reason
    from plimsoll.objects.api.tidb import ComponentAutoScaler

OUT: Final = "out"
IN: Final = "in"
_FARTHEST_AHEAD: Final = timedelta(hours=24)


class LastChange(Value):
    """`moment` None: there was none. `jumped`: times that are too far ahead to be believed."""

    moment: datetime | None = None
    jumped: tuple[datetime, ...] = ()

    def notes(self) -> tuple[Reason, ...]:
        return tuple(
            told(ReasonCode.CLOCK_JUMPED, f"the last change at {written_time(one)} is too far ahead and not believed")
            for one in self.jumped
        )


def last_change(told_times: Iterable[datetime | None], *, now: datetime) -> LastChange:
    """The latest of the times that can be true."""
    times = [told_time for told_time in told_times if told_time is not None]
    credible = [time for time in times if time - now <= _FARTHEST_AHEAD]
    jumped = sorted(set(times) - set(credible))
    return LastChange(moment=max(credible, default=None), jumped=tuple(jumped))


def interval_s(scaled: ComponentAutoScaler | None, direction: str) -> int:
    """How long a change in this direction waits after the last one."""
    given = None
    if scaled is not None:
        given = scaled.scale_in_interval_seconds if direction == IN else scaled.scale_out_interval_seconds
    default = SCALE_IN_INTERVAL_S if direction == IN else SCALE_OUT_INTERVAL_S
    return default if given is None else given


def cooling(last: LastChange, *, interval_s: int, now: datetime) -> Reason | None:
    """Why a change must wait; None: it need not. Whole seconds count, so the moment itself is soon enough."""
    if last.moment is None or floor((now - last.moment).total_seconds()) >= interval_s:
        return None
    until = written_time(last.moment + timedelta(seconds=interval_s))
    return told(ReasonCode.COOLING_DOWN, f"nothing is changed before {until}", until=until, intervalSeconds=interval_s)
