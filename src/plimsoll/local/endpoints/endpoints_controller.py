"""The endpoints controller: keeps the Endpoints object of every Service that selects pods.

The object has the name of its Service, so it cannot be created twice. It has no owner: this controller deletes it when
its Service is gone, and only if it created it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.kube.controller.controller import Controller, Done
from plimsoll.kube.controller.enqueue import enqueue_on, get_own_key
from plimsoll.kube.errors import AlreadyExists, NotFound
from plimsoll.kube.informer.events import Key, get_key
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.local.endpoints.backends import TRIGGER_TIME, TriggerTimes, list_backends, list_families
from plimsoll.local.endpoints.selected_pods import SelectedPods
from plimsoll.local.endpoints.subsets import (
    ENDPOINTS,
    MANAGED_BY,
    MANAGER,
    Endpoints,
    build_annotations,
    build_labels,
    build_subsets,
)
from plimsoll.objects.api.meta import format_time
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.services import Service

if TYPE_CHECKING:
    from plimsoll.kube.informer import Informer
    from plimsoll.kube.informer.events import Change
    from plimsoll.local.components import Component

NAME: Final = "endpoint-controller"
GATHER_S: Final = 0.05
"""As for slices."""


class EndpointsController:
    """Reconciles through `controller`, whose keys are Services."""

    def __init__(self, component: Component) -> None:
        self._client = component.client
        self._services = component.informers.get_informer(Service)
        self._pods = component.informers.get_informer(Pod)
        self._endpoints: Informer[Endpoints] = component.informers.get_informer(ENDPOINTS)
        self._selected = SelectedPods(self._services, self._pods)
        self._triggers = TriggerTimes()
        self.controller: Controller[Key] = Controller(
            NAME, self.reconcile, clock=component.clock, entropy=component.entropy, all_keys=self._list_all_keys
        )
        enqueue_on(self._services, self.controller, get_own_key)
        enqueue_on(self._endpoints, self.controller, get_own_key)
        self.controller.add_source(self._pods)
        self._pods.add_handler(self._on_pod_change, name=NAME)

    async def reconcile(self, key: Key) -> Done:
        service = self._services.cache.get(key.name, key.namespace)
        found = self._endpoints.cache.get(key.name, key.namespace)
        if service is None:
            self._triggers.forget(key)
            await self._remove(found)
            return Done()
        if not service.spec.selector or service.spec.type == "ExternalName":
            return Done()
        if service.metadata.deletion_timestamp is not None:
            return Done()
        await self._write(service, found)
        return Done()

    async def _write(self, service: Service, found: Endpoints | None) -> None:
        pods = self._selected.list_pods(service)
        backends = list_backends(service, pods, family=list_families(service)[0])
        subsets = build_subsets(service, backends)
        labels = build_labels(service)
        if found is not None and found.subsets == subsets and found.metadata.labels == labels:
            return
        trigger = self._triggers.trigger(service, pods)
        marks = {TRIGGER_TIME: None if trigger is None else format_time(trigger), **build_annotations(backends)}
        bodies = msgspec.to_builtins(subsets)
        if found is None:
            await self._create(service, {"labels": labels, "annotations": marks}, bodies)
            return
        metadata = found.metadata
        dropped = {name: None for name in metadata.labels if name not in labels}
        identity = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
        patch = {
            "metadata": {**identity, "labels": {**dropped, **labels}, "annotations": marks},
            "subsets": bodies or None,
        }
        await self._client.merge_patch(ENDPOINTS, metadata.name, patch, namespace=metadata.namespace)

    async def _create(self, service: Service, metadata: dict[str, Any], subsets: list[Any]) -> None:
        set_marks = {name: value for name, value in metadata["annotations"].items() if value is not None}
        name, namespace = service.metadata.name, service.metadata.namespace
        body: dict[str, Any] = {"metadata": {**metadata, "name": name, "annotations": set_marks}}
        if subsets:
            body["subsets"] = subsets
        try:
            await self._client.create(ENDPOINTS, body, namespace=namespace)
        except AlreadyExists:
            # The cache will show it, and then it is looked at again.
            return

    async def _remove(self, found: Endpoints | None) -> None:
        if found is None or found.metadata.labels.get(MANAGED_BY) != MANAGER:
            return
        metadata = found.metadata
        options = DeleteOptions(uid=metadata.uid)
        try:
            await self._client.delete(ENDPOINTS, metadata.name, namespace=metadata.namespace, options=options)
        except NotFound:
            return

    def _list_all_keys(self) -> list[Key]:
        """Services, and what is left of those that are gone."""
        keys = [get_key(item) for item in (*self._services.cache, *self._endpoints.cache)]
        return list(dict.fromkeys(keys))

    def _on_pod_change(self, change: Change[Any]) -> None:
        for key in self._selected.list_affected_services(change):
            self.controller.queue.add_after(key, GATHER_S)
