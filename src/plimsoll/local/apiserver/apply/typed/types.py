"""The types of ownership and merging: scalars, lists and maps with their merge rules.

`schemas` makes them from OpenAPI. As in structured-merge-diff, an `Atom` allows one or several of the three, and a walk
takes the one that fits the value.
"""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.apply.fieldpath import elements

if TYPE_CHECKING:
    from collections.abc import Callable

    FieldTypes = Callable[[str], "Field | None"]


class Scalar(Enum):
    """What a scalar must be; dates and quantities count as untyped."""

    NUMERIC = "numeric"
    STRING = "string"
    BOOLEAN = "boolean"
    UNTYPED = "untyped"


class Absent(Enum):
    """An absent value, which differs from null."""

    ABSENT = "absent"


ABSENT: Final = Absent.ABSENT


class BadItem(Exception):
    """A list item from which no path element can be made; becomes a problem with the list's path."""


class Atom:
    """The types allowed at one place."""

    __slots__ = ("_alone", "list", "map", "scalar")

    def __init__(
        self, *, scalar: Scalar | None = None, list_: ListType | None = None, map_: MapType | None = None
    ) -> None:
        self.scalar = scalar
        self.list = list_
        self.map = map_
        self._alone: dict[str, Atom] = {}

    def narrow(self, value: Any) -> Atom:
        """Only the type that fits the value; all types if none fits, or if the value is null or absent."""
        if value is None or value is ABSENT or (self.map is None) + (self.list is None) + (self.scalar is None) == 2:
            return self
        if isinstance(value, dict):
            return self._keep_only("map") if self.map else self
        if isinstance(value, list):
            return self._keep_only("list") if self.list else self
        return self._keep_only("scalar") if self.scalar else self

    def _keep_only(self, kind: str) -> Atom:
        # Kept, so that two values of one kind get the very same atom.
        if kind not in self._alone:
            self._alone[kind] = Atom(
                scalar=self.scalar if kind == "scalar" else None,
                list_=self.list if kind == "list" else None,
                map_=self.map if kind == "map" else None,
            )
        return self._alone[kind]


class Field:
    """A declared field of a map; `default` counts where the field is a list key that an item leaves out."""

    __slots__ = ("atom", "default")

    def __init__(self, atom: Atom, default: Any = None) -> None:
        self.atom = atom
        self.default = default


class MapType:
    """A struct or map. Fields are looked up when first met: schemas refer to themselves."""

    __slots__ = ("_fields", "_look_up", "element", "is_atomic")

    def __init__(self, look_up: FieldTypes, *, element: Atom | None, is_atomic: bool) -> None:
        self._look_up = look_up
        self._fields: dict[str, Field | None] = {}
        self.element = element
        self.is_atomic = is_atomic

    def find_field(self, name: str) -> Field | None:
        if name not in self._fields:
            field = self._look_up(name)
            if field is None:
                return None
            self._fields[name] = field
        return self._fields[name]

    def declares(self, name: str) -> bool:
        return self.find_field(name) is not None

    def find_type(self, name: str) -> Atom | None:
        field = self._fields.get(name) or self.find_field(name)
        return self.element if field is None else field.atom


class ListType:
    """A list: atomic, a set (no keys) or a map by `keys`."""

    __slots__ = ("_element", "is_atomic", "keys")

    def __init__(self, element: Callable[[], Atom], *, keys: tuple[str, ...] = (), is_atomic: bool) -> None:
        self._element = element
        self.keys = keys
        self.is_atomic = is_atomic

    @property
    def element(self) -> Atom:
        return self._element()

    def build_path_element(self, item: Any) -> str:
        """The element that identifies the item in its list; raises `BadItem` if there is none."""
        if not self.keys:
            return _set_element(item)
        if item is None:
            raise BadItem("associative list with keys may not have a null element")
        if not isinstance(item, dict):
            raise BadItem("associative list with keys may not have non-map elements")
        return elements.from_keys({name: self._read_key(item, name) for name in self.keys})

    def _read_key(self, item: dict[str, Any], name: str) -> Any:
        if name in item:
            return item[name]
        below = self.element.map
        if below is None:
            raise BadItem(f"couldn't find default value for {name}: associative list may not have non-map types")
        field = below.find_field(name)
        if field is None or field.default is None:
            raise BadItem(
                f'associative list with keys has an element that omits key field "{name}" '
                "(and doesn't have default value)"
            )
        return field.default


def _set_element(item: Any) -> str:
    if isinstance(item, dict):
        raise BadItem("associative list without keys has an element that's a map type")
    if isinstance(item, list):
        raise BadItem("not supported: associative list with lists as elements")
    if item is None:
        raise BadItem("associative list without keys has an element that's an explicit null")
    return elements.from_value(item)
