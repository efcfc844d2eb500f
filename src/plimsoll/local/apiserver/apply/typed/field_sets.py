"""The fields that a value names: what an applied configuration claims, and what an object has.

Structs and declared fields are not owned themselves, only what is in them; items of keyed lists, entries of maps and
empty maps are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.apply.fieldpath import elements
from plimsoll.local.apiserver.apply.fieldpath.sets import FieldSet
from plimsoll.local.apiserver.apply.typed.types import Atom, BadItem

if TYPE_CHECKING:
    from plimsoll.local.apiserver.apply.typed.types import ListType, MapType


def to_field_set(value: dict[str, Any], atom: Atom) -> FieldSet:
    result = FieldSet()
    if atom.map is not None:
        _own_map(value, atom.map, into=result)
    return result


def add_named_fields(fields: FieldSet, atom: Atom | None) -> FieldSet:
    """The set with every declared field on the way to a path added: the owner of `spec.a` also owns `spec`."""
    declared = atom.map if atom else None
    members = set(fields.members)
    children: dict[str, FieldSet] = {}
    for element, below in fields.children.items():
        name = elements.get_field_name(element)
        if name is not None and declared is not None:
            if declared.declares(name):
                members.add(element)
            children[element] = add_named_fields(below, declared.find_type(name))
        elif elements.is_list_key(element) and atom is not None and atom.list is not None:
            children[element] = add_named_fields(below, atom.list.element)
        else:
            children[element] = add_named_fields(below, None)
    return FieldSet(members, children)


def _own(element: str, value: Any, *, atom: Atom | None, into: FieldSet) -> None:
    """Puts the field itself in if it is a leaf, and what is below it otherwise."""
    if atom is None:
        return
    atom = atom.narrow(value)
    below = FieldSet()
    if atom.map is not None:
        if atom.map.is_atomic:
            into.add(element)
        elif isinstance(value, dict):
            _own_map(value, atom.map, into=below)
    elif atom.scalar is None and atom.list is not None:
        if atom.list.is_atomic:
            into.add(element)
        elif isinstance(value, list):
            _own_list(value, atom.list, into=below)
    else:
        into.add(element)
    into.attach(element, below)


def _own_map(value: dict[str, Any], map_type: MapType, *, into: FieldSet) -> None:
    for name, item in value.items():
        element = elements.from_field(name)
        _own(element, item, atom=map_type.find_type(name), into=into)
        if item is None or item == {} or not map_type.declares(name):
            into.add(element)


def _own_list(value: list[Any], list_type: ListType, *, into: FieldSet) -> None:
    found: dict[str, list[Any]] = {}
    for item in value:
        try:
            found.setdefault(list_type.build_path_element(item), []).append(item)
        except BadItem:
            continue
    for element, items in found.items():
        if len(items) == 1:
            _own(element, items[0], atom=list_type.element, into=into)
        into.add(element)
