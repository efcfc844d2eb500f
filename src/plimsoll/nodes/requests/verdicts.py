"""What a turn said of ProvisioningRequests, and of the pods that consume them. Data only, for `telling`."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from plimsoll.nodes.requests.conditions import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.plans import Reason
    from plimsoll.nodes.requests.conditions import Conditions
    from plimsoll.nodes.requests.details import Details
    from plimsoll.nodes.requests.seen import Seen
    from plimsoll.objects.pods import Pod


class Saying(StrEnum):
    """What became of a request: the reasons of its Events (specs/nodes.md 4.6) and of `provreq_total{outcome}`."""

    ACCEPTED = "Accepted"
    PROVISIONED = "Provisioned"
    NOT_FOUND = "CapacityNotFound"
    FAILED = "Failed"
    BOOKING_EXPIRED = "BookingExpired"
    REVOKED = "CapacityRevoked"
    ROLLED_BACK = "RolledBack"
    WAITING_FOR_NODES = "WaitingForNodes"
    DELETED = "Deleted"


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """One thing said of one request. `reason.message` is what conditions, Events and the journal tell."""

    seen: Seen
    saying: Saying
    reason: Reason
    conditions: Conditions
    """All that it has then."""
    details: Details
    is_written: bool = True
    """False: the API server did not take it, and nothing is assumed; the next turn says it again."""
    is_news: bool = True
    """False: only what was remembered is tidied up, and nobody is told."""

    @property
    def accepts(self) -> bool:
        """Whether it is the first to say of the request that it was picked up."""
        return self.seen.conditions.get(Kind.ACCEPTED) is None and self.conditions.get(Kind.ACCEPTED) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerWarning:
    """Something wrong with a pod that says it consumes a request, or with the request while such pods wait.

    `reason.code` is that of the Event: ProvisioningClassAnnotationMissing, ProvisioningClassMismatch,
    ProvisioningRequestPodMismatch, ProvisioningRequestMissing, ConsumingPodsUnschedulable.
    """

    reason: Reason
    request: str
    """NAMESPACE/NAME."""
    pod: Pod | None = None
    """None: it is told of the request itself; of a request that is missing, one of the pods speaks for all."""
    seen: Seen | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestsPart:
    """ProvisioningRequests, this turn."""

    verdicts: tuple[Verdict, ...] = ()
    warnings: tuple[ConsumerWarning, ...] = ()
    known: frozenset[str] | None = None
    """NAMESPACE/NAME of every request there is; None: nobody looked."""
    seen: tuple[Seen, ...] = ()
    """Those of ours, as the turn found them."""
    waiting: Mapping[str, int] = field(default_factory=dict)
    """Requests without an answer, by class name."""
    booked: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By request: pods booked by node."""
    unbookable: Mapping[str, int] = field(default_factory=dict)
    """By request: pods that its booking found no place for."""

    @property
    def news(self) -> tuple[Verdict, ...]:
        """What is told."""
        return tuple(one for one in self.verdicts if one.is_news)

    @property
    def did_something(self) -> bool:
        """Whether the next turn should follow at once (specs/nodes.md 4.5)."""
        answered = {Saying.PROVISIONED, Saying.NOT_FOUND, Saying.FAILED, Saying.WAITING_FOR_NODES, Saying.ROLLED_BACK}
        return any(one.saying in answered and one.is_written for one in self.verdicts)
