"""The namespace controller: deletes the content of a terminating namespace, of every kind, and then finalizes it.

As in Kubernetes it begins a few seconds after the deletion, so that objects created at the last moment are seen, and
checks again while anything is left: finalizers of other controllers end without notice.
"""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.durations import add_seconds
from plimsoll.core.values import Value
from plimsoll.kube.controller.controller import Again, Controller, ControllerSettings, Done
from plimsoll.kube.controller.enqueue import enqueue_on
from plimsoll.kube.errors import ApiError, Conflict, MethodNotAllowed, NotFound
from plimsoll.kube.requests.options import DeleteOptions, Selection
from plimsoll.kube.transport import JSON, Request
from plimsoll.local.controller_manager.garbage_collector.resources import list_served_resources
from plimsoll.local.controller_manager.namespaces.conditions import RemainingContent, are_up_to_date, build_conditions
from plimsoll.objects.api.core import Namespace

if TYPE_CHECKING:
    from plimsoll.local.components import Component
    from plimsoll.objects.api.meta import ObjectMeta
    from plimsoll.objects.api.resource import Resource

NAME: Final = "namespace-controller"

_FINALIZER: Final = "kubernetes"
_LONGEST_LOOK_S: Final = 16.0


class NamespaceControllerSettings(Value, frozen=True):
    """`delay_s` after the deletion it begins; `look_again_s` while objects with finalizers are left."""

    delay_s: float = 5.0
    look_again_s: float = 8.0
    workers: int = 4


class NamespaceController:
    """Reconciles through `controller`, whose keys are names of namespaces."""

    def __init__(self, component: Component, settings: NamespaceControllerSettings) -> None:
        self._client = component.client
        self._clock = component.clock
        self._settings = settings
        self._namespaces = component.informers.get_informer(Namespace)
        self.controller: Controller[str] = Controller(
            NAME,
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=lambda: [namespace.metadata.name for namespace in self._namespaces.cache],
            settings=ControllerSettings(workers=settings.workers),
        )
        enqueue_on(self._namespaces, self.controller, lambda change: (change.key.name,))

    async def reconcile(self, name: str) -> Done | Again:
        namespace = self._namespaces.cache.get(name)
        if namespace is None or namespace.metadata.deletion_timestamp is None:
            return Done()
        if _FINALIZER not in namespace.spec.finalizers:
            return Done()
        begin = add_seconds(namespace.metadata.deletion_timestamp, self._settings.delay_s)
        wait_s = (begin - self._clock.now()).total_seconds()
        if wait_s > 0:
            return Again(after_s=wait_s)
        remains, look_again_s = await self._delete_content(name)
        await self._update_status(namespace, remains)
        if not remains.is_empty:
            return Again(after_s=look_again_s, summary=f"{sum(remains.objects.values())} objects are left")
        await self._remove_finalizer(namespace)
        return Done(summary="emptied and let go")

    # ---- emptying

    async def _delete_content(self, name: str) -> tuple[RemainingContent, float]:
        """Delete everything there is; what is left, and when to look again."""
        objects: Counter[str] = Counter()
        finalizers: Counter[str] = Counter()
        failures: list[str] = []
        graces: list[int] = []
        for resource in await list_served_resources(self._client, "list", "delete"):
            if not resource.namespaced:
                continue
            try:
                left = await self._delete_all(resource, name)
            except ApiError as error:
                failures.append(str(error))
                continue
            if left:
                objects[f"{resource.plural}.{resource.group}"] += len(left)
            for metadata in left:
                finalizers.update(metadata.finalizers)
                graces.append(metadata.deletion_grace_period_seconds or 0)
        remains = RemainingContent(objects=dict(objects), finalizers=dict(finalizers), failures=tuple(failures))
        grace_s = max(graces, default=0)
        look_again_s = min(grace_s / 2 + 1, _LONGEST_LOOK_S) if grace_s else self._settings.look_again_s
        return remains, look_again_s

    async def _delete_all(self, resource: Resource, name: str) -> list[ObjectMeta]:
        """Ask for the end of all objects of a kind; those that are still there afterwards."""
        try:
            found = await self._list_objects(resource, name)
            for metadata in found:
                if metadata.deletion_timestamp is None:
                    await self._delete(resource, metadata)
            return await self._list_objects(resource, name) if found else []
        except (NotFound, MethodNotAllowed):
            # The kind is gone, or takes no such call: there is nothing of it to delete.
            return []

    async def _delete(self, resource: Resource, metadata: ObjectMeta) -> None:
        options = DeleteOptions(uid=metadata.uid, propagation="Background")
        with suppress(NotFound, Conflict):
            await self._client.delete(resource, metadata.name, namespace=metadata.namespace, options=options)

    async def _list_objects(self, resource: Resource, name: str) -> list[ObjectMeta]:
        pages = self._client.iterate_metadata_pages(resource, Selection(namespace=name))
        return [metadata.metadata async for page in pages for metadata in page.items]

    # ---- conditions and finalizers

    async def _update_status(self, namespace: Namespace, remains: RemainingContent) -> None:
        wanted = build_conditions(namespace, remains, self._clock.now())
        if are_up_to_date(namespace, wanted):
            return
        metadata = namespace.metadata
        body = {"metadata": {"uid": metadata.uid}, "status": {"conditions": wanted}}
        with suppress(NotFound):
            await self._client.merge_patch(Namespace, metadata.name, body, subresource="status")

    async def _remove_finalizer(self, namespace: Namespace) -> None:
        """Only a PUT takes a finalizer off a namespace, so it is the whole object as the server has it now."""
        name = namespace.metadata.name
        with suppress(NotFound):
            current: dict[str, Any] = msgspec.json.decode(await self._client.get_raw(Namespace, name))
            if current["metadata"]["uid"] != namespace.metadata.uid:
                return
            left = [finalizer for finalizer in current["spec"].get("finalizers") or [] if finalizer != _FINALIZER]
            current["spec"]["finalizers"] = left
            call = Request(
                method="PUT",
                path=f"/api/v1/namespaces/{name}/finalize",
                headers={"Content-Type": JSON, "Accept": JSON},
                body=msgspec.json.encode(current),
            )
            await self._client.call(call)
