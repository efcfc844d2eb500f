"""Validation of PodDisruptionBudgets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.builtin.validation.affinity import validate_label_selector
from plimsoll.objects.builtin.validation.amounts import validate_count_or_percent, validate_not_over_all
from plimsoll.objects.schema import field_errors as fe
from plimsoll.objects.schema.go_text import GoStruct

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

_EVICTION_POLICIES: Final = ("AlwaysAllow", "IfHealthyBudget")


def validate_budget(obj: Json) -> list[FieldError]:
    spec = obj.get("spec", {})
    errors: list[FieldError] = []
    if "minAvailable" in spec and "maxUnavailable" in spec:
        detail = "minAvailable and maxUnavailable cannot be both set"
        errors.append(fe.invalid("spec", _print_spec(spec), detail))
    for field in ("minAvailable", "maxUnavailable"):
        if field in spec:
            errors += validate_count_or_percent(spec[field], f"spec.{field}")
            errors += validate_not_over_all(spec[field], f"spec.{field}")
    policy = spec.get("unhealthyPodEvictionPolicy")
    if policy is not None and policy not in _EVICTION_POLICIES:
        errors.append(fe.not_supported("spec.unhealthyPodEvictionPolicy", policy, _EVICTION_POLICIES))
    return [*errors, *validate_label_selector(spec.get("selector"), "spec.selector")]


def _print_spec(spec: Json) -> GoStruct:
    return GoStruct(
        fields={
            "MinAvailable": spec.get("minAvailable"),
            "Selector": spec.get("selector"),
            "MaxUnavailable": spec.get("maxUnavailable"),
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
    )
