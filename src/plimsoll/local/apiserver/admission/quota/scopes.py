"""The scopes of a quota: which pods it covers. A quota with scopes covers nothing but pods."""

from __future__ import annotations

from typing import Any, Final

from plimsoll.core.values import Value
from plimsoll.objects.builtin.defaults.pods import compute_qos_class

Json = dict[str, Any]


class Scope(Value):
    """One scope, and for PriorityClass which classes."""

    name: str
    operator: str = "Exists"
    values: frozenset[str] = frozenset()


def read_scopes(quota: Json) -> tuple[Scope, ...]:
    spec = quota.get("spec") or {}
    plain = tuple(Scope(name=name) for name in spec.get("scopes") or ())
    selected = (spec.get("scopeSelector") or {}).get("matchExpressions") or ()
    return plain + tuple(
        Scope(
            name=item.get("scopeName", ""),
            operator=item.get("operator", "Exists"),
            values=frozenset(item.get("values") or ()),
        )
        for item in selected
    )


def is_in_scope(stored_as: str, obj: Json, scopes: tuple[Scope, ...]) -> bool:
    if not scopes:
        return True
    return stored_as == "pods" and all(_matches(obj["spec"], scope) for scope in scopes)


def _matches(spec: Json, scope: Scope) -> bool:
    if scope.name == "PriorityClass":
        return _matches_class(spec.get("priorityClassName") or "", scope)
    rule = _RULES.get(scope.name)
    return rule is not None and rule(spec)


def _matches_class(name: str, scope: Scope) -> bool:
    if scope.operator == "In":
        return name in scope.values
    if scope.operator == "NotIn":
        return name not in scope.values
    return bool(name) is (scope.operator == "Exists")


def _is_terminating(spec: Json) -> bool:
    """Kubernetes' word for a pod whose end is fixed, not for one that is being deleted."""
    return spec.get("activeDeadlineSeconds") is not None


def _is_best_effort(spec: Json) -> bool:
    return compute_qos_class(spec) == "BestEffort"


def _selects_other_namespaces(spec: Json) -> bool:
    """Whether affinity looks into other namespaces."""
    affinity = spec.get("affinity") or {}
    terms: list[Json] = []
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        terms += rules.get("requiredDuringSchedulingIgnoredDuringExecution") or []
        weighted = rules.get("preferredDuringSchedulingIgnoredDuringExecution") or []
        terms += [item.get("podAffinityTerm") or {} for item in weighted]
    return any(term.get("namespaces") or term.get("namespaceSelector") is not None for term in terms)


_RULES: Final = {
    "Terminating": _is_terminating,
    "NotTerminating": lambda spec: not _is_terminating(spec),
    "BestEffort": _is_best_effort,
    "NotBestEffort": lambda spec: not _is_best_effort(spec),
    "CrossNamespacePodAffinity": _selects_other_namespaces,
}
