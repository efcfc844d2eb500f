"""What keeps the autoscaler from acting though it would: a dry run, a pause. Pure.

The third brake, a limit on removals in an hour, is `acting.removal_ledger`: it has to be written down.
A pause is the annotation `plimsoll.io/paused` on the program's ConfigMap (`plimsoll pause` sets it); its value says who
or why. Plans are made and told as ever: people see what would happen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason

if TYPE_CHECKING:
    from plimsoll.nodes.config.policy import Policy

PAUSED_ANNOTATION: Final = "plimsoll.io/paused"
DRY_RUN: Final = "DryRun"
PAUSED: Final = "Paused"
TOO_MANY_REMOVALS: Final = "MaxRemovalsPerHour"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionGuard:
    """Those that are on in a turn."""

    dry_run: bool = False
    paused: str = ""

    @classmethod
    def of(cls, policy: Policy, *, paused: str) -> ActionGuard:
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
