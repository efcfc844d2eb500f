"""The comparison of two values of one type: the fields that were added, changed and removed.

A write owns what it added and changed; all managers lose what it removed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.apply.fieldpath import elements
from plimsoll.local.apiserver.apply.fieldpath.sets import FieldSet
from plimsoll.local.apiserver.apply.typed.types import ABSENT, Atom, BadItem
from plimsoll.objects.schema.json_values import is_same

if TYPE_CHECKING:
    from plimsoll.local.apiserver.apply.typed.types import ListType, MapType


class Comparison:
    """What happened on the way from one value to the other."""

    __slots__ = ("added", "modified", "removed")

    def __init__(
        self, added: FieldSet | None = None, modified: FieldSet | None = None, removed: FieldSet | None = None
    ) -> None:
        self.added = FieldSet() if added is None else added
        self.modified = FieldSet() if modified is None else modified
        self.removed = FieldSet() if removed is None else removed

    def subtract_recursively(self, ignored: FieldSet) -> Comparison:
        return Comparison(
            self.added.subtract_recursively(ignored),
            self.modified.subtract_recursively(ignored),
            self.removed.subtract_recursively(ignored),
        )

    def attach(self, element: str, below: Comparison) -> None:
        """Adds what was found below a step; where a type changed, two looks find something."""
        self.added.join(element, below.added)
        self.modified.join(element, below.modified)
        self.removed.join(element, below.removed)

    def mark_difference(self, element: str, before: Any, after: Any) -> None:
        if not is_same(before, after):
            self.modified.add(element)


def compare(before: dict[str, Any], after: dict[str, Any], atom: Atom) -> Comparison:
    """Raises `BadItem` where a list that is merged by key has an item without one."""
    result = Comparison()
    if atom.map is not None:
        _compare_maps(before, after, atom.map, into=result)
    return result


def _compare_field(element: str, before: Any, after: Any, *, atom: Atom, into: Comparison) -> None:
    if before is after:
        return
    if before is ABSENT:
        _take(element, after, atom=atom, into=into.added)
        return
    if after is ABSENT:
        _take(element, before, atom=atom, into=into.removed)
        return
    if not isinstance(before, (dict, list)) and not isinstance(after, (dict, list)):
        # Whatever the type allows, there is nothing below: most fields of all objects.
        into.mark_difference(element, before, after)
        return
    narrowed_before, narrowed_after = atom.narrow(before), atom.narrow(after)
    if narrowed_before is narrowed_after:
        _compare_as(narrowed_after, element, before, after, into=into)
    else:
        # The type changed: what it was is gone, what it is is new, and the field itself was modified.
        _compare_as(narrowed_before, element, before, after, into=into)
        _compare_as(narrowed_after, element, before, after, into=into)


def _compare_as(atom: Atom, element: str, before: Any, after: Any, *, into: Comparison) -> None:
    if atom.map is not None:
        old_map, new_map = _convert(before, dict), _convert(after, dict)
        if atom.map.is_atomic or not (old_map or new_map):
            into.mark_difference(element, before, after)
            return
        below = Comparison()
        _compare_maps(old_map or {}, new_map or {}, atom.map, into=below)
    elif atom.scalar is None and atom.list is not None:
        old_list, new_list = _convert(before, list), _convert(after, list)
        if atom.list.is_atomic or not (old_list or new_list):
            into.mark_difference(element, before, after)
            return
        below = Comparison()
        _compare_lists(old_list or [], new_list or [], atom.list, into=below)
    else:
        into.mark_difference(element, before, after)
        return
    into.attach(element, below)


def _take(element: str, value: Any, *, atom: Atom, into: FieldSet) -> None:
    """A value that only one side has, with all that is below it: nearly everything in an object that is created."""
    into.members.add(element)
    if not isinstance(value, (dict, list)):
        return
    atom = atom.narrow(value)
    below = FieldSet()
    if atom.map is not None:
        if isinstance(value, dict) and not atom.map.is_atomic:
            for name, item in value.items():
                field = atom.map.find_type(name)
                if field is None:
                    continue
                if isinstance(item, (dict, list)):
                    _take(elements.from_field(name), item, atom=field, into=below)
                else:
                    below.members.add(elements.from_field(name))
    elif atom.scalar is None and atom.list is not None and isinstance(value, list) and not atom.list.is_atomic:
        for key, items in _group_by_element(value, atom.list).items():
            if len(items) == 1:
                _take(key, items[0], atom=atom.list.element, into=below)
            else:
                below.add(key)
    into.attach(element, below)


def _convert(value: Any, type_: type[Any]) -> Any:
    return value if isinstance(value, type_) else None


def _compare_maps(before: dict[str, Any], after: dict[str, Any], map_type: MapType, *, into: Comparison) -> None:
    for name, item in after.items():
        known = before.get(name, ABSENT)
        atom = map_type.find_type(name) if known is not item else None
        if atom is not None:
            _compare_field(elements.from_field(name), known, item, atom=atom, into=into)
    for name, known in before.items():
        atom = map_type.find_type(name) if name not in after else None
        if atom is not None:
            _take(elements.from_field(name), known, atom=atom, into=into.removed)


def _compare_lists(before: list[Any], after: list[Any], list_type: ListType, *, into: Comparison) -> None:
    """Items are matched by key. Items that share a key count as one whole: only the key itself is owned."""
    ours, theirs = _group_by_element(before, list_type), _group_by_element(after, list_type)
    atom = list_type.element
    for element in {**ours, **theirs}:
        old, new = ours.get(element, []), theirs.get(element, [])
        one: Any = old[0] if old else ABSENT
        other: Any = new[0] if new else ABSENT
        if len(old) <= 1 and len(new) <= 1:
            _compare_field(element, one, other, atom=atom, into=into)
        elif len(old) > 1 and len(new) > 1:
            if not is_same(old, new):
                into.modified.add(element)
        elif len(old) > 1:
            if new:
                _compare_field(element, ABSENT, other, atom=atom, into=into)
            into.removed.add(element)
        else:
            if old:
                _compare_field(element, one, ABSENT, atom=atom, into=into)
            into.added.add(element)


def _group_by_element(items: list[Any], list_type: ListType) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for position, item in enumerate(items):
        try:
            element = list_type.build_path_element(item)
        except BadItem as problem:
            raise BadItem(f"element {position}: {problem}") from None
        found.setdefault(element, []).append(item)
    return found
