"""The writes that bind a claim to a volume, one after the other. Each can be done again: a crash does no harm.

Volume first, claim second, as in Kubernetes: a volume that names a claim is nobody else's, whatever happens next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.kube.errors import NotFound
from plimsoll.local.upkeep.volume_plans import BIND_COMPLETED, BOUND_BY_CONTROLLER, claim_reference
from plimsoll.objects.volumes import PersistentVolume, PersistentVolumeClaim

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.objects.meta import ObjectMeta


class VolumeWrites:
    """Idempotent: what is as it should be is not written."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def bind(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> None:
        """Raises `Conflict` when either is not as it was seen."""
        volume = await self._reserve(volume, claim)
        await self.volume_phase(volume, "Bound")
        claim = await self._complete(claim, volume)
        await self.claim_status(claim, "Bound", volume)

    async def _reserve(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
        reference = volume.spec.claim_ref
        if reference is not None and reference.uid == claim.metadata.uid:
            return volume
        metadata = _identity(volume.metadata)
        if reference is None:
            metadata["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
        body = {"metadata": metadata, "spec": {"claimRef": claim_reference(claim)}}
        return await self._client.merge_patch(PersistentVolume, volume.metadata.name, body)

    async def _complete(self, claim: PersistentVolumeClaim, volume: PersistentVolume) -> PersistentVolumeClaim:
        annotations = claim.metadata.annotations
        if claim.spec.volume_name and BIND_COMPLETED in annotations:
            return claim
        added = {BIND_COMPLETED: "yes"}
        body: dict[str, Any] = {"metadata": {**_identity(claim.metadata), "annotations": added}}
        if not claim.spec.volume_name:
            added[BOUND_BY_CONTROLLER] = "yes"
            body["spec"] = {"volumeName": volume.metadata.name}
        return await self._client.merge_patch(
            PersistentVolumeClaim, claim.metadata.name, body, namespace=claim.metadata.namespace
        )

    async def claim_status(
        self, claim: PersistentVolumeClaim, phase: str, volume: PersistentVolume | None = None
    ) -> None:
        status: dict[str, Any] = {"phase": phase}
        if volume is not None:
            status |= {"accessModes": list(volume.spec.access_modes), "capacity": dict(volume.spec.capacity)}
        known = claim.status
        is_told = known.phase == phase and (
            volume is None or (known.access_modes, known.capacity) == (volume.spec.access_modes, volume.spec.capacity)
        )
        if is_told:
            return
        body = {"metadata": {"uid": claim.metadata.uid}, "status": status}
        meta = claim.metadata
        try:
            await self._client.merge_patch(
                PersistentVolumeClaim, meta.name, body, namespace=meta.namespace, subresource="status"
            )
        except NotFound:
            # It was deleted meanwhile.
            return

    async def volume_phase(self, volume: PersistentVolume, phase: str) -> None:
        if volume.status.phase == phase:
            return
        body = {"metadata": {"uid": volume.metadata.uid}, "status": {"phase": phase}}
        try:
            await self._client.merge_patch(PersistentVolume, volume.metadata.name, body, subresource="status")
        except NotFound:
            # It was deleted meanwhile.
            return

    async def unbind(self, volume: PersistentVolume) -> None:
        """The claim took another volume: this one is free again."""
        metadata = {**_identity(volume.metadata), "annotations": {BOUND_BY_CONTROLLER: None}}
        body = {"metadata": metadata, "spec": {"claimRef": None}}
        await self._client.merge_patch(PersistentVolume, volume.metadata.name, body)


def _identity(metadata: ObjectMeta) -> dict[str, Any]:
    return {"uid": metadata.uid, "resourceVersion": metadata.resource_version}
