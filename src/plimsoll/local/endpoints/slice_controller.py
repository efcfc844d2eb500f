"""The endpoint slice controller: keeps the EndpointSlices of every Service that selects pods.

One reconciliation: read the Service, its pods and its slices, write what the plan contains. Slices have random names,
so a Service waits while the cache misses earlier writes. The garbage collector deletes the slices of a deleted Service.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.kube.controller.controller import Again, Controller, Done
from plimsoll.kube.controller.enqueue import enqueue_on, get_own_key, list_states
from plimsoll.kube.errors import NotFound
from plimsoll.kube.informer.events import Key, get_key
from plimsoll.kube.informer.own_writes import RECHECK_S, Expectations
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.local.endpoints.backends import TRIGGER_TIME, ZONE, TriggerTimes, list_backends, list_families
from plimsoll.local.endpoints.selected_pods import SelectedPods
from plimsoll.local.endpoints.slice_plan import (
    MANAGED_BY,
    MANAGER,
    SERVICE_NAME,
    SliceManifests,
    SlicePlan,
    plan_slices,
)
from plimsoll.objects.api.meta import format_time
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.services import EndpointSlice, Service

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

    from plimsoll.kube.informer.events import Change
    from plimsoll.local.components import Component
    from plimsoll.local.endpoints.slice_plan import NewSlice, SliceChange

NAME: Final = "endpoint-slice-controller"
GATHER_S: Final = 0.05
"""How long news of pods are gathered: pods that start together make one write, not one each."""

_BY_SERVICE: Final = "endpoints: slices by service"


class EndpointSliceController:
    """Reconciles through `controller`, whose keys are Services."""

    def __init__(self, component: Component) -> None:
        self._client = component.client
        informers = component.informers
        self._services = informers.get_informer(Service)
        self._pods = informers.get_informer(Pod)
        self._nodes = informers.get_informer(Node)
        self._slices = informers.get_informer(EndpointSlice)
        self._slices.add_index(_BY_SERVICE, _index_by_service)
        self._selected = SelectedPods(self._services, self._pods)
        self._triggers = TriggerTimes()
        self._own_writes = Expectations(self._slices, clock=component.clock)
        self.controller: Controller[Key] = Controller(
            NAME,
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=lambda: [get_key(service) for service in self._services.cache],
        )
        enqueue_on(self._services, self.controller, get_own_key)
        enqueue_on(self._slices, self.controller, _list_services_of_slice)
        self.controller.add_source(self._pods)
        self.controller.add_source(self._nodes)
        self._pods.add_handler(self._on_pod_change, name=NAME)

    async def reconcile(self, key: Key) -> Done | Again:
        service = self._services.cache.get(key.name, key.namespace)
        if service is None:
            self._triggers.forget(key)
            return Done()
        if not _is_ours_to_keep(service):
            return Done()
        if not self._own_writes.are_fulfilled(service.metadata.uid):
            return Again(after_s=RECHECK_S)
        pods = self._selected.list_pods(service)
        drawn = SliceManifests(service, self._find_zones(pods))
        plans = [self._plan(service, pods, family, drawn) for family in list_families(service)]
        if not any(plan.create or plan.update or plan.delete for plan in plans):
            return Done()
        writing = _Writing(service, self._triggers.trigger(service, pods), drawn)
        for plan in plans:
            await self._apply_plan(writing, plan)
        return Done()

    def _plan(self, service: Service, pods: Sequence[Pod], family: str, drawn: SliceManifests) -> SlicePlan:
        found = self._slices.cache.list_by_index(_BY_SERVICE, get_key(service))
        ours = [
            endpoint_slice
            for endpoint_slice in found
            if endpoint_slice.address_type == family and endpoint_slice.metadata.deletion_timestamp is None
        ]
        return plan_slices(family, list_backends(service, pods, family=family), ours, drawn=drawn)

    def _find_zones(self, pods: Iterable[Pod]) -> dict[str, str]:
        nodes = {pod.spec.node_name: self._nodes.cache.get(pod.spec.node_name) for pod in pods if pod.spec.node_name}
        return {name: node.metadata.labels.get(ZONE, "") for name, node in nodes.items() if node is not None}

    async def _apply_plan(self, writing: _Writing, plan: SlicePlan) -> None:
        owner, namespace = writing.service.metadata.uid, writing.service.metadata.namespace
        for new in plan.create:
            made = await self._client.create(EndpointSlice, writing.build_new_slice(new), namespace=namespace)
            self._own_writes.expect_write(owner, made)
        for change in plan.update:
            name = change.slice.metadata.name
            try:
                written = await self._client.merge_patch(
                    EndpointSlice, name, writing.build_body(change), namespace=namespace
                )
            except NotFound:
                continue
            self._own_writes.expect_write(owner, written)
        for gone in plan.delete:
            options = DeleteOptions(uid=gone.metadata.uid)
            try:
                await self._client.delete(EndpointSlice, gone.metadata.name, namespace=namespace, options=options)
            except NotFound:
                continue
            self._own_writes.expect_deletion(owner, gone)

    def _on_pod_change(self, change: Change[Any]) -> None:
        for key in self._selected.list_affected_services(change):
            self.controller.queue.add_after(key, GATHER_S)


class _Writing:
    """The manifests that one reconciliation writes."""

    def __init__(self, service: Service, trigger: datetime | None, drawn: SliceManifests) -> None:
        self.service = service
        self._annotations = {TRIGGER_TIME: None if trigger is None else format_time(trigger)}
        self._labels = drawn.labels

    def build_new_slice(self, new_slice: NewSlice) -> dict[str, Any]:
        owner = self.service.metadata
        reference = {
            "apiVersion": "v1",
            "kind": "Service",
            "name": owner.name,
            "uid": owner.uid,
            "controller": True,
            "blockOwnerDeletion": True,
        }
        metadata: dict[str, Any] = {
            "generateName": f"{owner.name}-",
            "labels": self._labels,
            "ownerReferences": [reference],
        }
        if self._annotations[TRIGGER_TIME] is not None:
            metadata["annotations"] = self._annotations
        ports = None if new_slice.ports is None else list(new_slice.ports)
        return {
            "metadata": metadata,
            "addressType": new_slice.family,
            "endpoints": list(new_slice.endpoints),
            "ports": ports,
        }

    def build_body(self, change: SliceChange) -> dict[str, Any]:
        metadata = change.slice.metadata
        dropped = {name: None for name in metadata.labels if name not in self._labels}
        return {
            "metadata": {
                "uid": metadata.uid,
                "resourceVersion": metadata.resource_version,
                "labels": {**dropped, **self._labels},
                "annotations": self._annotations,
            },
            "endpoints": list(change.endpoints),
            "ports": None if change.ports is None else list(change.ports),
        }


def _is_ours_to_keep(service: Service) -> bool:
    """Without a selector the endpoints are managed elsewhere; an ExternalName has none."""
    meta = service.metadata
    return bool(service.spec.selector) and service.spec.type != "ExternalName" and meta.deletion_timestamp is None


def _index_by_service(endpoint_slice: EndpointSlice) -> list[tuple[str, str]]:
    labels = endpoint_slice.metadata.labels
    if labels.get(MANAGED_BY) != MANAGER or not labels.get(SERVICE_NAME):
        return []
    return [(endpoint_slice.metadata.namespace, labels[SERVICE_NAME])]


def _list_services_of_slice(change: Change[Any]) -> Iterable[Key]:
    """The Service of a slice that another writer changed or deleted."""
    slices = (wire_object for wire_object in list_states(change) if isinstance(wire_object, EndpointSlice))
    return [Key(*key) for endpoint_slice in slices for key in _index_by_service(endpoint_slice)]
