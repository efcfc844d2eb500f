"""What ends a reconcile of a Kafka cluster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import PlimsollError
from plimsoll.core.plans import Reason
from plimsoll.kafka.model.rebalances import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.objects.codec.decode_problems import BadObject

_MOST_NAMED: Final = 5


class ReconcileFailed(PlimsollError):
    """The reconcile cannot go on; the condition of the Kafka has the reason. Nothing that is stored is lost."""

    def __init__(self, reason: Reason) -> None:
        super().__init__(str(reason))
        self.reason = reason


class ObjectsUnreadable(ReconcileFailed):
    """Objects that belong to the cluster, or its Kafka, exist and cannot be decoded."""

    def __init__(self, objects: Sequence[BadObject]) -> None:
        problems = "; ".join(str(explain_unreadable(bad)) for bad in objects[:_MOST_NAMED])
        super().__init__(Reason(code=UNREADABLE, message=f"{problems}: nothing is changed"))
        self.objects = tuple(objects)


def explain_unreadable(bad: BadObject) -> Reason:
    """Which object cannot be decoded, and because of which field."""
    message = f"{bad.kind.lower()}/{bad.namespace}/{bad.name} cannot be decoded: {bad.problem}"
    return Reason(code=UNREADABLE, message=message)
