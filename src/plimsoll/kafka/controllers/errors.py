"""What ends a reconcile of a Kafka cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.errors import PlimsollError

if TYPE_CHECKING:
    from plimsoll.core.plans import Reason


class ReconcileFailed(PlimsollError):
    """The reconcile cannot go on; the condition of the Kafka has the reason. Nothing that is stored is lost."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason
