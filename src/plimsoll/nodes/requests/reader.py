"""Reads ProvisioningRequests into `RequestView`s: class, instance, phase and serving order. Pure.

Requests listed from a cluster and from files are read by the same code, so that `plimsoll plan` predicts what the
controller does. A request that cannot be served becomes a view with a problem; it does not affect others.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.nodes.requests.classes import explain_not_allowed, find_class_kind, is_for_instance
from plimsoll.nodes.requests.lifecycle import compute_phase, has_expired
from plimsoll.nodes.requests.model import ClassKind, ObservedRequests, Phase, RequestView
from plimsoll.nodes.requests.parameters import Parameters
from plimsoll.nodes.requests.pod_sets import Admission, PodCache, PodTemplates
from plimsoll.nodes.requests.status import ConditionReason, Conditions, ConditionType, Details
from plimsoll.objects.api.pods import PodTemplate
from plimsoll.objects.api.provisioning_requests import ProvisioningClass, ProvisioningRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.requests.pod_sets import PodSets
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.policy import PriorityClass
    from plimsoll.objects.codec.decode_problems import BadObject

Json = dict[str, Any]

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_LATEST: Final = datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRequests:
    """All requests, and the objects that are needed to read them."""

    requests: tuple[ProvisioningRequest, ...] = ()
    templates: Mapping[str, Json] = field(default_factory=dict)
    """PodTemplates by NAMESPACE/NAME; only those that a request refers to."""
    limit_ranges: Mapping[str, Sequence[Json]] = field(default_factory=dict)
    """By namespace, in the order in which their defaults apply."""
    priority_classes: tuple[PriorityClass, ...] = ()
    provisioning_classes: tuple[ProvisioningClass, ...] = ()
    bad: tuple[BadObject, ...] = ()
    """Objects of these kinds that could not be decoded."""
    registered: Mapping[str, Collection[str]] = field(default_factory=dict)
    """Registered classes, each with the condition types it owns."""
    as_scheduled: Callable[[Pod], Pod] | None = field(default=None, compare=False, repr=False)
    """Converts a pod to the form the cluster's scheduler uses, where that differs."""
    pod_cache: PodCache | None = field(default=None, compare=False, repr=False)
    booking_times: Mapping[str, datetime] = field(default_factory=dict)
    """By uid: the time for bookings that began before the clock was set. The others go by the clock."""


def read_requests(listed: ListedRequests, policy: Policy, now: datetime) -> ObservedRequests:
    """Read all requests that this instance serves. Requests being deleted count as gone."""
    reader = _Reader(listed, policy, now)
    there = [request for request in listed.requests if request.metadata.deletion_timestamp is None]
    view = [found for request in there if (found := reader.read(request)) is not None]
    reader.templates.drop_unused()
    queue = [
        request for request in view if request.phase in {Phase.DUE, Phase.INTENDED} and not _has_given_up(request, now)
    ]
    held = [request for request in view if request.phase in {Phase.HELD, Phase.ARRIVING}]
    apart = {request.name for request in (*queue, *held)}
    return ObservedRequests(
        queue=sort_queue(queue, reader.priorities),
        held=tuple(sorted(held, key=_get_booking_order)),
        others=tuple(
            sorted(
                (request for request in view if request.name not in apart), key=lambda request_view: request_view.name
            )
        ),
        known=frozenset(f"{request.metadata.namespace}/{request.metadata.name}" for request in listed.requests)
        | reader.bad_requests,
        priorities=reader.priorities,
    )


def sort_queue(waiting: Collection[RequestView], priorities: Mapping[str, int]) -> tuple[RequestView, ...]:
    """The serving order: requests with an intent, then by priority, age and name (docs/design/nodes.md 4.2)."""

    def rank(view: RequestView) -> tuple[bool, int, datetime, str]:
        return view.phase is not Phase.INTENDED, -priorities.get(view.name, 0), view.created or _LATEST, view.name

    return tuple(sorted(waiting, key=rank))


def _has_given_up(view: RequestView, now: datetime) -> bool:
    """Whether the request has expired with nothing to finish or roll back."""
    return view.phase is Phase.DUE and has_expired(view, now)


def _get_booking_order(view: RequestView) -> tuple[datetime, str]:
    return view.conditions.get_since(ConditionType.PROVISIONED) or _LATEST, view.name


class _Reader:
    """Reads requests with the objects that were listed with them."""

    def __init__(self, listed: ListedRequests, policy: Policy, now: datetime) -> None:
        self._policy = policy
        self._now = now
        self._registered = listed.registered
        self._booking_times = listed.booking_times
        # A ProvisioningClass that cannot be decoded still exists: its class is allowed.
        self._classes: dict[str, Mapping[str, str]] = {
            name: {} for name in _find_bad(listed, ProvisioningClass.get_kind_name())
        }
        self._classes |= {
            provisioning_class.metadata.name: provisioning_class.defaults
            for provisioning_class in listed.provisioning_classes
        }
        self.bad_requests = frozenset(_find_bad(listed, ProvisioningRequest.get_kind_name()))
        self.templates = PodTemplates(
            listed.templates,
            bad=_find_bad(listed, PodTemplate.get_kind_name()),
            admission=Admission.from_objects(
                listed.limit_ranges, listed.priority_classes, as_scheduled=listed.as_scheduled
            ),
            memory=listed.pod_cache,
        )
        self.priorities: dict[str, int] = {}

    def read(self, request: ProvisioningRequest) -> RequestView | None:
        """The view of a request; None: this instance does not serve it."""
        kind, instance = request.spec.provisioning_class_name, self._policy.requests.instance
        nature = find_class_kind(kind, instance=instance, registered=self._registered)
        if nature is None:
            return None
        parameters = Parameters.from_maps(
            request.spec.parameters,
            self._classes.get(kind, {}),
            is_check=nature is ClassKind.CHECK,
            booking_default_s=self._policy.requests.booking_s,
            counts_upcoming=self._policy.requests.check_counts_upcoming,
        )
        if not is_for_instance(kind, parameters.instance, instance=instance):
            return None
        return self._build_view(request, nature, parameters)

    def _build_view(self, request: ProvisioningRequest, class_kind: ClassKind, parameters: Parameters) -> RequestView:
        kind = request.spec.provisioning_class_name
        conditions = Conditions.from_list(request.status.conditions, own=self._registered.get(kind, ()))
        details = Details.from_texts(request.status.provisioning_class_details)
        now = self._booking_times.get(request.metadata.uid, self._now)
        phase = compute_phase(conditions, details, parameters, policy=self._policy, now=now)
        pods = self.templates.build_pod_sets(request, counts_upcoming=parameters.counts_upcoming)
        problem = self._find_problem(kind, phase, pods)
        view = RequestView(
            request=request,
            class_kind=class_kind,
            parameters=parameters,
            phase=phase,
            conditions=conditions,
            details=details,
            pods=pods.pods if problem is None else (),
            templates=pods.templates,
            problem=problem,
        )
        self.priorities[view.name] = pods.priority
        return view

    def _find_problem(self, kind: str, phase: Phase, pods: PodSets) -> tuple[str, str] | None:
        """Why the request fails; a request that has capacity keeps it, whatever the list of classes says."""
        if phase in {Phase.HELD, Phase.ARRIVING}:
            return (ConditionReason.NOT_BOOKED, pods.problem) if pods.problem else None
        if message := explain_not_allowed(kind, self._classes):
            return ConditionReason.NOT_ALLOWED, message
        return (ConditionReason.NO_PODS, pods.problem) if pods.problem else None


def _find_bad(listed: ListedRequests, kind: str) -> dict[str, str]:
    """Undecodable objects of one kind and why, by NAMESPACE/NAME, or NAME for cluster-scoped kinds."""
    found = (bad_object for bad_object in listed.bad if bad_object.kind == kind)
    return {"/".join(filter(None, (bad_object.namespace, bad_object.name))): bad_object.problem for bad_object in found}


class IgnoredParametersLog:
    """Logs parameters that cannot be read and are ignored, once per request and problem (docs/design/nodes.md 3.2)."""

    def __init__(self) -> None:
        self._reported: dict[str, tuple[str, ...]] = {}

    def log_new(self, requests: Iterable[RequestView]) -> None:
        """Log the problems that were not logged before."""
        odd = {
            request_view.request.metadata.uid or request_view.name: request_view
            for request_view in requests
            if request_view.parameters.problems
        }
        for uid, request in odd.items():
            if self._reported.get(uid) != request.parameters.problems:
                log.error(
                    "request.parameters_ignored", request=request.name, problems=list(request.parameters.problems)
                )
        self._reported = {uid: request_view.parameters.problems for uid, request_view in odd.items()}
