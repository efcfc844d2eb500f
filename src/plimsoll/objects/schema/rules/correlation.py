"""Correlates new and old values: the old counterpart of a new value, and whether it changed.

Validation tolerates errors in unchanged parts of an update (ratcheting), and rules read `oldSelf`. Fields and map
entries correspond by name, items of list-maps by their keys; items of other lists and of sets have no counterpart.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.objects.schema.json_values import build_identity, is_same

if TYPE_CHECKING:
    from plimsoll.objects.schema.structural import StructuralSchema

MISSING = object()


class Correlation:
    """A new value with its old counterpart. Children and comparisons are computed on demand and cached."""

    __slots__ = ("_children", "_keyed", "_unchanged", "new", "old", "schema")

    def __init__(self, new: Any, old: Any, schema: StructuralSchema) -> None:
        self.new = new
        self.old = old
        self.schema = schema
        self._unchanged: bool | None = None
        self._children: dict[str | int, Correlation | None] = {}
        self._keyed: ListMap | None = None

    def is_unchanged(self) -> bool:
        if self._unchanged is None:
            self._unchanged = is_same(self.new, self.old)
        return self._unchanged

    def key(self, name: str) -> Correlation | None:
        if name not in self._children:
            self._children[name] = self._correlate_field(name)
        return self._children[name]

    def index(self, position: int) -> Correlation | None:
        if position not in self._children:
            self._children[position] = self._correlate_item(position)
        return self._children[position]

    def _correlate_field(self, name: str) -> Correlation | None:
        if not (isinstance(self.new, dict) and isinstance(self.old, dict)):
            return None
        described = self.schema.properties.get(name, self.schema.additional_properties)
        if described is None or name not in self.new or name not in self.old:
            return None
        return Correlation(self.new[name], self.old[name], described)

    def _correlate_item(self, position: int) -> Correlation | None:
        if self.schema.items is None or not (isinstance(self.new, list) and isinstance(self.old, list)):
            return None
        if self._keyed is None:
            self._keyed = ListMap(self.old, self.schema)
        old = self._keyed.find(self.new[position])
        return None if old is MISSING else Correlation(self.new[position], old, self.schema.items)


class ListMap:
    """The old items of a list, found by the keys of a new one; finds nothing unless the list is of type map."""

    def __init__(self, items: list[Any], schema: StructuralSchema) -> None:
        self._schema = schema
        self._by_keys: dict[tuple[Any, ...], Any] | None = None
        self._items = items if schema.list_type == "map" and schema.list_map_keys else []

    def find(self, item: Any) -> Any:
        """The old item, or MISSING."""
        if not self._items or not isinstance(item, dict):
            return MISSING
        if self._by_keys is None:
            self._by_keys = {}
            for old in self._items:
                if isinstance(old, dict):
                    self._by_keys.setdefault(self._read_keys(old), old)
        return self._by_keys.get(self._read_keys(item), MISSING)

    def _read_keys(self, item: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(build_identity(item.get(name, self._find_default(name))) for name in self._schema.list_map_keys)

    def _find_default(self, name: str) -> Any:
        described = self._schema.items.properties.get(name) if self._schema.items else None
        return described.default if described else None
