"""Validation of where pods may go: selectors, affinity, spread constraints, tolerations and taints.

Judges what is written, never where a pod would land;
that is `scheduling`'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.names import (
    find_dns1123_label_problems,
    find_label_value_problems,
    find_qualified_name_problems,
    find_subdomain_problems,
)
from plimsoll.objects.schema import field_errors as fe
from plimsoll.objects.schema import go_text
from plimsoll.objects.schema.admission.metadata_checks import validate_labels
from plimsoll.objects.schema.field_errors import list_invalid

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

_EFFECTS: Final = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_REQUIRED_TERMS: Final = "requiredDuringSchedulingIgnoredDuringExecution"
_PREFERRED_TERMS: Final = "preferredDuringSchedulingIgnoredDuringExecution"
_VALUES_NEEDED: Final = "must be specified when `operator` is 'In' or 'NotIn'"
_VALUES_FORBIDDEN: Final = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
_BAD_OPERATOR: Final = "not a valid selector operator"
_NO_SELECTOR: Final = "must not be specified when labelSelector is not set"
_IN_BOTH: Final = "exists in both matchLabelKeys and labelSelector"


def validate_label_selector(selector: Json | None, path: str) -> list[FieldError]:
    if selector is None:
        return []
    errors = validate_labels(selector.get("matchLabels", {}), f"{path}.matchLabels")
    for position, expression in enumerate(selector.get("matchExpressions", [])):
        errors += _validate_expression(expression, f"{path}.matchExpressions[{position}]")
    return errors


def _validate_expression(expression: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    operator, values = expression.get("operator", ""), expression.get("values", [])
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(fe.required(f"{path}.values", _VALUES_NEEDED))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.append(fe.forbidden(f"{path}.values", _VALUES_FORBIDDEN))
    else:
        errors.append(fe.invalid(f"{path}.operator", operator, _BAD_OPERATOR))
    errors += list_invalid(f"{path}.key", expression.get("key", ""), find_qualified_name_problems)
    for position, value in enumerate(values):
        errors += list_invalid(f"{path}.values[{position}]", value, find_label_value_problems)
    return errors


def validate_node_selector(selector: Json, path: str) -> list[FieldError]:
    terms = selector.get("nodeSelectorTerms", [])
    if not terms:
        return [fe.required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    return [
        error
        for position, term in enumerate(terms)
        for error in _validate_node_term(term, f"{path}.nodeSelectorTerms[{position}]", strict=True)
    ]


def _validate_node_term(term: Json, path: str, *, strict: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for position, expression in enumerate(term.get("matchExpressions", [])):
        errors += _validate_node_expression(expression, f"{path}.matchExpressions[{position}]", strict=strict)
    for position, expression in enumerate(term.get("matchFields", [])):
        errors += _validate_node_field(expression, f"{path}.matchFields[{position}]")
    return errors


def _validate_node_expression(expression: Json, path: str, *, strict: bool) -> list[FieldError]:
    """`strict`: label values have to be ones; in preferences they need not, for old times' sake."""
    errors: list[FieldError] = []
    operator, values = expression.get("operator", ""), expression.get("values", [])
    if operator in ("In", "NotIn"):
        if not values:
            errors.append(fe.required(f"{path}.values", _VALUES_NEEDED))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            errors.append(fe.forbidden(f"{path}.values", _VALUES_FORBIDDEN))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            detail = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            errors.append(fe.required(f"{path}.values", detail))
    else:
        errors.append(fe.invalid(f"{path}.operator", operator, _BAD_OPERATOR))
    errors += list_invalid(f"{path}.key", expression.get("key", ""), find_qualified_name_problems)
    for position, value in enumerate(values if strict else []):
        errors += list_invalid(f"{path}.values[{position}]", value, find_label_value_problems)
    return errors


def _validate_node_field(expression: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    operator, values, key = expression.get("operator", ""), expression.get("values", []), expression.get("key", "")
    if operator not in ("In", "NotIn"):
        errors.append(fe.invalid(f"{path}.operator", operator, _BAD_OPERATOR))
    elif len(values) != 1:
        detail = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        errors.append(fe.required(f"{path}.values", detail))
    if key != "metadata.name":
        return [*errors, fe.invalid(f"{path}.key", key, "not a valid field selector key")]
    for position, value in enumerate(values):
        errors += list_invalid(f"{path}.values[{position}]", value, find_subdomain_problems)
    return errors


def validate_affinity(affinity: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    node = affinity.get("nodeAffinity", {})
    if _REQUIRED_TERMS in node:
        errors += validate_node_selector(node[_REQUIRED_TERMS], f"{path}.nodeAffinity.{_REQUIRED_TERMS}")
    for position, preference in enumerate(node.get(_PREFERRED_TERMS, [])):
        here = f"{path}.nodeAffinity.{_PREFERRED_TERMS}[{position}]"
        errors += _validate_weight(preference, here)
        errors += _validate_node_term(preference.get("preference", {}), f"{here}.preference", strict=False)
    for name in ("podAffinity", "podAntiAffinity"):
        errors += _validate_pod_affinity(affinity.get(name, {}), f"{path}.{name}")
    return errors


def _validate_pod_affinity(affinity: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for position, term in enumerate(affinity.get(_REQUIRED_TERMS, [])):
        errors += _validate_pod_term(term, f"{path}.{_REQUIRED_TERMS}[{position}]")
    for position, preference in enumerate(affinity.get(_PREFERRED_TERMS, [])):
        here = f"{path}.{_PREFERRED_TERMS}[{position}]"
        errors += _validate_weight(preference, here)
        errors += _validate_pod_term(preference.get("podAffinityTerm", {}), f"{here}.podAffinityTerm")
    return errors


def _validate_weight(preference: Json, path: str) -> list[FieldError]:
    weight = preference.get("weight", 0)
    return [] if 1 <= weight <= 100 else [fe.invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _validate_pod_term(term: Json, path: str) -> list[FieldError]:
    selector = term.get("labelSelector")
    errors = validate_label_selector(selector, f"{path}.labelSelector")
    errors += validate_label_selector(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for namespace in term.get("namespaces", []):
        errors += list_invalid(f"{path}.namespace", namespace, find_dns1123_label_problems)
    matching, differing = term.get("matchLabelKeys", []), term.get("mismatchLabelKeys", [])
    for name, keys in (("matchLabelKeys", matching), ("mismatchLabelKeys", differing)):
        errors += _validate_label_keys(keys, f"{path}.{name}", has_selector=selector is not None)
    errors += _check_selected_twice(matching, selector or {}, path)
    unwanted = set(differing)
    for position, key in enumerate(matching):
        if key in unwanted:
            detail = "exists in both matchLabelKeys and mismatchLabelKeys"
            errors.append(fe.invalid(f"{path}.matchLabelKeys[{position}]", key, detail))
    topology_key = term.get("topologyKey", "")
    if not topology_key:
        errors.append(fe.required(f"{path}.topologyKey", "can not be empty"))
    return [*errors, *list_invalid(f"{path}.topologyKey", topology_key, find_qualified_name_problems)]


def _validate_label_keys(keys: list[str], path: str, *, has_selector: bool) -> list[FieldError]:
    if keys and not has_selector:
        return [fe.forbidden(path, _NO_SELECTOR)]
    return [
        error
        for position, key in enumerate(keys)
        for error in list_invalid(f"{path}[{position}]", key, find_qualified_name_problems)
    ]


def _check_selected_twice(keys: list[str], selector: Json, path: str) -> list[FieldError]:
    """Kubernetes has merged the keys into the selector's expressions, after the user's own, before it validates."""
    selected = set(selector.get("matchLabels", {}))
    selected.update(expression.get("key", "") for expression in selector.get("matchExpressions", []))
    return [fe.invalid(f"{path}[{position}]", key, _IN_BOTH) for position, key in enumerate(keys) if key in selected]


def validate_spread_constraints(constraints: list[Json], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    kinds = [(constraint.get("topologyKey", ""), constraint.get("whenUnsatisfiable", "")) for constraint in constraints]
    last_of_kind = {kind: position for position, kind in enumerate(kinds)}
    for position, constraint in enumerate(constraints):
        here = f"{path}[{position}]"
        errors += _validate_spread_basics(constraint, here)
        if last_of_kind[kinds[position]] > position:
            key, action = kinds[position]
            errors.append(fe.duplicate(f"{here}.{{topologyKey, whenUnsatisfiable}}", f"{{{key}, {action}}}"))
        errors += _validate_min_domain(constraint, here)
        for name in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            if constraint.get(name, "Honor") not in ("Honor", "Ignore"):
                errors.append(fe.not_supported(f"{here}.{name}", constraint[name], ("Honor", "Ignore")))
        errors += _validate_spread_key(constraint, here)
        errors += validate_label_selector(constraint.get("labelSelector"), f"{here}.labelSelector")
    return errors


def _validate_spread_basics(constraint: Json, path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    skew, action = constraint.get("maxSkew", 0), constraint.get("whenUnsatisfiable", "")
    if skew <= 0:
        errors.append(fe.invalid(f"{path}.maxSkew", skew, "must be greater than zero"))
    if not constraint.get("topologyKey"):
        errors.append(fe.required(f"{path}.topologyKey", "can not be empty"))
    if action not in ("DoNotSchedule", "ScheduleAnyway"):
        errors.append(fe.not_supported(f"{path}.whenUnsatisfiable", action, ("DoNotSchedule", "ScheduleAnyway")))
    return errors


def _validate_min_domain(constraint: Json, path: str) -> list[FieldError]:
    domains, action = constraint.get("minDomains"), constraint.get("whenUnsatisfiable", "")
    if domains is None:
        return []
    errors = [fe.invalid(f"{path}.minDomains", domains, "must be greater than zero")] if domains <= 0 else []
    if action != "DoNotSchedule":
        detail = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
        errors.append(fe.invalid(f"{path}.minDomains", domains, detail))
    return errors


def _validate_spread_key(constraint: Json, path: str) -> list[FieldError]:
    keys, selector = constraint.get("matchLabelKeys", []), constraint.get("labelSelector")
    errors = [fe.forbidden(f"{path}.matchLabelKeys", _NO_SELECTOR)] if keys and selector is None else []
    selected = set((selector or {}).get("matchLabels", {}))
    selected.update(expression.get("key", "") for expression in (selector or {}).get("matchExpressions", []))
    for position, key in enumerate(keys):
        here = f"{path}.matchLabelKeys[{position}]"
        errors += list_invalid(here, key, find_qualified_name_problems)
        if key in selected:
            errors.append(fe.invalid(here, key, _IN_BOTH))
    return errors


def validate_tolerations(tolerations: list[Json], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for position, toleration in enumerate(tolerations):
        errors += _validate_toleration(toleration, f"{path}[{position}]")
    return errors


def _validate_toleration(toleration: Json, path: str) -> list[FieldError]:
    key, operator = toleration.get("key", ""), toleration.get("operator", "")
    value, effect = toleration.get("value", ""), toleration.get("effect", "")
    errors = list_invalid(f"{path}.key", key, find_qualified_name_problems) if key else []
    if not key and operator != "Exists":
        detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
        errors.append(fe.invalid(f"{path}.operator", operator, detail))
    if "tolerationSeconds" in toleration and effect != "NoExecute":
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        errors.append(fe.invalid(f"{path}.effect", effect, detail))
    if operator in ("Equal", ""):
        problems = find_label_value_problems(value)
        if problems:
            errors.append(fe.invalid(f"{path}.operator", value, ";".join(problems)))
    elif operator == "Exists":
        if value:
            detail = "value must be empty when `operator` is 'Exists'"
            errors.append(fe.invalid(f"{path}.operator", value, detail))
    else:
        errors.append(fe.not_supported(f"{path}.operator", operator, ("Equal", "Exists")))
    if effect and effect not in _EFFECTS:
        errors.append(fe.not_supported(f"{path}.effect", effect, _EFFECTS))
    return errors


def validate_taints(taints: list[Json], path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[tuple[str, str]] = set()
    for position, taint in enumerate(taints):
        here, key = f"{path}[{position}]", taint.get("key", "")
        value, effect = taint.get("value", ""), taint.get("effect", "")
        errors += list_invalid(f"{here}.key", key, find_qualified_name_problems)
        problems = find_label_value_problems(value)
        if problems:
            errors.append(fe.invalid(f"{here}.value", value, ";".join(problems)))
        if not effect:
            errors.append(fe.required(f"{here}.effect"))
        elif effect not in _EFFECTS:
            errors.append(fe.not_supported(f"{here}.effect", effect, _EFFECTS))
        if (key, effect) in seen:
            shown = go_text.GoStruct(
                fields={"Key": key, "Value": value, "Effect": effect, "TimeAdded": taint.get("timeAdded")}
            )
            detail = "taints must be unique by key and effect pair"
            errors.append(fe.FieldError(type=fe.ErrorType.DUPLICATE, path=here, value=shown, detail=detail))
        seen.add((key, effect))
    return errors
