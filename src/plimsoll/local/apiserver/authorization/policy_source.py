"""The source of policies: they are read again after every change, and only then.

`StoredPolicies` is the fast one: it does nothing while the store's revision stays the same, and after a write elsewhere
it only compares which objects exist. `ListedPolicies` calls a plain function every time, for tests and tools. Both
compile an object once per version of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, Protocol

from plimsoll.local.apiserver.authorization.policies import Binding, Policies, Role

if TYPE_CHECKING:
    from plimsoll.local.apiserver.storage import Store, Stored

Json = dict[str, Any]
Read = Callable[[str, str | None], Iterable[Json]]
"""A resource as the store names it, and a namespace or None for all of them, to the objects."""

ROLES: Final = ("rbac.authorization.k8s.io/roles", "rbac.authorization.k8s.io/clusterroles")
BINDINGS: Final = ("rbac.authorization.k8s.io/rolebindings", "rbac.authorization.k8s.io/clusterrolebindings")


class PolicySource(Protocol):
    """The port through which the authorizer reads policies before each decision."""

    def get_current(self) -> Policies: ...


class ListedPolicies:
    """Policies from a function that returns the objects as JSON."""

    def __init__(self, read: Read) -> None:
        self._read = read
        self._compiled: dict[tuple[str, ...], Role | Binding] = {}
        self._policies = Policies((), ())

    def get_current(self) -> Policies:
        compiled: dict[tuple[str, ...], Role | Binding] = {}
        for resource in (*ROLES, *BINDINGS):
            for obj in self._read(resource, None):
                version = _get_version_key(resource, obj)
                known = self._compiled.get(version) if version[-1] else None
                compiled[version] = known or (Role.from_object(obj) if resource in ROLES else Binding.from_object(obj))
        if compiled.keys() != self._compiled.keys() or any(not version[-1] for version in compiled):
            self._policies = _build_policies(compiled.values())
        self._compiled = compiled
        return self._policies


class StoredPolicies:
    """Policies of a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._revision = 0
        self._objects: dict[str, tuple[Stored, ...]] = {}
        self._compiled: dict[tuple[str, str], tuple[int, Role | Binding]] = {}
        self._policies = Policies((), ())

    def get_current(self) -> Policies:
        revision = self._store.revision
        if revision != self._revision:
            objects = {resource: self._store.list(resource).items for resource in (*ROLES, *BINDINGS)}
            # Stored objects are equal only to themselves, and a write always makes a new one.
            if objects != self._objects:
                self._objects = objects
                self._compile()
            self._revision = revision
        return self._policies

    def _compile(self) -> None:
        compiled: dict[tuple[str, str], tuple[int, Role | Binding]] = {}
        for resource, items in self._objects.items():
            for stored in items:
                place = (resource, stored.key.path)
                known = self._compiled.get(place)
                if known is None or known[0] != stored.revision:
                    body = stored.decode_body()
                    known = (
                        stored.revision,
                        (Role.from_object(body) if resource in ROLES else Binding.from_object(body)),
                    )
                compiled[place] = known
        self._compiled = compiled
        self._policies = _build_policies(policy for _, policy in compiled.values())


def _build_policies(compiled: Iterable[Role | Binding]) -> Policies:
    both = list(compiled)
    roles = [item for item in both if isinstance(item, Role)]
    return Policies(roles, [item for item in both if isinstance(item, Binding)])


def _get_version_key(resource: str, obj: Json) -> tuple[str, ...]:
    metadata = obj["metadata"]
    parts = (metadata.get(name, "") for name in ("namespace", "name", "uid", "resourceVersion"))
    return resource, *parts
