"""For tests about permissions: roles, bindings and users with defaults, and a world that holds them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.auth_types import Attributes, User
from plimsoll.local.apiserver.authorization import RbacAuthorizer

if TYPE_CHECKING:
    from collections.abc import Iterable

Json = dict[str, Any]

GROUP = "rbac.authorization.k8s.io"
_RESOURCES = {
    "Role": f"{GROUP}/roles",
    "ClusterRole": f"{GROUP}/clusterroles",
    "RoleBinding": f"{GROUP}/rolebindings",
    "ClusterRoleBinding": f"{GROUP}/clusterrolebindings",
}

BOB = User(name="bob", groups=("dev", "system:authenticated"))
ADMIN = User(name="admin", groups=("system:masters", "system:authenticated"))


def rule(verbs: str, resources: str = "", *, of: str = "", named: str = "", urls: str = "") -> Json:
    if urls:
        return {"verbs": verbs.split(), "nonResourceURLs": urls.split()}
    made = {"verbs": verbs.split(), "apiGroups": of.split(",") if of else [""], "resources": resources.split()}
    return {**made, "resourceNames": named.split()} if named else made


def role(name: str = "r", *rules: Json, namespace: str = "default") -> Json:
    return _object("Role", {"name": name, "namespace": namespace}, rules=list(rules))


def cluster_role(name: str = "cr", *rules: Json, labels: Json | None = None, picks: Json | None = None) -> Json:
    """`picks` are the labels of the roles that it is made of."""
    made = _object("ClusterRole", {"name": name, "labels": labels or {}}, rules=list(rules))
    if picks is not None:
        made["aggregationRule"] = {"clusterRoleSelectors": [{"matchLabels": picks}]}
    return made


def binding(name: str, to: str, *subjects: str, namespace: str = "default") -> Json:
    """`to` is `Role/r` or `ClusterRole/cr`; a subject is `User bob`, `Group dev` or `ServiceAccount ns/name`."""
    return _object("RoleBinding", {"name": name, "namespace": namespace}, **_bound(to, subjects))


def cluster_binding(name: str, to: str, *subjects: str) -> Json:
    return _object("ClusterRoleBinding", {"name": name}, **_bound(to, subjects))


def _object(kind: str, metadata: Json, **fields: Any) -> Json:
    return {"kind": kind, "apiVersion": f"{GROUP}/v1", "metadata": metadata, **fields}


def _bound(to: str, subjects: Iterable[str]) -> Json:
    kind, _, name = to.partition("/")
    return {
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": name},
        "subjects": [_subject(subject) for subject in subjects],
    }


def _subject(spelled: str) -> Json:
    kind, _, name = spelled.partition(" ")
    if kind != "ServiceAccount":
        return {"kind": kind, "apiGroup": GROUP, "name": name}
    namespace, _, account = name.rpartition("/")
    return {"kind": kind, "name": account, **({"namespace": namespace} if namespace else {})}


class AuthorizerHarness:
    """Roles and bindings that come and go, and an authorizer that looks at them."""

    def __init__(self, *objects: Json) -> None:
        self._objects: dict[tuple[str, str, str], Json] = {}
        self._writes = 0
        for object_ in objects:
            self.put(object_)
        self.authorizer = RbacAuthorizer(self.read)

    def put(self, obj: Json) -> None:
        self._writes += 1
        metadata = {**obj["metadata"], "resourceVersion": str(self._writes)}
        self._objects[self._place(obj)] = {**obj, "metadata": metadata}

    def get(self, obj: Json) -> Json | None:
        """What is stored under the kind and name of `obj`."""
        return self._objects.get(self._place(obj))

    def remove(self, obj: Json) -> None:
        self._objects.pop(self._place(obj), None)

    def read(self, resource: str, namespace: str | None) -> list[Json]:
        return [
            item
            for (kind, place, _), item in sorted(self._objects.items())
            if _RESOURCES[kind] == resource and namespace in (None, place)
        ]

    def allows(self, user: User, verb: str, resource: str, **more: Any) -> bool:
        return self.authorizer.decide(wish(user, verb, resource, **more)).allowed

    def _place(self, obj: Json) -> tuple[str, str, str]:
        return obj["kind"], obj["metadata"].get("namespace", ""), obj["metadata"]["name"]


def wish(user: User, verb: str, resource: str, **more: Any) -> Attributes:
    """`resource` may be `pods/log`."""
    plural, _, subresource = resource.partition("/")
    return Attributes(user=user, verb=verb, resource=plural, subresource=subresource, **more)


def visit(user: User, path: str, verb: str = "get") -> Attributes:
    return Attributes(user=user, verb=verb, path=path, is_resource_request=False)
