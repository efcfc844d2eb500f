"""Validation of Nodes. Paths of taints begin with `metadata`: Kubernetes' do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.builtin.validation.affinity import validate_taints
from plimsoll.objects.builtin.validation.resources import validate_amount
from plimsoll.objects.builtin.validation.syntax import validate_cidr
from plimsoll.objects.schema import field_errors as fe

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

_PODS_CIDR_KEPT: Final = 'node updates may not change podCIDR except from "" to valid'
_PROVIDER_KEPT: Final = 'node updates may not change providerID except from "" to valid'


def validate_node(obj: Json) -> list[FieldError]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    errors = validate_taints(spec.get("taints", []), "metadata.taints")
    for field in ("capacity", "allocatable"):
        for name, amount in status.get(field, {}).items():
            errors += validate_amount(name, amount, f"status.{field}.{name}")
    return [*errors, *_validate_pod_cidrs(spec.get("podCIDRs", []))]


def _validate_pod_cidrs(cidrs: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for position, cidr in enumerate(cidrs):
        errors += validate_cidr(f"spec.podCIDRs[{position}]", cidr)
    families = [":" in cidr for cidr in cidrs]
    if len(cidrs) > 1 and (len(cidrs) > 2 or families[0] == families[1]):
        detail = "may specify no more than one CIDR for each IP family"
        errors.append(fe.invalid("spec.podCIDRs", cidrs, detail))
    seen: set[str] = set()
    for position, cidr in enumerate(cidrs):
        if cidr in seen:
            errors.append(fe.duplicate(f"spec.podCIDRs[{position}]", cidr))
        seen.add(cidr)
    return errors


def validate_node_update(new: Json, old: Json) -> list[FieldError]:
    spec, before = new["spec"], old["spec"]
    errors: list[FieldError] = []
    if before.get("podCIDRs") and spec.get("podCIDRs", []) != before["podCIDRs"]:
        errors.append(fe.forbidden("spec.podCIDRs", _PODS_CIDR_KEPT))
    if before.get("providerID") and spec.get("providerID", "") != before["providerID"]:
        errors.append(fe.forbidden("spec.providerID", _PROVIDER_KEPT))
    return errors
