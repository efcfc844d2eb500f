"""The writes of the binder. Each carries the version it was decided from, and is skipped where nothing would change.

A binding is written from the volume to the claim: a volume that names a claim is reserved for it, so a process that
crashes half-way leaves a state that can only be completed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.volumes.annotations import (
    BIND_COMPLETED,
    BOUND_BY_CONTROLLER,
    OLD_STORAGE_PROVISIONER,
    STORAGE_PROVISIONER,
    YES,
)
from plimsoll.local.volumes.matching import is_reserved_for
from plimsoll.local.volumes.plan import is_chosen_by_binder
from plimsoll.objects.api.storage import PersistentVolume, PersistentVolumeClaim

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.own_writes import MutationCache
    from plimsoll.local.volumes.plan import VolumePlan
    from plimsoll.objects.api.meta import ObjectMeta

_STATUS: Final = "status"


class BindingWrites:
    """Writes claims and volumes, and notes what came of it."""

    def __init__(
        self, client: Client, *, claims: MutationCache[PersistentVolumeClaim], volumes: MutationCache[PersistentVolume]
    ) -> None:
        self._client = client
        self._claims = claims
        self._volumes = volumes

    async def bind(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        volume = await self._patch_volume(volume, build_reservation_patch(volume, claim))
        volume = await self.write_volume_status(volume, {"phase": "Bound"})
        claim = await self._claim(claim, build_acceptance_patch(claim, volume))
        await self.claim_status(claim, _build_bound_status(volume))

    async def take_class(self, claim: PersistentVolumeClaim, class_name: str) -> None:
        await self._claim(claim, {"spec": {"storageClassName": class_name}})

    async def ask_provisioner(self, claim: PersistentVolumeClaim, provisioner: str) -> None:
        wanted = {OLD_STORAGE_PROVISIONER: provisioner, STORAGE_PROVISIONER: provisioner}
        if wanted.items() <= claim.metadata.annotations.items():
            return
        await self._claim(claim, {"metadata": {"annotations": wanted}})

    async def claim_phase(self, claim: PersistentVolumeClaim, phase: str) -> bool:
        """Write the phase of a claim without a volume; whether it changed."""
        if claim.status.phase == phase:
            return False
        await self.claim_status(claim, {"phase": phase, "accessModes": None, "capacity": None})
        return True

    async def claim_status(self, claim: PersistentVolumeClaim, status: Mapping[str, Any]) -> None:
        now = claim.status
        if (now.phase, list(now.access_modes), now.capacity) == (
            status["phase"],
            status["accessModes"] or [],
            status["capacity"] or {},
        ):
            return
        await self._claim(claim, {"status": _remove_dropped(status, now.capacity)}, subresource=_STATUS)

    async def write_planned_volume(self, volume: PersistentVolume, plan: VolumePlan) -> bool:
        """Whether its phase is another now."""
        before = volume.status.phase
        if plan.unbind:
            volume = await self._patch_volume(volume, build_unbinding_patch(volume))
        volume = await self.write_volume_status(volume, {"phase": plan.phase, "message": plan.message or None})
        return before != plan.phase

    async def write_volume_status(self, volume: PersistentVolume, status: Mapping[str, Any]) -> PersistentVolume:
        if volume.status.phase == status["phase"] and volume.status.message == (status.get("message") or ""):
            return volume
        return await self._patch_volume(volume, {"status": dict(status)}, subresource=_STATUS)

    async def _patch_volume(
        self, volume: PersistentVolume, body: Mapping[str, Any], *, subresource: str = ""
    ) -> PersistentVolume:
        if not body:
            return volume
        whole = _as_decided_from(volume.metadata, body)
        written = await self._client.merge_patch(PersistentVolume, volume.metadata.name, whole, subresource=subresource)
        self._volumes.record_write(written)
        return written

    async def _claim(
        self, claim: PersistentVolumeClaim, body: Mapping[str, Any], *, subresource: str = ""
    ) -> PersistentVolumeClaim:
        if not body:
            return claim
        meta = claim.metadata
        whole = _as_decided_from(meta, body)
        written = await self._client.merge_patch(
            PersistentVolumeClaim, meta.name, whole, namespace=meta.namespace, subresource=subresource
        )
        self._claims.record_write(written)
        return written


def build_claim_reference(claim: PersistentVolumeClaim) -> dict[str, str]:
    """How a volume names its claim."""
    meta = claim.metadata
    return {
        "kind": "PersistentVolumeClaim",
        "apiVersion": "v1",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    }


def build_reservation_patch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> dict[str, Any]:
    """The patch that makes the volume name the claim; empty if it does."""
    reference = volume.spec.claim_ref
    if reference is not None and reference.uid == claim.metadata.uid:
        return {}
    body: dict[str, Any] = {"spec": {"claimRef": build_claim_reference(claim)}}
    if not is_reserved_for(volume, claim):
        body["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: YES}}
    return body


def build_acceptance_patch(claim: PersistentVolumeClaim, volume: PersistentVolume) -> dict[str, Any]:
    """The patch that makes the claim name the volume, for good; empty if it does."""
    body: dict[str, Any] = {}
    wanted = {} if BIND_COMPLETED in claim.metadata.annotations else {BIND_COMPLETED: YES}
    if claim.spec.volume_name != volume.metadata.name:
        body["spec"] = {"volumeName": volume.metadata.name}
        wanted[BOUND_BY_CONTROLLER] = YES
    if wanted:
        body["metadata"] = {"annotations": wanted}
    return body


def build_unbinding_patch(volume: PersistentVolume) -> dict[str, Any]:
    """The patch that frees a volume. What a person wrote stays: it is kept for a claim of that name."""
    if is_chosen_by_binder(volume):
        return {"metadata": {"annotations": {BOUND_BY_CONTROLLER: None}}, "spec": {"claimRef": None}}
    return {"spec": {"claimRef": {"uid": None}}}


def _build_bound_status(volume: PersistentVolume) -> dict[str, Any]:
    return {
        "phase": "Bound",
        "accessModes": list(volume.spec.access_modes),
        "capacity": dict(volume.spec.capacity),
    }


def _remove_dropped(status: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """A merge patch leaves what it does not name: removed amounts are named as null."""
    body = dict(status)
    if body["capacity"] is not None:
        body["capacity"] = {**dict.fromkeys(before), **body["capacity"]}
    return body


def _as_decided_from(metadata: ObjectMeta, body: Mapping[str, Any]) -> dict[str, Any]:
    identity = {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
    return {**body, "metadata": {**identity, **body.get("metadata", {})}}
