"""Table rows of volumes, claims, storage classes and CSI objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.presentation.durations import format_age
from plimsoll.local.apiserver.presentation.field_access import (
    NONE,
    UNSET,
    Json,
    count,
    format_amount,
    get_flag,
    get_items,
    get_mapping,
    get_name,
    get_text,
    get_texts,
    get_value,
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


def build_volume_cells(obj: Json, now: datetime) -> list[Any]:
    claim = get_value(obj, "spec", "claimRef")
    return [
        get_name(obj),
        format_amount(obj, "spec", "capacity", "storage"),
        _format_modes(obj, "spec"),
        get_text(obj, "spec", "persistentVolumeReclaimPolicy"),
        _format_phase(obj),
        f"{get_text(claim, 'namespace')}/{get_text(claim, 'name')}" if isinstance(claim, dict) else "",
        _get_class(obj),
        _format_or_unset(obj, "volumeAttributesClassName"),
        get_text(obj, "status", "reason"),
        format_age(obj, now),
        _format_or_unset(obj, "volumeMode"),
    ]


def build_claim_cells(obj: Json, now: datetime) -> list[Any]:
    bound = bool(get_text(obj, "spec", "volumeName"))
    return [
        get_name(obj),
        _format_phase(obj),
        get_text(obj, "spec", "volumeName"),
        format_amount(obj, "status", "capacity", "storage") if bound else "",
        _format_modes(obj, "status") if bound else "",
        _get_class(obj),
        _format_or_unset(obj, "volumeAttributesClassName"),
        format_age(obj, now),
        _format_or_unset(obj, "volumeMode"),
    ]


def build_storage_class_cells(obj: Json, now: datetime) -> list[Any]:
    annotations = get_mapping(obj, "metadata", "annotations")
    is_default = any(annotations.get(key) == "true" for key in DEFAULT_CLASS_ANNOTATIONS)
    return [
        f"{get_name(obj)} (default)" if is_default else get_name(obj),
        get_text(obj, "provisioner"),
        get_text(obj, "reclaimPolicy") or "Delete",
        get_text(obj, "volumeBindingMode") or "Immediate",
        get_flag(obj, "allowVolumeExpansion"),
        format_age(obj, now),
    ]


def build_csi_node_cells(obj: Json, now: datetime) -> list[Any]:
    return [get_name(obj), count(obj, "spec", "drivers"), format_age(obj, now)]


def build_csi_driver_cells(obj: Json, now: datetime) -> list[Any]:
    spec = get_mapping(obj, "spec")
    audiences = ",".join(get_text(item, "audience") for item in get_items(spec, "tokenRequests"))
    return [
        get_name(obj),
        spec.get("attachRequired") is not False,
        get_flag(spec, "podInfoOnMount"),
        get_flag(spec, "storageCapacity"),
        UNSET if spec.get("tokenRequests") is None else audiences,
        get_flag(spec, "requiresRepublish"),
        ",".join(get_texts(spec, "volumeLifecycleModes")) or NONE,
        format_age(obj, now),
    ]


def build_storage_capacity_cells(obj: Json, _now: datetime) -> list[Any]:
    return [
        get_name(obj),
        get_text(obj, "storageClassName"),
        UNSET if obj.get("capacity") is None else format_amount(obj, "capacity"),
    ]


def build_volume_attachment_cells(obj: Json, now: datetime) -> list[Any]:
    return [
        get_name(obj),
        get_text(obj, "spec", "attacher"),
        get_text(obj, "spec", "source", "persistentVolumeName"),
        get_text(obj, "spec", "nodeName"),
        get_flag(obj, "status", "attached"),
        format_age(obj, now),
    ]


def _format_phase(obj: Json) -> str:
    return "Terminating" if get_text(obj, "metadata", "deletionTimestamp") else get_text(obj, "status", "phase")


def _format_modes(obj: Json, part: str) -> str:
    given = set(get_texts(obj, part, "accessModes"))
    return ",".join(short for mode, short in _MODES.items() if mode in given)


def _get_class(obj: Json) -> str:
    annotated = get_mapping(obj, "metadata", "annotations").get(_CLASS_BEFORE_IT_HAD_A_FIELD)
    return annotated if isinstance(annotated, str) else get_text(obj, "spec", "storageClassName")


def _format_or_unset(obj: Json, name: str) -> str:
    return UNSET if get_value(obj, "spec", name) is None else get_text(obj, "spec", name)
