"""What keeps the autoscaler from acting though it would: a dry run, a pause, a limit on removals in an hour. Pure.

A pause is the annotation `plimsoll.io/paused` on the program's ConfigMap (`plimsoll pause` sets it); its value says who
or why. Plans are made and told as ever: people see what would happen.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from plimsoll.nodes.planning.departures import Removal
    from plimsoll.nodes.policy import Policy

PAUSED_ANNOTATION: Final = "plimsoll.io/paused"
DRY_RUN: Final = "DryRun"
PAUSED: Final = "Paused"
TOO_MANY_REMOVALS: Final = "MaxRemovalsPerHour"
_HOUR: Final = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Brakes:
    """Those that are on in a turn."""

    dry_run: bool = False
    paused: str = ""

    @classmethod
    def of(cls, policy: Policy, *, paused: str) -> Brakes:
        return cls(dry_run=policy.operation.dry_run, paused=paused)

    @property
    def reason(self) -> Reason | None:
        """None: actions are free."""
        if self.dry_run:
            return Reason(code=DRY_RUN, message="dry run: it is only told, not done")
        if self.paused:
            why = "" if self.paused == "true" else f": {self.paused}"
            return Reason(code=PAUSED, message=f"paused{why}")
        return None


class RemovalRate:
    """Removals begun in the last hour, in the order of time."""

    def __init__(self) -> None:
        self._begun: deque[datetime] = deque()

    def allowed(
        self, removals: Sequence[Removal], most: int | None, now: datetime
    ) -> tuple[tuple[Removal, ...], dict[str, Reason]]:
        """Those that may begin, counted from now on, and why the others may not."""
        while self._begun and self._begun[0] + _HOUR <= now:
            self._begun.popleft()
        room = len(removals) if most is None else max(0, most - len(self._begun))
        self._begun.extend(now for _ in removals[:room])
        reason = Reason(
            code=TOO_MANY_REMOVALS,
            message=f"max-removals-per-hour is {most}, and so many nodes were removed in the last hour",
            facts={"maxRemovalsPerHour": most},
        )
        return tuple(removals[:room]), {one.node: reason for one in removals[room:]}
