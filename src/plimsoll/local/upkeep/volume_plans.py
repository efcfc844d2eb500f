"""Which volume a claim gets, and what a claim without one waits for. Pure.

The rules of Kubernetes' volume binder: a volume that names the claim comes first, then the smallest that is free, large
enough and of the same class and modes; a class that waits for its first consumer is bound only after the scheduler
has chosen, by reserving a volume or by naming a node.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value
from plimsoll.scheduling.storage import UnboundVolume, claim_selector, class_name, requested_storage

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.objects.nodes import Node
    from plimsoll.objects.volumes import PersistentVolume, PersistentVolumeClaim, StorageClass

SIMULATED: Final = "plimsoll.io/simulated"
DRIVER: Final = "simulated.plimsoll.io"
"""The provisioner as a CSI driver, whose names have no slash."""
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
ZONE: Final = "topology.kubernetes.io/zone"


class BindTo(Value):
    """The claim gets this volume."""

    volume: str


class Provision(Value):
    """A volume is to be made by the class's provisioner, for a node if one is named."""

    provisioner: str
    node: str = ""


class Waits(Value):
    """Nothing can be done now. Without a reason there is nothing to say."""

    reason: str = ""
    message: str = ""


def plan_claim(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], storage_class: StorageClass | None
) -> BindTo | Provision | Waits:
    """For a claim that names no volume; `volumes` are those of its class and those that name it."""
    offers = sorted(filter(None, map(UnboundVolume.of, volumes)), key=lambda one: (one.capacity, one.name))
    wanted = requested_storage(claim)
    reserved = next((one for one in offers if one.is_reserved_for(claim) and one.has_room_for(claim, wanted)), None)
    if reserved is not None:
        return BindTo(volume=reserved.name)
    delays = storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer"
    node = claim.metadata.annotations.get(SELECTED_NODE, "")
    if not delays:
        selector = claim_selector(claim)
        free = next((one for one in offers if one.suits(claim, wanted, selector)), None)
        if free is not None:
            return BindTo(volume=free.name)
    elif not node:
        return Waits(reason="WaitForFirstConsumer", message="waiting for first consumer to be created before binding")
    if storage_class is None:
        return _without_class(claim)
    return Provision(provisioner=storage_class.provisioner, node=node)


def _without_class(claim: PersistentVolumeClaim) -> Waits:
    name = class_name(claim)
    if name:
        return Waits(reason="ProvisioningFailed", message=f'storageclass.storage.k8s.io "{name}" not found')
    return Waits(
        reason="FailedBinding",
        message="no persistent volumes available for this claim and no storage class is set",
    )


def names_claim(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is the claim's, or is kept for it."""
    reference = volume.spec.claim_ref
    meta = claim.metadata
    if reference is None or (reference.namespace, reference.name) != (meta.namespace, meta.name):
        return False
    return reference.uid in {"", meta.uid}


def zone_for(claim: PersistentVolumeClaim, storage_class: StorageClass, zones: Iterable[str], node: Node | None) -> str:
    """Where to put a new volume: with the node, else claims of one set in turns. Empty: anywhere."""
    if node is not None:
        return node.metadata.labels.get(ZONE, "")
    allowed = [
        value
        for term in storage_class.allowed_topologies
        for one in term.match_label_expressions
        if one.key == ZONE
        for value in one.values
    ]
    choice = sorted(set(allowed or zones))
    if not choice:
        return ""
    base, _, ordinal = claim.metadata.name.rpartition("-")
    number = int(ordinal) if ordinal.isdecimal() else 0
    return choice[(sum(base.encode()) + number) % len(choice)]


def provisioned(claim: PersistentVolumeClaim, storage_class: StorageClass, zone: str) -> dict[str, Any]:
    """The volume the simulated provisioner makes: one name for one claim, so that it is never made twice."""
    meta, spec = claim.metadata, claim.spec
    name = f"pvc-{meta.uid}"
    body: dict[str, Any] = {
        "accessModes": list(spec.access_modes),
        "capacity": {"storage": spec.resources.requests.get("storage", "0")},
        "claimRef": claim_reference(claim),
        "csi": {"driver": DRIVER, "volumeHandle": name},
        "persistentVolumeReclaimPolicy": storage_class.reclaim_policy or "Delete",
        "storageClassName": storage_class.metadata.name,
        "volumeMode": spec.volume_mode or "Filesystem",
    }
    if zone:
        terms = [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}]
        body["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    metadata = {"name": name, "annotations": {PROVISIONED_BY: SIMULATED}}
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": metadata, "spec": body}


def claim_reference(claim: PersistentVolumeClaim) -> dict[str, str]:
    meta = claim.metadata
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": meta.namespace,
        "name": meta.name,
        "uid": meta.uid,
        "resourceVersion": meta.resource_version,
    }
