"""Permissions as data: what a controller must be allowed to do, where, and why.

Each subsystem lists its own (`requirements`), and `access_reviews` checks them against a server. The same value gives
the reviews (one per verb, as in `SelfSubjectAccessReview`) and the RBAC rule that would grant them, so advice cannot
differ from the check.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

RBAC_GROUP: Final = "rbac.authorization.k8s.io"
_SERVICE_ACCOUNT: Final = "system:serviceaccount:"


class Scope(StrEnum):
    """The objects that a permission covers."""

    EVERYWHERE = "everywhere"
    """Cluster-scoped objects, or objects of all namespaces."""
    WATCHED = "watched"
    """In the namespaces the controller manages: all, or the configured one."""
    WITH_OBJECTS = "with objects"
    """Only where there are objects to manage: in the configured namespace, else in those that hold such objects.

    For secrets: a controller that manages all namespaces need not be able to read the secrets of all.
    """
    OWN_NAMESPACE = "home"
    """In the namespace of the controller itself: its own lease."""
    ONE = "one"
    """In a namespace that is always the same."""


def get_service_account_namespace(user: str) -> str:
    """The namespace of a ServiceAccount; empty: the user is none."""
    if not user.startswith(_SERVICE_ACCOUNT):
        return ""
    return user.removeprefix(_SERVICE_ACCOUNT).partition(":")[0]


class Namespaces(Value):
    """The namespaces of the scopes in one run."""

    own: str = "default"
    watched: str = ""
    """Empty: all namespaces."""
    used: tuple[str, ...] = ()
    """The namespaces that hold objects of the controller, if it manages all namespaces."""


class AccessQuestion(Value):
    """One verb on one resource: what a `SelfSubjectAccessReview` asks. Equal ones are asked once."""

    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    """Empty: of the whole cluster."""
    name: str = ""
    """Empty: whatever its name."""

    @property
    def target(self) -> str:
        """`pods/eviction`, `leases.coordination.k8s.io`: as kubectl writes it."""
        resource = f"{self.resource}.{self.group}" if self.group else self.resource
        return f"{resource}/{self.subresource}" if self.subresource else resource

    def __str__(self) -> str:
        named = f" {self.name}" if self.name else ""
        return f"{self.verb} {self.target}{named} in {self.namespace or 'the whole cluster'}"


class Permission(Value):
    """Verbs on a resource that a controller needs, with the reason."""

    group: str
    resource: str
    verbs: tuple[str, ...]
    why: str
    subresource: str = ""
    scope: Scope = Scope.EVERYWHERE
    namespace: str = ""
    """The namespace of `Scope.ONE`."""
    names: tuple[str, ...] = ()
    """Only these objects; `create` cannot be limited so."""

    @property
    def path(self) -> str:
        """The resource as RBAC rules and discovery name it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource

    def list_namespaces(self, namespaces: Namespaces) -> tuple[str, ...]:
        """The namespaces it must hold in; an empty name is the whole cluster."""
        match self.scope:
            case Scope.EVERYWHERE:
                return ("",)
            case Scope.WATCHED:
                return (namespaces.watched,)
            case Scope.WITH_OBJECTS:
                return (namespaces.watched,) if namespaces.watched else namespaces.used
            case Scope.OWN_NAMESPACE:
                return (namespaces.own,)
            case Scope.ONE:
                return (self.namespace,)

    def list_questions(self, namespaces: Namespaces) -> Iterator[AccessQuestion]:
        for namespace in self.list_namespaces(namespaces):
            for name in self.names or ("",):
                for verb in self.verbs:
                    yield AccessQuestion(
                        verb=verb,
                        group=self.group,
                        resource=self.resource,
                        subresource=self.subresource,
                        namespace=namespace,
                        name=name,
                    )

    def build_rule(self) -> dict[str, Any]:
        """The RBAC rule that grants it."""
        named = {"resourceNames": list(self.names)} if self.names else {}
        return {"apiGroups": [self.group], "resources": [self.path], **named, "verbs": list(self.verbs)}


def select_missing(
    permission: Permission, missing: Iterable[AccessQuestion], namespaces: Namespaces
) -> Iterator[Permission]:
    """What of it is not granted, for each namespace it is not granted in."""
    known = set(missing)
    for namespace in permission.list_namespaces(namespaces):
        here = replace(permission, scope=Scope.ONE, namespace=namespace)
        lacking = known.intersection(here.list_questions(namespaces))
        verbs = tuple(verb for verb in permission.verbs if any(question.verb == verb for question in lacking))
        names = tuple(name for name in permission.names if any(question.name == name for question in lacking))
        if verbs:
            yield replace(here, verbs=verbs, names=names)


def build_role_manifests(
    permissions: Iterable[Permission], *, role: str, user: str, namespaces: Namespaces
) -> tuple[dict[str, Any], ...]:
    """Roles with these permissions and bindings of them to the user, ready to be applied.

    A role for the whole cluster and one for each namespace: what is needed in one place is not granted in others.
    """
    rules: dict[str, list[dict[str, Any]]] = {}
    for permission in permissions:
        for namespace in permission.list_namespaces(namespaces):
            rules.setdefault(namespace, []).append(permission.build_rule())
    return tuple(
        manifest
        for namespace in sorted(rules)
        for manifest in _build_role_and_binding(rules[namespace], role=role, user=user, namespace=namespace)
    )


def _build_role_and_binding(
    rules: list[dict[str, Any]], *, role: str, user: str, namespace: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    kind = "Role" if namespace else "ClusterRole"
    metadata = {"name": role, **({"namespace": namespace} if namespace else {})}
    shared = {"apiVersion": f"{RBAC_GROUP}/v1", "metadata": metadata}
    reference = {"apiGroup": RBAC_GROUP, "kind": kind, "name": role}
    return (
        {**shared, "kind": kind, "rules": rules},
        {**shared, "kind": f"{kind}Binding", "roleRef": reference, "subjects": [build_subject(user)]},
    )


def build_subject(user: str) -> dict[str, str]:
    """How a binding names the user: service accounts have a form of their own."""
    if user.startswith(_SERVICE_ACCOUNT) and user.count(":") == 3:
        namespace, _, name = user.removeprefix(_SERVICE_ACCOUNT).partition(":")
        return {"kind": "ServiceAccount", "name": name, "namespace": namespace}
    return {"apiGroup": RBAC_GROUP, "kind": "User", "name": user}
