"""One pass over a component, as every decision of it needs it: what is seen, the policy, the time, and how sure it is.

Counts that go from pass to pass (answers that left a group out, passes that wanted a change) are read here from the
status; `pass_statuses` writes them back.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from plimsoll.core.values import Value
from plimsoll.objects.api.tidb import GroupScalingStatus
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.model.reasons import ReasonCode, told
from plimsoll.tidb.model.reconcile_types import (
    ComponentSeen,  # noqa: TC001
    PassPolicy,  # noqa: TC001
)
from plimsoll.tidb.planning.reconcile.cooldown import IN, cooling, interval_s, last_change

if TYPE_CHECKING:
    from plimsoll.core.plans import Reason
    from plimsoll.tidb.planning.reconcile.desired import DesiredCount


class ReconcileContext(Value):
    """`spares_young`: groups that are not registered yet are not removed by being left out.

    `may_remove` is off if the answer is doubtful. `is_final`: nothing of the component is wanted any more, which needs
    no confirmation and waits for no instance to come.
    """

    seen: ComponentSeen
    policy: PassPolicy
    now: datetime
    spares_young: bool = True
    may_remove: bool = True
    is_final: bool = False
    ignores_cooldown: bool = False

    @property
    def is_tikv(self) -> bool:
        return self.seen.component is Component.TIKV

    def entry(self, key: str) -> GroupScalingStatus:
        return self.seen.status.get(key) or GroupScalingStatus()

    def is_past_grace(self, since: datetime | None) -> bool:
        return since is not None and self.now - since >= timedelta(seconds=self.policy.registration_grace_s)

    def omitted(self, want: DesiredCount) -> int:
        """How many accepted answers in a row have left the group out, with this one. More than needed is not told."""
        if want.count:
            return 0
        before = self.entry(want.key).omitted_count
        return min(before + 1, self.policy.removal_confirmations) if self.may_remove and not self.is_final else before

    def run(self, key: str, direction: str) -> int:
        """For how many passes in a row a change in this direction is wanted, with this one; 0 if one is enough."""
        needed, before = self._needed(direction), self.entry(key)
        if needed <= 1:
            return 0
        return min(before.wanted_count + 1 if before.wanted_direction == direction else 1, needed)

    def waits(
        self, key: str, direction: str, *, annotated: datetime | None = None
    ) -> tuple[Reason | None, tuple[Reason, ...]]:
        """Why a change in this direction must wait, whatever it is; and what is odd about the clock."""
        entry = self.entry(key)
        times = [entry.last_auto_scaling_timestamp, annotated]
        last = last_change([*times, entry.last_reversal_timestamp] if direction == IN else times, now=self.now)
        if self.ignores_cooldown:
            return None, last.notes()
        needed = self._needed(direction)
        if self.run(key, direction) < needed and needed > 1:
            message = f"a change must be wanted {needed} times in a row"
            return told(ReasonCode.NOT_LONG_ENOUGH, message, needed=needed), last.notes()
        return cooling(last, interval_s=interval_s(self.seen.scaled, direction), now=self.now), last.notes()

    def _needed(self, direction: str) -> int:
        if self.is_final:
            return 1
        return self.policy.in_consecutive if direction == IN else self.policy.out_consecutive
