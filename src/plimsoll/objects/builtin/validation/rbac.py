"""Validation of roles and their bindings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.names import find_path_segment_problems, find_subdomain_problems
from plimsoll.objects.builtin.validation.affinity import validate_label_selector
from plimsoll.objects.schema import field_errors as fe
from plimsoll.objects.schema.field_errors import list_invalid
from plimsoll.objects.schema.go_text import GoStruct

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

GROUP: Final = "rbac.authorization.k8s.io"


def validate_role(obj: Json) -> list[FieldError]:
    return _validate_rule_list(obj.get("rules", []), namespaced=True)


def validate_cluster_role(obj: Json) -> list[FieldError]:
    errors = _validate_rule_list(obj.get("rules", []), namespaced=False)
    if "aggregationRule" in obj:
        selectors = obj["aggregationRule"].get("clusterRoleSelectors", [])
        if not selectors:
            detail = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            errors.append(fe.required("aggregationRule.clusterRoleSelectors", detail))
        for position, selector in enumerate(selectors):
            errors += validate_label_selector(selector, f"aggregationRule.clusterRoleSelectors[{position}]")
    return errors


def _validate_rule_list(rules: list[Json], *, namespaced: bool) -> list[FieldError]:
    return [
        error
        for position, rule in enumerate(rules)
        for error in _validate_rule(rule, f"rules[{position}]", namespaced=namespaced)
    ]


def _validate_rule(rule: Json, path: str, *, namespaced: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    if not rule.get("verbs"):
        errors.append(fe.required(f"{path}.verbs", "verbs must contain at least one value"))
    urls = rule.get("nonResourceURLs", [])
    if urls:
        if namespaced:
            detail = "namespaced rules cannot apply to non-resource URLs"
            errors.append(fe.invalid(f"{path}.nonResourceURLs", urls, detail))
        if rule.get("apiGroups") or rule.get("resources") or rule.get("resourceNames"):
            detail = "rules cannot apply to both regular resources and non-resource URLs"
            errors.append(fe.invalid(f"{path}.nonResourceURLs", urls, detail))
        return errors
    if not rule.get("apiGroups"):
        errors.append(fe.required(f"{path}.apiGroups", "resource rules must supply at least one api group"))
    if not rule.get("resources"):
        errors.append(fe.required(f"{path}.resources", "resource rules must supply at least one resource"))
    return errors


def validate_role_binding(obj: Json) -> list[FieldError]:
    return _validate_binding(obj, kinds=("Role", "ClusterRole"))


def validate_cluster_role_binding(obj: Json) -> list[FieldError]:
    return _validate_binding(obj, kinds=("ClusterRole",))


def _validate_binding(obj: Json, *, kinds: tuple[str, ...]) -> list[FieldError]:
    ref = obj.get("roleRef", {})
    group, kind, name = ref.get("apiGroup", ""), ref.get("kind", ""), ref.get("name", "")
    errors: list[FieldError] = []
    if group != GROUP:
        errors.append(fe.not_supported("roleRef.apiGroup", group, (GROUP,)))
    if kind not in kinds:
        errors.append(fe.not_supported("roleRef.kind", kind, kinds))
    errors += list_invalid("roleRef.name", name, find_path_segment_problems) if name else [fe.required("roleRef.name")]
    namespaced = len(kinds) > 1
    for position, subject in enumerate(obj.get("subjects", [])):
        errors += _validate_subject(subject, f"subjects[{position}]", namespaced=namespaced)
    return errors


def _validate_subject(subject: Json, path: str, *, namespaced: bool) -> list[FieldError]:
    kind, name, group = subject.get("kind", ""), subject.get("name", ""), subject.get("apiGroup", "")
    errors = [] if name else [fe.required(f"{path}.name")]
    if kind == "ServiceAccount":
        if name:
            errors += list_invalid(f"{path}.name", name, find_subdomain_problems)
        if group:
            errors.append(fe.not_supported(f"{path}.apiGroup", group, ("",)))
        if not namespaced and not subject.get("namespace"):
            errors.append(fe.required(f"{path}.namespace"))
    elif kind in ("User", "Group"):
        if not name:
            errors.append(fe.invalid(f"{path}.name", name, f"{kind.lower()} name cannot be empty"))
        if group != GROUP:
            errors.append(fe.not_supported(f"{path}.apiGroup", group, (GROUP,)))
    else:
        errors.append(fe.not_supported(f"{path}.kind", kind, ("ServiceAccount", "User", "Group")))
    return errors


def validate_binding_update(new: Json, old: Json) -> list[FieldError]:
    shown = [_print_ref(binding.get("roleRef", {})) for binding in (new, old)]
    return [] if shown[0].fields == shown[1].fields else [fe.invalid("roleRef", shown[0], "cannot change roleRef")]


def _print_ref(ref: Json) -> GoStruct:
    return GoStruct(
        fields={"APIGroup": ref.get("apiGroup", ""), "Kind": ref.get("kind", ""), "Name": ref.get("name", "")}
    )
