"""The endpoint controllers: where the traffic of a service goes, written as endpoint slices and as Endpoints.

Services without a selector are left alone: somebody else keeps their endpoints. Slices go with their service by garbage
collection; the Endpoints object, which nobody owns, is deleted here.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.selectors import LabelSelector
from plimsoll.kube.controllers import Controller, Done
from plimsoll.kube.errors import AlreadyExists, NotFound
from plimsoll.kube.informer.changes import Key, Updated, key_of
from plimsoll.kube.selections import DeleteOptions
from plimsoll.kube.wiring import enqueue_on, of_itself, states_in
from plimsoll.local.upkeep.endpoint_plans import (
    MANAGED_BY,
    SERVICE_NAME,
    SLICE_CONTROLLER,
    SlicePlan,
    slices,
    subsets,
)
from plimsoll.local.upkeep.pod_indexes import pods_by_label, pods_matching
from plimsoll.local.upkeep.pod_notices import is_ready
from plimsoll.local.upkeep.volume_plans import ZONE
from plimsoll.objects.meta import Json, WireObject, written_time
from plimsoll.objects.nodes import Node
from plimsoll.objects.pods import Pod
from plimsoll.objects.registry import Resource
from plimsoll.objects.services import EndpointSlice, Service

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.kube.informer.changes import Change
    from plimsoll.local.components import Component

NAME: Final = "endpoint-slice-controller"

_BY_SERVICE: Final = "upkeep: slices by service"
_TRIGGERED: Final = "endpoints.kubernetes.io/last-change-trigger-time"


class Endpoints(WireObject):
    """The older form; only what is compared with what should be."""

    subsets: Json = None


ENDPOINTS: Final = Resource(
    group="",
    version="v1",
    kind="Endpoints",
    plural="endpoints",
    singular="endpoints",
    namespaced=True,
    struct=Endpoints,
)


class EndpointWriting:
    """`controller` is what runs; its keys are services."""

    def __init__(self, component: Component) -> None:
        self._client = component.client
        self._clock = component.clock
        informers = component.informers
        self._services = informers.of(Service)
        self._slices = informers.of(EndpointSlice)
        self._pods = informers.of(Pod)
        self._nodes = informers.of(Node)
        pods_by_label(self._pods)
        self._slices.add_index(_BY_SERVICE, _service_of)
        self.controller: Controller[Key] = Controller(
            NAME,
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=lambda: [key_of(one) for one in self._services.cache],
        )
        enqueue_on(self._services, self.controller, of_itself)
        enqueue_on(self._pods, self.controller, self._leading_to)
        enqueue_on(
            self._slices, self.controller, lambda change: [key for one in states_in(change) for key in _service_of(one)]
        )
        self.controller.starts_after(self._nodes)

    async def reconcile(self, key: Key) -> Done:
        service = self._services.cache.get(key.name, key.namespace)
        if service is None:
            with suppress(NotFound):
                await self._client.delete(ENDPOINTS, key.name, namespace=key.namespace)
            return Done()
        if not service.spec.selector or service.spec.type == "ExternalName" or service.metadata.deletion_timestamp:
            return Done()
        pods = pods_matching(self._pods, key.namespace, LabelSelector.all_of(service.spec.selector))
        await self._write_slices(service, slices(service, pods, self._zones(pods)))
        await self._write_endpoints(service, subsets(service, pods))
        return Done()

    def _zones(self, pods: Sequence[Pod]) -> dict[str, str]:
        nodes = (self._nodes.cache.get(name) for name in {pod.spec.node_name for pod in pods})
        return {one.metadata.name: one.metadata.labels[ZONE] for one in nodes if one and ZONE in one.metadata.labels}

    # ---- writing

    async def _write_slices(self, service: Service, planned: Sequence[SlicePlan]) -> None:
        known = {one.metadata.name: one for one in self._slices.cache.by_index(_BY_SERVICE, key_of(service))}
        for plan in planned:
            present = known.pop(plan.name, None)
            if present is None:
                with suppress(AlreadyExists):
                    await self._client.create(EndpointSlice, self._slice(service, plan))
            elif not _is_as(present, plan):
                body = {
                    "metadata": {"uid": present.metadata.uid, "annotations": self._trigger()},
                    "endpoints": plan.endpoints or None,
                    "ports": plan.ports or None,
                }
                with suppress(NotFound):
                    await self._client.merge_patch(EndpointSlice, plan.name, body, namespace=service.metadata.namespace)
        for left in known.values():
            options = DeleteOptions(uid=left.metadata.uid)
            with suppress(NotFound):
                await self._client.delete(
                    EndpointSlice, left.metadata.name, namespace=left.metadata.namespace, options=options
                )

    def _slice(self, service: Service, plan: SlicePlan) -> dict[str, Any]:
        meta = service.metadata
        labels = {**meta.labels, MANAGED_BY: SLICE_CONTROLLER, SERVICE_NAME: meta.name}
        if service.spec.cluster_ip == "None":
            labels["service.kubernetes.io/headless"] = ""
        owner = {"apiVersion": "v1", "kind": "Service", "name": meta.name, "uid": meta.uid}
        metadata = {
            "name": plan.name,
            "generateName": f"{meta.name}-",
            "namespace": meta.namespace,
            "labels": labels,
            "annotations": self._trigger(),
            "ownerReferences": [{**owner, "controller": True, "blockOwnerDeletion": True}],
        }
        family = "IPv6" if service.spec.ip_families[:1] == ("IPv6",) else "IPv4"
        return {
            "apiVersion": "discovery.k8s.io/v1",
            "kind": "EndpointSlice",
            "metadata": metadata,
            "addressType": family,
            "endpoints": plan.endpoints,
            "ports": plan.ports,
        }

    async def _write_endpoints(self, service: Service, wanted: list[dict[str, Any]]) -> None:
        meta = service.metadata
        try:
            present: Endpoints = await self._client.get(ENDPOINTS, meta.name, namespace=meta.namespace)
        except NotFound:
            labels = {**meta.labels, "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
            metadata = {"name": meta.name, "labels": labels, "annotations": self._trigger()}
            body: dict[str, Any] = {"apiVersion": "v1", "kind": "Endpoints", "metadata": metadata}
            with suppress(AlreadyExists):
                await self._client.create(
                    ENDPOINTS, {**body, **({"subsets": wanted} if wanted else {})}, namespace=meta.namespace
                )
            return
        if (present.subsets or []) == wanted:
            return
        body = {"metadata": {"annotations": self._trigger()}, "subsets": wanted or None}
        with suppress(NotFound):
            await self._client.merge_patch(ENDPOINTS, meta.name, body, namespace=meta.namespace)

    def _trigger(self) -> dict[str, str]:
        return {_TRIGGERED: written_time(self._clock.now())}

    # ---- whom a change concerns

    def _leading_to(self, change: Change[Pod]) -> Iterable[Key]:
        states: list[Any] = states_in(change)
        if isinstance(change, Updated) and _counted(states[0]) == _counted(states[1]):
            return ()
        found: dict[Key, None] = {}
        for service in self._services.cache.list(change.key.namespace):
            pairs = service.spec.selector.items()
            if pairs and any(pairs <= state.metadata.labels.items() for state in states):
                found[key_of(service)] = None
        return found


def _service_of(one: Any) -> list[Key]:
    labels = one.metadata.labels
    is_ours = labels.get(MANAGED_BY) == SLICE_CONTROLLER and SERVICE_NAME in labels
    return [Key(one.metadata.namespace, labels[SERVICE_NAME])] if is_ours else []


def _counted(pod: Pod) -> tuple[Any, ...]:
    status = pod.status
    metadata = pod.metadata
    return metadata.labels, status.pod_ip, status.phase, is_ready(pod), metadata.deletion_timestamp, pod.spec.node_name


def _is_as(present: EndpointSlice, plan: SlicePlan) -> bool:
    endpoints = [
        {
            "addresses": list(one.addresses),
            "conditions": {
                "ready": one.conditions.ready,
                "serving": one.conditions.serving,
                "terminating": one.conditions.terminating,
            },
            **({"hostname": one.hostname} if one.hostname else {}),
            "targetRef": _reference(one.target_ref),
            **({"nodeName": one.node_name} if one.node_name else {}),
            **({"zone": one.zone} if one.zone else {}),
        }
        for one in present.endpoints
    ]
    ports = [{"name": one.name, "protocol": one.protocol, "port": one.port} for one in present.ports]
    return endpoints == plan.endpoints and ports == plan.ports


def _reference(target: Any) -> dict[str, str]:
    if target is None:
        return {}
    return {"kind": target.kind, "namespace": target.namespace, "name": target.name, "uid": target.uid}
