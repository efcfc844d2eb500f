"""A value without the fields of a set: what `prune` takes away when a manager stops applying them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.apply.fieldpath import elements
from plimsoll.local.apiserver.apply.typed.types import Atom, BadItem

if TYPE_CHECKING:
    from plimsoll.local.apiserver.apply.fieldpath.sets import FieldSet
    from plimsoll.local.apiserver.apply.typed.types import ListType, MapType


def remove(value: Any, fields: FieldSet, atom: Atom | None) -> Any:
    """Maps and lists that lose everything become null, as in Kubernetes: decoding drops it, or keeps it if nullable."""
    if not fields or atom is None:
        return value
    atom = atom.narrow(value)
    if atom.map is not None:
        return _remove_from_map(value, fields, atom.map) if isinstance(value, dict) else None
    if atom.scalar is None and atom.list is not None:
        return _remove_from_list(value, fields, atom.list) if isinstance(value, list) else None
    return value


def _remove_from_map(value: dict[str, Any], fields: FieldSet, map_type: MapType) -> dict[str, Any] | None:
    if map_type.is_atomic:
        return None
    left: dict[str, Any] = {}
    for name, item in value.items():
        element = elements.from_field(name)
        if element not in fields.members:
            below = fields.children.get(element)
            left[name] = item if below is None else remove(item, below, map_type.find_type(name))
    return left or None


def _remove_from_list(value: list[Any], fields: FieldSet, list_type: ListType) -> list[Any] | None:
    if list_type.is_atomic:
        return None
    left: list[Any] = []
    for item in value:
        try:
            element = list_type.build_path_element(item)
        except BadItem:
            left.append(item)
            continue
        if element not in fields.members:
            below = fields.children.get(element)
            left.append(item if below is None else remove(item, below, list_type.element))
    return left or None
