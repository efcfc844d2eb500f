"""The served resources: built-in ones from a table, custom ones from the current definitions.

Routing, discovery, OpenAPI, tables and RBAC reviews all read it, so a new definition appears everywhere at once. The
registry only describes; the behaviour of a resource is in its strategy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from plimsoll.objects.schema.api import CompiledDefinition

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")


class Subresource(Value):
    """A part of an object with an address of its own. Group, version and kind of its body where they differ."""

    name: str
    verbs: tuple[str, ...]
    kind: str
    group: str = ""
    version: str = ""


class ServedResource(Value):
    """One resource in one version.

    `stored_as` names the objects in the store; versions of one resource, and the two groups of Event, share it.
    `storage_version` is the apiVersion they are stored under. `definition` is the CustomResourceDefinition's body for
    custom resources and `compiled` what was compiled from it.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    stored_as: str
    storage_version: str
    list_kind: str
    verbs: tuple[str, ...] = ALL_VERBS
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    definition: dict[str, Any] | None = None
    compiled: Any = None
    schema_bytes: int = 0
    """The size of the definition: what its compilation costs, and at most each look at an object."""
    storage_version_hash: str = ""

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def full_name(self) -> str:
        """`deployments.apps`, `pods`: how errors call it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def is_custom(self) -> bool:
        return self.definition is not None

    def find_subresource(self, name: str) -> Subresource | None:
        return next((subresource for subresource in self.subresources if subresource.name == name), None)


class ResourceRegistry:
    """The resources that are served now.

    Custom ones come and go, and never take the place of a built-in one, whatever their definition says. Caches of
    derived values compare `generation`.
    """

    def __init__(self, builtin: Iterable[ServedResource]) -> None:
        self._builtin = tuple(builtin)
        self._builtin_names = frozenset((resource.group, resource.plural) for resource in self._builtin)
        self._builtin_stores = frozenset(resource.stored_as for resource in self._builtin)
        self._custom: dict[str, tuple[ServedResource, ...]] = {}
        self._by_path: dict[tuple[str, str, str], ServedResource] = {}
        self._groups: tuple[str, ...] = ()
        self.generation = 0
        self._index()

    def __iter__(self) -> Iterator[ServedResource]:
        yield from self._builtin
        for name in sorted(self._custom):
            yield from self._custom[name]

    def find(self, group: str, version: str, plural: str) -> ServedResource | None:
        return self._by_path.get((group, version, plural))

    def find_kind(self, api_version: str, kind: str) -> ServedResource | None:
        return next(
            (resource for resource in self if (resource.api_version, resource.kind) == (api_version, kind)), None
        )

    def list_groups(self) -> tuple[str, ...]:
        """Names of the groups, the core group as an empty text, in the order of the table."""
        return self._groups

    def serve(self, definition_name: str, resources: Iterable[ServedResource]) -> None:
        """Serve the versions of a definition, in place of what it defined before; none of them ends serving it.

        Those that have the name of a built-in resource, in any version, or would lie among its objects are left out.
        """
        served = tuple(resource for resource in resources if not self._is_builtin(resource))
        if served:
            self._custom[definition_name] = served
        else:
            self._custom.pop(definition_name, None)
        self._index()

    def _is_builtin(self, resource: ServedResource) -> bool:
        return (resource.group, resource.plural) in self._builtin_names or resource.stored_as in self._builtin_stores

    def _index(self) -> None:
        custom = (resource for resources in self._custom.values() for resource in resources)
        # Built-in ones last: of two with one address the later stays.
        self._by_path = {
            (resource.group, resource.version, resource.plural): resource for resource in (*custom, *self._builtin)
        }
        self._groups = tuple(dict.fromkeys(resource.group for resource in self))
        self.generation += 1


def get_compiled(resource: ServedResource) -> CompiledDefinition:
    """The compiled definition of a custom resource."""
    assert resource.compiled is not None, f"{resource.full_name} is not a custom resource"
    compiled: CompiledDefinition = resource.compiled
    return compiled
