"""The pod controller of the virtual kubelet: starts, runs and ends the pods of its nodes, as `pod_status` computes.

One reconciliation: read pod and node from the caches, compute the status, patch it or delete the object, record Events.
The work queue is the only timer. Writes carry the version they are based on, because the cache lags behind our own
writes; after a conflict the pod is reconciled again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.kube.controller.controller import Again, Controller, ControllerSettings, Done
from plimsoll.kube.controller.enqueue import enqueue_on
from plimsoll.kube.controller.workqueue import QueueSettings
from plimsoll.kube.errors import Conflict, NotFound
from plimsoll.kube.informer.events import Added, Deleted, Key, Updated
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.local.kubelet.addresses import AddressPools
from plimsoll.local.kubelet.admission import AdmittedPods
from plimsoll.local.kubelet.node_status import Booting, Silent, find_internal_ip
from plimsoll.local.kubelet.pod_events import PodEvents
from plimsoll.local.kubelet.pod_status import (
    TERMINAL,
    PodAddresses,
    PodStatusUpdate,
    PodUnchanged,
    RemovePod,
    compute_pod_status,
    reject,
)
from plimsoll.local.kubelet.process_status import compute_process_status
from plimsoll.local.kubelet.settings import read_pace
from plimsoll.objects.api.pods import Pod

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from plimsoll.kube.informer.events import Change
    from plimsoll.local.components import Component
    from plimsoll.local.kubelet.nodes import NodeController
    from plimsoll.local.kubelet.process_status import ContainerRuntime
    from plimsoll.local.kubelet.settings import KubeletSettings
    from plimsoll.objects.api.nodes import Node

BY_NODE: Final = "kubelet: by node"


class PodController:
    """The pods on the simulated nodes, and their controller."""

    def __init__(self, component: Component, nodes: NodeController, settings: KubeletSettings) -> None:
        self._client = component.client
        self._clock = component.clock
        self._nodes = nodes
        self._settings = settings
        self._runtime: ContainerRuntime | None = None
        self._admitted = AdmittedPods()
        self._addresses = AddressPools(settings.pod_addresses)
        # By uid, the version in which a pod is after a report that leaves nothing to do until something happens.
        self._written: dict[str, str] = {}
        self._events = (
            PodEvents(component.recorder, component.client.calls.get_resource(Pod)) if settings.emits_events else None
        )
        self.informer = component.informers.get_informer(Pod)
        self.informer.add_index(BY_NODE, lambda pod: (pod.spec.node_name,) if pod.spec.node_name else ())
        self.controller: Controller[Key] = Controller(
            "kubelet: pods",
            self._reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=self._list_all_keys,
            settings=ControllerSettings(
                workers=settings.workers, resync_s=settings.resync_s, queue=QueueSettings(retries_per_s=0)
            ),
        )
        enqueue_on(self.informer, self.controller, self._list_keys_of_pod)
        enqueue_on(nodes.informer, self.controller, self._list_keys_of_node)

    def use_runtime(self, runtime: ContainerRuntime) -> None:
        """Let it run the pods that it handles for real. Called before the controller runs; its services run first."""
        self._runtime = runtime
        runtime.subscribe(self.controller.queue.add)

    # ---- what is to be looked at

    def _list_all_keys(self) -> Iterable[Key]:
        bound = [pod for pod in self.informer.cache if pod.spec.node_name]
        for pod in bound:
            node = self._nodes.get_simulated_node(pod.spec.node_name)
            if node is not None and pod.status.pod_ip and pod.status.phase not in TERMINAL:
                # The taken ones, before any is assigned.
                self._place(pod, node)
        return [Key(pod.metadata.namespace, pod.metadata.name) for pod in bound]

    def _list_keys_of_pod(self, change: Change[Pod]) -> Iterable[Key]:
        match change:
            case Added(new=pod) | Updated(new=pod):
                key = self._get_key_if_bound(pod)
                return () if key is None else (key,)
            case Deleted(last=pod):
                self._forget(pod)
                return ()
            case _:
                return ()

    def _list_keys_of_node(self, change: Change[Node]) -> Iterable[Key]:
        """All pods of a node that came, went, or may have become or ceased to be simulated; not at every heartbeat."""
        match change:
            case Updated(old=old, new=new) if _has_same_relevant_fields(old, new):
                return ()
            case Deleted(last=node):
                self._admitted.remove_node(node.metadata.name)
                self._addresses.close(node.spec.pod_cidr)
        self._written.clear()
        return [Key(pod.metadata.namespace, pod.metadata.name) for pod in self._on(change.key.name)]

    def _get_key_if_bound(self, pod: Pod) -> Key | None:
        return Key(pod.metadata.namespace, pod.metadata.name) if pod.spec.node_name else None

    def _on(self, node_name: str) -> tuple[Pod, ...]:
        return self.informer.cache.list_by_index(BY_NODE, node_name)

    # ---- the controller

    async def _reconcile(self, key: Key) -> Done | Again:
        pod = self.informer.cache.get(key.name, key.namespace)
        node = self._nodes.get_simulated_node(pod.spec.node_name) if pod is not None else None
        if pod is None or node is None:
            return Done()
        match self._nodes.determine_state(node):
            case Silent():
                return Done()
            case Booting(until=until):
                return self._requeue_at(until)
        if self._written and self._written.pop(pod.metadata.uid, "") == pod.metadata.resource_version:
            # The echo of our own report: the plan would be the same again.
            return Done()
        plan = self._plan(pod, node)
        match plan:
            case PodUnchanged(until=next_look):
                self._record_stop(pod)
                return Done() if next_look is None else self._requeue_at(next_look)
            case RemovePod():
                return await self._remove(pod)
            case PodStatusUpdate():
                return await self._report(pod, plan)

    def _plan(self, pod: Pod, node: Node) -> PodStatusUpdate | PodUnchanged | RemovePod:
        now = self._clock.now()
        if pod.status.phase in TERMINAL:
            self._release(pod)
        elif not self._is_admitted(pod):
            refused = self._admitted.check(pod, node)
            if refused is not None:
                return reject(pod, now, reason=refused.reason, message=refused.message)
            self._admitted.add(pod)
        place = self._place(pod, node)
        runtime = self._find_runtime(pod)
        if runtime is not None:
            return self._plan_process(pod, runtime, place, now)
        return compute_pod_status(pod, now, place=place, pace=read_pace(pod, self._settings))

    def _plan_process(
        self, pod: Pod, runtime: ContainerRuntime, place: PodAddresses, now: datetime
    ) -> PodStatusUpdate | PodUnchanged | RemovePod:
        if pod.metadata.deletion_timestamp is not None:
            runtime.stop(pod)
        planned = compute_process_status(pod, now, place=place, process=runtime.find_process(pod))
        if planned.starts:
            runtime.start(pod)
        return planned.plan

    def _find_runtime(self, pod: Pod) -> ContainerRuntime | None:
        """What runs the pod for real; None: the clock does."""
        return self._runtime if self._runtime is not None and self._runtime.can_run(pod) else None

    def _is_admitted(self, pod: Pod) -> bool:
        """Whether the node has taken the pod before, this process or an earlier one; on its way out it is taken."""
        name = pod.spec.node_name
        if not self._admitted.has_node(name):
            self._admitted.add_node(name)
            for item in self._on(name):
                if item.status.start_time is not None and item.status.phase not in TERMINAL:
                    self._admitted.add(item)
        if pod.status.start_time is not None or pod.metadata.deletion_timestamp is not None:
            self._admitted.add(pod)
        return self._admitted.has(pod)

    def _place(self, pod: Pod, node: Node) -> PodAddresses:
        host_ip = find_internal_ip(node)
        if pod.spec.host_network:
            return PodAddresses(host_ip=host_ip, pod_ip=host_ip)
        if (runtime := self._find_runtime(pod)) is not None:
            return PodAddresses(host_ip=host_ip, pod_ip=runtime.address)
        if pod.status.phase in TERMINAL:
            return PodAddresses(host_ip=host_ip, pod_ip=pod.status.pod_ip)
        pod_ip = self._addresses.assign_address(pod.metadata.uid, node.spec.pod_cidr, has=pod.status.pod_ip)
        return PodAddresses(host_ip=host_ip, pod_ip=pod_ip)

    # ---- acting

    async def _report(self, pod: Pod, plan: PodStatusUpdate) -> Done | Again:
        metadata = {"uid": pod.metadata.uid, "resourceVersion": pod.metadata.resource_version}
        body = {"metadata": metadata, "status": plan.patch}
        name, namespace = pod.metadata.name, pod.metadata.namespace
        try:
            written = await self._client.patch_strategic(Pod, name, body, namespace=namespace, subresource="status")
        except NotFound:
            return Done()
        if self._events is not None:
            self._events.record_changes(pod, written)
        if plan.until is not None:
            return self._requeue_at(plan.until)
        if plan.phase == "Running" and self._is_endless(pod):
            self._written[pod.metadata.uid] = written.metadata.resource_version
        return Done()

    def _is_endless(self, pod: Pod) -> bool:
        """Whether it never ends; that depends on its start, which is in the new status. A real process may end."""
        if self._find_runtime(pod) is not None:
            return False
        return pod.spec.active_deadline_seconds is None and read_pace(pod, self._settings).run_s is None

    async def _remove(self, pod: Pod) -> Done:
        options = DeleteOptions(uid=pod.metadata.uid, grace_s=0)
        try:
            await self._client.delete(Pod, pod.metadata.name, namespace=pod.metadata.namespace, options=options)
        except (NotFound, Conflict):
            # Gone, or another pod has its name now.
            return Done()
        return Done()

    def _record_stop(self, pod: Pod) -> None:
        if self._events is not None and pod.metadata.deletion_timestamp is not None:
            self._events.record_stop(pod)

    # ---- letting go

    def _release(self, pod: Pod) -> None:
        """What has ended takes nothing any more, and its address is free."""
        self._written.pop(pod.metadata.uid, None)
        self._admitted.remove(pod.metadata.uid)
        self._addresses.release(pod.metadata.uid)

    def _forget(self, pod: Pod) -> None:
        self._release(pod)
        if (runtime := self._find_runtime(pod)) is not None:
            runtime.remove(pod)
        if self._events is not None:
            self._events.forget(pod)

    def _requeue_at(self, until: datetime) -> Again:
        return Again(after_s=max((until - self._clock.now()).total_seconds(), 0.001))


def _has_same_relevant_fields(old: Node, new: Node) -> bool:
    """Whether nothing changed that its pods would notice."""
    return (
        old.metadata.uid == new.metadata.uid
        and old.metadata.labels == new.metadata.labels
        and old.metadata.annotations == new.metadata.annotations
        and find_internal_ip(old) == find_internal_ip(new)
    )
