"""SubjectAccessReviews and SelfSubjectRulesReview: what a user may do."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.auth_types import Attributes, User
from plimsoll.local.apiserver.authorization.rbac import RbacAuthorizer, join_problems
from plimsoll.local.apiserver.reviews.bodies import build_response_head, set_managed_fields
from plimsoll.objects.schema import field_errors as fe
from plimsoll.objects.schema.go_text import GoStruct

if TYPE_CHECKING:
    from plimsoll.local.apiserver.request.context import RequestContext
    from plimsoll.local.apiserver.server import Server
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

GROUP: Final = "authorization.k8s.io"

_NOT_ONE: Final = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
_BOTH: Final = "cannot be specified in combination with resourceAttributes"
_NOBODY: Final = "at least one of user or group must be specified"


def review_own_access(server: Server, call: RequestContext, review: Json) -> Json:
    return _answer_access(server, call, review, user=call.user)


def review_access(server: Server, call: RequestContext, review: Json) -> Json:
    return _answer_access(server, call, review, user=None)


def _answer_access(server: Server, call: RequestContext, review: Json, *, user: User | None) -> Json:
    """`user` is whom it is about; None: the subject in the spec."""
    known = set_managed_fields(review, call, now=server.clock.now())
    spec = known.get("spec") or {}
    errors = _validate_access(known, names_subject=user is None, is_local=call.resource.namespaced)
    if errors:
        # The kind is missing in a real server's answer, too.
        raise status_errors.invalid("", group=GROUP, kind="", errors=errors)
    decision = server.authorizer.decide(_build_attributes(spec, user or _read_subject(spec)))
    status: Json = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    fields = ("resourceAttributes", "nonResourceAttributes", "user", "groups", "extra", "uid")
    return {
        **build_response_head(known, call),
        "spec": {field: spec[field] for field in fields if spec.get(field)},
        "status": status,
    }


def _validate_access(review: Json, *, names_subject: bool, is_local: bool) -> list[FieldError]:
    spec, metadata = review.get("spec") or {}, review.get("metadata") or {}
    resource, other = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    errors: list[FieldError] = []
    if resource is not None and other is not None:
        errors.append(fe.invalid("spec.nonResourceAttributes", other, _BOTH))
    if resource is None and other is None:
        errors.append(fe.invalid("spec.resourceAttributes", None, _NOT_ONE))
    if names_subject and not spec.get("user") and not spec.get("groups"):
        errors.append(fe.invalid("spec.user", "", _NOBODY))
    for selector in ("fieldSelector", "labelSelector"):
        errors += _validate_selector((resource or {}).get(selector), f"spec.resourceAttributes.{selector}")
    allowed = {"managedFields", "namespace"} if is_local else {"managedFields"}
    if any(value and name not in allowed for name, value in metadata.items()):
        detail = "must be empty except for namespace" if is_local else "must be empty"
        errors.append(fe.invalid("metadata", GoStruct(fields=metadata), detail))
    if is_local:
        namespace = (resource or {}).get("namespace", "")
        if resource is not None and namespace != metadata.get("namespace", ""):
            errors.append(fe.invalid("spec.resourceAttributes.namespace", namespace, "must match metadata.namespace"))
        if other is not None:
            errors.append(fe.invalid("spec.nonResourceAttributes", other, "disallowed on this kind of request"))
    return errors


def _validate_selector(selector: Json | None, path: str) -> list[FieldError]:
    if selector is None:
        return []
    raw, requirements = selector.get("rawSelector"), selector.get("requirements")
    if raw and requirements:
        return [fe.invalid(f"{path}.rawSelector", raw, "may not specified at the same time as requirements")]
    if not raw and not requirements:
        return [
            fe.required(f"{path}.requirements", f"when {path} is specified, requirements or rawSelector is required")
        ]
    return []


def _read_subject(spec: Json) -> User:
    extra = {key.lower(): tuple(values or ()) for key, values in (spec.get("extra") or {}).items()}
    return User(name=spec.get("user", ""), uid=spec.get("uid", ""), groups=tuple(spec.get("groups") or ()), extra=extra)


def _build_attributes(spec: Json, user: User) -> Attributes:
    resource = spec.get("resourceAttributes")
    if resource is None:
        other = spec["nonResourceAttributes"]
        path, verb = other.get("path", ""), other.get("verb", "")
        return Attributes(user=user, verb=verb, path=path, is_resource_request=False)
    return Attributes(
        user=user,
        verb=resource.get("verb", ""),
        group=resource.get("group", ""),
        version=resource.get("version", ""),
        resource=resource.get("resource", ""),
        subresource=resource.get("subresource", ""),
        namespace=resource.get("namespace", ""),
        name=resource.get("name", ""),
    )


def review_own_rules(server: Server, call: RequestContext, review: Json) -> Json:
    namespace = (review.get("spec") or {}).get("namespace", "")
    if not namespace:
        raise status_errors.bad_request("no namespace on request")
    assert isinstance(server.authorizer, RbacAuthorizer), "a rules review needs an authorizer that can list rules"
    found = server.authorizer.resolve(call.user, namespace)
    resource_rules: list[Json] = []
    other_rules: list[Json] = []
    for rule in found.rules:
        if rule.resources:
            shown = {"verbs": rule.verbs, "apiGroups": rule.api_groups, "resources": rule.resources}
            names = {"resourceNames": list(rule.names)} if rule.names else {}
            resource_rules.append({**{name: list(value) for name, value in shown.items()}, **names})
        if rule.urls:
            other_rules.append({"verbs": list(rule.verbs), "nonResourceURLs": list(rule.urls)})
    status: Json = {"resourceRules": resource_rules, "nonResourceRules": other_rules, "incomplete": False}
    if found.problems:
        status["evaluationError"] = join_problems(found.problems)
    return {**build_response_head({}, call), "spec": {}, "status": status}
