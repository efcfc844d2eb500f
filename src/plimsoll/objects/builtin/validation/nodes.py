"""Validation of Nodes. Paths of taints begin with `metadata`: Kubernetes' do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.builtin.validation.affinity import taint_errors
from plimsoll.objects.builtin.validation.resources import amount_errors
from plimsoll.objects.builtin.validation.syntax import cidr_errors
from plimsoll.objects.schema import field_errors as fe

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

_PODS_CIDR_KEPT: Final = 'node updates may not change podCIDR except from "" to valid'
_PROVIDER_KEPT: Final = 'node updates may not change providerID except from "" to valid'


def node_errors(obj: Json) -> list[FieldError]:
    spec, status = obj.get("spec", {}), obj.get("status", {})
    errors = taint_errors(spec.get("taints", []), "metadata.taints")
    for field in ("capacity", "allocatable"):
        for name, amount in status.get(field, {}).items():
            errors += amount_errors(name, amount, f"status.{field}.{name}")
    return [*errors, *_pod_cidr_errors(spec.get("podCIDRs", []))]


def _pod_cidr_errors(cidrs: list[str]) -> list[FieldError]:
    errors: list[FieldError] = []
    for position, cidr in enumerate(cidrs):
        errors += cidr_errors(f"spec.podCIDRs[{position}]", cidr)
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


def node_update_errors(new: Json, old: Json) -> list[FieldError]:
    spec, before = new["spec"], old["spec"]
    errors: list[FieldError] = []
    if before.get("podCIDRs") and spec.get("podCIDRs", []) != before["podCIDRs"]:
        errors.append(fe.forbidden("spec.podCIDRs", _PODS_CIDR_KEPT))
    if before.get("providerID") and spec.get("providerID", "") != before["providerID"]:
        errors.append(fe.forbidden("spec.providerID", _PROVIDER_KEPT))
    return errors
