"""Validation of resource names and amounts: requests, limits, capacity.

Amounts are canonical strings after decoding, so they always parse.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.names import find_qualified_name_problems
from plimsoll.core.quantity import Quantity
from plimsoll.objects.schema import field_errors as fe
from plimsoll.objects.schema.field_errors import list_invalid

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

NOT_NEGATIVE: Final = "must be greater than or equal to 0"
_HUGE_PAGES: Final = "hugepages-"
_COUNTED: Final = frozenset(
    {
        "pods",
        "resourcequotas",
        "services",
        "replicationcontrollers",
        "secrets",
        "configmaps",
        "persistentvolumeclaims",
        "services.nodeports",
        "services.loadbalancers",
    }
)
_CONTAINER: Final = frozenset({"cpu", "memory", "ephemeral-storage"})
QUOTA_NAMES: Final = (
    _COUNTED
    | {f"{prefix}{name}" for prefix in ("", "requests.", "limits.") for name in ("cpu", "memory", "ephemeral-storage")}
    | {"requests.storage"}
)
_STANDARD: Final = QUOTA_NAMES | {"storage"}
_POD_LEVEL: Final = ("cpu", "memory")
_MOST_LISTED: Final = 100


def is_huge_page(name: str) -> bool:
    return name.startswith(_HUGE_PAGES)


def is_native(name: str) -> bool:
    """Kubernetes' own: no prefix, or one under kubernetes.io."""
    return "/" not in name or "kubernetes.io/" in name


def is_extended(name: str) -> bool:
    return (
        not is_native(name)
        and not name.startswith("requests.")
        and not find_qualified_name_problems(f"requests.{name}")
    )


def may_overcommit(name: str) -> bool:
    return is_native(name) and not is_huge_page(name)


def validate_name(name: str, path: str) -> list[FieldError]:
    errors = list_invalid(path, name, find_qualified_name_problems)
    quota_page = name.startswith((_HUGE_PAGES, f"requests.{_HUGE_PAGES}"))
    if not errors and "/" not in name and name not in _STANDARD and not quota_page:
        errors.append(fe.invalid(path, name, "must be a standard resource type or fully qualified"))
    return errors


def validate_container_name(name: str, path: str) -> list[FieldError]:
    errors = validate_name(name, path)
    if "/" not in name:
        if name not in _CONTAINER and not is_huge_page(name):
            errors.append(fe.invalid(path, name, "must be a standard resource for containers"))
    elif not is_native(name) and not is_extended(name):
        errors.append(fe.invalid(path, name, "doesn't follow extended resource name standard"))
    return errors


def validate_pod_name(name: str, path: str) -> list[FieldError]:
    errors = validate_name(name, path)
    if not errors and name not in _POD_LEVEL and not is_huge_page(name):
        errors.append(fe.not_supported(path, name, _POD_LEVEL))
    return errors


def validate_quota_name(name: str, path: str) -> list[FieldError]:
    errors = validate_name(name, path)
    quota_page = name.startswith((_HUGE_PAGES, f"requests.{_HUGE_PAGES}"))
    if "/" not in name and name not in QUOTA_NAMES and not quota_page:
        errors.append(fe.invalid(path, name, "must be a standard resource for quota"))
    return errors


def validate_amount(name: str, amount: str, path: str) -> list[FieldError]:
    value = Quantity.parse(amount)
    errors = [fe.invalid(path, amount, NOT_NEGATIVE)] if value.nano < 0 else []
    if (name in _COUNTED or is_extended(name)) and value.to_milli() % 1000:
        errors.append(fe.invalid(path, amount, "must be an integer"))
    return errors


def validate_requirements(
    resources: Json, path: str, *, name_rule: Callable[[str, str], list[FieldError]] = validate_container_name
) -> list[FieldError]:
    """Limits, then requests: each name and amount, and a request against its limit."""
    limits, requests = resources.get("limits", {}), resources.get("requests", {})
    errors: list[FieldError] = []
    for name, amount in limits.items():
        errors += _check_named_amount(name, amount, path=f"{path}.limits[{name}]", name_rule=name_rule)
    for name, amount in requests.items():
        here = f"{path}.requests[{name}]"
        errors += name_rule(name, here)
        errors += validate_amount(name, amount, here)
        errors += _validate_against_limit(name, amount, limit=limits.get(name), path=path)
        errors += _validate_huge_page(name, amount, here)
    named = limits.keys() | requests.keys()
    if any(map(is_huge_page, named)) and not {"cpu", "memory"} & named:
        errors.append(fe.forbidden(path, "HugePages require cpu or memory"))
    return errors


def _check_named_amount(
    name: str, amount: str, *, path: str, name_rule: Callable[[str, str], list[FieldError]]
) -> list[FieldError]:
    return [*name_rule(name, path), *validate_amount(name, amount, path), *_validate_huge_page(name, amount, path)]


def _validate_against_limit(name: str, amount: str, *, limit: str | None, path: str) -> list[FieldError]:
    if limit is None:
        if may_overcommit(name):
            return []
        return [fe.required(f"{path}.limits", "Limit must be set for non overcommitable resources")]
    requested, allowed = Quantity.parse(amount), Quantity.parse(limit)
    if requested != allowed and not may_overcommit(name):
        return [fe.invalid(f"{path}.requests", amount, f"must be equal to {name} limit of {limit}")]
    if requested > allowed:
        return [fe.invalid(f"{path}.requests", amount, f"must be less than or equal to {name} limit of {limit}")]
    return []


def _validate_huge_page(name: str, amount: str, path: str) -> list[FieldError]:
    if not is_huge_page(name):
        return []
    try:
        page = Quantity.parse(name.removeprefix(_HUGE_PAGES)).round_up()
    except InvalidQuantity:
        return [fe.invalid(path, amount, f"{amount} is not positive integer multiple of {name}")]
    if page <= 0 or Quantity.parse(amount).round_up() % page:
        return [fe.invalid(path, amount, f"{amount} is not positive integer multiple of {name}")]
    return []


def validate_claim_references(claims: list[Json], path: str, *, pod_claims: frozenset[str]) -> list[FieldError]:
    """The claims a container uses have to be the pod's, each once."""
    errors: list[FieldError] = []
    seen: set[str] = set()
    for position, claim in enumerate(claims):
        here, name = f"{path}[{position}]", claim.get("name", "")
        if not name:
            errors.append(fe.required(here))
            continue
        used = f"{name}/{claim['request']}" if claim.get("request") else name
        if name in seen or used in seen:
            errors.append(fe.duplicate(here, name if name in seen else used))
        seen.add(used)
        if name not in pod_claims:
            detail = f"must be one of the names in pod.spec.resourceClaims{_list_claims(pod_claims)}"
            errors.append(fe.FieldError(type=fe.ErrorType.NOT_FOUND, path=here, value=name, detail=detail))
    return errors


def _list_claims(pod_claims: frozenset[str]) -> str:
    if not pod_claims:
        return " which is empty"
    # Repeated in every error, a list of thousands would make the answer larger than any question.
    return f": {', '.join(sorted(pod_claims))}" if len(pod_claims) <= _MOST_LISTED else ""
