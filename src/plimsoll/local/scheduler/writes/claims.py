"""Claims that wait for their first consumer: the selected node, and whether they are bound yet.

The volume controller does the binding. A claim to be provisioned is annotated with the node; an existing volume is
reserved for its claim. Both are idempotent, so after a crash they are done again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.kube.errors import Conflict, NotFound
from plimsoll.objects.api.storage import PersistentVolume, PersistentVolumeClaim
from plimsoll.scheduling.rules.volume_binding import choose_volumes_for_pod

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import ClusterView

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"


def find_unbound_claims(pod: Pod, node: str, view: ClusterView) -> dict[str, str]:
    """Claims still to be bound before the pod can go there, with the volume each gets; empty: to be provisioned."""
    if not any(volume.persistent_volume_claim or volume.ephemeral for volume in pod.spec.volumes):
        return {}
    place = view.find_node(node)
    return {} if place is None else choose_volumes_for_pod(pod, place, view)


class ClaimWrites:
    """Writes the selected node and volume for the volume controller."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def select_node(self, claim: PersistentVolumeClaim, node: str, volume: PersistentVolume | None) -> bool:
        """False if claim or volume are not as they were: the pod has to be looked at again."""
        try:
            await self._record_event(claim, node, volume)
        except Conflict:
            # Others write into claims too, and an earlier attempt may have written this already.
            return await self._retry(claim, node, volume)
        except NotFound:
            return False
        return True

    async def _record_event(self, claim: PersistentVolumeClaim, node: str, volume: PersistentVolume | None) -> None:
        if volume is None:
            await self._annotate(claim, node)
        else:
            await self._reserve(volume, claim)

    async def _retry(self, claim: PersistentVolumeClaim, node: str, volume: PersistentVolume | None) -> bool:
        """Try again with the current objects, unless another writer has chosen differently."""
        meta = claim.metadata
        try:
            current = await self._client.get(PersistentVolumeClaim, meta.name, namespace=meta.namespace)
            if current.metadata.uid != meta.uid or current.metadata.annotations.get(SELECTED_NODE, node) != node:
                return False
            if volume is not None:
                volume = await self._client.get(PersistentVolume, volume.metadata.name)
            await self._record_event(current, node, volume)
        except (NotFound, Conflict):
            return False
        return True

    async def _annotate(self, claim: PersistentVolumeClaim, node: str) -> None:
        meta = claim.metadata
        if meta.annotations.get(SELECTED_NODE) == node:
            return
        identity = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        body = {"metadata": {**identity, "annotations": {SELECTED_NODE: node}}}
        await self._client.merge_patch(PersistentVolumeClaim, meta.name, body, namespace=meta.namespace)

    async def _reserve(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        meta = claim.metadata
        reference = volume.spec.claim_ref
        if reference is not None and reference.uid == meta.uid:
            return
        wanted = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": meta.namespace,
            "name": meta.name,
            "uid": meta.uid,
            "resourceVersion": meta.resource_version,
        }
        identity = {"uid": volume.metadata.uid, "resourceVersion": volume.metadata.resource_version}
        by_us = {"annotations": {_BOUND_BY_CONTROLLER: "yes"}} if reference is None else {}
        body = {"metadata": {**identity, **by_us}, "spec": {"claimRef": wanted}}
        await self._client.merge_patch(PersistentVolume, volume.metadata.name, body)
