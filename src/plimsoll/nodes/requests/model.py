"""A ProvisioningRequest as one loop sees it, and the updates that the loop writes to it. Data only."""

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
    """The behaviour of a provisioning class."""

    CHECK = "check"
    ATOMIC = "atomic"
    REGISTERED = "registered"
    """A class of another package, registered through the entry point `plimsoll.provisioning_classes`."""


class Phase(StrEnum):
    """The phase of a request (docs/design/nodes.md 3.6), derived from what is stored in it."""

    DUE = "due"
    """To be tried in this loop."""
    WAITING = "waiting"
    """Tried before; its back-off has not ended."""
    INTENDED = "intended"
    """A scale-up was begun and its end was not written: finish it or roll it back."""
    ARRIVING = "arriving"
    """The scale-up was requested; not all nodes have joined (`--provreq-provisioned-when=registered`)."""
    HELD = "held"
    """It has its capacity, and its booking has not ended."""
    OVER = "over"
    """Failed, revoked, or its booking has ended."""
    UNKNOWN = "unknown"
    """Another writer set `Provisioned=Unknown`: the request is left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestView:
    """A request of a class that this instance serves."""

    request: ProvisioningRequest
    class_kind: ClassKind
    parameters: Parameters
    phase: Phase
    conditions: Conditions = field(default_factory=Conditions)
    details: Details = field(default_factory=Details)
    pods: tuple[PendingPods, ...] = ()
    """One entry per pod set, with the request as bundle; empty if the request has a problem."""
    templates: tuple[Pod, ...] = ()
    """The pod of each pod set; consuming pods are compared with it."""
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
    """All requests that this instance serves, by what a loop does with them."""

    queue: tuple[RequestView, ...] = ()
    """DUE and INTENDED, in serving order (docs/design/nodes.md 4.2): INTENDED first, then by priority, age and name."""
    held: tuple[RequestView, ...] = ()
    """HELD and ARRIVING: their capacity is booked if they reserve it; the oldest answer first."""
    others: tuple[RequestView, ...] = ()
    """WAITING, OVER, UNKNOWN."""
    known: frozenset[str] = frozenset()
    """NAMESPACE/NAME of every request in the cluster, of any class."""
    priorities: Mapping[str, int] = field(default_factory=dict)

    @property
    def all(self) -> tuple[RequestView, ...]:
        return (*self.queue, *self.held, *self.others)


class UpdateKind(StrEnum):
    """The kind of a status update: the reason of its Event (docs/design/nodes.md 4.6) and the metric label."""

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
    """A new status for one request. Conditions, Events and the journal all carry `reason.message`."""

    view: RequestView
    kind: UpdateKind
    reason: Reason
    conditions: Conditions
    """All conditions after the update."""
    details: Details
    is_written: bool = True
    """False: the API server rejected the write. Nothing is assumed; the next loop writes it again."""
    is_news: bool = True
    """False: the update only removes stored state that is obsolete, so it is not reported."""

    @property
    def accepts(self) -> bool:
        """Whether this update is the first to set the condition Accepted."""
        return (
            self.view.conditions.get(ConditionType.ACCEPTED) is None
            and self.conditions.get(ConditionType.ACCEPTED) is not None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerWarning:
    """A problem of a pod that consumes a request, or of the request while such pods wait.

    `reason.code` is the reason of the Event: ProvisioningClassAnnotationMissing, ProvisioningClassMismatch,
    ProvisioningRequestPodMismatch, ProvisioningRequestMissing, ConsumingPodsUnschedulable.
    """

    reason: Reason
    request: str
    """NAMESPACE/NAME."""
    pod: Pod | None = None
    """None: the warning is about the request. For a missing request, one pod stands for all that consume it."""
    view: RequestView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestsPart:
    """What one loop did for ProvisioningRequests."""

    updates: tuple[StatusUpdate, ...] = ()
    warnings: tuple[ConsumerWarning, ...] = ()
    known: frozenset[str] | None = None
    """NAMESPACE/NAME of every request in the cluster; None: requests were not listed."""
    views: tuple[RequestView, ...] = ()
    """The requests that this instance serves, as they were at the start of the loop."""
    waiting: Mapping[str, int] = field(default_factory=dict)
    """Requests without an answer, by class name."""
    booked: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """By request: booked pods by node."""
    unbookable: Mapping[str, int] = field(default_factory=dict)
    """By request: pods for which the booking found no room."""

    @property
    def news(self) -> tuple[StatusUpdate, ...]:
        """The updates to report."""
        return tuple(update for update in self.updates if update.is_news)

    @property
    def did_something(self) -> bool:
        """Whether the next loop should follow immediately (docs/design/nodes.md 4.5)."""
        answered = {
            UpdateKind.PROVISIONED,
            UpdateKind.NOT_FOUND,
            UpdateKind.FAILED,
            UpdateKind.WAITING_FOR_NODES,
            UpdateKind.ROLLED_BACK,
        }
        return any(update.kind in answered and update.is_written for update in self.updates)
