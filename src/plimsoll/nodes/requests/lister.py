"""Lists ProvisioningRequests and the objects needed to read them, from informers (docs/design/nodes.md 2, 3.9, 4.7).

Built only with `--enable-provisioning-requests`, before the informers start. If the server does not serve requests or
classes, there are none: that is logged once, and the informers keep asking. Any other failure to list them makes the
cluster state stale, as for pods, because nodes may be booked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, TypeVar

import msgspec
import structlog

from plimsoll.core.durations import add_seconds
from plimsoll.kube.errors import NotFound
from plimsoll.nodes.observing.listers import Stale, is_stale
from plimsoll.nodes.requests.pod_sets import PodCache
from plimsoll.nodes.requests.reader import ListedRequests
from plimsoll.nodes.requests.status import ConditionType
from plimsoll.objects.api.meta import WireObject
from plimsoll.objects.api.pods import PodTemplate
from plimsoll.objects.api.policy import LimitRange, PriorityClass
from plimsoll.objects.api.provisioning_requests import ProvisioningClass, ProvisioningRequest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.kube.informer.informer import Informer
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.codec.decoding import RawObject

Json = dict[str, Any]
V = TypeVar("V")
T = TypeVar("T", bound=WireObject)

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_LOOK_AGAIN_S: Final = 0.1
"""Interval between checks for the first list or a NotFound error."""


_JUMP_S: Final = 60.0
"""A clock that differs by more than this from the time that has passed was set."""


class _Booked(NamedTuple):
    """A request with capacity, and when it was first read with it: by the clock, and by one that is never set."""

    request: ProvisioningRequest
    since: datetime
    since_s: float


class RequestLister:
    """The informers of requests. `registered`: registered classes, each with the condition types it owns.

    `as_scheduled` converts a pod to the form the cluster's scheduler uses, where that differs.
    """

    def __init__(
        self,
        informers: SharedInformerFactory,
        *,
        clock: Clock,
        registered: Mapping[str, Collection[str]] | None = None,
        as_scheduled: Callable[[Pod], Pod] | None = None,
    ) -> None:
        self._clock = clock
        self._as_scheduled = as_scheduled
        self._registered = registered or {}
        self.requests = informers.get_informer(ProvisioningRequest)
        self._classes = informers.get_informer(ProvisioningClass)
        self._templates = informers.get_raw_informer(PodTemplate)
        self._limit_ranges = informers.get_informer(LimitRange)
        self._priority_classes = informers.get_informer(PriorityClass)
        self._template_bodies: _Bodies[RawObject[PodTemplate]] = _Bodies(lambda raw: msgspec.json.decode(raw.raw))
        self._range_bodies: _Bodies[LimitRange] = _Bodies(msgspec.to_builtins)
        self._memory = PodCache()
        self._reported: set[str] = set()
        self._booked: dict[tuple[str, str], _Booked] = {}
        """Requests that had capacity when they were last read, by namespace and name."""

    @property
    def _custom(self) -> tuple[Informer[Any], ...]:
        return self.requests, self._classes

    @property
    def _core(self) -> tuple[Informer[Any], ...]:
        return self._templates, self._limit_ranges, self._priority_classes

    async def wait_until_synced(self) -> None:
        """Return once every kind has been listed or is known not to be served."""
        for informer in self._core:
            await informer.wait_until_synced()
        for informer in self._custom:
            while not informer.has_synced and not _is_unknown(informer):
                await self._clock.sleep(_LOOK_AGAIN_S)

    def find_stale(self) -> Stale | None:
        """The kind whose cache is oldest and too old; None: all are current."""
        there = (*self._core, *(informer for informer in self._custom if not _is_unknown(informer)))
        oldest = max(
            (informer for informer in there if is_stale(informer)),
            key=lambda informer: informer.get_age_s(),
            default=None,
        )
        return None if oldest is None else Stale(resource=oldest.resource, age_s=oldest.get_age_s())

    def list_requests(self) -> tuple[ProvisioningRequest, ...]:
        """The requests. One that has capacity and cannot be decoded any more is as it was: its nodes stay booked."""
        listed = self._list_served(self.requests)
        unreadable = {(bad.namespace, bad.name) for bad in self.requests.cache.bad.values()}
        kept = {key: booked for key, booked in self._booked.items() if key in unreadable}
        self._booked = kept | {
            (request.metadata.namespace, request.metadata.name): self._note_booking(request)
            for request in listed
            if _has_capacity(request)
        }
        return (*listed, *(booked.request for booked in kept.values()))

    def read(self) -> ListedRequests:
        requests = self.list_requests()
        return ListedRequests(
            requests=requests,
            templates=self._list_templates(requests),
            limit_ranges=self._list_limit_ranges(),
            priority_classes=self._priority_classes.cache.list(),
            provisioning_classes=self._list_served(self._classes),
            bad=tuple(bad for informer in (*self._custom, *self._core) for bad in informer.cache.bad.values()),
            registered=self._registered,
            as_scheduled=self._as_scheduled,
            pod_cache=self._memory,
            booking_times=self._list_booking_times(),
        )

    def _note_booking(self, request: ProvisioningRequest) -> _Booked:
        before = self._booked.get((request.metadata.namespace, request.metadata.name))
        if before is None or before.request.metadata.uid != request.metadata.uid:
            return _Booked(request, self._clock.now(), self._clock.monotonic_s())
        return before._replace(request=request)

    def _list_booking_times(self) -> dict[str, datetime]:
        """The time for each booking, by uid, where the clock was set since the booking was first read."""
        now, now_s = self._clock.now(), self._clock.monotonic_s()
        steady = {
            booked.request.metadata.uid: add_seconds(booked.since, now_s - booked.since_s)
            for booked in self._booked.values()
        }
        return {uid: time for uid, time in steady.items() if abs((now - time).total_seconds()) > _JUMP_S}

    def _list_served(self, informer: Informer[T]) -> tuple[T, ...]:
        """The objects of a kind. A kind that is not served any more has none, although the cache still holds them."""
        name = informer.resource
        if not _is_unknown(informer):
            self._reported.discard(name)
            return informer.cache.list()
        if name not in self._reported:
            self._reported.add(name)
            log.warning("requests.not_served", resource=name, problem="its CustomResourceDefinition is not installed")
        return ()

    def _list_templates(self, requests: Iterable[ProvisioningRequest]) -> dict[str, Json]:
        """The PodTemplates that requests refer to; the bytes of others are not parsed."""
        wanted = {
            (request.metadata.namespace, pod_set.pod_template_ref.name)
            for request in requests
            for pod_set in request.spec.pod_sets
        }
        cache = self._templates.cache
        found = {
            f"{namespace}/{name}": there
            for namespace, name in wanted
            if (there := cache.get(name, namespace)) is not None
        }
        return self._template_bodies.decode_all(found)

    def _list_limit_ranges(self) -> dict[str, list[Json]]:
        there = {
            f"{limit_range.metadata.namespace}/{limit_range.metadata.name}": limit_range
            for limit_range in self._limit_ranges.cache
        }
        by_namespace: dict[str, list[Json]] = {}
        for name, body in sorted(self._range_bodies.decode_all(there).items()):
            by_namespace.setdefault(name.partition("/")[0], []).append(body)
        return by_namespace


class _Bodies(Generic[V]):
    """Objects as JSON. An unchanged object gives the identical body, so that caches keyed by it stay valid."""

    def __init__(self, body_of: Callable[[V], Json]) -> None:
        self._body_of = body_of
        self._before: dict[str, tuple[V, Json]] = {}

    def decode_all(self, objects: Mapping[str, V]) -> dict[str, Json]:
        now: dict[str, tuple[V, Json]] = {}
        for name, item in objects.items():
            before = self._before.get(name)
            now[name] = before if before is not None and before[0] is item else (item, self._body_of(item))
        self._before = now
        return {name: body for name, (_, body) in now.items()}


def _has_capacity(request: ProvisioningRequest) -> bool:
    return any(
        condition.type == ConditionType.PROVISIONED and condition.status == "True"
        for condition in request.status.conditions
    )


def _is_unknown(informer: Informer[Any]) -> bool:
    """Whether the server does not serve the kind; an informer's trouble begins with the name of the error."""
    return informer.status.trouble.partition(":")[0] == NotFound.__name__
