"""The known objects of one kind. Only the cache updater writes to it.

Objects are stored in a map of maps, by namespace and by name. The keys are strings that the objects hold anyway, so it
takes the least memory, and listing a namespace needs no index. Objects that could not be decoded are stored separately,
in `bad`: they exist, and no controller may act as if they did not, but there is no object to return.
"""

from __future__ import annotations

from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Generic

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.informer.events import Key, V
from plimsoll.kube.informer.store.changed_keys import ChangedKeys
from plimsoll.kube.informer.store.indexer import Index, get_identity
from plimsoll.objects.codec.decode_problems import BadObject

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Mapping

    from plimsoll.kube.informer.events import KeyTuple
    from plimsoll.kube.informer.store.indexer import IndexFunc


class Cache(Generic[V]):
    """Read access to a cache. The returned objects are immutable and do not change when the cache changes."""

    def __init__(self) -> None:
        self._by_namespace: dict[str, dict[str, V]] = {}
        self._bad: dict[Key, BadObject] = {}
        self._indexes: dict[str, Index[V]] = {}
        self._changed_keys: list[ChangedKeys] = []
        self._count = 0

    def get(self, name: str, namespace: str = "") -> V | None:
        """The object; None if it does not exist, or is `bad`."""
        same = self._by_namespace.get(namespace)
        return None if same is None else same.get(name)

    def list(self, namespace: str | None = None) -> tuple[V, ...]:
        """All objects, or those of one namespace."""
        if namespace is not None:
            return tuple(self._by_namespace.get(namespace, {}).values())
        return tuple(chain.from_iterable([same.values() for same in self._by_namespace.values()]))

    def list_by_index(self, index: str, value: Hashable) -> tuple[V, ...]:
        """The objects with `value` in the index. Raises `InvalidInput` if there is no such index."""
        found = self._indexes.get(index)
        if found is None:
            raise InvalidInput(f"there is no index {index!r}", path="index")
        return found.get(value)

    @property
    def bad(self) -> Mapping[Key, BadObject]:
        """The objects that exist and cannot be decoded."""
        return MappingProxyType(self._bad)

    @property
    def namespaces(self) -> tuple[str, ...]:
        return tuple(self._by_namespace)

    def list_names(self) -> dict[str, dict[str, None]]:
        """The names of all objects, bad ones included, by namespace. Maps copy fastest and keep their order."""
        names = {namespace: dict.fromkeys(same) for namespace, same in self._by_namespace.items()}
        for key in self._bad:
            names.setdefault(key.namespace, {})[key.name] = None
        return names

    def iterate_keys(self) -> Iterator[Key]:
        """The keys of all current objects, bad ones included.

        A generator, because a list of a hundred thousand keys would block the event loop for some tenths of a second.
        """
        return (Key(namespace, name) for namespace, same in self.list_names().items() for name in same)

    def get_state(self, key: KeyTuple) -> V | BadObject | None:
        """The object, decoded or bad; None if it does not exist."""
        namespace, name = key
        same = self._by_namespace.get(namespace)
        found = None if same is None else same.get(name)
        if found is not None or not self._bad:
            return found
        return self._bad.get(Key(namespace, name))

    def track_changes(self) -> ChangedKeys:
        """The keys that change from now on, for a reader that processes only changes."""
        changed = ChangedKeys()
        self._changed_keys.append(changed)
        return changed

    def __len__(self) -> int:
        """The number of decoded objects."""
        return self._count

    def __iter__(self) -> Iterator[V]:
        return iter(self.list())

    def __contains__(self, key: object) -> bool:
        return isinstance(key, Key) and self.get_state(key) is not None


class WritableCache(Cache[V]):
    """A cache with write access."""

    def add_index(self, name: str, index_func: IndexFunc[V]) -> None:
        """Add an index and fill it from the cache. Raises `InvalidInput` if the name is taken."""
        if name in self._indexes:
            raise InvalidInput(f"there is an index {name!r} already", path="name")
        index = self._indexes[name] = Index(name, index_func)
        for value in self.list():
            index.add(value, get_identity(value))

    def put(self, key: KeyTuple, new: V | BadObject) -> None:
        for trail in self._changed_keys:
            trail.add(key)
        namespace, name = key
        if type(new) is BadObject:
            self._remove_good(key)
            self._bad[Key(namespace, name)] = new
            return
        if self._bad:
            self._bad.pop(Key(namespace, name), None)
        same = self._by_namespace.get(namespace)
        if same is None:
            same = self._by_namespace[namespace] = {}
        old = same.get(name)
        self._count += old is None
        same[name] = new
        ident = get_identity(new)
        if old is not None and get_identity(old) == ident:
            for index in self._indexes.values():
                index.replace(old, new, ident)
            return
        if old is not None:
            self._remove_from_indexes(old)
        for index in self._indexes.values():
            index.add(new, ident)

    def remove(self, key: KeyTuple) -> None:
        for trail in self._changed_keys:
            trail.add(key)
        self._remove_good(key)
        if self._bad:
            self._bad.pop(Key(*key), None)

    def _remove_good(self, key: KeyTuple) -> None:
        namespace, name = key
        same = self._by_namespace.get(namespace, {})
        old = same.pop(name, None)
        if old is None:
            return
        self._count -= 1
        if not same:
            del self._by_namespace[namespace]
        self._remove_from_indexes(old)

    def _remove_from_indexes(self, old: V) -> None:
        ident = get_identity(old)
        for index in self._indexes.values():
            index.remove(old, ident)
