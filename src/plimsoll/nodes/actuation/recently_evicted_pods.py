"""Evicted pods that are not recreated yet: plans keep room for them, which would be used twice otherwise.

This is short-lived memory of one process: a controller recreates its pod within seconds, and then the new pod counts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.durations import add_seconds
from plimsoll.nodes.planning.state.node_pods import remove_node_name
from plimsoll.objects.owners import find_controller

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime, timedelta

    from plimsoll.objects.api.pods import Pod

_ENDED = frozenset({"Succeeded", "Failed"})


class RecentEvictions:
    """Evicted pods by uid, and the new pods that replace others of them."""

    def __init__(self) -> None:
        self._pods: dict[str, tuple[datetime, Pod]] = {}
        self._replacing: set[str] = set()

    def note(self, pod: Pod, at: datetime) -> None:
        """Remember a pod, if a controller will recreate it."""
        if find_controller(pod.metadata) is not None and pod.status.phase not in _ENDED:
            self._pods[pod.metadata.uid] = (at, pod)

    def adjust_clock(self, by: timedelta) -> None:
        self._pods = {uid: (at + by, pod) for uid, (at, pod) in self._pods.items()}

    def find_unreplaced(self, now: datetime, pods: Iterable[Pod], *, for_s: float) -> tuple[Pod, ...]:
        """Evicted pods without a replacement, as their controllers would recreate them. `pods` are all pods.

        A pod is forgotten after `for_s` seconds.
        """
        oldest = add_seconds(now, -for_s)
        self._pods = {uid: (at, pod) for uid, (at, pod) in self._pods.items() if at > oldest}
        if self._pods:
            self._forget_replaced(pods)
        else:
            self._replacing.clear()
        return tuple(remove_node_name(pod) for _, pod in self._pods.values())

    def _forget_replaced(self, pods: Iterable[Pod]) -> None:
        """A pod that is younger than an eviction of its controller replaces the oldest such eviction."""
        waiting: dict[str, list[tuple[datetime, str]]] = {}
        for uid, (at, pod) in self._pods.items():
            waiting.setdefault(_get_owner(pod), []).append((at, uid))
        for pod in pods:
            uid, queue = pod.metadata.uid, waiting.get(_get_owner(pod))
            if queue and uid not in self._pods and uid not in self._replacing and _was_created_after(pod, queue[0][0]):
                self._replacing.add(uid)
                del self._pods[queue.pop(0)[1]]


def _get_owner(pod: Pod) -> str:
    owner = find_controller(pod.metadata)
    return "" if owner is None else owner.uid or f"{pod.metadata.namespace}/{owner.kind}/{owner.name}"


def _was_created_after(pod: Pod, at: datetime) -> bool:
    """Creation timestamps have no fraction of a second."""
    made = pod.metadata.creation_timestamp
    return made is not None and made >= at.replace(microsecond=0)
