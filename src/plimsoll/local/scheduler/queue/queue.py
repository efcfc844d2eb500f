"""The scheduling queue. Pure: pods, times and events in, the next pod out.

A pod is in one of three places. *Active*: to be tried, by priority, then by waiting time. *Backing off*: something has
changed since it failed, but it failed recently; such pods are tried when no active one is left (as kube-scheduler does
since 1.33) or when their back-off ends. *Unschedulable*: nothing has changed that could help; an event moves it back,
or the flush after five minutes. A pod that failed through an internal error waits for its back-off in any case.

The caller does not add pods with scheduling gates. Nothing here outlives the process: a pending pod is active again
after a restart.
"""

from __future__ import annotations

import heapq
from datetime import UTC, datetime
from enum import Enum
from typing import TYPE_CHECKING, Final

from plimsoll.local.scheduler.queue.cluster_events import is_about_a_node, may_help
from plimsoll.scheduling.cluster_view import PodKey, get_pod_key
from plimsoll.scheduling.priorities import get_priority

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.scheduler.queue.cluster_events import ClusterEvent
    from plimsoll.local.scheduler.settings import SchedulerSettings
    from plimsoll.objects.api.pods import Pod

    Helps = Callable[[Pod], bool]
    """Whether the node an event is about would take the pod now."""

_LONG_AGO: Final = datetime.min.replace(tzinfo=UTC)


class _Place(Enum):
    ACTIVE = "active"
    BACKING_OFF = "backing off"
    IN_ERROR = "in error"
    UNSCHEDULABLE = "unschedulable"
    IN_HAND = "in hand"


class QueuedPodInfo:
    """A pod that has no node yet."""

    __slots__ = ("entry", "failed_s", "failures", "is_dirty", "missed", "place", "pod", "queued_s", "refused_by")

    def __init__(self, pod: Pod, queued_s: float) -> None:
        self.pod = pod
        self.queued_s = queued_s
        self.failed_s = 0.0
        self.failures = 0
        self.entry = 0
        """The number of the one entry in a heap that counts."""
        self.refused_by: frozenset[str] = frozenset()
        self.place = _Place.ACTIVE
        self.missed: list[tuple[ClusterEvent, Helps]] = []
        """What happened while it was in hand."""
        self.is_dirty = False

    @property
    def order(self) -> tuple[int, float, datetime, str, str]:
        """The sort key. It ends with the name, so that two runs have the same order."""
        meta = self.pod.metadata
        created = meta.creation_timestamp or _LONG_AGO
        return (-get_priority(self.pod), self.queued_s, created, meta.namespace, meta.name)


class SchedulingQueue:
    """The pods without a node. Times are seconds of one monotonic clock."""

    def __init__(self, settings: SchedulerSettings) -> None:
        self._settings = settings
        self._queued: dict[PodKey, QueuedPodInfo] = {}
        # Heaps are not searched: an entry that has moved on stays until it comes up, and is left out then.
        self._active: list[tuple[tuple[int, float, datetime, str, str], int, QueuedPodInfo]] = []
        self._waiting: list[tuple[float, tuple[int, float, datetime, str, str], int, QueuedPodInfo]] = []
        # In the order in which they failed: the longest wait comes first.
        self._unschedulable: dict[PodKey, QueuedPodInfo] = {}
        self._in_hand: dict[PodKey, QueuedPodInfo] = {}
        self._number = 0

    def __len__(self) -> int:
        return len(self._queued)

    def __contains__(self, key: object) -> bool:
        return key in self._queued

    # ---- pods come, change and go

    def add(self, pod: Pod, now_s: float) -> None:
        """Add a new pod, or one with a change that may matter."""
        key = get_pod_key(pod)
        queued = self._queued.get(key)
        if queued is None:
            self._queued[key] = queued = QueuedPodInfo(pod, now_s)
            self._move_to_active(queued)
            return
        queued.pod = pod
        match queued.place:
            case _Place.UNSCHEDULABLE:
                del self._unschedulable[key]
                self._wait_or_activate(queued, now_s)
            case _Place.IN_HAND:
                queued.is_dirty = True
            case _Place.ACTIVE:
                self._move_to_active(queued)  # its priority may have changed
            case _:
                pass

    def update(self, pod: Pod) -> None:
        """The same pod in a newer version that changes nothing for us."""
        queued = self._queued.get(get_pod_key(pod))
        if queued is not None:
            queued.pod = pod

    def delete(self, key: PodKey) -> None:
        """Remove a pod that has its node, is gone, or has another scheduler."""
        self._queued.pop(key, None)
        self._unschedulable.pop(key, None)
        self._in_hand.pop(key, None)

    # ---- one pod at a time

    def pop(self, now_s: float) -> QueuedPodInfo | None:
        """The next pod, which is in flight until it is added again or deleted."""
        while self._active:
            _, number, queued = heapq.heappop(self._active)
            if self._is_current(queued, number):
                return self._take(queued)
        return self._pop_from_waiting(now_s)

    def list_in_order(self) -> list[QueuedPodInfo]:
        """Every pod that could be tried, whatever it waits for, in the order of the queue."""
        return sorted(
            (queued for queued in self._queued.values() if queued.place is not _Place.IN_HAND),
            key=lambda item: item.order,
        )

    def take(self, queued: QueuedPodInfo) -> None:
        """Take a pod of `list_in_order`; it is in flight."""
        self._unschedulable.pop(get_pod_key(queued.pod), None)
        self._take(queued)

    def add_unschedulable(self, queued: QueuedPodInfo, refused_by: frozenset[str], now_s: float) -> None:
        """No node took it. It waits for something that may help, or for less if that has happened meanwhile."""
        if not self._record_failure(queued, now_s):
            return
        queued.refused_by = refused_by
        missed, queued.missed = queued.missed, []
        if queued.is_dirty or any(_is_helped_by(queued, event, helps) for event, helps in missed):
            queued.is_dirty = False
            self._wait(queued, _Place.BACKING_OFF)
        else:
            queued.place, queued.entry = _Place.UNSCHEDULABLE, 0
            self._unschedulable[get_pod_key(queued.pod)] = queued

    def add_after_error(self, queued: QueuedPodInfo, now_s: float) -> None:
        """After an internal error the pod is tried again when its back-off ends, no sooner."""
        if self._record_failure(queued, now_s):
            queued.missed, queued.is_dirty = [], False
            self._wait(queued, _Place.IN_ERROR)

    def requeue_in_flight(self) -> None:
        """Return all in-flight pods to the queue, after the scheduling task ended."""
        for queued in (*self._in_hand.values(),):
            self._move_to_active(queued)
        self._in_hand.clear()

    # ---- what brings pods back

    def move_to_active_or_backoff(self, event: ClusterEvent, now_s: float, *, helps: Helps) -> int:
        """Move the pods that may profit; gives how many."""
        for queued in self._in_hand.values():
            queued.missed.append((event, helps))
        moved = [key for key, queued in self._unschedulable.items() if _is_helped_by(queued, event, helps)]
        for key in moved:
            self._wait_or_activate(self._unschedulable.pop(key), now_s)
        return len(moved)

    def flush(self, now_s: float) -> None:
        """Back-offs that are over, and pods that have waited so long that they are tried anyhow."""
        while self._waiting and self._waiting[0][0] <= now_s:
            _, _, number, queued = heapq.heappop(self._waiting)
            if self._is_current(queued, number):
                self._move_to_active(queued)
        # The same sum as in `find_next_flush_s`: rounded otherwise, a flush at that time would never find anything.
        after_s = self._settings.flush_after_s
        while (
            first := next(iter(self._unschedulable.values()), None)
        ) is not None and first.failed_s + after_s <= now_s:
            self._move_to_active(self._unschedulable.pop(get_pod_key(first.pod)))

    def find_next_flush_s(self) -> float | None:
        """When `flush` has something to do; None: never, as things are."""
        times = [item[0] for item in self._waiting[:1]]
        first = next(iter(self._unschedulable.values()), None)
        if first is not None:
            times.append(first.failed_s + self._settings.flush_after_s)
        return min(times, default=None)

    def compute_backoff_s(self, failures: int) -> float:
        settings = self._settings
        # Doubling ends where the cap is reached: a pod may fail for years.
        return float(min(settings.initial_backoff_s * 2 ** min(failures - 1, 32), settings.max_backoff_s))

    # ---- inside

    def _take(self, queued: QueuedPodInfo) -> QueuedPodInfo:
        queued.place, queued.entry = _Place.IN_HAND, 0
        queued.missed, queued.is_dirty = [], False
        self._in_hand[get_pod_key(queued.pod)] = queued
        return queued

    def _record_failure(self, queued: QueuedPodInfo, now_s: float) -> bool:
        key = get_pod_key(queued.pod)
        if self._queued.get(key) is not queued:
            return False
        self._in_hand.pop(key, None)
        queued.failures += 1
        queued.failed_s = queued.queued_s = now_s
        return True

    def _move_to_active(self, queued: QueuedPodInfo) -> None:
        heapq.heappush(self._active, (queued.order, self._assign_number(queued, _Place.ACTIVE), queued))

    def _wait_or_activate(self, queued: QueuedPodInfo, now_s: float) -> None:
        if queued.failed_s + self.compute_backoff_s(max(queued.failures, 1)) <= now_s:
            self._move_to_active(queued)
        else:
            self._wait(queued, _Place.BACKING_OFF)

    def _wait(self, queued: QueuedPodInfo, place: _Place) -> None:
        until_s = queued.failed_s + self.compute_backoff_s(queued.failures)
        heapq.heappush(self._waiting, (until_s, queued.order, self._assign_number(queued, place), queued))

    def _assign_number(self, queued: QueuedPodInfo, place: _Place) -> int:
        self._number += 1
        queued.place, queued.entry = place, self._number
        return self._number

    def _pop_from_waiting(self, now_s: float) -> QueuedPodInfo | None:
        """The pod whose back-off ends first; one in error only once it has ended."""
        held = []
        found = None
        while self._waiting and found is None:
            entry = heapq.heappop(self._waiting)
            until_s, _, number, queued = entry
            if not self._is_current(queued, number):
                continue
            if queued.place is _Place.BACKING_OFF or until_s <= now_s:
                found = queued
            else:
                held.append(entry)
        for entry in held:
            heapq.heappush(self._waiting, entry)
        return None if found is None else self._take(found)

    def _is_current(self, queued: QueuedPodInfo, number: int) -> bool:
        return queued.entry == number and self._queued.get(get_pod_key(queued.pod)) is queued


def _is_helped_by(queued: QueuedPodInfo, event: ClusterEvent, helps: Helps) -> bool:
    return may_help(event, queued.refused_by) or (is_about_a_node(event) and helps(queued.pod))
