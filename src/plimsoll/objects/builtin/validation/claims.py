"""Validation of the spec of a PersistentVolumeClaim, as an object or inside a pod or StatefulSet."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.names import find_dns1123_label_problems, find_subdomain_problems
from plimsoll.core.quantity import Quantity
from plimsoll.objects.builtin.validation.affinity import validate_label_selector
from plimsoll.objects.schema import field_errors as fe
from plimsoll.objects.schema.field_errors import list_invalid

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

ACCESS_MODES: Final = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES: Final = ("Block", "Filesystem")


def validate_claim_spec(spec: Json, path: str) -> list[FieldError]:
    modes = spec.get("accessModes", [])
    errors = [] if modes else [fe.required(f"{path}.accessModes", "at least 1 access mode is required")]
    errors += validate_label_selector(spec.get("selector"), f"{path}.selector")
    errors += validate_access_modes(modes, f"{path}.accessModes")
    errors += _validate_storage(
        spec.get("resources", {}).get("requests", {}).get("storage"), f"{path}.resources[storage]"
    )
    if spec.get("storageClassName"):
        errors += list_invalid(f"{path}.storageClassName", spec["storageClassName"], find_subdomain_problems)
    if spec.get("volumeMode", "Block") not in VOLUME_MODES:
        errors.append(fe.not_supported(f"{path}.volumeMode", spec["volumeMode"], VOLUME_MODES))
    for name in ("dataSource", "dataSourceRef"):
        if name in spec:
            errors += _validate_source(spec[name], f"{path}.{name}")
    errors += _validate_both_sources(spec, path)
    if spec.get("volumeAttributesClassName"):
        errors += list_invalid(
            f"{path}.volumeAttributesClassName", spec["volumeAttributesClassName"], find_subdomain_problems
        )
    return errors


def validate_access_modes(modes: list[str], path: str) -> list[FieldError]:
    errors = [fe.not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES]
    others = [mode for mode in modes if mode in ACCESS_MODES and mode != "ReadWriteOncePod"]
    if "ReadWriteOncePod" in modes and others:
        errors.append(fe.forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return errors


def _validate_storage(amount: str | None, path: str) -> list[FieldError]:
    if amount is None:
        return [fe.required(path)]
    return [fe.invalid(path, amount, "must be greater than zero")] if Quantity.parse(amount).nano <= 0 else []


def _validate_source(source: Json, path: str) -> list[FieldError]:
    errors = [fe.required(f"{path}.{field}") for field in ("name", "kind") if not source.get(field)]
    group, kind = source.get("apiGroup", ""), source.get("kind", "")
    if not group and kind != "PersistentVolumeClaim":
        detail = "must be 'PersistentVolumeClaim' when referencing the default apiGroup"
        errors.append(fe.invalid(path, kind, detail))
    if group:
        errors += list_invalid(f"{path}.apiGroup", group, find_subdomain_problems)
    if source.get("namespace"):
        errors += list_invalid(f"{path}.namespace", source["namespace"], find_dns1123_label_problems)
    return errors


def _validate_both_sources(spec: Json, path: str) -> list[FieldError]:
    source, ref = spec.get("dataSource"), spec.get("dataSourceRef")
    if source is None or ref is None:
        return []
    shown = f"{path}.dataSource"
    if ref.get("namespace"):
        return [fe.invalid(path, shown, "may not be specified when dataSourceRef.namespace is specified")]
    is_equal = all(source.get(field) == ref.get(field) for field in ("apiGroup", "kind", "name"))
    return [] if is_equal else [fe.invalid(path, shown, "must match dataSourceRef")]
