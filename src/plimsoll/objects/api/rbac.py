"""RBAC: roles, bindings and service accounts."""

# ruff: noqa: D101 - a struct means what the API type of the same name means; docstrings only where that surprises

from plimsoll.core.values import Wire
from plimsoll.objects.api.meta import LabelSelector, LocalObjectReference, ObjectReference, WireObject


class PolicyRule(Wire):
    """A policy rule, for resources or for URLs, not both. `*` in a list matches everything."""

    verbs: tuple[str, ...] = ()
    api_groups: tuple[str, ...] = ()
    resources: tuple[str, ...] = ()
    resource_names: tuple[str, ...] = ()
    non_resource_urls: tuple[str, ...] = ()


class Role(WireObject):
    rules: tuple[PolicyRule, ...] = ()


class AggregationRule(Wire):
    cluster_role_selectors: tuple[LabelSelector, ...] = ()


class ClusterRole(WireObject):
    rules: tuple[PolicyRule, ...] = ()
    aggregation_rule: AggregationRule | None = None


class RoleRef(Wire):
    api_group: str = ""
    kind: str = ""
    name: str = ""


class Subject(Wire):
    kind: str = ""
    api_group: str = ""
    name: str = ""
    namespace: str = ""


class RoleBinding(WireObject):
    role_ref: RoleRef = RoleRef()
    subjects: tuple[Subject, ...] = ()


class ClusterRoleBinding(WireObject):
    role_ref: RoleRef = RoleRef()
    subjects: tuple[Subject, ...] = ()


class ServiceAccount(WireObject):
    secrets: tuple[ObjectReference, ...] = ()
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    automount_service_account_token: bool | None = None
