"""The merge of an applied configuration into the live object: its fields win, fields it does not mention stay.

Lists that are merged by key keep both orders as far as possible, and the configuration's where they disagree.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.apply.typed.types import ABSENT, Atom, BadItem

if TYPE_CHECKING:
    from plimsoll.local.apiserver.apply.typed.types import ListType, MapType


def merge(live: Any, applied: Any, atom: Atom) -> Any:
    """Returns `live` itself where nothing changes; raises `BadItem` for items of keyed lists that have no key."""
    if applied is ABSENT or live is applied:
        return live
    if live is ABSENT:
        return applied
    atom = atom.narrow(applied)
    if atom.map is not None:
        return _merge_maps(live, applied, atom.map)
    if atom.scalar is None and atom.list is not None:
        return _merge_lists(live, applied, atom.list)
    return applied


def _merge_maps(live: Any, applied: Any, map_type: MapType) -> Any:
    ours: dict[str, Any] = live if isinstance(live, dict) else {}
    theirs: dict[str, Any] = applied if isinstance(applied, dict) else {}
    if map_type.is_atomic or not (ours or theirs):
        return applied
    merged = dict(ours)
    for name, value in theirs.items():
        atom = map_type.find_type(name)
        if atom is not None:
            merged[name] = merge(ours.get(name, ABSENT), value, atom)
    unchanged = len(merged) == len(ours) and all(merged[name] is ours[name] for name in ours)
    return live if unchanged and isinstance(live, dict) else merged


def _merge_lists(live: Any, applied: Any, list_type: ListType) -> Any:
    ours: list[Any] = live if isinstance(live, list) else []
    theirs: list[Any] = applied if isinstance(applied, list) else []
    if list_type.is_atomic or not (ours or theirs):
        return applied
    merged = _ListMerge(list_type, ours, theirs).merge_items()
    unchanged = len(merged) == len(ours) and all(map(_is, merged, ours))
    return live if unchanged else merged


def _is(value: Any, other: Any) -> bool:
    return value is other


class _ListMerge:
    """Walks both lists at once; `_shared` are the items of both, in the configuration's order, not yet taken."""

    def __init__(self, list_type: ListType, live: list[Any], applied: list[Any]) -> None:
        self._atom = list_type.element
        self._live = live
        self._live_elements = _list_elements(live, list_type)
        self._applied_elements = _list_elements(applied, list_type)
        self._applied = dict(zip(self._applied_elements, applied, strict=True))
        if len(self._applied) < len(applied):
            raise BadItem("duplicate entries")
        self._known: dict[str, Any] = {}
        for element, item in zip(self._live_elements, live, strict=True):
            # Items that share a key are not merged with what is applied: null stands for them.
            self._known[element] = None if element in self._known else item
        self._shared = [element for element in reversed(self._applied_elements) if element in self._known]
        self._out: list[Any] = []

    def merge_items(self) -> list[Any]:
        position = 0
        for element in self._applied_elements:
            position = self._take_live_before(element, position)
            self._take(element)
        for rest in range(position, len(self._live)):
            if self._live_elements[rest] not in self._applied:
                self._out.append(self._live[rest])
        return self._out

    def _take_live_before(self, element: str, position: int) -> int:
        """Takes live items that the configuration does not have, until one that comes later in its order."""
        while position < len(self._live):
            own = self._live_elements[position]
            if own == element:
                return position + 1
            if own not in self._applied:
                self._out.append(self._live[position])
            elif not self._shared:
                # A second live item of a key that is done: one applied item goes before what follows it.
                return position + 1
            elif self._shared[-1] == own:
                return position
            position += 1
        return position

    def _take(self, element: str) -> None:
        if self._shared and self._shared[-1] == element:
            self._shared.pop()
        self._out.append(merge(self._known.get(element, ABSENT), self._applied[element], self._atom))


def _list_elements(items: list[Any], list_type: ListType) -> list[str]:
    elements: list[str] = []
    for position, item in enumerate(items):
        try:
            elements.append(list_type.build_path_element(item))
        except BadItem as problem:
            raise BadItem(f"element {position}: {problem}") from None
    return elements
