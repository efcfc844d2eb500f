"""Table rows of volumes, claims, storage classes and CSI objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.presentation.durations import age
from plimsoll.local.apiserver.presentation.field_access import (
    NONE,
    UNSET,
    Json,
    amount,
    count,
    flag,
    items,
    mapping,
    name_of,
    text,
    texts,
    value,
)
from plimsoll.objects.api.storage import DEFAULT_CLASS_ANNOTATIONS

if TYPE_CHECKING:
    from datetime import datetime

_MODES: Final = {
    "ReadWriteOnce": "RWO",
    "ReadOnlyMany": "ROX",
    "ReadWriteMany": "RWX",
    "ReadWriteOncePod": "RWOP",
}
_CLASS_BEFORE_IT_HAD_A_FIELD: Final = "volume.beta.kubernetes.io/storage-class"


def volume_cells(obj: Json, now: datetime) -> list[Any]:
    claim = value(obj, "spec", "claimRef")
    return [
        name_of(obj),
        amount(obj, "spec", "capacity", "storage"),
        _modes(obj, "spec"),
        text(obj, "spec", "persistentVolumeReclaimPolicy"),
        _phase(obj),
        f"{text(claim, 'namespace')}/{text(claim, 'name')}" if isinstance(claim, dict) else "",
        _class(obj),
        _or_unset(obj, "volumeAttributesClassName"),
        text(obj, "status", "reason"),
        age(obj, now),
        _or_unset(obj, "volumeMode"),
    ]


def claim_cells(obj: Json, now: datetime) -> list[Any]:
    bound = bool(text(obj, "spec", "volumeName"))
    return [
        name_of(obj),
        _phase(obj),
        text(obj, "spec", "volumeName"),
        amount(obj, "status", "capacity", "storage") if bound else "",
        _modes(obj, "status") if bound else "",
        _class(obj),
        _or_unset(obj, "volumeAttributesClassName"),
        age(obj, now),
        _or_unset(obj, "volumeMode"),
    ]


def storage_class_cells(obj: Json, now: datetime) -> list[Any]:
    annotations = mapping(obj, "metadata", "annotations")
    is_default = any(annotations.get(key) == "true" for key in DEFAULT_CLASS_ANNOTATIONS)
    return [
        f"{name_of(obj)} (default)" if is_default else name_of(obj),
        text(obj, "provisioner"),
        text(obj, "reclaimPolicy") or "Delete",
        text(obj, "volumeBindingMode") or "Immediate",
        flag(obj, "allowVolumeExpansion"),
        age(obj, now),
    ]


def csi_node_cells(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), count(obj, "spec", "drivers"), age(obj, now)]


def csi_driver_cells(obj: Json, now: datetime) -> list[Any]:
    spec = mapping(obj, "spec")
    audiences = ",".join(text(item, "audience") for item in items(spec, "tokenRequests"))
    return [
        name_of(obj),
        spec.get("attachRequired") is not False,
        flag(spec, "podInfoOnMount"),
        flag(spec, "storageCapacity"),
        UNSET if spec.get("tokenRequests") is None else audiences,
        flag(spec, "requiresRepublish"),
        ",".join(texts(spec, "volumeLifecycleModes")) or NONE,
        age(obj, now),
    ]


def storage_capacity_cells(obj: Json, _now: datetime) -> list[Any]:
    return [
        name_of(obj),
        text(obj, "storageClassName"),
        UNSET if obj.get("capacity") is None else amount(obj, "capacity"),
    ]


def volume_attachment_cells(obj: Json, now: datetime) -> list[Any]:
    return [
        name_of(obj),
        text(obj, "spec", "attacher"),
        text(obj, "spec", "source", "persistentVolumeName"),
        text(obj, "spec", "nodeName"),
        flag(obj, "status", "attached"),
        age(obj, now),
    ]


def _phase(obj: Json) -> str:
    return "Terminating" if text(obj, "metadata", "deletionTimestamp") else text(obj, "status", "phase")


def _modes(obj: Json, part: str) -> str:
    given = set(texts(obj, part, "accessModes"))
    return ",".join(short for mode, short in _MODES.items() if mode in given)


def _class(obj: Json) -> str:
    annotated = mapping(obj, "metadata", "annotations").get(_CLASS_BEFORE_IT_HAD_A_FIELD)
    return annotated if isinstance(annotated, str) else text(obj, "spec", "storageClassName")


def _or_unset(obj: Json, name: str) -> str:
    return UNSET if value(obj, "spec", name) is None else text(obj, "spec", name)
