"""The taint eviction controller: deletes pods that do not, or no longer, tolerate a NoExecute taint of their node.

Neither the origin nor the age of the taint matters. The toleration time counts from when this process first saw the pod
on the tainted node, as in Kubernetes: a pod that came later has its whole time, and after a restart all have.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from plimsoll.kube.controller.controller import Again, Controller, ControllerSettings, Done
from plimsoll.kube.controller.enqueue import enqueue_on, list_states
from plimsoll.kube.errors import Conflict, NotFound
from plimsoll.kube.informer.events import Key, get_key
from plimsoll.kube.recorder import EventType
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.local.controller_manager.node_lifecycle.health import NO_EXECUTE
from plimsoll.local.controller_manager.pod_conditions import mark_disruption_target
from plimsoll.local.controller_manager.pod_indexes import index_pods_by_node, list_pods_on_node
from plimsoll.objects.api.meta import ObjectReference
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.scheduling.rules.taints import tolerates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from plimsoll.kube.informer.events import Change
    from plimsoll.local.components import Component
    from plimsoll.objects.api.affinity import Toleration
    from plimsoll.objects.api.nodes import Taint

NAME: Final = "taint-eviction-controller"

_INSTANT_S: Final = 1e-6
"""What may be left of a wait by rounding: it is over."""
_WHY: Final = "Taint manager: deleting due to NoExecute taint"


def list_evicting_taints(node: Node | None) -> tuple[Taint, ...]:
    return () if node is None else tuple(taint for taint in node.spec.taints if taint.effect == NO_EXECUTE)


def compute_eviction_time(
    tolerations: Iterable[Toleration], taints: Iterable[Taint], since_s: Callable[[Taint], float]
) -> float | None:
    """When a pod with these tolerations must go; None: it may stay as long as the taints are these.

    For each taint the shortest of the tolerations that match it counts; one without a time holds for ever.
    """
    times: list[float] = []
    for taint in taints:
        matching = [toleration for toleration in tolerations if tolerates(toleration, taint)]
        if not matching:
            times.append(since_s(taint))
            continue
        seconds = [
            toleration.toleration_seconds for toleration in matching if toleration.toleration_seconds is not None
        ]
        if seconds:
            times.append(since_s(taint) + max(0, min(seconds)))
    return min(times, default=None)


@dataclass(slots=True)
class _Stay:
    """A pod on a node, and since when it is seen there with each taint that drives it off."""

    pod_uid: str
    node_uid: str
    since_s: dict[tuple[str, str], float] = field(default_factory=dict)


class TaintEvictionController:
    """Reconciles through `controller`, whose keys are pods."""

    def __init__(self, component: Component, *, workers: int = 8) -> None:
        self._component = component
        self._clock = component.clock
        self._nodes = component.informers.get_informer(Node)
        self._pods = component.informers.get_informer(Pod)
        self._stays: dict[Key, _Stay] = {}
        index_pods_by_node(self._pods)
        self.controller: Controller[Key] = Controller(
            NAME,
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=self._on_tainted_nodes,
            settings=ControllerSettings(workers=workers),
        )
        enqueue_on(self._nodes, self.controller, self._list_pods_of_node)
        enqueue_on(self._pods, self.controller, self._list_pod_on_tainted_node)

    async def reconcile(self, key: Key) -> Done | Again:
        pod = self._pods.cache.get(key.name, key.namespace)
        if pod is None or pod.metadata.deletion_timestamp is not None:
            self._stays.pop(key, None)
            return Done()
        due_s = self._compute_due_s(pod, self._nodes.cache.get(pod.spec.node_name))
        if due_s is None:
            self._call_off(key)
            return Done()
        wait_s = due_s - self._clock.monotonic_s()
        if wait_s > _INSTANT_S:
            return Again(after_s=wait_s)
        done = await self._evict(pod)
        self._stays.pop(key, None)
        return done

    def _compute_due_s(self, pod: Pod, node: Node | None) -> float | None:
        taints = list_evicting_taints(node)
        if node is None or not taints:
            return None
        stay = self._stays.get(get_key(pod))
        if stay is None or (stay.pod_uid, stay.node_uid) != (pod.metadata.uid, node.metadata.uid):
            stay = _Stay(pod.metadata.uid, node.metadata.uid)
        now_s = self._clock.monotonic_s()
        stay.since_s = {(taint.key, taint.value): stay.since_s.get((taint.key, taint.value), now_s) for taint in taints}
        due_s = compute_eviction_time(pod.spec.tolerations, taints, lambda taint: stay.since_s[taint.key, taint.value])
        if due_s is not None:
            self._stays[get_key(pod)] = stay
        return due_s

    async def _evict(self, pod: Pod) -> Done:
        key = get_key(pod)
        client, now = self._component.client, self._clock.now()
        self._record(key, f"Marking for deletion Pod {key}")
        if not await mark_disruption_target(client, pod, now, reason="DeletionByTaintManager", message=_WHY):
            return Done()
        options = DeleteOptions(uid=pod.metadata.uid)
        try:
            await client.delete(Pod, key.name, namespace=key.namespace, options=options)
        except (NotFound, Conflict):
            return Done()
        return Done(summary=f"deleted: {pod.spec.node_name} has a NoExecute taint")

    def _call_off(self, key: Key) -> None:
        if self._stays.pop(key, None) is not None:
            self._record(key, f"Cancelling deletion of Pod {key}")

    def _record(self, key: Key, message: str) -> None:
        about = ObjectReference(api_version="v1", kind="Pod", namespace=key.namespace, name=key.name)
        self._component.recorder.record(about, EventType.NORMAL, reason="TaintManagerEviction", message=message)

    # ---- pods that a change concerns

    def _on_tainted_nodes(self) -> list[Key]:
        tainted = (node for node in self._nodes.cache if list_evicting_taints(node))
        return [get_key(pod) for node in tainted for pod in list_pods_on_node(self._pods, node.metadata.name)]

    def _list_pods_of_node(self, change: Change[Node]) -> Iterable[Key]:
        states: list[Any] = list_states(change)
        taints = [list_evicting_taints(state) for state in states]
        if len(taints) == 2 and taints[0] == taints[1]:
            return ()
        return [get_key(pod) for pod in list_pods_on_node(self._pods, change.key.name)] if any(taints) else ()

    def _list_pod_on_tainted_node(self, change: Change[Pod]) -> Iterable[Key]:
        states: list[Any] = list_states(change)
        key = change.key
        if key in self._stays:
            return (key,)
        return (key,) if states and list_evicting_taints(self._nodes.cache.get(states[-1].spec.node_name)) else ()
