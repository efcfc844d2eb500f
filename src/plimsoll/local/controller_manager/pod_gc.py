"""The pod garbage collector: deletes pods of missing nodes, and finished pods beyond a limit.

A missing node may still appear (caches fill one after the other), so it has to be missing for a while, and the server
is asked once more before a deletion. Keys are names of nodes; `FINISHED` stands for finished pods.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value
from plimsoll.kube.controller.controller import Again, Controller, Done
from plimsoll.kube.controller.enqueue import enqueue_on, list_states
from plimsoll.kube.errors import Conflict, NotFound
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.local.controller_manager.pod_conditions import is_finished, mark_disruption_target
from plimsoll.local.controller_manager.pod_indexes import index_pods_by_node, list_pods_on_node
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.kube.informer.events import Change
    from plimsoll.local.components import Component

NAME: Final = "pod-garbage-collector"
FINISHED: Final = ""

_INSTANT_S: Final = 1e-6
"""What may be left of a wait by rounding: it is over."""
_FINISHED_INDEX: Final = "upkeep: finished pods"


class PodGcSettings(Value, frozen=True):
    """`missing_s`: kube-controller-manager's quarantine of 40 s and its period of 20 s."""

    missing_s: float = 60.0
    kept_finished: int = 12_500


def select_excess_finished_pods(finished: Sequence[Pod], kept: int) -> list[Pod]:
    """The finished pods to delete so that `kept` are left, the oldest first."""
    excess = len(finished) - kept
    return sorted(finished, key=_get_age_key)[:excess] if excess > 0 else []


def _get_age_key(pod: Pod) -> tuple[str, str, str]:
    metadata = pod.metadata
    return str(metadata.creation_timestamp), metadata.namespace, metadata.name


class PodGarbageCollector:
    """Reconciles through `controller`, which the supervisor runs."""

    def __init__(self, component: Component, settings: PodGcSettings) -> None:
        self._client = component.client
        self._clock = component.clock
        self._settings = settings
        self._nodes = component.informers.get_informer(Node)
        self._pods = component.informers.get_informer(Pod)
        self._missing_since: dict[str, float] = {}
        index_pods_by_node(self._pods)
        self._pods.add_index(_FINISHED_INDEX, lambda pod: [True] if is_finished(pod) else [])
        self.controller: Controller[str] = Controller(
            NAME, self.reconcile, clock=component.clock, entropy=component.entropy, all_keys=self._list_missing_nodes
        )
        enqueue_on(self._nodes, self.controller, lambda change: (change.key.name,))
        enqueue_on(self._pods, self.controller, self._list_keys_of_pod)

    async def reconcile(self, name: str) -> Done | Again:
        if name == FINISHED:
            return await self._delete_excess_finished_pods()
        if self._nodes.cache.get(name) is not None or not list_pods_on_node(self._pods, name):
            self._missing_since.pop(name, None)
            return Done()
        now_s = self._clock.monotonic_s()
        wait_s = self._missing_since.setdefault(name, now_s) + self._settings.missing_s - now_s
        if wait_s > _INSTANT_S:
            return Again(after_s=wait_s)
        if await self._is_there(name):
            self._missing_since.pop(name, None)
            return Done()
        pods = list_pods_on_node(self._pods, name)
        for pod in pods:
            await self._collect(pod)
        return Done(summary=f"collected {len(pods)} pods: the node no longer exists")

    async def _is_there(self, name: str) -> bool:
        with suppress(NotFound):
            await self._client.get(Node, name)
            return True
        return False

    async def _collect(self, pod: Pod) -> None:
        why = "PodGC: node no longer exists"
        if await mark_disruption_target(
            self._client, pod, self._clock.now(), reason="DeletionByPodGC", message=why, has_failed=True
        ):
            await self._delete(pod)

    async def _delete_excess_finished_pods(self) -> Done:
        finished = self._pods.cache.list_by_index(_FINISHED_INDEX, True)  # noqa: FBT003 -- an index value
        excess = select_excess_finished_pods(finished, self._settings.kept_finished)
        for pod in excess:
            await self._delete(pod)
        return Done(summary=f"let {len(excess)} finished pods go" if excess else "")

    async def _delete(self, pod: Pod) -> None:
        options = DeleteOptions(uid=pod.metadata.uid, grace_s=0)
        with suppress(NotFound, Conflict):
            await self._client.delete(Pod, pod.metadata.name, namespace=pod.metadata.namespace, options=options)

    # ---- pods that a change concerns

    def _list_missing_nodes(self) -> list[str]:
        names = dict.fromkeys(pod.spec.node_name for pod in self._pods.cache if pod.spec.node_name)
        return [*(name for name in names if self._nodes.cache.get(name) is None), FINISHED]

    def _list_keys_of_pod(self, change: Change[Pod]) -> Iterable[str]:
        states: list[Any] = list_states(change)
        if not states:
            return ()
        pod: Pod = states[-1]
        name = pod.spec.node_name
        keys = [name] if name and self._nodes.cache.get(name) is None else []
        has_too_many = is_finished(pod) and self._delete_finished() > self._settings.kept_finished
        return [*keys, FINISHED] if has_too_many else keys

    def _delete_finished(self) -> int:
        return len(self._pods.cache.list_by_index(_FINISHED_INDEX, True))  # noqa: FBT003 -- an index value
