"""The simulated provisioner: creates and deletes the volumes of classes whose provisioner is `plimsoll.io/simulated`.

It takes the place of a storage vendor's driver in a real cluster, and works with the binder like one: it acts on the
annotations of claims, and on released volumes. There is no disk behind its volumes.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from plimsoll.kube.controller.controller import Controller, Done
from plimsoll.kube.controller.enqueue import enqueue_on, get_own_key
from plimsoll.kube.errors import AlreadyExists, NotFound
from plimsoll.kube.informer.events import Key, get_key
from plimsoll.kube.recorder import EventType, build_reference
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.local.volumes.annotations import PROVISIONED_BY, SELECTED_NODE
from plimsoll.local.volumes.provisioning import (
    SIMULATED,
    ZONE,
    VolumeLocation,
    build_volume_body,
    build_volume_name,
    choose_location_by_class,
    find_location_near,
    list_zones,
    needs_deletion,
    needs_provisioning,
)
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from plimsoll.scheduling.storage import get_class_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kube.informer.events import Change
    from plimsoll.local.components import Component

NAME: Final = SIMULATED
MANAGER: Final = "csi-provisioner"

_BY_PROVISIONER: Final = "volumes: volumes by provisioner"


class Provisioner:
    """Reconciles through `controller`. Keys without a namespace are volumes, the others claims."""

    def __init__(self, component: Component) -> None:
        self._client = component.client
        self._recorder = component.recorder
        informers = component.informers
        self._claims = informers.get_informer(PersistentVolumeClaim)
        self._volumes = informers.get_informer(PersistentVolume)
        self._classes = informers.get_informer(StorageClass)
        self._nodes = informers.get_informer(Node)
        self._volumes.add_index(_BY_PROVISIONER, lambda volume: [volume.metadata.annotations.get(PROVISIONED_BY, "")])
        self.controller: Controller[Key] = Controller(
            "simulated-provisioner",
            self.reconcile,
            clock=component.clock,
            entropy=component.entropy,
            all_keys=lambda: [get_key(item) for cache in (self._volumes.cache, self._claims.cache) for item in cache],
        )
        enqueue_on(self._claims, self.controller, get_own_key)
        enqueue_on(self._volumes, self.controller, self._list_keys_of_volume)
        self.controller.add_source(self._classes)
        self.controller.add_source(self._nodes)
        self._made: dict[str, PersistentVolume] = {}

    async def reconcile(self, key: Key) -> Done:
        if key.namespace:
            return await self._provide(key)
        return await self._delete_volume(key)

    async def _provide(self, key: Key) -> Done:
        claim = self._claims.cache.get(key.name, key.namespace)
        if claim is None:
            return Done()
        storage_class = self._classes.cache.get(get_class_name(claim))
        if storage_class is None or not needs_provisioning(claim, storage_class):
            return Done()
        name = build_volume_name(claim)
        if name in self._made or self._volumes.cache.get(name) is not None:
            return Done()
        where = self._place(claim, storage_class)
        if where is None:
            return await self._give_back(claim)
        self._record(claim, "Provisioning", f'External provisioner is provisioning volume for claim "{key}"')
        try:
            made = await self._client.create(PersistentVolume, build_volume_body(claim, storage_class, where))
        except AlreadyExists:
            return Done(summary=f"{name} is there already")
        if self._volumes.cache.get(name) is None:
            # Otherwise it has been seen already, and it would never be removed again.
            self._made[name] = made
        self._record(claim, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")
        return Done(summary=f"made {name}")

    def _place(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> VolumeLocation | None:
        """None: the chosen node does not exist any more."""
        chosen = claim.metadata.annotations.get(SELECTED_NODE)
        if chosen:
            node = self._nodes.cache.get(chosen)
            return None if node is None else find_location_near(node)
        zones = {node.metadata.labels.get(ZONE, "") for node in self._nodes.cache}
        return choose_location_by_class(storage_class, node_zones=zones, volumes_in=self._count_volumes_by_zone())

    def _count_volumes_by_zone(self) -> Counter[str]:
        """What the cache shows, and what it does not show yet."""
        shown = {
            volume.metadata.name: volume for volume in self._volumes.cache.list_by_index(_BY_PROVISIONER, SIMULATED)
        }
        return Counter(zone for volume in {**self._made, **shown}.values() for zone in list_zones(volume))

    async def _give_back(self, claim: PersistentVolumeClaim) -> Done:
        """The scheduler is to choose again."""
        meta = claim.metadata
        why = f'failed to get target node: node "{meta.annotations[SELECTED_NODE]}" not found'
        self._record(claim, "ProvisioningFailed", why, event_type=EventType.WARNING)
        identity = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {"metadata": {**identity, "annotations": {SELECTED_NODE: None}}}
        try:
            await self._client.merge_patch(PersistentVolumeClaim, meta.name, body, namespace=meta.namespace)
        except NotFound:
            return Done()
        return Done(summary=why)

    async def _delete_volume(self, key: Key) -> Done:
        volume = self._volumes.cache.get(key.name)
        if volume is None or not needs_deletion(volume):
            return Done()
        try:
            await self._client.delete(PersistentVolume, key.name, options=DeleteOptions(uid=volume.metadata.uid))
        except NotFound:
            return Done()
        return Done(summary="deleted: released by its claim")

    def _list_keys_of_volume(self, change: Change[Any]) -> Iterable[Key]:
        self._made.pop(change.key.name, None)
        return (change.key,)

    def _record(
        self, claim: PersistentVolumeClaim, reason: str, message: str, *, event_type: EventType = EventType.NORMAL
    ) -> None:
        about = build_reference(self._client.calls.get_resource(PersistentVolumeClaim), claim)
        self._recorder.record(about, event_type, reason=reason, message=message)
