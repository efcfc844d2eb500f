"""Validation of LimitRanges and ResourceQuotas."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.names import find_qualified_name_problems
from plimsoll.core.quantity import Quantity
from plimsoll.objects.builtin.validation import resources
from plimsoll.objects.schema import field_errors as fe
from plimsoll.objects.schema.admission.metadata_checks import IMMUTABLE
from plimsoll.objects.schema.field_errors import list_invalid

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

_LIMIT_TYPES: Final = ("Pod", "Container", "PersistentVolumeClaim")
_SCOPES: Final = frozenset(
    {
        "Terminating",
        "NotTerminating",
        "BestEffort",
        "NotBestEffort",
        "PriorityClass",
        "CrossNamespacePodAffinity",
        "VolumeAttributesClass",
    }
)
_MOST_SCOPES: Final = 100
_OPPOSITES: Final = (("BestEffort", "NotBestEffort"), ("Terminating", "NotTerminating"))
# (smaller, larger, key of the path, key of the printed value, message); in Kubernetes' order.
_ORDERS: Final = (
    ("min", "max", "min", "min", "min value {0} is greater than max value {1}"),
    (
        "min",
        "defaultRequest",
        "defaultRequest",
        "defaultRequest",
        "min value {0} is greater than default request value {1}",
    ),
    (
        "defaultRequest",
        "max",
        "defaultRequest",
        "defaultRequest",
        "default request value {0} is greater than max value {1}",
    ),
    (
        "defaultRequest",
        "default",
        "defaultRequest",
        "defaultRequest",
        "default request value {0} is greater than default limit value {1}",
    ),
    ("min", "default", "default", "min", "min value {0} is greater than default value {1}"),
    ("default", "max", "default", "max", "default value {0} is greater than max value {1}"),
)


def validate_limit_range(obj: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    kinds: set[str] = set()
    for position, limit in enumerate(obj.get("spec", {}).get("limits", [])):
        path, kind = f"spec.limits[{position}]", limit.get("type", "")
        found = list_invalid(f"{path}.type", kind, find_qualified_name_problems)
        if not found and "/" not in kind and kind not in _LIMIT_TYPES:
            found = [fe.invalid(f"{path}.type", kind, "must be a standard limit type or fully qualified")]
        errors += found
        if kind in kinds:
            errors.append(fe.duplicate(f"{path}.type", kind))
        kinds.add(kind)
        errors += _validate_limit(limit, path)
    return errors


def _validate_limit(limit: Json, path: str) -> list[FieldError]:
    kind = limit.get("type", "")
    rule = resources.validate_container_name if kind in ("Pod", "Container") else resources.validate_name
    errors: list[FieldError] = []
    for field in ("max", "min", "default", "defaultRequest"):
        if kind == "Pod" and field.startswith("default"):
            if limit.get(field):
                errors.append(fe.forbidden(f"{path}.{field}", "may not be specified when `type` is 'Pod'"))
            continue
        for name in limit.get(field, {}):
            errors += rule(name, f"{path}.{field}[{name}]")
    if kind == "PersistentVolumeClaim" and not any("storage" in limit.get(field, {}) for field in ("min", "max")):
        detail = "either minimum or maximum storage value is required, but neither was provided"
        errors.append(fe.required(f"{path}.limits", detail))
    for name in limit.get("maxLimitRequestRatio", {}):
        errors += rule(name, f"{path}.maxLimitRequestRatio[{name}]")
    named = dict.fromkeys(
        name for field in ("max", "min", "default", "defaultRequest") for name in limit.get(field, {})
    )
    for name in named:
        errors += _validate_limit_order(limit, name, path)
    for name, ratio in limit.get("maxLimitRequestRatio", {}).items():
        if Quantity.parse(ratio) < Quantity.from_int(1):
            here = f"{path}.maxLimitRequestRatio[{name}]"
            errors.append(fe.invalid(here, ratio, f"ratio {ratio} is less than 1"))
    return errors


def _validate_limit_order(limit: Json, name: str, path: str) -> list[FieldError]:
    amounts = {
        field: limit[field][name]
        for field in ("max", "min", "default", "defaultRequest")
        if name in limit.get(field, {})
    }
    if limit.get("type") == "Pod":
        amounts.pop("default", None)
        amounts.pop("defaultRequest", None)
    errors = [
        fe.invalid(f"{path}.{where}[{name}]", amounts[shown], sentence.format(amounts[smaller], amounts[larger]))
        for smaller, larger, where, shown, sentence in _ORDERS
        if smaller in amounts
        and larger in amounts
        and Quantity.parse(amounts[smaller]) > Quantity.parse(amounts[larger])
    ]
    if not resources.may_overcommit(name) and {"default", "defaultRequest"} <= amounts.keys():
        limit_amount, request = amounts["default"], amounts["defaultRequest"]
        if Quantity.parse(limit_amount) != Quantity.parse(request):
            detail = f"default value {limit_amount} must equal to defaultRequest value {request} in {name}"
            errors.append(fe.invalid(f"{path}.defaultRequest[{name}]", request, detail))
    return errors


def validate_quota(obj: Json) -> list[FieldError]:
    spec = obj.get("spec", {})
    errors: list[FieldError] = []
    for name, amount in spec.get("hard", {}).items():
        path = f"spec.hard[{name}]"
        errors += resources.validate_quota_name(name, path)
        errors += resources.validate_amount(name, amount, path)
    scopes = spec.get("scopes", [])
    # Each of these errors shows all scopes; a list of thousands gets one.
    unsupported = [scope for scope in scopes if scope not in _SCOPES]
    shown = unsupported if len(scopes) <= _MOST_SCOPES else unsupported[:1]
    errors += [fe.invalid("spec.scopes", scopes, "unsupported scope") for _ in shown]
    for pair in _OPPOSITES:
        if set(pair) <= set(scopes):
            errors.append(fe.invalid("spec.scopes", scopes, "conflicting scopes"))
    return errors


def validate_quota_update(new: Json, old: Json) -> list[FieldError]:
    scopes, before = new["spec"].get("scopes", []), old["spec"].get("scopes", [])
    return [] if set(scopes) == set(before) else [fe.invalid("spec.scopes", scopes, IMMUTABLE)]
