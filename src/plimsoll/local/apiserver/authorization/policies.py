"""All roles and bindings at one moment, indexed so that a decision reads only the bindings of its user.

Immutable. A ClusterRole with an aggregation rule has the rules of the roles its selectors match, found on first use. No
controller writes them into the object, so the rules in the object itself do not count, just as a controller would
overwrite them.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plimsoll.core.errors import InvalidSelector
from plimsoll.core.selectors import LabelSelector, parse_requirement
from plimsoll.local.apiserver.authorization.rules import Rule
from plimsoll.objects.schema.go_text import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from plimsoll.local.apiserver.auth_types import User

Json = dict[str, Any]
_GROUP: Final = "rbac.authorization.k8s.io"
_SERVICE_ACCOUNT: Final = "system:serviceaccount"


class Role(NamedTuple):
    """A Role, or (without a namespace) a ClusterRole; `selectors` is set if it aggregates others."""

    namespace: str
    name: str
    rules: tuple[Rule, ...]
    labels: Mapping[str, str] = {}
    selectors: tuple[LabelSelector, ...] | None = None

    @classmethod
    def from_object(cls, obj: Json) -> Role:
        metadata = obj["metadata"]
        aggregation = obj.get("aggregationRule")
        return cls(
            namespace=metadata.get("namespace", ""),
            name=metadata["name"],
            rules=tuple(map(Rule.from_json, obj.get("rules") or ())),
            labels=metadata.get("labels") or {},
            selectors=None if aggregation is None else _parse_selectors(aggregation),
        )


class Binding(NamedTuple):
    """A RoleBinding, or (without a namespace) a ClusterRoleBinding."""

    namespace: str
    name: str
    role_kind: str
    role_name: str
    subjects: tuple[tuple[str, str], ...]
    """What a subject is called in the index, and what reasons call it; subjects without a name are left out."""

    @classmethod
    def from_object(cls, obj: Json) -> Binding:
        metadata, ref = obj["metadata"], obj.get("roleRef") or {}
        namespace = metadata.get("namespace", "")
        subjects = (_parse_subject(item, namespace) for item in obj.get("subjects") or ())
        return cls(
            namespace=namespace,
            name=metadata["name"],
            role_kind=ref.get("kind", ""),
            role_name=ref.get("name", ""),
            subjects=tuple(subject for subject in subjects if subject is not None),
        )

    def format_reason(self, subject: str) -> str:
        kind, name = "ClusterRoleBinding", self.name
        if self.namespace:
            kind, name = "RoleBinding", f"{self.name}/{self.namespace}"
        return f"{kind} {quote(name)} of {self.role_kind} {quote(self.role_name)} to {subject}"


class Grant(NamedTuple):
    """A binding that applies to a user, and the description of the matching subject."""

    binding: Binding
    subject: str


class _Place(NamedTuple):
    """Where a grant comes from: the numbers of the binding and of the subject in it."""

    binding: int
    subject: int
    grant: Grant


class Policies:
    """Every role and binding. Decisions use `grants` and `find_binding_rules`."""

    def __init__(self, roles: Iterable[Role], bindings: Iterable[Binding]) -> None:
        self._roles = {(role.namespace, role.name): role for role in roles}
        self._cluster_roles = sorted(
            (role for role in self._roles.values() if not role.namespace), key=lambda role: role.name
        )
        self._aggregated: dict[str, tuple[Rule, ...]] = {}
        self._by_subject: dict[tuple[str, str], list[_Place]] = {}
        in_order = sorted(bindings, key=lambda item: (item.namespace, item.name))
        for place, binding in enumerate(in_order):
            for position, (key, shown) in enumerate(binding.subjects):
                found = _Place(place, position, Grant(binding, shown))
                self._by_subject.setdefault((binding.namespace, key), []).append(found)

    def grants(self, user: User, namespace: str) -> Iterator[Grant]:
        """The bindings of a user: those of the cluster, then those of the namespace, each once, by name."""
        keys = (f"User {user.name}", *(f"Group {group}" for group in user.groups))
        yield from self._grants(keys, "")
        if namespace:
            yield from self._grants(keys, namespace)

    def _grants(self, keys: tuple[str, ...], namespace: str) -> Iterator[Grant]:
        found: dict[int, _Place] = {}
        for key in keys:
            for item in self._by_subject.get((namespace, key), ()):
                if item.binding not in found or item.subject < found[item.binding].subject:
                    found[item.binding] = item
        for place in sorted(found):
            yield found[place].grant

    def find_binding_rules(self, binding: Binding) -> tuple[Rule, ...] | None:
        """The rules of the role it names; none if there is no such role."""
        return self.find_role_rules(binding.role_kind, binding.role_name, binding.namespace)

    def find_role_rules(self, kind: str, name: str, namespace: str) -> tuple[Rule, ...] | None:
        if kind not in {"Role", "ClusterRole"} or (kind == "Role" and not namespace):
            return None
        role = self._roles.get((namespace if kind == "Role" else "", name))
        if role is None:
            return None
        return role.rules if role.selectors is None else self._aggregate(role)

    def _aggregate(self, role: Role) -> tuple[Rule, ...]:
        """The rules of all plain roles that selectors reach; selectors may form cycles."""
        known = self._aggregated.get(role.name)
        if known is not None:
            return known
        rules: dict[Rule, None] = {}
        seen, waiting = {role.name}, deque([role])
        while waiting:
            selectors = waiting.popleft().selectors or ()
            for cluster_role in self._cluster_roles:
                if cluster_role.name in seen or not any(
                    selector.matches(cluster_role.labels) for selector in selectors
                ):
                    continue
                seen.add(cluster_role.name)
                if cluster_role.selectors is None:
                    rules.update(dict.fromkeys(cluster_role.rules))
                else:
                    waiting.append(cluster_role)
        found = self._aggregated[role.name] = tuple(rules)
        return found


def format_missing_role(binding: Binding) -> str:
    """The message about a binding whose role is missing."""
    return f"{binding.role_kind.lower()}.{_GROUP} {quote(binding.role_name)} not found"


def _parse_subject(subject: Json, binding_namespace: str) -> tuple[str, str] | None:
    kind, name = subject.get("kind", ""), subject.get("name", "")
    if kind in {"User", "Group"}:
        return f"{kind} {name}", f"{kind} {quote(name)}"
    namespace = subject.get("namespace") or binding_namespace
    if kind != "ServiceAccount" or not namespace:
        return None
    return f"User {_SERVICE_ACCOUNT}:{namespace}:{name}", f"ServiceAccount {quote(f'{name}/{namespace}')}"


def _parse_selectors(aggregation: Json) -> tuple[LabelSelector, ...]:
    selectors = []
    for selector in aggregation.get("clusterRoleSelectors") or ():
        expressions = selector.get("matchExpressions") or ()
        try:
            requirements = [
                parse_requirement(expression["key"], expression["operator"], expression.get("values") or ())
                for expression in expressions
            ]
            selectors.append(LabelSelector.from_parts(selector.get("matchLabels") or {}, requirements))
        except InvalidSelector:
            continue  # an unreadable rule selects no subject
    return tuple(selectors)
