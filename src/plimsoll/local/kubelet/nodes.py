"""The node controller of the virtual kubelet: brings nodes up after their boot and keeps their status and heartbeats.

`node_status` computes the status, `heartbeats` keeps a node alive. Nothing is kept here but the assigned addresses; a
node taken over from another process keeps its own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.label_selector_parsing import parse_label_selector
from plimsoll.kube.controller.controller import Again, Controller, ControllerSettings, Done
from plimsoll.kube.controller.enqueue import enqueue_on, get_own_key
from plimsoll.kube.controller.workqueue import QueueSettings
from plimsoll.kube.errors import NotFound
from plimsoll.kube.informer.events import Key
from plimsoll.kube.recorder import EventType, build_reference
from plimsoll.local.kubelet.addresses import AddressPool
from plimsoll.local.kubelet.node_status import (
    Booting,
    NodeStatusUpdate,
    Silent,
    Up,
    compute_node_status,
    determine_node_state,
    find_internal_ip,
)
from plimsoll.objects.api.nodes import Node

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from plimsoll.local.components import Component
    from plimsoll.local.kubelet.heartbeats import Heartbeats
    from plimsoll.local.kubelet.settings import KubeletSettings


class NodeController:
    """The simulated nodes of this kubelet, and their controller."""

    def __init__(self, component: Component, heartbeats: Heartbeats, settings: KubeletSettings) -> None:
        self._client = component.client
        self._recorder = component.recorder
        self._clock = component.clock
        self._heartbeats = heartbeats
        self._settings = settings
        self._selector = parse_label_selector(settings.selector)
        self._addresses = AddressPool(settings.node_addresses)
        self.informer = component.informers.get_informer(Node)
        self.controller: Controller[Key] = Controller(
            "kubelet: nodes",
            self._reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=self._list_all_keys,
            settings=ControllerSettings(workers=settings.workers, resync_s=0, queue=QueueSettings(retries_per_s=0)),
        )
        enqueue_on(self.informer, self.controller, get_own_key)

    def is_ours(self, node: Node | None) -> bool:
        return node is not None and self._selector.matches(node.metadata.labels)

    def get_simulated_node(self, name: str) -> Node | None:
        """A node whose pods this kubelet simulates."""
        node = self.informer.cache.get(name)
        return node if self.is_ours(node) else None

    def determine_state(self, node: Node) -> Up | Silent | Booting:
        return determine_node_state(node, self._clock.now(), self._settings)

    # ---- the controller

    def _list_all_keys(self) -> Iterable[Key]:
        """In the order of their names, in which they get their addresses."""
        nodes = sorted(
            (node for node in self.informer.cache if self.is_ours(node)), key=lambda node: node.metadata.name
        )
        for node in nodes:
            if address := find_internal_ip(node):
                # The taken ones, before any is assigned.
                self._addresses.assign_address(node.metadata.name, has=address)
        return [Key("", node.metadata.name) for node in nodes]

    async def _reconcile(self, key: Key) -> Done | Again:
        node = self.get_simulated_node(key.name)
        if node is None:
            self._heartbeats.forget(key.name)
            self._addresses.release(key.name)
            return Done()
        match self.determine_state(node):
            case Silent():
                self._heartbeats.stop(key.name)
                return Done()
            case Booting(until=until):
                return self._requeue_at(until)
            case Up():
                return await self._keep_up(node)

    async def _keep_up(self, node: Node) -> Done | Again:
        now = self._clock.now()
        address = self._addresses.assign_address(node.metadata.name, has=find_internal_ip(node))
        plan = compute_node_status(
            node, now, address=address, settings=self._settings, repeats=self._heartbeats.are_written
        )
        if isinstance(plan, NodeStatusUpdate):
            if not await self._write(node, plan):
                return Done()
            if plan.became_ready:
                self._record_ready(node)
        # After the status: a renewed lease beside an outdated status is not a sign of life.
        await self._heartbeats.start(node)
        return Done() if isinstance(plan, NodeStatusUpdate) or plan.until is None else self._requeue_at(plan.until)

    async def _write(self, node: Node, plan: NodeStatusUpdate) -> bool:
        """Whether the node was still there. The version keeps a stale cache from overwriting what we wrote before."""
        metadata = {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version}
        try:
            await self._client.patch_strategic(
                Node, node.metadata.name, {"metadata": metadata, "status": plan.status}, subresource="status"
            )
        except NotFound:
            return False
        return True

    def _record_ready(self, node: Node) -> None:
        if self._settings.emits_events:
            about = build_reference(self._client.calls.get_resource(Node), node)
            message = f"Node {node.metadata.name} status is now: NodeReady"
            self._recorder.record(about, EventType.NORMAL, reason="NodeReady", message=message)

    def _requeue_at(self, until: datetime) -> Again:
        return Again(after_s=max((until - self._clock.now()).total_seconds(), 0.001))
