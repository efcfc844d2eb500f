"""The roles and bindings of a new server, built from `roles_table`.

`admin`, `edit` and `view` contain the rules that their selectors pick, as a real cluster's controller writes them, for
readers of the object; the authorizer aggregates them itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.authorization.policies import Policies, Role
from plimsoll.local.apiserver.bootstrap import roles_table as table

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.local.apiserver.authorization.rules import Rule

Json = dict[str, Any]

_GROUP: Final = "rbac.authorization.k8s.io"
_AGGREGATE: Final = "rbac.authorization.k8s.io/aggregate-to-"


def build_access_objects() -> Iterator[Json]:
    """ClusterRoles, ClusterRoleBindings, Roles and RoleBindings."""
    yield from _aggregate_rules([*_iterate_aggregated_roles(), *_build_plain_roles()])
    for name, (role, subjects) in table.CLUSTER_BINDINGS.items():
        yield _build_binding("ClusterRoleBinding", name, role_kind="ClusterRole", role=role, subjects=subjects)
    for (namespace, name), rules in table.ROLES.items():
        yield _build_role("Role", name, rules=rules, namespace=namespace)
    for (namespace, name), (role, subjects) in table.BINDINGS.items():
        yield _build_binding("RoleBinding", name, role_kind="Role", role=role, subjects=subjects, namespace=namespace)


def _iterate_aggregated_roles() -> Iterator[Json]:
    for name, joins in table.AGGREGATED.items():
        selector = {"matchLabels": {f"{_AGGREGATE}{name}": "true"}}
        role = _build_role("ClusterRole", name, rules=(), joins=joins)
        yield {**role, "aggregationRule": {"clusterRoleSelectors": [selector]}}


def _build_plain_roles() -> Iterator[Json]:
    for name, rules in table.CLUSTER_ROLES.items():
        joins = name.removeprefix(table.PART_OF) if name.startswith(table.PART_OF) else ""
        yield _build_role("ClusterRole", name, rules=rules, joins=joins)


def _aggregate_rules(roles: list[Json]) -> Iterator[Json]:
    policies = Policies(map(Role.from_object, roles), ())
    for role in roles:
        rules = policies.find_role_rules("ClusterRole", role["metadata"]["name"], "") or ()
        yield {**role, "rules": [_write_rule(rule) for rule in rules]}


def _write_rule(rule: Rule) -> Json:
    fields = {
        "verbs": rule.verbs,
        "apiGroups": rule.api_groups,
        "resources": rule.resources,
        "resourceNames": rule.names,
        "nonResourceURLs": rule.urls,
    }
    return {name: list(values) for name, values in fields.items() if values}


def _build_role(kind: str, name: str, *, rules: tuple[Rule, ...], joins: str = "", namespace: str = "") -> Json:
    labels = {f"{_AGGREGATE}{joins}": "true"} if joins else {}
    metadata = _build_metadata(name, namespace=namespace, labels=labels)
    return {
        "kind": kind,
        "apiVersion": f"{_GROUP}/v1",
        "metadata": metadata,
        "rules": [_write_rule(rule) for rule in rules],
    }


def _build_binding(
    kind: str, name: str, *, role_kind: str, role: str, subjects: tuple[str, ...], namespace: str = ""
) -> Json:
    binding = {
        "kind": kind,
        "apiVersion": f"{_GROUP}/v1",
        "metadata": _build_metadata(name, namespace=namespace, labels={}),
        "roleRef": {"apiGroup": _GROUP, "kind": role_kind, "name": role},
    }
    return {**binding, "subjects": [_build_subject(subject) for subject in subjects]} if subjects else binding


def _build_subject(spelled: str) -> Json:
    kind, _, name = spelled.partition(" ")
    if kind != "ServiceAccount":
        return {"kind": kind, "apiGroup": _GROUP, "name": name}
    namespace, _, account = name.partition("/")
    return {"kind": kind, "name": account, "namespace": namespace}


def _build_metadata(name: str, *, namespace: str, labels: Json) -> Json:
    where = {"namespace": namespace} if namespace else {}
    return {
        "name": name,
        **where,
        "labels": {"kubernetes.io/bootstrapping": "rbac-defaults", **labels},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"},
    }
