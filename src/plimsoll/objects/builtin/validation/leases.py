"""Validation of Leases."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.core.names import find_qualified_name_problems
from plimsoll.objects.builtin.validation.amounts import validate_not_negative
from plimsoll.objects.schema import field_errors as fe
from plimsoll.objects.schema.field_errors import list_invalid

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]


def validate_lease(obj: Json) -> list[FieldError]:
    spec = obj.get("spec", {})
    errors: list[FieldError] = []
    duration, strategy = spec.get("leaseDurationSeconds"), spec.get("strategy")
    if duration is not None and duration <= 0:
        errors.append(fe.invalid("spec.leaseDurationSeconds", duration, "must be greater than 0"))
    errors += validate_not_negative(spec, "spec", "leaseTransitions")
    # Kubernetes' path names the strategy twice.
    if strategy is not None and "/" in strategy:
        errors += list_invalid("spec.strategy.strategy", strategy, find_qualified_name_problems)
    elif strategy not in (None, "OldestEmulationVersion"):
        errors.append(fe.not_supported("spec.strategy.strategy", strategy, ("OldestEmulationVersion",)))
    if spec.get("preferredHolder") and not strategy:
        errors.append(fe.forbidden("spec.preferredHolder", "may only be specified if `strategy` is defined"))
    return errors


def validate_lease_update(new: Json, _old: Json) -> list[FieldError]:
    """Unlike most kinds, a Lease cannot be updated blindly."""
    version = new.get("metadata", {}).get("resourceVersion", "")
    return [] if version else [fe.invalid("metadata.resourceVersion", version, "must be specified for an update")]
