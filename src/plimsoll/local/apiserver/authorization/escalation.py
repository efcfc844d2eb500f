"""The escalation checks: a write to a role or a binding must not grant more than the user's own permissions.

They run before such a write with the object and the place as they would be stored: the name in the body does not count.
The verbs `escalate` (on roles) and `bind` (on the role that is bound) and the group `system:masters` lift the checks,
as in Kubernetes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.auth_types import Attributes
from plimsoll.local.apiserver.authorization.forbidden import forbidden_object
from plimsoll.local.apiserver.authorization.groups import MASTERS
from plimsoll.local.apiserver.authorization.rules import ALL, Rule, compact, find_uncovered
from plimsoll.objects.schema.go_text import quote

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.local.apiserver.auth_types import User
    from plimsoll.local.apiserver.authorization.rbac import RbacAuthorizer

Json = dict[str, Any]

GROUP: Final = "rbac.authorization.k8s.io"
_ROLES: Final = frozenset({"roles", "clusterroles"})
_BINDINGS: Final = frozenset({"rolebindings", "clusterrolebindings"})
_BOUND: Final = {"Role": "roles", "ClusterRole": "clusterroles"}
_EVERYTHING: Final = (Rule(verbs=(ALL,), api_groups=(ALL,), resources=(ALL,)), Rule(verbs=(ALL,), urls=(ALL,)))
_NEEDS_EVERYTHING: Final = "must have cluster-admin privileges to use an aggregationRule"
# What the garbage collector and finalizers change, and what every write changes.
_METADATA_FIELDS: Final = frozenset({"ownerReferences", "finalizers", "managedFields", "resourceVersion"})


def check_escalation(
    authorizer: RbacAuthorizer, user: User, obj: Json, *, stored_as: str, namespace: str, old: Json | None = None
) -> status_errors.StatusError | None:
    """Why `user` may not write this role or binding, or None; `old` is what it replaces.

    `stored_as` is that of the resource that is written; resources that grant nothing are not checked.
    `namespace` is the request's: empty for the cluster's resources.
    """
    group, _, resource = stored_as.rpartition("/")
    if group != GROUP or MASTERS in user.groups or (old is not None and _is_metadata_only(obj, old)):
        return None
    if resource in _ROLES:
        return _check_role(authorizer, user, obj, resource=resource, namespace=namespace, old=old)
    if resource in _BINDINGS:
        return _check_binding(authorizer, user, obj, resource=resource, namespace=namespace)
    return None


def _check_role(
    authorizer: RbacAuthorizer, user: User, role: Json, *, resource: str, namespace: str, old: Json | None
) -> status_errors.StatusError | None:
    name = _get_name(role)
    escalate = Attributes(
        user=user,
        verb="escalate",
        group=GROUP,
        version="v1",
        resource=resource,
        namespace=namespace,
        # The name is taken from the address, and a new object's address has none.
        name="" if old is None else name,
    )
    if authorizer.decide(escalate).allowed:
        return None
    rules = [Rule.from_json(rule) for rule in role.get("rules") or ()]
    missing = _find_missing_rules(authorizer, user, rules, namespace=namespace)
    if missing is None and any(item is not None and item.get("aggregationRule") for item in (role, old)):
        missing = None if authorizer.covers(user, _EVERYTHING, namespace) else _NEEDS_EVERYTHING
    return None if missing is None else forbidden_object(missing, group=GROUP, resource=resource, name=name)


def _check_binding(
    authorizer: RbacAuthorizer, user: User, binding: Json, *, resource: str, namespace: str
) -> status_errors.StatusError | None:
    ref = binding.get("roleRef") or {}
    kind, role_name = ref.get("kind", ""), ref.get("name", "")
    if kind not in _BOUND:
        return None  # grants nothing, and validation refuses it
    bind = Attributes(
        user=user,
        verb="bind",
        group=GROUP,
        version=ALL,
        resource=_BOUND[kind],
        namespace=namespace,
        name=role_name,
    )
    if authorizer.decide(bind).allowed:
        return None
    rules = authorizer.find_role_rules(kind, role_name, namespace)
    if rules is None:
        return status_errors.not_found(role_name, group=GROUP, resource=kind.lower())
    missing = _find_missing_rules(authorizer, user, rules, namespace=namespace)
    if missing is None:
        return None
    return forbidden_object(missing, group=GROUP, resource=resource, name=_get_name(binding))


def _find_missing_rules(authorizer: RbacAuthorizer, user: User, rules: Iterable[Rule], *, namespace: str) -> str | None:
    """What the user would grant without having it, in a real server's words; None if there is nothing."""
    own = authorizer.resolve(user, namespace)
    missing = find_uncovered(own.rules, rules)
    if not missing:
        return None
    lines = "\n".join(sorted({rule.text for rule in compact(missing)}))
    groups = " ".join(map(quote, user.groups))
    text = f"user {quote(user.name)} (groups=[{groups}]) is attempting to grant RBAC permissions not currently held:"
    problems = f"; resolution errors: [{' '.join(own.problems)}]" if own.problems else ""
    return f"{text}\n{lines}{problems}"


def _is_metadata_only(new: Json, old: Json) -> bool:
    return _select_compared_fields(new) == _select_compared_fields(old)


def _select_compared_fields(obj: Json) -> Json:
    metadata = {name: value for name, value in (obj.get("metadata") or {}).items() if name not in _METADATA_FIELDS}
    return {**obj, "metadata": metadata}


def _get_name(obj: Json) -> str:
    name = (obj.get("metadata") or {}).get("name", "")
    return name if isinstance(name, str) else ""
