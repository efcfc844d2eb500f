"""The embedded scheduler: assigns pods to nodes as kube-scheduler does, on any API server.

`run` (or `build_service`) takes one pod after the other from the queue; bindings run while the next pod is scheduled.
In stepped scenarios `schedule_once` places everything that fits, once, regardless of back-off. The two exclude each
other.

All state can be rebuilt: pods without a node are the queue, nominations are in their status. A scheduler that is killed
between any two writes leaves at worst a pod that the next one schedules again; a pod is never bound twice, because the
server binds it once.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.errors import PlimsollError
from plimsoll.core.values import Value
from plimsoll.local.scheduler.cache import SchedulerCache
from plimsoll.local.scheduler.equivalence import PodClasses
from plimsoll.local.scheduler.event_handlers import EventHandlers
from plimsoll.local.scheduler.events import (
    SchedulerEventRecorder,
    build_failed_scheduling,
    build_preempted,
    build_scheduled,
)
from plimsoll.local.scheduler.preemption import PreemptionResult, find_preemption
from plimsoll.local.scheduler.queue.cluster_events import ClusterEvent
from plimsoll.local.scheduler.queue.queue import QueuedPodInfo, SchedulingQueue
from plimsoll.local.scheduler.schedule_one import FitError, ScheduleResult, schedule_pod
from plimsoll.local.scheduler.settings import DEFAULT_SETTINGS
from plimsoll.local.scheduler.writes.claims import ClaimWrites, find_unbound_claims
from plimsoll.local.scheduler.writes.pods import SCHEDULER_ERROR, BindFailed, Bound, PodWrites
from plimsoll.runtime.supervisor import Service
from plimsoll.scheduling.cluster_view import PodKey, get_pod_key
from plimsoll.scheduling.messages import UNSCHEDULABLE_REASON
from plimsoll.scheduling.priorities import outranks
from plimsoll.scheduling.rules.volume_binding import VOLUME_BINDING, VOLUME_ZONE

if TYPE_CHECKING:
    from plimsoll.local.components import Component
    from plimsoll.local.scheduler.settings import SchedulerSettings
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.preemption import Candidate

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

# What there is to do for a pod besides looking at nodes, in nodes.
_POD: Final = 100
_WAITS_FOR_VOLUMES: Final = frozenset({VOLUME_BINDING})
_OF_VOLUMES: Final = frozenset({VOLUME_BINDING, VOLUME_ZONE})


class ScheduledOnce(Value, frozen=True):
    """The result of `schedule_once`: scheduled and unscheduled pods, each in the order in which they were tried."""

    bound: tuple[tuple[PodKey, str], ...] = ()
    unschedulable: tuple[PodKey, ...] = ()


class Reservation(Value, frozen=True):
    """The node of a pod whose volumes are being bound, and since when."""

    node: str
    since_s: float


class Scheduler:
    """Created before the informers start; `component` writes as kube-scheduler."""

    def __init__(self, component: Component, settings: SchedulerSettings = DEFAULT_SETTINGS) -> None:
        self._settings = settings
        self._clock = component.clock
        self._cache = SchedulerCache()
        self._classes = PodClasses()
        self._queue = SchedulingQueue(settings)
        self._has_news = asyncio.Event()
        self._watching = EventHandlers(
            component,
            scheduler=settings.name,
            cache=self._cache,
            queue=self._queue,
            classes=self._classes,
            on_news=self._has_news.set,
        )
        self._announcer = SchedulerEventRecorder(component, settings)
        self._writes = PodWrites(component.client, clock=component.clock, scheduler=settings.name)
        self._claim_writes = ClaimWrites(component.client)
        self._binding = asyncio.Semaphore(settings.binds_at_once)
        self._reserved: dict[PodKey, Reservation] = {}

    def build_service(self) -> Service:
        return Service(name="scheduler", run=self.run)

    async def run(self) -> None:
        """Until cancelled."""
        await self._watching.wait_until_synced()
        self._take_stock()
        async with asyncio.TaskGroup() as group:
            group.create_task(self._announcer.run(), name="events of the scheduler")
            looked_at = 0
            while True:
                queued = await self._pop_next()
                chosen = await self._schedule_one(queued)
                if chosen is not None:
                    await self._binding.acquire()
                    group.create_task(self._bind_aside(queued, chosen.node), name=f"bind {get_pod_key(queued.pod)}")
                looked_at += _POD + len(self._cache.view.nodes)
                if looked_at >= self._settings.nodes_at_once:
                    looked_at = 0
                    await asyncio.sleep(0)

    async def schedule_once(self) -> ScheduledOnce:
        """Try every pending pod in the order of the queue, back-off or not, and write what came of it."""
        await self._watching.wait_until_synced()
        while self._watching.is_behind:  # noqa: ASYNC110 - the feeds have work, and only need to run
            await asyncio.sleep(0)
        bound: list[tuple[PodKey, str]] = []
        unschedulable: list[PodKey] = []
        for queued in self._queue.list_in_order():
            key = get_pod_key(queued.pod)
            if key not in self._queue:
                continue
            self._queue.take(queued)
            chosen = await self._schedule_one(queued)
            if chosen is not None and await self._bind(queued, chosen.node):
                bound.append((key, chosen.node))
            elif key in self._queue:
                unschedulable.append(key)
        await self._announcer.flush()
        return ScheduledOnce(bound=tuple(bound), unschedulable=tuple(unschedulable))

    # ---- the next pod

    def _take_stock(self) -> None:
        """What an earlier run of this instance had in hand is looked at again."""
        for key in self._cache.list_assumed():
            pod = self._watching.pods.cache.get(key.name, key.namespace)
            self._cache.forget(key)
            if pod is not None and not pod.spec.node_name:
                self._queue.add(pod, self._clock.monotonic_s())
        self._queue.requeue_in_flight()

    async def _pop_next(self) -> QueuedPodInfo:
        while True:
            self._has_news.clear()
            now_s = self._clock.monotonic_s()
            self._queue.flush(now_s)
            queued = self._queue.pop(now_s)
            if queued is not None:
                return queued
            await self._wait(self._queue.find_next_flush_s())

    async def _wait(self, until_s: float | None) -> None:
        timeout = None if until_s is None else max(until_s - self._clock.monotonic_s(), 0.0)
        try:
            async with asyncio.timeout(timeout):
                await self._has_news.wait()
        except TimeoutError:
            return

    # ---- one pod

    async def _schedule_one(self, queued: QueuedPodInfo) -> ScheduleResult | None:
        """Schedule one pod; the cache assumes it at once, a failure is reported."""
        pod = queued.pod
        key = get_pod_key(pod)
        reserved = self._reserved.pop(key, None)
        self._cache.forget(key)
        current = self._watching.pods.cache.get(key.name, key.namespace)
        if current is None or current.metadata.uid != pod.metadata.uid:
            self._queue.delete(key)  # its end is on its way to us
            return None
        decision = schedule_pod(pod, self._cache, self._classes, reserved=reserved.node if reserved else "")
        if isinstance(decision, ScheduleResult):
            self._cache.assume(pod, decision.node)
            return decision
        if reserved is not None and self._is_being_bound(decision, reserved):
            self._reserve(queued, reserved)
            return None
        await self._refuse(queued, decision)
        return None

    def _is_being_bound(self, refused: FitError, reserved: Reservation) -> bool:
        """Claims may be seen bound before their volumes are seen: no node was asked then, and it keeps its place."""
        is_unseen = not refused.answers and refused.refused_by <= _OF_VOLUMES
        is_there = self._cache.view.find_node(reserved.node) is not None
        waited_s = self._clock.monotonic_s() - reserved.since_s
        return is_unseen and is_there and waited_s < self._settings.bind_timeout_s

    def _reserve(self, queued: QueuedPodInfo, reserved: Reservation) -> None:
        """Reserve the node while the pod waits for its volumes."""
        key = get_pod_key(queued.pod)
        self._reserved[key] = reserved
        self._cache.assume(queued.pod, reserved.node)
        self._queue.add_unschedulable(queued, _WAITS_FOR_VOLUMES, self._clock.monotonic_s())

    async def _refuse(self, queued: QueuedPodInfo, refused: FitError) -> None:
        pod = queued.pod
        room = await find_preemption(pod, self._cache, refused.answers) if refused.answers else PreemptionResult()
        message = f"{refused.message} {room.message}" if room.message else refused.message
        nomination = room.choice.node if room.choice else None if room.may_keep_nomination else ""
        # Back in the queue before anything is awaited: what happens from now on may help it.
        self._queue.add_unschedulable(queued, refused.refused_by, self._clock.monotonic_s())
        if get_pod_key(pod) not in self._queue:
            return
        if nomination is not None:
            self._cache.nominate(pod, nomination)
        log.info("pod.unschedulable", pod=str(get_pod_key(pod)), why=message)
        self._announcer.record(build_failed_scheduling(pod, message))
        try:
            await self._writes.record_failure(pod, reason=UNSCHEDULABLE_REASON, message=message, nomination=nomination)
            if room.choice is not None:
                await self._make_room(pod, room.choice)
        except PlimsollError as error:
            # It is tried again with the next change or flush, and reported then.
            log.warning("scheduler.write_failed", pod=str(get_pod_key(pod)), error=str(error))

    async def _make_room(self, pod: Pod, choice: Candidate) -> None:
        for victim in choice.victims:
            if await self._writes.delete_victim(victim):
                log.info("pod.preempted", pod=str(get_pod_key(victim)), by=str(get_pod_key(pod)), node=choice.node)
                self._announcer.record(build_preempted(victim, pod, choice.node))
        for other in self._cache.list_nominated_on(choice.node):
            if outranks(pod, other):
                self._cache.nominate(other, "")
                await self._writes.clear_nomination(other)

    # ---- binding

    async def _bind_aside(self, queued: QueuedPodInfo, node: str) -> None:
        try:
            await self._bind(queued, node)
        finally:
            self._binding.release()

    async def _bind(self, queued: QueuedPodInfo, node: str) -> bool:
        """Put the pod on its node, volumes first. Gives whether it is there."""
        pod = queued.pod
        key = get_pod_key(pod)
        if not await self._has_volumes(queued, node):
            return False
        outcome = await self._writes.bind(pod, node)
        if isinstance(outcome, Bound):
            self._queue.delete(key)
            log.info("pod.bound", pod=str(key), node=node)
            self._announcer.record(build_scheduled(pod, node))
            return True
        if isinstance(outcome, BindFailed):
            await self._bind_failed(queued, node, outcome.problem)
        else:
            self._queue.delete(key)
            self._forget_assumed(key)
        return False

    async def _has_volumes(self, queued: QueuedPodInfo, node: str) -> bool:
        """Whether every claim is bound. If not, the pod keeps its reservation."""
        pod = queued.pod
        key = get_pod_key(pod)
        cache = self._cache
        chosen = find_unbound_claims(pod, node, cache.view)
        if not chosen:
            return True
        claims = [
            (cache.claims.get((key.namespace, name)), cache.volumes.get(volume)) for name, volume in chosen.items()
        ]
        now_s = self._clock.monotonic_s()
        self._reserved[key] = Reservation(node=node, since_s=now_s)
        self._queue.add_unschedulable(queued, _WAITS_FOR_VOLUMES, now_s)
        try:
            written = [await self._claim_writes.select_node(claim, node, volume) for claim, volume in claims if claim]
        except PlimsollError as error:
            log.warning("scheduler.write_failed", pod=str(key), error=str(error))
            written = [False]
        if not all(written):
            self._forget_assumed(key)
        return False

    async def _bind_failed(self, queued: QueuedPodInfo, node: str, problem: str) -> None:
        pod = queued.pod
        message = f"binding rejected: {problem}"
        log.warning("pod.bind_failed", pod=str(get_pod_key(pod)), node=node, error=problem)
        self._forget_assumed(get_pod_key(pod))
        self._queue.add_after_error(queued, self._clock.monotonic_s())
        self._has_news.set()
        self._announcer.record(build_failed_scheduling(pod, message))
        try:
            await self._writes.record_failure(pod, reason=SCHEDULER_ERROR, message=message, nomination="")
        except PlimsollError as error:
            log.warning("scheduler.write_failed", pod=str(get_pod_key(pod)), error=str(error))

    def _forget_assumed(self, key: PodKey) -> None:
        """It does not take the room that was counted for it: others may."""
        self._reserved.pop(key, None)
        node = self._cache.forget(key)
        if node:
            self._watching.handle_cluster_event(ClusterEvent.POD_LEFT, node)
