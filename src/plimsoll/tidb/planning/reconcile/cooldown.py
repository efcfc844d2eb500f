"""How long nothing is changed after a change. One clock for each group, and both directions wait on it.

It stands in the autoscaler's status and on the TidbCluster: if a crash came between the two writes, the later one
counts. A clock that was wrong must not hold a group for ever, so a time of more than a day ahead is none.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.objects.api.meta import written_time
from plimsoll.operator.cooldowns import find_latest, is_cooling_down
from plimsoll.tidb.model.reasons import ReasonCode, told
from plimsoll.tidb.planning.api.defaults import SCALE_IN_INTERVAL_S, SCALE_OUT_INTERVAL_S

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.core.plans import Reason
    from plimsoll.objects.api.tidb import ComponentAutoScaler

OUT: Final = "out"
IN: Final = "in"


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
    latest = find_latest(told_times, now=now)
    return LastChange(moment=latest.time, jumped=latest.ignored)


def interval_s(scaled: ComponentAutoScaler | None, direction: str) -> int:
    """How long a change in this direction waits after the last one."""
    given = None
    if scaled is not None:
        given = scaled.scale_in_interval_seconds if direction == IN else scaled.scale_out_interval_seconds
    default = SCALE_IN_INTERVAL_S if direction == IN else SCALE_OUT_INTERVAL_S
    return default if given is None else given


def cooling(last: LastChange, *, interval_s: int, now: datetime) -> Reason | None:
    """Why a change must wait; None: it need not."""
    if last.moment is None or not is_cooling_down(last.moment, delay_s=interval_s, now=now):
        return None
    until = written_time(last.moment + timedelta(seconds=interval_s))
    return told(ReasonCode.COOLING_DOWN, f"nothing is changed before {until}", until=until, intervalSeconds=interval_s)
