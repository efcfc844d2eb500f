"""The volume binder: claims and volumes find each other, and volumes that nobody claims any more are let go.

With it comes a provisioner for classes whose provisioner is `plimsoll.io/simulated`: it makes volumes in the zone of
the node the scheduler chose, and deletes them with their claims where the class says so. Claims of other provisioners
are annotated for them and wait.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plimsoll.kube.controllers import Controller, Done
from plimsoll.kube.errors import AlreadyExists, Conflict, NotFound
from plimsoll.kube.recorder import EventType, reference_to
from plimsoll.kube.selections import DeleteOptions
from plimsoll.kube.wiring import enqueue_on, states_in
from plimsoll.local.upkeep.volume_plans import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    PROVISIONED_BY,
    SELECTED_NODE,
    SIMULATED,
    ZONE,
    BindTo,
    Provision,
    Waits,
    names_claim,
    plan_claim,
    provisioned,
    zone_for,
)
from plimsoll.local.upkeep.volume_writes import VolumeWrites
from plimsoll.objects.nodes import Node
from plimsoll.objects.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass
from plimsoll.scheduling.storage import class_name, class_nodes, volume_class_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kube.informer.changes import Change
    from plimsoll.local.components import Component, Components

NAME: Final = "persistentvolume-controller"

_VOLUMES_BY_CLASS: Final = "upkeep: volumes by class"
_VOLUMES_BY_CLAIM: Final = "upkeep: volumes by claim"
_UNBOUND_BY_CLASS: Final = "upkeep: unbound claims by class"
_CLAIMS_BY_VOLUME: Final = "upkeep: claims by volume"
_PROVISIONER: Final = ("volume.beta.kubernetes.io/storage-provisioner", "volume.kubernetes.io/storage-provisioner")
_WARNINGS: Final = frozenset({"ProvisioningFailed", "ClaimLost"})


class VolumeKey(NamedTuple):
    """A claim, or a volume where the namespace is empty."""

    namespace: str
    name: str


class VolumeBinding:
    """`controller` is what runs, with one worker: two claims are never offered the same volume at once."""

    def __init__(self, components: Components) -> None:
        component = components.component(NAME)
        self._client = component.client
        self._binder = component
        self._provisioner = components.component(SIMULATED)
        self._writes = VolumeWrites(component.client)
        informers = component.informers
        self._claims = informers.of(PersistentVolumeClaim)
        self._volumes = informers.of(PersistentVolume)
        self._classes = informers.of(StorageClass)
        self._nodes = informers.of(Node)
        self._claim_resource = component.client.calls.resource(PersistentVolumeClaim)
        self._volumes.add_index(_VOLUMES_BY_CLASS, lambda one: [volume_class_name(one)])
        self._volumes.add_index(_VOLUMES_BY_CLAIM, _claim_named)
        self._claims.add_index(_UNBOUND_BY_CLASS, lambda one: [] if _is_bound(one) else [class_name(one)])
        self._claims.add_index(_CLAIMS_BY_VOLUME, lambda one: [one.spec.volume_name] if one.spec.volume_name else [])
        self.controller: Controller[VolumeKey] = Controller(
            NAME, self.reconcile, clock=component.clock, entropy=component.entropy, all_keys=self._all
        )
        enqueue_on(self._claims, self.controller, self._of_claim)
        enqueue_on(self._volumes, self.controller, self._of_volume)
        enqueue_on(self._classes, self.controller, lambda change: self._unbound(change.key.name))
        self.controller.starts_after(self._nodes)

    async def reconcile(self, key: VolumeKey) -> Done:
        if key.namespace:
            claim = self._claims.cache.get(key.name, key.namespace)
            return Done() if claim is None else await self._claim(claim)
        volume = self._volumes.cache.get(key.name)
        return Done() if volume is None else await self._volume(volume)

    # ---- claims

    async def _claim(self, claim: PersistentVolumeClaim) -> Done:
        if claim.spec.volume_name:
            return await self._named_volume(claim)
        if claim.metadata.deletion_timestamp is not None:
            return Done()
        meta = claim.metadata
        storage_class = self._classes.cache.get(class_name(claim))
        cache = self._volumes.cache
        offered = (
            *cache.by_index(_VOLUMES_BY_CLAIM, (meta.namespace, meta.name)),
            *(one for one in cache.by_index(_VOLUMES_BY_CLASS, class_name(claim)) if one.spec.claim_ref is None),
        )
        decided = plan_claim(claim, offered, storage_class)
        match decided:
            case BindTo(volume=name):
                volume = self._volumes.cache.get(name)
                if volume is not None:
                    await self._writes.bind(claim, volume)
                return Done(said=f"bound to {name}")
            case Provision() if storage_class is not None:
                await self._writes.claim_status(claim, "Pending")
                return await self._provision(claim, storage_class, decided)
            case Waits(reason=reason, message=message):
                self._tell(claim, reason, message)
        await self._writes.claim_status(claim, "Pending")
        return Done()

    async def _named_volume(self, claim: PersistentVolumeClaim) -> Done:
        """The claim names its volume: because somebody wants that one, or because it was bound to it."""
        name = claim.spec.volume_name
        volume = self._volumes.cache.get(name)
        was_bound = BIND_COMPLETED in claim.metadata.annotations
        if volume is not None and (volume.spec.claim_ref is None or names_claim(volume, claim)):
            await self._writes.bind(claim, volume)
            return Done(said="" if was_bound else f"bound to {name}")
        if not was_bound:
            if volume is not None:
                self._tell(claim, "FailedBinding", f'volume "{name}" already bound to a different claim.')
            await self._writes.claim_status(claim, "Pending")
        elif claim.status.phase != "Lost":
            self._tell(claim, "ClaimLost", _lost(volume))
            await self._writes.claim_status(claim, "Lost")
        return Done()

    def _tell(self, claim: PersistentVolumeClaim, reason: str, message: str) -> None:
        _record(self._binder, reference_to(self._claim_resource, claim), reason, message)

    # ---- provisioning

    async def _provision(self, claim: PersistentVolumeClaim, storage_class: StorageClass, decided: Provision) -> Done:
        meta = claim.metadata
        if any(meta.annotations.get(one) != decided.provisioner for one in _PROVISIONER):
            added = dict.fromkeys(_PROVISIONER, decided.provisioner)
            await self._annotate(claim, added)
            # The change of the claim brings it here again.
            return Done()
        if decided.provisioner != SIMULATED:
            self._tell(claim, "ExternalProvisioning", _external(decided.provisioner))
            return Done()
        node = self._nodes.cache.get(decided.node) if decided.node else None
        if decided.node and node is None:
            await self._annotate(claim, {SELECTED_NODE: None})
            return Done(said=f"the scheduler has to choose again: there is no node {decided.node}")
        allowed = class_nodes(storage_class)
        about = reference_to(self._claim_resource, claim)
        if node is not None and allowed is not None and not allowed.matches(node.metadata.labels):
            why = f"node {decided.node} is in none of the allowed topologies of class {storage_class.metadata.name}"
            _record(self._provisioner, about, "ProvisioningFailed", why)
            return Done()
        zones = {one.metadata.labels[ZONE] for one in self._nodes.cache if ZONE in one.metadata.labels}
        body = provisioned(claim, storage_class, zone_for(claim, storage_class, zones, node))
        name = body["metadata"]["name"]
        with suppress(AlreadyExists):
            await self._provisioner.client.create(PersistentVolume, body)
            _record(self._provisioner, about, "ProvisioningSucceeded", f"Successfully provisioned volume {name}")
        return Done(said=f"provisioned {name}")

    async def _annotate(self, claim: PersistentVolumeClaim, annotations: dict[str, Any]) -> None:
        meta = claim.metadata
        identity = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {"metadata": {**identity, "annotations": annotations}}
        with suppress(NotFound):
            await self._client.merge_patch(PersistentVolumeClaim, meta.name, body, namespace=meta.namespace)

    # ---- volumes

    async def _volume(self, volume: PersistentVolume) -> Done:
        reference = volume.spec.claim_ref
        if reference is None or not reference.uid:
            await self._writes.volume_phase(volume, "Available")
            return Done()
        claim = self._claims.cache.get(reference.name, reference.namespace)
        if claim is None or claim.metadata.uid != reference.uid:
            if await self._is_claimed(volume):
                return Done()
            return await self._release(volume)
        if claim.spec.volume_name == volume.metadata.name:
            await self._writes.volume_phase(volume, "Bound")
        elif claim.spec.volume_name:
            if BOUND_BY_CONTROLLER in volume.metadata.annotations:
                await self._writes.unbind(volume)
            else:
                return await self._release(volume)
        else:
            self.controller.queue.add(VolumeKey(reference.namespace, reference.name))
        return Done()

    async def _is_claimed(self, volume: PersistentVolume) -> bool:
        """Whether the claim is there after all: our cache may be late, and what is released may be deleted."""
        reference = volume.spec.claim_ref
        assert reference is not None
        try:
            claim = await self._client.get(PersistentVolumeClaim, reference.name, namespace=reference.namespace)
        except NotFound:
            return False
        return claim.metadata.uid == reference.uid

    async def _release(self, volume: PersistentVolume) -> Done:
        await self._writes.volume_phase(volume, "Released")
        is_ours = volume.metadata.annotations.get(PROVISIONED_BY) == SIMULATED
        if not is_ours or volume.spec.persistent_volume_reclaim_policy != "Delete":
            return Done()
        if volume.metadata.deletion_timestamp is None:
            options = DeleteOptions(uid=volume.metadata.uid)
            with suppress(NotFound, Conflict):
                await self._client.delete(PersistentVolume, volume.metadata.name, options=options)
        return Done(said="deleted: its claim is gone")

    # ---- whom a change concerns

    def _all(self) -> list[VolumeKey]:
        claims = [VolumeKey(one.metadata.namespace, one.metadata.name) for one in self._claims.cache]
        return [*claims, *(VolumeKey("", one.metadata.name) for one in self._volumes.cache)]

    def _of_claim(self, change: Change[PersistentVolumeClaim]) -> Iterable[VolumeKey]:
        key = VolumeKey(*change.key)
        held = self._volumes.cache.by_index(_VOLUMES_BY_CLAIM, (key.namespace, key.name))
        return [key, *(VolumeKey("", one.metadata.name) for one in held)]

    def _of_volume(self, change: Change[PersistentVolume]) -> Iterable[VolumeKey]:
        states: list[Any] = states_in(change)
        name = change.key.name
        users = self._claims.cache.by_index(_CLAIMS_BY_VOLUME, name)
        keys = [VolumeKey("", name), *(VolumeKey(one.metadata.namespace, one.metadata.name) for one in users)]
        keys += [VolumeKey(*one) for one in dict.fromkeys(one for state in states for one in _claim_named(state))]
        newest = self._volumes.cache.get(name)
        if newest is not None and newest.spec.claim_ref is None:
            keys += self._unbound(volume_class_name(newest))
        return dict.fromkeys(keys)

    def _unbound(self, class_: str) -> list[VolumeKey]:
        waiting = self._claims.cache.by_index(_UNBOUND_BY_CLASS, class_)
        return [VolumeKey(one.metadata.namespace, one.metadata.name) for one in waiting]


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    return bool(claim.spec.volume_name)


def _claim_named(volume: PersistentVolume) -> list[tuple[str, str]]:
    reference = volume.spec.claim_ref
    return [] if reference is None else [(reference.namespace, reference.name)]


def _record(component: Component, about: Any, reason: str, message: str) -> None:
    event_type = EventType.WARNING if reason in _WARNINGS else EventType.NORMAL
    component.recorder.record(about, event_type, reason=reason, message=message)


def _external(provisioner: str) -> str:
    return (
        f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by the "
        "system administrator. If volume creation is delayed, please verify that the provisioner is running and "
        "correctly registered."
    )


def _lost(volume: PersistentVolume | None) -> str:
    if volume is None:
        return "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
    return "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
