"""The context of a decision: the observed component, the policy and the time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.durations import add_seconds
from plimsoll.core.values import Value
from plimsoll.objects.api.tidb import GroupScalingStatus
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.model.reasons import ReasonCode, make_reason
from plimsoll.tidb.model.reconcile_types import (
    ObservedComponent,  # noqa: TC001
    ReconcilePolicy,  # noqa: TC001
)
from plimsoll.tidb.planning.reconcile.cooldown import IN, check_cooldown, find_last_change, get_interval_s

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.core.plans import Reason
    from plimsoll.tidb.planning.reconcile.desired import DesiredCount


class ReconcileContext(Value):
    """`spares_young`: groups whose instances have not registered yet are not removed when an answer omits them.

    `may_remove` is False if the answer is doubtful. `is_final`: the component is no longer wanted at all, which needs
    no confirmation and waits for no instance.
    """

    observed: ObservedComponent
    policy: ReconcilePolicy
    now: datetime
    spares_young: bool = True
    may_remove: bool = True
    is_final: bool = False
    ignores_cooldown: bool = False

    @property
    def is_tikv(self) -> bool:
        return self.observed.component is Component.TIKV

    def get_status_entry(self, key: str) -> GroupScalingStatus:
        return self.observed.status.get(key) or GroupScalingStatus()

    def is_past_grace(self, since: datetime | None) -> bool:
        return since is not None and add_seconds(since, self.policy.registration_grace_s) <= self.now

    def count_omissions(self, desired: DesiredCount) -> int:
        """How many consecutive accepted answers, this one included, omit the group; capped at what is needed."""
        if desired.count:
            return 0
        before = self.get_status_entry(desired.key).omitted_count
        return min(before + 1, self.policy.removal_confirmations) if self.may_remove and not self.is_final else before

    def count_wanted(self, key: str, direction: str) -> int:
        """For how many consecutive reconciles, this one included, the change is wanted; 0 if one is enough."""
        needed, before = self._count_needed(direction), self.get_status_entry(key)
        if needed <= 1:
            return 0
        return min(before.wanted_count + 1 if before.wanted_direction == direction else 1, needed)

    def check_wait(
        self, key: str, direction: str, *, annotated: datetime | None = None
    ) -> tuple[Reason | None, tuple[Reason, ...]]:
        """Why a change in this direction must wait, and notes about implausible clocks."""
        entry = self.get_status_entry(key)
        times = [entry.last_auto_scaling_timestamp, annotated]
        last = find_last_change([*times, entry.last_reversal_timestamp] if direction == IN else times, now=self.now)
        if self.ignores_cooldown:
            return None, last.build_clock_notes()
        needed = self._count_needed(direction)
        if self.count_wanted(key, direction) < needed and needed > 1:
            message = f"a change must be wanted in {needed} consecutive reconciles"
            return make_reason(ReasonCode.NOT_LONG_ENOUGH, message, needed=needed), last.build_clock_notes()
        return check_cooldown(
            last, interval_s=get_interval_s(self.observed.scaled, direction), now=self.now
        ), last.build_clock_notes()

    def _count_needed(self, direction: str) -> int:
        if self.is_final:
            return 1
        return self.policy.in_consecutive if direction == IN else self.policy.out_consecutive
