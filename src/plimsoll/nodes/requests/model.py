"""A ProvisioningRequest of ours as one turn sees it. Data only: made by `reading`, read by everybody else here.

What a turn said of ProvisioningRequests, and of the pods that consume them. Data only, for `telling`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING

from plimsoll.nodes.requests.status import Conditions, ConditionType, Details

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plimsoll.core.plans import Reason
    from plimsoll.nodes.model.snapshot import PendingPods
    from plimsoll.nodes.requests.parameters import Parameters
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.provisioning_requests import ProvisioningRequest


class ClassKind(StrEnum):
    """What its class does."""

    CHECK = "check"
    ATOMIC = "atomic"
    REGISTERED = "registered"
    """A class of somebody else, made known through the entry point `plimsoll.provisioning_classes`."""


class Phase(StrEnum):
    """Where it stands (specs/nodes.md 3.6), by what is stored."""

    DUE = "due"
    """To be tried in this turn."""
    WAITING = "waiting"
    """Tried before; its back-off is not over."""
    INTENDED = "intended"
    """Growth was begun and nobody wrote how it ended: finish it, or take it back."""
    ARRIVING = "arriving"
    """Growth was asked for, its nodes are not all there (`--provreq-provisioned-when=registered`)."""
    HELD = "held"
    """It has its capacity, and its booking lasts."""
    OVER = "over"
    """Failed, revoked, or its booking has ended."""
    UNKNOWN = "unknown"
    """Somebody says that nobody knows (`Provisioned=Unknown`): it is left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestView:
    """One request of a class that is handled here, and for this instance."""

    request: ProvisioningRequest
    class_kind: ClassKind
    parameters: Parameters
    phase: Phase
    conditions: Conditions = field(default_factory=Conditions)
    details: Details = field(default_factory=Details)
    pods: tuple[PendingPods, ...] = ()
    """One for each pod set, with the request as bundle; empty where there is a problem."""
    templates: tuple[Pod, ...] = ()
    """What a pod of each pod set would be: consuming pods are compared with it."""
    problem: tuple[str, str] | None = None
    """Reason and message of a request that fails before anything is planned."""

    @property
    def name(self) -> str:
        """NAMESPACE/NAME."""
        return f"{self.request.metadata.namespace}/{self.request.metadata.name}"

    @property
    def total(self) -> int:
        return sum(pod_set.count for pod_set in self.request.spec.pod_sets)

    @property
    def created(self) -> datetime | None:
        return self.request.metadata.creation_timestamp


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedRequests:
    """All of them, and what else a turn wants to know of requests."""

    queue: tuple[RequestView, ...] = ()
    """DUE and INTENDED, in the order in which they are served (4.2): begun ones first, then priority, age, name."""
    held: tuple[RequestView, ...] = ()
    """HELD and ARRIVING: their capacity is booked, where they reserve it; the oldest answer first."""
    others: tuple[RequestView, ...] = ()
    """WAITING, OVER, UNKNOWN."""
    known: frozenset[str] = frozenset()
    """NAMESPACE/NAME of every request there is, of any class."""
    priorities: Mapping[str, int] = field(default_factory=dict)

    @property
    def all(self) -> tuple[RequestView, ...]:
        return (*self.queue, *self.held, *self.others)


class UpdateKind(StrEnum):
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
class StatusUpdate:
    """One thing said of one request. `reason.message` is what conditions, Events and the journal tell."""

    view: RequestView
    kind: UpdateKind
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
        return (
            self.view.conditions.get(ConditionType.ACCEPTED) is None
            and self.conditions.get(ConditionType.ACCEPTED) is not None
        )


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
    view: RequestView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestsPart:
    """ProvisioningRequests, this turn."""

    updates: tuple[StatusUpdate, ...] = ()
    warnings: tuple[ConsumerWarning, ...] = ()
    known: frozenset[str] | None = None
    """NAMESPACE/NAME of every request there is; None: nobody looked."""
    views: tuple[RequestView, ...] = ()
    """Those of ours, as the turn found them."""
    waiting: Mapping[str, int] = field(default_factory=dict)
    """Requests without an answer, by class name."""
    booked: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By request: pods booked by node."""
    unbookable: Mapping[str, int] = field(default_factory=dict)
    """By request: pods that its booking found no place for."""

    @property
    def news(self) -> tuple[StatusUpdate, ...]:
        """What is told."""
        return tuple(update for update in self.updates if update.is_news)

    @property
    def did_something(self) -> bool:
        """Whether the next turn should follow at once (specs/nodes.md 4.5)."""
        answered = {
            UpdateKind.PROVISIONED,
            UpdateKind.NOT_FOUND,
            UpdateKind.FAILED,
            UpdateKind.WAITING_FOR_NODES,
            UpdateKind.ROLLED_BACK,
        }
        return any(update.kind in answered and update.is_written for update in self.updates)
