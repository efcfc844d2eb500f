"""The volume key of a pod: what its volumes mean for scheduling, in a form in which equal constraints are equal values.

Pods of a StatefulSet have a claim each. Claims bound in one zone, or waiting for the same storage class, are equal;
claims bound in different zones are not. A claim that several pods use, or that a volume is reserved for, is identified
by name, because such claims are not exchangeable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import structs

from plimsoll.scheduling.storage import get_claim_name, get_class_name, is_bound, is_owned_by_pod

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.nodes.model.snapshot import PendingPods
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.storage import PersistentVolumeClaim, Volume
    from plimsoll.scheduling.cluster_view import ClusterView

Key = tuple[Any, ...]
ClaimKey = tuple[str, str]

ONE_POD_ONLY: Final = "ReadWriteOncePod"

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
_ZONE_LABELS: Final = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
_ENCODER: Final = msgspec.msgpack.Encoder(order="deterministic")


def touches_storage(pod: Pod) -> bool:
    """Whether any volume of the pod matters for placement: a claim, or a disk that mounts once."""
    return any(_is_claim(volume) or _is_disk(volume) for volume in pod.spec.volumes)


def _is_claim(volume: Volume) -> bool:
    return volume.persistent_volume_claim is not None or volume.ephemeral is not None


def _is_disk(volume: Volume) -> bool:
    sources = (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd)
    return any(source is not None for source in sources)


def list_pod_claims(pod: Pod) -> tuple[ClaimKey, ...]:
    names = (get_claim_name(pod, volume) for volume in pod.spec.volumes)
    return tuple((pod.metadata.namespace, name) for name in names if name is not None)


class VolumeKeys:
    """Volume keys for one state of the storage and one list of pending pods."""

    def __init__(self, view: ClusterView, pending: Iterable[PendingPods]) -> None:
        self._view = view
        self._storage = view.storage
        self._named = _find_claims_keyed_by_name(view, pending)

    def get_key(self, pod: Pod) -> Key:
        parts: list[Key] = []
        for volume in pod.spec.volumes:
            if _is_claim(volume):
                parts.append(self._build_claim_key(pod, volume))
            elif _is_disk(volume):
                sources = (volume.gce_persistent_disk, volume.aws_elastic_block_store, volume.iscsi, volume.rbd)
                parts.append(("disk", _ENCODER.encode(sources)))
        return tuple(parts)

    def is_single_pod_claim(self, pod: Pod) -> bool:
        """Whether the pod shares a ReadWriteOncePod claim with other pods."""
        found = (self._storage.claims.get(key) for key in list_pod_claims(pod) if key in self._named)
        return any(claim is not None and ONE_POD_ONLY in claim.spec.access_modes for claim in found)

    def _build_claim_key(self, pod: Pod, volume: Volume) -> Key:
        own = volume.ephemeral is not None
        name = get_claim_name(pod, volume) or ""
        key = (pod.metadata.namespace, name)
        claim = self._storage.claims.get(key)
        if claim is None:
            return ("missing", own, name)
        usable = claim.status.phase != "Lost" and claim.metadata.deletion_timestamp is None
        if not usable or (own and not is_owned_by_pod(claim, pod)):
            return ("unusable", own, key, pod.metadata.name)
        identity = key if key in self._named else None
        modes = ONE_POD_ONLY in claim.spec.access_modes
        if is_bound(claim):
            return ("bound", own, modes, identity, *self._build_volume_key(claim.spec.volume_name))
        return ("waiting", own, identity, *_build_unbound_key(claim))

    def _build_volume_key(self, name: str) -> Key:
        volume = self._storage.volumes.get(name)
        if volume is None:
            return ("gone", name)
        affinity = volume.spec.node_affinity
        labels = tuple(volume.metadata.labels.get(key) for key in _ZONE_LABELS)
        driver = "" if volume.spec.csi is None else volume.spec.csi.driver
        return (driver, labels, b"" if affinity is None else _ENCODER.encode(affinity))


def _build_unbound_key(claim: PersistentVolumeClaim) -> Key:
    spec = structs.replace(claim.spec, storage_class_name=get_class_name(claim))
    return (claim.metadata.annotations.get(SELECTED_NODE), _ENCODER.encode(spec))


def _find_claims_keyed_by_name(view: ClusterView, pending: Iterable[PendingPods]) -> set[ClaimKey]:
    """Claims that more than one pod uses or would use, and those a volume is reserved for."""
    claims_of_pods: set[ClaimKey] = set()
    named: set[ClaimKey] = set()
    for pending_pods in pending:
        for key in list_pod_claims(pending_pods.pod):
            if key in claims_of_pods or pending_pods.count > 1:
                named.add(key)
            claims_of_pods.add(key)
    if not claims_of_pods:
        return named
    for place in view.nodes.values():
        for placed in place.pods.values():
            if placed.claims:
                named.update(
                    (placed.namespace, name) for name in placed.claims if (placed.namespace, name) in claims_of_pods
                )
    for volume in view.storage.volumes.values():
        reference = volume.spec.claim_ref
        if reference is not None and (reference.namespace, reference.name) in claims_of_pods:
            claim = view.storage.claims.get((reference.namespace, reference.name))
            if claim is not None and not is_bound(claim):
                named.add((reference.namespace, reference.name))
    return named
