"""The volume that the simulated provisioner creates for a claim, and its zone. Pure.

A claim that waited for its consumer gets its volume in the zone of the selected node. For any other the zone is free,
among those of its class or else of the cluster's nodes: the one with the fewest volumes, so that the claims of a
stateful set spread, and a restarted process continues where the last one was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value
from plimsoll.local.volumes.annotations import (
    OLD_STORAGE_PROVISIONER,
    PROVISIONED_BY,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
)
from plimsoll.local.volumes.binding_writes import build_claim_reference

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.storage import PersistentVolume, PersistentVolumeClaim, StorageClass

SIMULATED: Final = "plimsoll.io/simulated"
"""What storage classes call it."""
DRIVER: Final = "simulated.plimsoll.io"
"""What volumes call it: the name of a driver has no slash."""
ZONE: Final = "topology.kubernetes.io/zone"


class VolumeLocation(Value, frozen=True):
    """Where a volume can be used: nodes whose labels have one of the values of each key. None given: anywhere."""

    labels: tuple[tuple[str, tuple[str, ...]], ...] = ()

    @classmethod
    def in_zone(cls, zone: str) -> VolumeLocation:
        return cls(labels=((ZONE, (zone,)),)) if zone else cls()


def build_volume_name(claim: PersistentVolumeClaim) -> str:
    """Follows from the claim: made twice, it is there once."""
    return f"pvc-{claim.metadata.uid}"


def needs_provisioning(claim: PersistentVolumeClaim, storage_class: StorageClass | None) -> bool:
    annotations = claim.metadata.annotations
    requested = annotations.get(STORAGE_PROVISIONER) or annotations.get(OLD_STORAGE_PROVISIONER)
    if requested != SIMULATED or claim.spec.volume_name or claim.metadata.deletion_timestamp is not None:
        return False
    if storage_class is None or storage_class.provisioner != SIMULATED:
        return False
    return storage_class.volume_binding_mode != "WaitForFirstConsumer" or bool(annotations.get(SELECTED_NODE))


def needs_deletion(volume: PersistentVolume) -> bool:
    return (
        volume.metadata.annotations.get(PROVISIONED_BY) == SIMULATED
        and volume.status.phase == "Released"
        and volume.spec.persistent_volume_reclaim_policy == "Delete"
        and volume.metadata.deletion_timestamp is None
    )


def find_location_near(node: Node) -> VolumeLocation:
    return VolumeLocation.in_zone(node.metadata.labels.get(ZONE, ""))


def choose_location_by_class(
    storage_class: StorageClass, *, node_zones: Iterable[str], volumes_in: Mapping[str, int]
) -> VolumeLocation:
    """The location for a claim without a node; topology terms of the class other than zones are kept."""
    zones = _list_allowed_zones(storage_class)
    if not zones and storage_class.allowed_topologies:
        first = storage_class.allowed_topologies[0]
        return VolumeLocation(
            labels=tuple((requirement.key, requirement.values) for requirement in first.match_label_expressions)
        )
    candidates = sorted(set(zones or node_zones) - {""})
    chosen = min(candidates, key=lambda zone: volumes_in.get(zone, 0), default="")
    return VolumeLocation.in_zone(chosen)


def _list_allowed_zones(storage_class: StorageClass) -> list[str]:
    expressions = [
        requirement for term in storage_class.allowed_topologies for requirement in term.match_label_expressions
    ]
    return [zone for requirement in expressions if requirement.key == ZONE for zone in requirement.values]


def list_zones(volume: PersistentVolume) -> Sequence[str]:
    """The zones a volume is tied to, as `build_volume_body` writes them."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return ()
    expressions = [
        requirement for term in affinity.required.node_selector_terms for requirement in term.match_expressions
    ]
    return [zone for requirement in expressions if requirement.key == ZONE for zone in requirement.values]


def build_volume_body(
    claim: PersistentVolumeClaim, storage_class: StorageClass, where: VolumeLocation
) -> dict[str, Any]:
    name = build_volume_name(claim)
    spec: dict[str, Any] = {
        "capacity": {"storage": claim.spec.resources.requests.get("storage", 0)},
        "csi": {"driver": DRIVER, "volumeHandle": name, "fsType": "ext4"},
        "accessModes": list(claim.spec.access_modes),
        "claimRef": build_claim_reference(claim),
        "persistentVolumeReclaimPolicy": storage_class.reclaim_policy or "Delete",
        "storageClassName": storage_class.metadata.name,
        "volumeMode": claim.spec.volume_mode or "Filesystem",
    }
    if where.labels:
        expressions = [{"key": key, "operator": "In", "values": list(values)} for key, values in where.labels]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": [{"matchExpressions": expressions}]}}
    return {"metadata": {"name": name, "annotations": {PROVISIONED_BY: SIMULATED}}, "spec": spec}
