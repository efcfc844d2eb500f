"""The node lifecycle controller: marks nodes that stop reporting with conditions and taints.

One reconciliation of a node: find when it last reported, write Unknown conditions if that is too long ago, keep the
taints that its conditions require, mark its pods not ready. `taint_eviction` evicts pods; it looks at the taints alone.
Nothing is polled: a node is reconciled when it changes, when its liveness does, and when its grace period ends.

Only the time of the last report is in memory; after a restart every node has its grace period again, as in Kubernetes.
Grace is measured on the monotonic clock, and the server is asked before a node counts as silent: neither a step of the
wall clock nor a late cache makes a node unreachable.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value
from plimsoll.kube.controller.controller import Again, Controller, ControllerSettings, Done
from plimsoll.kube.controller.enqueue import enqueue_on
from plimsoll.kube.errors import NotFound
from plimsoll.kube.informer.events import Added, Deleted
from plimsoll.kube.recorder import EventType, build_reference
from plimsoll.local.controller_manager.node_lifecycle.health import (
    NEVER_REPORTED,
    NO_EXECUTE,
    NO_SCHEDULE,
    READY,
    STOPPED_REPORTING,
    NodeGracePeriods,
    build_silent_conditions,
    choose_evicting_key,
    compute_silent_from_s,
    encode_taints,
    find_condition,
    find_evicting_key,
    find_missing_metadata,
    get_readiness,
    is_silent,
    list_unschedulable_keys,
    set_taints,
)
from plimsoll.local.controller_manager.node_lifecycle.zones import EvictionRates, NodeZone, Zones
from plimsoll.local.controller_manager.pod_conditions import mark_not_ready
from plimsoll.local.controller_manager.pod_indexes import index_pods_by_node, list_pods_on_node
from plimsoll.objects.api.meta import ObjectReference
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod, is_pod_ready

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from plimsoll.kube.informer.events import Change
    from plimsoll.local.components import Component
    from plimsoll.local.liveness import Liveness
    from plimsoll.objects.api.nodes import NodeCondition

NAME: Final = "node-controller"

_INSTANT_S: Final = 1e-6
"""What may be left of a wait by rounding: it is over."""
_LEFT_OUT: Final = "node.kubernetes.io/exclude-disruption"


class NodeLifecycleSettings(Value, frozen=True):
    """How patient the controller is, and how fast it empties nodes."""

    patience: NodeGracePeriods = NodeGracePeriods()
    rates: EvictionRates = EvictionRates()
    workers: int = 4


@dataclass(slots=True)
class _Report:
    """The last report seen of a node, and when it was."""

    uid: str
    ready: NodeCondition | None
    at_s: float


class NodeLifecycleController:
    """Reconciles through `controller`, whose keys are names of nodes."""

    def __init__(self, component: Component, liveness: Liveness, settings: NodeLifecycleSettings) -> None:
        self._component = component
        self._client = component.client
        self._clock = component.clock
        self._liveness = liveness
        self._patience = settings.patience
        self._zones = Zones(settings.rates)
        self._nodes = component.informers.get_informer(Node)
        self._pods = component.informers.get_informer(Pod)
        self._resource = component.client.calls.get_resource(Node)
        self._pod_resource = component.client.calls.get_resource(Pod)
        self._reports: dict[str, _Report] = {}
        self._outage_ended_s = -inf
        self._timed: set[str] = set()
        index_pods_by_node(self._pods)
        self.controller: Controller[str] = Controller(
            NAME,
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=self._count_all,
            settings=ControllerSettings(workers=settings.workers),
        )
        enqueue_on(self._nodes, self.controller, self._handle_change)
        self.controller.add_source(self._pods)
        self.controller.add_source(liveness)
        liveness.on_change(self._record_heartbeat)

    async def reconcile(self, name: str) -> Done | Again:
        node = self._nodes.cache.get(name)
        if node is None:
            self._forget(name)
            return Done()
        self._timed.discard(name)
        now = self._clock.now()
        if self._is_silent(node) and build_silent_conditions(node, now):
            try:
                node = await self._mark_silent(await self._read_node(node), now)
            except NotFound:
                # Deleted meanwhile: its going is an event of its own.
                return Done()
        self._put(name, _place(node))
        if is_silent(node):
            await self._mark_pods(node)
        eviction_s = await self._reconcile_taints(node, now)
        return self._schedule_next(node, eviction_s)

    # ---- when it was heard of

    def _is_silent(self, node: Node) -> bool:
        is_over = self._compute_silent_s(node) - self._clock.monotonic_s() <= _INSTANT_S
        return is_over and not self._liveness.is_steady(node.metadata.name)

    def _compute_silent_s(self, node: Node) -> float:
        heard_s = self._liveness.get_last_heartbeat_s(node.metadata.name)
        known_s = max(self._get_last_report(node).at_s, self._outage_ended_s)
        return compute_silent_from_s(node, known_s if heard_s is None else max(heard_s, known_s), self._patience)

    async def _read_node(self, node: Node) -> Node:
        """The node as the server has it now; what it knows of its lease is learnt too."""
        await self._liveness.ask(node.metadata.name, self._client)
        found: Node = await self._client.get(Node, node.metadata.name)
        return found

    def _get_last_report(self, node: Node) -> _Report:
        """The last report; a new one if another writer changed the Ready condition."""
        name, uid = node.metadata.name, node.metadata.uid
        ready = find_condition(node, READY)
        known = self._reports.get(name)
        if known is None or known.uid != uid:
            created = node.metadata.creation_timestamp
            now, now_s = self._clock.now(), self._clock.monotonic_s()
            age_s = 0.0 if ready is not None or created is None else (now - min(created, now)).total_seconds()
            self._reports[name] = known = _Report(uid, ready, now_s - age_s)
        elif ready != known.ready:
            if ready is not None and ready.reason not in {NEVER_REPORTED, STOPPED_REPORTING}:
                known.at_s = self._clock.monotonic_s()
            known.ready = ready
        return known

    def _record_heartbeat(self, name: str) -> None:
        # A node whose grace is being watched is looked at when it ends; news until then change nothing.
        if name not in self._timed:
            self.controller.queue.add(name)

    def _schedule_next(self, node: Node, eviction_s: float | None) -> Done | Again:
        name = node.metadata.name
        waits = [] if eviction_s is None else [eviction_s]
        if not self._liveness.is_steady(name) and get_readiness(node) != "Unknown":
            waits.append(self._compute_silent_s(node) - self._clock.monotonic_s())
            self._timed.add(name)
        return Again(after_s=max(0.0, min(waits))) if waits else Done()

    # ---- acting

    async def _mark_silent(self, node: Node, now: datetime) -> Node:
        conditions = build_silent_conditions(node, now)
        if not conditions or not self._is_silent(node):
            return node
        was_ready = get_readiness(node) == "True"
        metadata = node.metadata
        # The version holds it to what was looked at: a report that came meanwhile must not be overwritten.
        identity = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
        body = {"metadata": identity, "status": {"conditions": conditions}}
        patched = await self._client.patch_strategic(Node, metadata.name, body, subresource="status")
        if was_ready:
            self._record(patched, "NodeNotReady", f"Node {metadata.name} status is now: NodeNotReady")
        return patched

    async def _mark_pods(self, node: Node) -> None:
        for pod in list_pods_on_node(self._pods, node.metadata.name):
            if is_pod_ready(pod) and await mark_not_ready(self._client, pod, self._clock.now()):
                about = build_reference(self._pod_resource, pod)
                self._component.recorder.record(
                    about, EventType.WARNING, reason="NodeNotReady", message="Node is not ready"
                )

    async def _reconcile_taints(self, node: Node, now: datetime) -> float | None:
        """Keep taints and metadata as they should be; returns the seconds until the node may be evicted."""
        wanted = set_taints(node.spec.taints, list_unschedulable_keys(node), NO_SCHEDULE, now)
        key, eviction_s = self._choose_evicting_taint(node)
        wanted = set_taints(wanted, [key] if key else [], NO_EXECUTE, now)
        body: dict[str, Any] = {"metadata": find_missing_metadata(node, len(self._nodes.cache))}
        if wanted != node.spec.taints:
            body["spec"] = {"taints": encode_taints(wanted)}
        if not body["metadata"] and "spec" not in body:
            return eviction_s
        body["metadata"] |= {"uid": node.metadata.uid, "resourceVersion": node.metadata.resource_version}
        try:
            await self._client.merge_patch(Node, node.metadata.name, body)
        except NotFound:
            return None
        return eviction_s

    def _choose_evicting_taint(self, node: Node) -> tuple[str, float | None]:
        """The evicting taint to have now, and in how many seconds it may get another."""
        key, present = choose_evicting_key(node), find_evicting_key(node)
        if not key or self._zones.is_all_disrupted:
            return "", None
        if present:
            return key, None
        eviction_s = self._zones.compute_next_eviction_s(node.metadata.name, self._clock.monotonic_s())
        return (key, None) if eviction_s == 0 else ("", eviction_s)

    # ---- the whole

    def _count_all(self) -> list[str]:
        """All nodes, counted before the first is looked at: a partial count could suggest that none is ready.

        Nodes that were counted stay as they are: their last reconciliation may be newer than the cache.
        """
        was_disrupted = self._zones.is_all_disrupted
        for node in self._nodes.cache:
            if node.metadata.name not in self._zones:
                self._zones.put(node.metadata.name, _place(node))
        self._reset_grace_periods(was_disrupted=was_disrupted)
        return [node.metadata.name for node in self._nodes.cache]

    def _forget(self, name: str) -> None:
        self._reports.pop(name, None)
        self._timed.discard(name)
        self._put(name, None)

    def _put(self, name: str, place: NodeZone | None) -> None:
        was_disrupted = self._zones.is_all_disrupted
        if self._zones.put(name, place):
            self._reset_grace_periods(was_disrupted=was_disrupted)
            self.controller.resync()

    def _reset_grace_periods(self, *, was_disrupted: bool) -> None:
        """If no node reported, the control plane was cut off, not the nodes: all get a full grace period again."""
        if was_disrupted and not self._zones.is_all_disrupted:
            self._outage_ended_s = self._clock.monotonic_s()

    def _handle_change(self, change: Change[Node]) -> Iterable[str]:
        name = change.key.name
        match change:
            case Added(new=new):
                self._record(new, "RegisteredNode", f"Node {name} event: Registered Node {name} in Controller")
            case Deleted(last=last):
                self._record(last, "RemovingNode", f"Node {name} event: Removing Node {name} from Controller")
            case _:
                pass
        return (name,)

    def _record(self, node: Node, reason: str, message: str) -> None:
        about = ObjectReference(
            api_version=self._resource.api_version,
            kind=self._resource.kind,
            name=node.metadata.name,
            uid=node.metadata.uid,
        )
        self._component.recorder.record(about, EventType.NORMAL, reason=reason, message=message)


def _place(node: Node) -> NodeZone:
    labels = node.metadata.labels
    zone = labels.get("topology.kubernetes.io/region", "") + "/" + labels.get("topology.kubernetes.io/zone", "")
    return NodeZone(None if _LEFT_OUT in labels else zone, get_readiness(node) == "True")
