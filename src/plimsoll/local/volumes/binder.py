"""The persistent volume controller: binds claims to volumes and keeps their phases.

One worker handles claims and volumes in sequence: two at once could choose one volume for two claims, and one of the
writes would fail. `plan` decides, `binding_writes` writes. Provisioners create volumes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plimsoll.kube.controller.controller import Controller, Done
from plimsoll.kube.controller.enqueue import enqueue_on, list_states
from plimsoll.kube.errors import NotFound
from plimsoll.kube.informer.events import Added, Updated, get_key
from plimsoll.kube.informer.own_writes import MutationCache
from plimsoll.kube.recorder import EventType, build_reference
from plimsoll.local.volumes.annotations import BIND_COMPLETED, is_default_class
from plimsoll.local.volumes.binding_writes import BindingWrites
from plimsoll.local.volumes.plan import (
    AssignClass,
    BindClaim,
    ClaimEvent,
    ClaimView,
    ClaimWaits,
    ProvisionVolume,
    plan_claim,
    plan_volume,
)
from plimsoll.local.volumes.pods_by_claim import index_pods_by_claim, list_pods_using
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass
from plimsoll.scheduling.storage import get_class_name, get_volume_class_name

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kube.informer.events import Change
    from plimsoll.local.components import Component
    from plimsoll.local.volumes.plan import ClaimPlan

NAME: Final = "persistentvolume-controller"

_FREE_BY_CLASS: Final = "volumes: free volumes by class"
_BY_CLAIM: Final = "volumes: volumes by claim"
_UNBOUND_BY_CLASS: Final = "volumes: unbound claims by class"
_BY_VOLUME: Final = "volumes: claims by volume"
_EXTERNAL: Final = (
    "Waiting for a volume to be created either by the external provisioner '%s' or manually by the system "
    "administrator. If volume creation is delayed, please verify that the provisioner is running and correctly "
    "registered."
)


class BinderKey(NamedTuple):
    """The key of a claim or a volume; a volume has no namespace."""

    namespace: str
    name: str

    @property
    def is_claim(self) -> bool:
        return bool(self.namespace)

    def __str__(self) -> str:
        return f"claim {self.namespace}/{self.name}" if self.is_claim else f"volume {self.name}"


class VolumeBinder:
    """Reconciles through `controller`, which the supervisor runs."""

    def __init__(self, component: Component) -> None:
        self._recorder = component.recorder
        self._client = component.client
        informers = component.informers
        self._claims = informers.get_informer(PersistentVolumeClaim)
        self._volumes = informers.get_informer(PersistentVolume)
        self._classes = informers.get_informer(StorageClass)
        self._pods = informers.get_informer(Pod)
        self._add_indexes()
        self._latest_claims = MutationCache(self._claims)
        self._latest_volumes = MutationCache(self._volumes)
        self._writes = BindingWrites(component.client, claims=self._latest_claims, volumes=self._latest_volumes)
        self.controller: Controller[BinderKey] = Controller(
            NAME, self.reconcile, clock=component.clock, entropy=component.entropy, all_keys=self._list_all_keys
        )
        enqueue_on(self._volumes, self.controller, self._list_keys_of_volume)
        enqueue_on(self._claims, self.controller, self._list_keys_of_claim)
        enqueue_on(self._classes, self.controller, self._list_keys_of_class)
        self.controller.add_source(self._pods)

    async def reconcile(self, subject: BinderKey) -> Done:
        try:
            if subject.is_claim:
                return Done(summary=await self._reconcile_claim(subject))
            return Done(summary=await self._reconcile_volume(subject))
        except NotFound:
            # Deleted meanwhile: its going is an event of its own.
            return Done()

    # ---- claims

    async def _reconcile_claim(self, subject: BinderKey) -> str:
        claim = self._latest_claims.get(subject.name, subject.namespace)
        if claim is None:
            return ""
        return await self._apply_plan(claim, plan_claim(self._build_view(claim)))

    async def _apply_plan(self, claim: PersistentVolumeClaim, plan: ClaimPlan) -> str:
        match plan:
            case BindClaim(volume=name):
                volume = self._latest_volumes.get(name)
                if volume is None:
                    return ""
                await self._writes.bind(volume, claim)
                return "" if claim.status.phase == "Bound" else f"bound to {name}"
            case ProvisionVolume(provisioner=provisioner):
                await self._writes.ask_provisioner(claim, provisioner)
                why = ClaimEvent(type=EventType.NORMAL, reason="ExternalProvisioning", message=_EXTERNAL % provisioner)
                self._record(claim, why)
                return f"to be provisioned by {provisioner}"
            case AssignClass(class_name=name):
                await self._writes.take_class(claim, name)
                return f"got the default class {name}"
            case ClaimWaits(phase=phase, notice=notice):
                is_news = await self._writes.claim_phase(claim, phase)
                if notice is not None and (is_news or phase != "Lost"):
                    self._record(claim, notice)
                return "" if notice is None else notice.message

    def _build_view(self, claim: PersistentVolumeClaim) -> ClaimView:
        named = claim.spec.volume_name
        return ClaimView(
            claim=claim,
            named=self._latest_volumes.get(named) if named else None,
            volumes=() if named else self._list_volumes(claim),
            storage_class=self._classes.cache.get(get_class_name(claim)),
            default_class="" if named else self._find_default_class(),
            unscheduled_pods=self._list_unscheduled_pods(claim),
        )

    def _list_volumes(self, claim: PersistentVolumeClaim) -> tuple[PersistentVolume, ...]:
        free = self._volumes.cache.list_by_index(_FREE_BY_CLASS, get_class_name(claim))
        kept = self._volumes.cache.list_by_index(_BY_CLAIM, get_key(claim))
        return tuple(self._latest_volumes.get_newest(volume) for volume in (*free, *kept))

    def _find_default_class(self) -> str:
        """The youngest of those that are marked, as the API server's admission takes it."""
        marked = [
            storage_class.metadata for storage_class in self._classes.cache if is_default_class(storage_class.metadata)
        ]
        marked.sort(key=lambda meta: meta.name)
        youngest = max(marked, key=lambda meta: _rank_age(meta.creation_timestamp), default=None)
        return "" if youngest is None else youngest.name

    def _list_unscheduled_pods(self, claim: PersistentVolumeClaim) -> tuple[str, ...]:
        pods = list_pods_using(self._pods, get_key(claim))
        return tuple(pod.metadata.name for pod in pods if not pod.spec.node_name)

    # ---- volumes

    async def _reconcile_volume(self, subject: BinderKey) -> str:
        volume = self._latest_volumes.get(subject.name)
        if volume is None:
            return ""
        reference = volume.spec.claim_ref
        claim = None if reference is None else self._latest_claims.get(reference.name, reference.namespace)
        is_owned = reference is not None and reference.uid and volume.status.phase != "Released"
        if reference is not None and is_owned and (claim is None or claim.metadata.uid != reference.uid):
            claim = await self._claim_on_server(reference.name, reference.namespace)
        plan = plan_volume(volume, claim)
        if plan.looks_at_claim and claim is not None:
            self.controller.queue.add(BinderKey(*get_key(claim)))
        is_news = await self._writes.write_planned_volume(volume, plan)
        if plan.notice is not None:
            self._record(volume, plan.notice)
        return f"{volume.status.phase} → {plan.phase}" if is_news else ""

    async def _claim_on_server(self, name: str, namespace: str) -> PersistentVolumeClaim | None:
        """A claim may be too new for the cache, which shows none or one that had its name before.

        Its volume must not be taken from it for that.
        """
        try:
            found: PersistentVolumeClaim = await self._client.get(PersistentVolumeClaim, name, namespace=namespace)
        except NotFound:
            return None
        return found

    # ---- what wakes it

    def _add_indexes(self) -> None:
        self._volumes.add_index(
            _FREE_BY_CLASS, lambda volume: [get_volume_class_name(volume)] if volume.spec.claim_ref is None else []
        )
        self._volumes.add_index(_BY_CLAIM, _list_named_claims)
        self._claims.add_index(
            _UNBOUND_BY_CLASS,
            lambda claim: [] if BIND_COMPLETED in claim.metadata.annotations else [get_class_name(claim)],
        )
        self._claims.add_index(_BY_VOLUME, lambda claim: [claim.spec.volume_name] if claim.spec.volume_name else [])
        index_pods_by_claim(self._pods)

    def _list_all_keys(self) -> Iterable[BinderKey]:
        volumes = [BinderKey(*get_key(volume)) for volume in self._volumes.cache]
        return [*volumes, *(BinderKey(*get_key(claim)) for claim in self._claims.cache)]

    def _list_keys_of_claim(self, change: Change[Any]) -> Iterable[BinderKey]:
        """The claim, and the volumes that it names or that name it."""
        subjects = {BinderKey(*change.key): None}
        for claim in list_states(change):
            assert isinstance(claim, PersistentVolumeClaim)
            if claim.spec.volume_name:
                subjects[BinderKey("", claim.spec.volume_name)] = None
        for volume in self._volumes.cache.list_by_index(_BY_CLAIM, change.key):
            subjects[BinderKey(*get_key(volume))] = None
        return subjects

    def _list_keys_of_volume(self, change: Change[Any]) -> Iterable[BinderKey]:
        """The volume, the claims on either side of it, and if it is free those that wait for one of its class."""
        subjects = {BinderKey(*change.key): None}
        for volume in list_states(change):
            assert isinstance(volume, PersistentVolume)
            subjects.update((BinderKey(*key), None) for key in _list_named_claims(volume))
        claims = list(self._claims.cache.list_by_index(_BY_VOLUME, change.key.name))
        if isinstance(change, Added | Updated) and change.new.status.phase == "Available":
            waiting = self._claims.cache.list_by_index(_UNBOUND_BY_CLASS, get_volume_class_name(change.new))
            claims += sorted(waiting, key=_get_age_key)
        subjects.update((BinderKey(*get_key(claim)), None) for claim in claims)
        return subjects

    def _list_keys_of_class(self, change: Change[Any]) -> Iterable[BinderKey]:
        """Claims that wait for the class, or for a default one."""
        waiting = [
            *self._claims.cache.list_by_index(_UNBOUND_BY_CLASS, change.key.name),
            *self._claims.cache.list_by_index(_UNBOUND_BY_CLASS, ""),
        ]
        return [BinderKey(*get_key(claim)) for claim in sorted(waiting, key=_get_age_key)]

    def _record(self, about: PersistentVolumeClaim | PersistentVolume, notice: ClaimEvent) -> None:
        resource = self._client.calls.get_resource(type(about))
        self._recorder.record(
            build_reference(resource, about), notice.type, reason=notice.reason, message=notice.message
        )


def _list_named_claims(volume: PersistentVolume) -> list[tuple[str, str]]:
    reference = volume.spec.claim_ref
    return [] if reference is None else [(reference.namespace, reference.name)]


def _get_age_key(claim: PersistentVolumeClaim) -> tuple[float, str, str]:
    meta = claim.metadata
    return _rank_age(meta.creation_timestamp), meta.namespace, meta.name


def _rank_age(created: Any) -> float:
    return 0.0 if created is None else float(created.timestamp())
