"""The garbage collector: deletes dependents with their owners, in the background, in the foreground, or not at all.

It follows the metadata of every served kind, custom ones as their definitions appear and disappear, and keeps a graph
of owners. Keys are uids; one reconciliation handles one object. An owner that the graph does not know is read from the
server before it counts as absent: a late cache proves nothing.

Events are left out, as in Kubernetes: they own nothing, and there are too many.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.kube.controller.controller import Controller, ControllerSettings, Done
from plimsoll.kube.discovery import build_metadata_resource, fetch_resources
from plimsoll.kube.errors import NotFound
from plimsoll.kube.informer.events import Added, Deleted, Updated, get_view
from plimsoll.kube.informer.informer import Informer
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.local.controller_manager.garbage_collector.decisions import (
    FOREGROUND,
    ORPHAN,
    DeleteObject,
    OwnerState,
    RemoveOwners,
    determine_state,
    is_orphaning,
    is_waiting,
    may_finish,
    plan,
    remove_owner,
    unblock_owners,
)
from plimsoll.local.controller_manager.garbage_collector.graph import OwnerGraph
from plimsoll.local.controller_manager.garbage_collector.resources import (
    EVENTS,
    build_custom_resource,
    list_served_resources,
)
from plimsoll.objects.api.apiextensions import CustomResourceDefinition
from plimsoll.objects.api.workloads import DaemonSet, Deployment, Job, ReplicaSet, StatefulSet
from plimsoll.objects.registry import KINDS

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator

    from plimsoll.kube.informer.events import Change
    from plimsoll.local.components import Component
    from plimsoll.local.controller_manager.garbage_collector.graph import Entry
    from plimsoll.objects.api.meta import ObjectMeta, OwnerReference
    from plimsoll.objects.api.resource import Resource

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

NAME: Final = "garbage-collector"
_DEFINITIONS: Final = ""
"""The key that stands for the custom kinds."""
_PASSED_OVER_AT_ONCE: Final = 64
# Their informers keep the bytes, for the workload controllers: theirs are shared.
_WITH_BYTES: Final = frozenset({DaemonSet, Deployment, Job, ReplicaSet, StatefulSet})


class GarbageCollector:
    """`run` is the service. Of `spared_owners`, by uid, nothing is concluded from their absence."""

    def __init__(self, component: Component, *, workers: int = 8, spared_owners: Container[str] = frozenset()) -> None:
        self._spared_owners = spared_owners
        self._component = component
        self._client = component.client
        self._graph = OwnerGraph()
        self._shared: dict[str, Informer[Any]] = {}
        self._followed: dict[str, asyncio.Task[None]] = {}
        self._group: asyncio.TaskGroup | None = None
        self._definitions = component.informers.get_informer(CustomResourceDefinition)
        self.controller: Controller[str] = Controller(
            NAME,
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=self._list_pending_keys,
            settings=ControllerSettings(workers=workers),
        )
        for resource in KINDS:
            if (resource.group, resource.plural) not in EVENTS:
                self._share(resource)
        self._definitions.add_handler(self._on_definition_change, name=f"{NAME}: kinds")
        self.controller.add_source(self._definitions)

    def _share(self, resource: Resource) -> None:
        informers = self._component.informers
        with_bytes = resource.struct in _WITH_BYTES
        informer: Informer[Any] = (
            informers.get_raw_informer(resource) if with_bytes else informers.get_informer(resource)
        )
        self._shared[resource.full_name] = informer
        informer.add_handler(lambda change: self._handle_change(resource, change), name=NAME)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            self._group = group
            try:
                self._forget_followed()
                await self._follow_served()
                await self.controller.run()
            finally:
                self._stop_following(list(self._followed))

    # ---- which kinds

    async def _follow_served(self) -> None:
        for resource in await list_served_resources(self._client, "list", "watch", "delete"):
            known = self._shared.get(resource.full_name)
            if known is not None:
                await known.wait_until_synced()
            elif (resource.group, resource.plural) not in EVENTS:
                self._follow(resource)

    def _follow(self, resource: Resource) -> None:
        if resource.full_name in self._followed or self._group is None:
            return
        component = self._component
        informer: Informer[Any] = Informer(
            self._client,
            resource,
            clock=component.clock,
            entropy=component.entropy,
            settings=component.informer_settings,
        )
        informer.add_handler(lambda change: self._handle_change(resource, change), name=NAME)
        self._followed[resource.full_name] = self._group.create_task(
            informer.run(), name=f"{NAME}: {resource.full_name}"
        )

    def _stop_following(self, names: list[str]) -> None:
        for name in names:
            self._followed.pop(name).cancel()

    def _forget_followed(self) -> None:
        """Drop the objects of kinds that are no longer served."""
        for uid in self._graph.list_uids():
            entry = self._graph.get(uid)
            if entry is not None and entry.resource.full_name not in {*self._shared, *self._followed}:
                self._handle_deletion(entry.metadata)

    def _on_definition_change(self, _change: Change[CustomResourceDefinition]) -> None:
        self.controller.queue.add(_DEFINITIONS)

    def _follow_definitions(self) -> None:
        wanted = [build_custom_resource(definition) for definition in self._definitions.cache]
        by_name = {item.full_name: item for item in wanted if item is not None and item.full_name not in self._shared}
        groups = {definition.spec.group for definition in self._definitions.cache}
        for name, resource in by_name.items():
            if name not in self._followed:
                log.info("garbage.following", resource=name)
                self._follow(resource)
        gone = [name for name in self._followed if name.partition(".")[2] in groups and name not in by_name]
        if gone:
            self._stop_following(gone)
            self._forget_followed()

    # ---- what changed

    def _handle_change(self, resource: Resource, change: Change[Any]) -> None:
        match change:
            case Added(new=new):
                self._put(resource, get_view(new).metadata)
            case Updated(old=old, new=new):
                if _extract_counted_fields(get_view(old).metadata) != _extract_counted_fields(get_view(new).metadata):
                    self._put(resource, get_view(new).metadata)
                else:
                    self._graph.refresh(get_view(new).metadata)
            case Deleted(last=last):
                self._handle_deletion(get_view(last).metadata)
            case _:
                # An object that cannot be read is there; whom it owns stays as it was.
                return

    def _put(self, resource: Resource, metadata: ObjectMeta) -> None:
        before = self._graph.get(metadata.uid)
        self._graph.put(resource, metadata)
        if not self._is_settled(metadata):
            self.controller.queue.add(metadata.uid)
        if is_waiting(metadata):
            self._look_at(self._graph.list_dependent_uids(metadata.uid))
        if before is not None:
            # Owners that it no longer holds up, or no longer names.
            self._look_at_waiting(owner for owner in before.metadata.owner_references if owner.block_owner_deletion)

    def _handle_deletion(self, metadata: ObjectMeta) -> None:
        self._graph.remove(metadata.uid)
        self._look_at(self._graph.list_dependent_uids(metadata.uid))
        self._look_at_waiting(metadata.owner_references)

    def _look_at_waiting(self, owners: Iterable[OwnerReference]) -> None:
        """Only owners that wait for their dependents are enqueued, not every set whose pods come and go."""
        for owner in owners:
            entry = self._graph.get(owner.uid)
            if entry is not None and is_waiting(entry.metadata):
                self.controller.queue.add(owner.uid)

    def _look_at(self, uids: list[str]) -> None:
        for uid in uids:
            if self._graph.get(uid) is not None:
                self.controller.queue.add(uid)

    # ---- what is worth a look

    def _list_pending_keys(self) -> Iterator[str]:
        """Skip objects that need nothing, such as thousands of pods whose owners exist."""
        yield _DEFINITIONS
        for number, uid in enumerate(self._graph.list_uids()):
            entry = self._graph.get(uid)
            # Some come all the same: the worker that takes the keys yields after so many of them.
            if entry is not None and (number % _PASSED_OVER_AT_ONCE == 0 or not self._is_settled(entry.metadata)):
                yield uid

    def _is_settled(self, metadata: ObjectMeta) -> bool:
        """Whether `reconcile` would find nothing to do, judging by the graph alone."""
        if metadata.deletion_timestamp is not None:
            return not (is_orphaning(metadata) or is_waiting(metadata))
        for owner in metadata.owner_references:
            known = self._graph.find_owner(owner, metadata.namespace)
            if known is None or is_waiting(known):
                return False
        return True

    # ---- one object

    async def reconcile(self, uid: str) -> Done:
        if uid == _DEFINITIONS:
            self._follow_definitions()
            return Done()
        entry = self._graph.get(uid)
        if entry is None:
            return Done()
        metadata = entry.metadata
        if is_orphaning(metadata):
            return await self._orphan(entry)
        if is_waiting(metadata):
            return await self._finish(entry)
        if metadata.deletion_timestamp is not None or not metadata.owner_references:
            return Done()
        owners = [await self._get_state(entry, owner) for owner in metadata.owner_references]
        decided = plan(metadata, owners, self._graph.list_dependents(uid))
        match decided:
            case RemoveOwners(left=left):
                await self._write_owners(entry, left)
            case DeleteObject():
                return await self._delete(entry, decided)
            case _:
                pass
        return Done()

    async def _get_state(self, entry: Entry, owner: OwnerReference) -> OwnerState:
        namespace = entry.metadata.namespace
        known = self._graph.find_owner(owner, namespace)
        if known is not None:
            return determine_state(known)
        if owner.uid in self._spared_owners:
            return OwnerState.UNKNOWN
        resource = await self._find_resource(owner)
        if resource is None or (resource.namespaced and not namespace):
            return OwnerState.UNKNOWN
        try:
            found: Any = await self._client.get(resource, owner.name, namespace=namespace)
        except NotFound:
            return OwnerState.ABSENT
        return determine_state(found.metadata) if found.metadata.uid == owner.uid else OwnerState.ABSENT

    async def _find_resource(self, owner: OwnerReference) -> Resource | None:
        known = KINDS.find_by_kind(owner.api_version, owner.kind)
        if known is not None:
            return known
        served = await fetch_resources(self._client, owner.api_version)
        found = next(
            (resource for resource in served if resource.kind == owner.kind and "/" not in resource.name), None
        )
        return None if found is None else build_metadata_resource(owner.api_version, found)

    async def _delete(self, entry: Entry, decided: DeleteObject) -> Done:
        """Only in the version that was looked at: with a later one it may have lost, or changed, its owners."""
        resource, metadata = entry
        version = metadata.resource_version
        if decided.unblock:
            version = await self._write_owners(entry, unblock_owners(metadata))
        options = DeleteOptions(uid=metadata.uid, resource_version=version, propagation=decided.propagation)
        with suppress(NotFound):
            await self._client.delete(resource, metadata.name, namespace=metadata.namespace, options=options)
        where = f"{metadata.namespace}/{metadata.name}".lstrip("/")
        return Done(summary=f"deleted {resource.full_name} {where}: its owners are gone")

    async def _orphan(self, entry: Entry) -> Done:
        uid = entry.metadata.uid
        for dependent in self._graph.list_dependent_uids(uid):
            held = self._graph.get(dependent)
            if held is not None:
                await self._write_owners(held, remove_owner(held.metadata, uid))
        await self._remove_finalizer(entry, ORPHAN)
        return Done()

    async def _finish(self, entry: Entry) -> Done:
        dependents = self._graph.list_dependents(entry.metadata.uid)
        if may_finish(dependents):
            await self._remove_finalizer(entry, FOREGROUND)
        else:
            self._look_at([dependent.uid for dependent in dependents if not dependent.is_waiting])
        return Done()

    async def _remove_finalizer(self, entry: Entry, finalizer: str) -> None:
        left = [item for item in entry.metadata.finalizers if item != finalizer]
        await self._patch(entry, {"finalizers": left or None})

    async def _write_owners(self, entry: Entry, owners: tuple[OwnerReference, ...]) -> str:
        bodies = [_encode_owner(owner) for owner in owners]
        return await self._patch(entry, {"ownerReferences": bodies or None})

    async def _patch(self, entry: Entry, fields: dict[str, Any]) -> str:
        """Gives the version that came of it; that of before for an object that is gone."""
        resource, metadata = entry
        identity = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
        try:
            written: Any = await self._client.merge_patch(
                resource, metadata.name, {"metadata": {**identity, **fields}}, namespace=metadata.namespace
            )
        except NotFound:
            return metadata.resource_version
        return str(written.metadata.resource_version)


def _extract_counted_fields(metadata: ObjectMeta) -> tuple[Any, ...]:
    return metadata.owner_references, metadata.finalizers, metadata.deletion_timestamp


def _encode_owner(owner: OwnerReference) -> dict[str, Any]:
    body: dict[str, Any] = {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
    }
    if owner.controller:
        body["controller"] = True
    if owner.block_owner_deletion:
        body["blockOwnerDeletion"] = True
    return body
