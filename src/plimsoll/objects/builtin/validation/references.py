"""Validation of what a pod refers to: paths inside volumes, fields of itself, resources of its containers, keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.names import find_qualified_name_problems, find_subdomain_problems
from plimsoll.core.quantity import Quantity
from plimsoll.objects.builtin.validation.syntax import find_config_key_problems
from plimsoll.objects.schema import field_errors as fe
from plimsoll.objects.schema.field_errors import list_invalid

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

_SUBSCRIPTED: Final = ("metadata.annotations", "metadata.labels")
_POD_FIELDS: Final = frozenset(
    {
        "metadata.annotations",
        "metadata.labels",
        "metadata.name",
        "metadata.namespace",
        "metadata.uid",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.serviceAccountName",
        "spec.schedulerName",
        "status.phase",
        "status.hostIP",
        "status.hostIPs",
        "status.podIP",
        "status.podIPs",
    }
)
_RESOURCES: Final = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE_PAGES: Final = ("limits.hugepages-", "requests.hugepages-")
_DIVISORS: Final = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")


def validate_no_backsteps(target: str, path: str) -> list[FieldError]:
    return [fe.invalid(path, target, "must not contain '..'")] if ".." in target.split("/") else []


def validate_descending_path(target: str, path: str) -> list[FieldError]:
    errors = [fe.invalid(path, target, "must be a relative path")] if target.startswith("/") else []
    return [*errors, *validate_no_backsteps(target, path)]


def validate_non_reserved_path(target: str, path: str) -> list[FieldError]:
    """A file in a volume: below its root, and not one of the names that start with two dots."""
    errors = validate_descending_path(target, path)
    if target.startswith("..") and not target.startswith("../"):
        errors.append(fe.invalid(path, target, "must not start with '..'"))
    return errors


def validate_field_ref(selector: Json, path: str, supported: Sequence[str]) -> list[FieldError]:
    """A field of the pod itself, in a file or a variable."""
    field, version = selector.get("fieldPath", ""), selector.get("apiVersion", "")
    for name in ("apiVersion", "fieldPath"):
        if not selector.get(name):
            return [fe.required(f"{path}.{name}")]
    name, subscript = _split_subscript(field)
    if version != "v1" or (name not in _POD_FIELDS and field != "spec.host"):
        what = f"field label not supported: {field}" if version == "v1" else f"unsupported pod version: {version}"
        return [fe.invalid(f"{path}.fieldPath", field, f"error converting fieldPath: {what}")]
    if subscript is None:
        return [] if name in supported else [fe.not_supported(f"{path}.fieldPath", name, supported)]
    if name == "metadata.annotations":
        return list_invalid(path, subscript.lower(), find_qualified_name_problems)
    if name == "metadata.labels":
        return list_invalid(path, subscript, find_qualified_name_problems)
    return [fe.invalid(path, name, "does not support subscript")]


def _split_subscript(field: str) -> tuple[str, str | None]:
    """`metadata.labels['a']` → the field, and `a`."""
    if not field.endswith("']") or "['" not in field:
        return field, None
    name, _, subscript = field[:-2].partition("['")
    return (name, subscript) if name in _SUBSCRIPTED else (field, None)


def validate_resource_ref(selector: Json, path: str, *, needs_container: bool) -> list[FieldError]:
    resource = selector.get("resource", "")
    errors: list[FieldError] = []
    if needs_container and not selector.get("containerName"):
        errors.append(fe.required(f"{path}.containerName"))
    elif not resource:
        errors.append(fe.required(f"{path}.resource"))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        errors.append(fe.not_supported(f"{path}.resource", resource, _RESOURCES))
    return [*errors, *_validate_divisor(resource, selector.get("divisor", "0"), f"{path}.divisor")]


def _validate_divisor(resource: str, divisor: str, path: str) -> list[FieldError]:
    if not Quantity.parse(divisor):
        return []
    kind = resource.partition(".")[2]
    if kind == "cpu":
        if divisor in ("1m", "1"):
            return []
        return [fe.invalid(path, resource, "only divisor's values 1m and 1 are supported with the cpu resource")]
    names = {"memory": "memory", "ephemeral-storage": "local ephemeral storage"}
    called = "hugepages" if resource.startswith(_HUGE_PAGES) else names.get(kind)
    if called is None or divisor in _DIVISORS:
        return []
    listed = ", ".join(_DIVISORS)
    return [fe.invalid(path, resource, f"only divisor's values {listed} are supported with the {called} resource")]


def validate_key_ref(selector: Json, path: str) -> list[FieldError]:
    """One key of a ConfigMap or Secret."""
    errors = list_invalid(f"{path}.name", selector.get("name", ""), find_subdomain_problems)
    key = selector.get("key", "")
    return [
        *errors,
        *(list_invalid(f"{path}.key", key, find_config_key_problems) if key else [fe.required(f"{path}.key")]),
    ]
