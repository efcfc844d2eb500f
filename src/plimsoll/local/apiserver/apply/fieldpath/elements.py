"""One step of a field path, in the spelling that `fieldsV1` uses: `f:spec`, `k:{"name":"a"}`, `v:"x"`, `i:0`.

The spelling is the value: two steps are the same if their texts are, so keys are always written sorted and compact.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.objects.schema import go_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_RANKS: Final = {"f": 0, "k": 1, "v": 2, "i": 3}
_LONGEST_SHOWN: Final = 100
_LONGEST_KEPT: Final = 256
_encoder: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


class InvalidFieldSet(InvalidInput):
    """A `fieldsV1` that cannot be read."""


def from_field(name: str) -> str:
    return f"f:{name}"


def from_keys(keys: Mapping[str, Any]) -> str:
    if len(keys) == 1:
        (pair,) = keys.items()
        if type(pair[1]) is str and len(pair[1]) <= _LONGEST_KEPT:
            return _from_single_key(*pair)
    return f"k:{_compact({name: keys[name] for name in sorted(keys)})}"


@lru_cache(maxsize=4096)
def _from_single_key(name: str, text: str) -> str:
    """The names of containers and the types of conditions are the same few in all objects."""
    return f"k:{_compact({name: text})}"


def from_value(value: Any) -> str:
    return f"v:{_compact(value)}"


def get_field_name(element: str) -> str | None:
    return element[2:] if element.startswith("f:") else None


def is_list_key(element: str) -> bool:
    return element.startswith("k:")


def read(text: str) -> str:
    """The element in its canonical spelling, from a client's text."""
    kind, colon, _ = text.partition(":")
    if not colon or kind not in _RANKS:
        raise InvalidFieldSet(f"unknown path element {text[:_LONGEST_SHOWN]!r}")
    if kind == "f":
        return text
    # The keys of conditions, containers and ports are the same few in all objects.
    return (_read if len(text) <= _LONGEST_KEPT else _read.__wrapped__)(text)


@lru_cache(maxsize=4096)
def _read(text: str) -> str:
    kind, _, rest = text.partition(":")
    if kind == "i":
        if not rest.isascii() or not rest.isdigit() or len(rest) > 18:
            raise InvalidFieldSet(f"{text[:_LONGEST_SHOWN]!r} names no index")
        return f"i:{int(rest)}"
    value = _parse(rest)
    if kind == "v":
        return from_value(value)
    if not isinstance(value, dict):
        raise InvalidFieldSet(f"{text[:_LONGEST_SHOWN]!r} names no keys")
    return from_keys(value)


def sort_elements(elements: Iterable[str]) -> list[str]:
    """Fields, then list items by key, then by value, then by index; within a kind by content."""
    ordered = sorted(elements)
    # Texts sort as fields do, and nearly everything is a field.
    if not ordered or (ordered[0][0] == "f" and ordered[-1][0] == "f"):
        return ordered
    return sorted(ordered, key=sort_key)


def sort_key(element: str) -> tuple[Any, ...]:
    if element[0] == "f":
        return (0, element[2:])
    return (_compute_item_sort_key if len(element) <= _LONGEST_KEPT else _compute_item_sort_key.__wrapped__)(element)


@lru_cache(maxsize=4096)
def _compute_item_sort_key(element: str) -> tuple[Any, ...]:
    kind, _, rest = element.partition(":")
    value = json.loads(rest)
    if kind == "k":
        return (1, [(name, _rank_value(value[name])) for name in value])
    return (_RANKS[kind], _rank_value(value))


def format_path(path: Iterable[str]) -> str:
    """A path as messages show it: `.spec.containers[name="a"].image`."""
    return "".join(map(_format_step, path))


def _format_step(element: str) -> str:
    kind, _, rest = element.partition(":")
    if kind == "f":
        return f".{rest}"
    if kind == "i":
        return f"[{rest}]"
    value = json.loads(rest)
    if kind == "v":
        return f"[={_format_value(value)}]"
    return "[" + ",".join(f"{name}={_format_value(item)}" for name, item in value.items()) + "]"


def _format_value(value: Any) -> str:
    if isinstance(value, str):
        return go_text.quote(value)
    return "null" if value is None else go_text.format_plain(value)


def _rank_value(value: Any) -> tuple[int, Any]:
    if isinstance(value, bool):
        return (2, value)
    if isinstance(value, (int, float)):
        return (0, value)
    return (1, value) if isinstance(value, str) else (3, _compact(value))


def _compact(value: Any) -> str:
    return _encoder.encode(value)


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise InvalidFieldSet(f"{text[:_LONGEST_SHOWN]!r} is not JSON") from None
