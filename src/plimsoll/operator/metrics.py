"""The state of queues, leases, informers and event recorders on `/metrics`.

Names and labels are those of client-go and controller-runtime where they have one; the others start with `plimsoll_`
(docs/controllers.md lists them). Values are read from the parts when the page is asked for, so nothing is counted
twice. A part is registered once, when it is made.
"""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from plimsoll.kube.controller.workqueue import DURATION_BUCKETS_S
from plimsoll.kube.leases.lease_holder import Phase

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from prometheus_client import Metric

    from plimsoll.core.clock import Clock
    from plimsoll.journal.lazy import LazyJournal
    from plimsoll.journal.memory import MemoryJournal
    from plimsoll.kube.controller.controller import Controller, ControllerStatus
    from plimsoll.kube.controller.workqueue import Durations
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.kube.informer.status import InformerStatus
    from plimsoll.kube.leases.lease_holder import LeaseHolder, LeaseStatus
    from plimsoll.kube.recorder.recorder import EventRecorder, RecorderStatus
    from plimsoll.operator.health import Health

# controller-runtime's results of a reconciliation, by ours.
_RESULTS: Final = {"done": "success", "again": "requeue_after"}
_ERROR: Final = "error"


class ControllerMetrics(Collector):
    """Collects the state of the registered parts of one process."""

    def __init__(self) -> None:
        self._controllers: list[Callable[[], ControllerStatus]] = []
        self._informers: list[Callable[[], Iterable[InformerStatus]]] = []
        self._leases: list[tuple[str, Callable[[], LeaseHolder | None]]] = []
        self._loops: list[Callable[[], float]] = []
        self._recorders: list[Callable[[], RecorderStatus]] = []
        self._journals: list[Callable[[], int]] = []
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def add_controller(self, controller: Controller[Any]) -> None:
        self._controllers.append(lambda: controller.status)

    def add_informers(self, informers: SharedInformerFactory) -> None:
        self._informers.append(informers.list_statuses)

    def add_lease(self, name: str, holder: LeaseHolder) -> None:
        self.add_current_lease(name, lambda: holder)

    def add_current_lease(self, name: str, find_holder: Callable[[], LeaseHolder | None]) -> None:
        """The lease of a process that contends for it more than once; None before its first candidacy."""
        self._leases.append((name, find_holder))

    def add_loop(self, health: Health, clock: Clock) -> None:
        self._loops.append(lambda: health.measure_loop_s(clock.monotonic_s()) or 0.0)

    def add_recorder(self, recorder: EventRecorder) -> None:
        self._recorders.append(lambda: recorder.status)

    def add_journal(self, journal: LazyJournal | MemoryJournal) -> None:
        self._journals.append(lambda: journal.failures)

    def expose(self) -> bytes:
        """All values in Prometheus' text format."""
        return generate_latest(self._registry)

    def collect(self) -> Iterator[Metric]:
        yield from _build_controller_families([status() for status in self._controllers])
        holders = [(name, find_holder()) for name, find_holder in self._leases]
        yield from _build_lease_families(
            [(name, holder.get_status()) for name, holder in holders if holder is not None]
        )
        yield from _build_informer_families([status for statuses in self._informers for status in statuses()])
        yield from _build_loop_families([loop_s() for loop_s in self._loops])
        yield from _build_recorder_families([status() for status in self._recorders])
        failures = CounterMetricFamily("plimsoll_journal_failures", "Writes to the journal that failed.")
        failures.add_metric((), sum(count() for count in self._journals))
        yield failures


def _build_controller_families(statuses: Iterable[ControllerStatus]) -> Iterator[Metric]:
    queue_labels = ("name", "controller")
    depth = GaugeMetricFamily("workqueue_depth", "Keys that are ready and wait for a worker.", labels=queue_labels)
    adds = CounterMetricFamily("workqueue_adds", "Keys added to the queue.", labels=queue_labels)
    retries = CounterMetricFamily("workqueue_retries", "Keys queued again after a failure.", labels=queue_labels)
    longest = GaugeMetricFamily(
        "workqueue_longest_running_processor_seconds",
        "How long the longest running worker has had its key.",
        labels=queue_labels,
    )
    unfinished = GaugeMetricFamily(
        "workqueue_unfinished_work_seconds",
        "How long all workers together have had their keys.",
        labels=queue_labels,
    )
    queued = HistogramMetricFamily(
        "workqueue_queue_duration_seconds", "How long keys were ready before a worker got them.", labels=queue_labels
    )
    worked = HistogramMetricFamily(
        "workqueue_work_duration_seconds", "How long workers had their keys.", labels=queue_labels
    )
    delayed = GaugeMetricFamily("plimsoll_workqueue_delayed", "Keys that are not due yet.", labels=queue_labels)
    oldest = GaugeMetricFamily(
        "plimsoll_workqueue_oldest_key_age_seconds", "How long the first key has been ready.", labels=queue_labels
    )
    active = GaugeMetricFamily("controller_runtime_active_workers", "Workers that have a key.", labels=("controller",))
    total = CounterMetricFamily(
        "controller_runtime_reconcile", "Reconciliations by result.", labels=("controller", "result")
    )
    errors = CounterMetricFamily(
        "controller_runtime_reconcile_errors", "Reconciliations that failed.", labels=("controller",)
    )
    for status in statuses:
        queue, names = status.queue, (status.name, status.name)
        depth.add_metric(names, queue.depth)
        adds.add_metric(names, queue.adds)
        retries.add_metric(names, queue.retries)
        longest.add_metric(names, queue.longest_work_s)
        unfinished.add_metric(names, queue.unfinished_work_s)
        queued.add_metric(names, _count_buckets(queue.queued), queue.queued.sum_s)
        worked.add_metric(names, _count_buckets(queue.worked), queue.worked.sum_s)
        delayed.add_metric(names, queue.delayed)
        oldest.add_metric(names, queue.oldest_age_s)
        active.add_metric((status.name,), queue.working)
        by_result = dict.fromkeys((*_RESULTS.values(), _ERROR), 0)
        for result, count in status.results.items():
            by_result[_RESULTS.get(result, _ERROR)] += count
        for result, count in by_result.items():
            total.add_metric((status.name, result), count)
        errors.add_metric((status.name,), by_result[_ERROR])
    yield from (depth, adds, retries, longest, unfinished, queued, worked, delayed, oldest, active, total, errors)


def _count_buckets(durations: Durations) -> list[tuple[str, float]]:
    """Upper bounds with the number of all durations up to them."""
    bounds = [*map(floatToGoString, DURATION_BUCKETS_S), "+Inf"]
    return list(zip(bounds, accumulate(durations.counts), strict=True))


def _build_lease_families(leases: Iterable[tuple[str, LeaseStatus]]) -> Iterator[Metric]:
    master = GaugeMetricFamily(
        "leader_election_master_status", "1 while this process holds the lease, otherwise 0.", labels=("name",)
    )
    renewals = CounterMetricFamily("plimsoll_lease_renewals", "Renewals of the lease.", labels=("name",))
    failures = CounterMetricFamily(
        "plimsoll_lease_failures", "Attempts to get or renew the lease that failed.", labels=("name",)
    )
    for name, status in leases:
        master.add_metric((name,), status.phase is Phase.LEADING)
        renewals.add_metric((name,), status.renewals)
        failures.add_metric((name,), status.failures)
    yield from (master, renewals, failures)


def _build_informer_families(statuses: Iterable[InformerStatus]) -> Iterator[Metric]:
    lists = CounterMetricFamily("reflector_lists", "Complete lists of the resource.", labels=("name",))
    watches = CounterMetricFamily("reflector_watches", "Watches of the resource.", labels=("name",))
    version = GaugeMetricFamily(
        "reflector_last_resource_version", "The last resource version that was read.", labels=("name",)
    )
    synced = GaugeMetricFamily(
        "plimsoll_informer_synced", "1 once the cache held what the server had.", labels=("name",)
    )
    objects = GaugeMetricFamily("plimsoll_informer_objects", "Objects in the cache.", labels=("name",))
    undecodable = GaugeMetricFamily(
        "plimsoll_informer_undecodable_objects", "Objects that cannot be decoded.", labels=("name",)
    )
    for name, status in _name_uniquely(statuses):
        lists.add_metric((name,), status.relists + (status.synced_at is not None))
        watches.add_metric((name,), status.reconnects + (status.synced_at is not None))
        if status.resource_version.isdecimal():
            version.add_metric((name,), float(status.resource_version))
        synced.add_metric((name,), status.has_synced)
        objects.add_metric((name,), status.objects)
        undecodable.add_metric((name,), status.bad)
    yield from (lists, watches, version, synced, objects, undecodable)


def _name_uniquely(statuses: Iterable[InformerStatus]) -> Iterator[tuple[str, InformerStatus]]:
    """By resource; the second informer of a resource is `pods-2`."""
    numbers: dict[str, int] = {}
    for status in statuses:
        numbers[status.resource] = number = numbers.get(status.resource, 0) + 1
        yield (status.resource if number == 1 else f"{status.resource}-{number}"), status


def _build_loop_families(seconds: Sequence[float]) -> Iterator[Metric]:
    under_way = GaugeMetricFamily(
        "plimsoll_loop_under_way_seconds",
        "How long the current loop iteration has been under way; 0 between two.",
    )
    for loop_s in seconds:
        under_way.add_metric((), loop_s)
    yield under_way


def _build_recorder_families(statuses: Sequence[RecorderStatus]) -> Iterator[Metric]:
    written = CounterMetricFamily("plimsoll_events_written", "Events that were written, repetitions included.")
    pending = GaugeMetricFamily("plimsoll_events_pending", "Events that wait to be written.")
    dropped = CounterMetricFamily("plimsoll_events_dropped", "Events that were not written.", labels=("cause",))
    by_cause: dict[str, int] = {}
    for status in statuses:
        for cause, count in status.dropped.items():
            by_cause[cause] = by_cause.get(cause, 0) + count
    written.add_metric((), sum(status.written for status in statuses))
    pending.add_metric((), sum(status.pending for status in statuses))
    for cause, count in sorted(by_cause.items()):
        dropped.add_metric((cause,), count)
    yield from (written, pending, dropped)
