"""Typed reads of objects for tables: a field of the wrong type counts as absent, so no object can break a list."""

from __future__ import annotations

from typing import Any

from plimsoll.core.errors import InvalidQuantity, InvalidSelector
from plimsoll.core.quantity import Quantity
from plimsoll.core.selectors import LabelSelector, Operator, build_requirement, parse_requirement

Json = dict[str, Any]

NONE = "<none>"
UNSET = "<unset>"
UNKNOWN = "<unknown>"


def get_value(obj: Any, *path: str) -> Any:
    """The value at a path of field names, None where a step is missing or no object."""
    for name in path:
        if not isinstance(obj, dict):
            return None
        obj = obj.get(name)
    return obj


def get_name(obj: Json) -> str:
    return get_text(obj, "metadata", "name")


def get_text(obj: Any, *path: str) -> str:
    found = get_value(obj, *path)
    return found if isinstance(found, str) else ""


def get_int(obj: Any, *path: str) -> int:
    found = get_value(obj, *path)
    return found if isinstance(found, int) and not isinstance(found, bool) else 0


def get_flag(obj: Any, *path: str) -> bool:
    return get_value(obj, *path) is True


def get_mapping(obj: Any, *path: str) -> Json:
    found = get_value(obj, *path)
    return found if isinstance(found, dict) else {}


def get_items(obj: Any, *path: str) -> list[Json]:
    """A list of objects; entries that are none are left out."""
    found = get_value(obj, *path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def get_texts(obj: Any, *path: str) -> list[str]:
    found = get_value(obj, *path)
    return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []


def count(obj: Any, *path: str) -> int:
    """How many entries a list or a map has."""
    found = get_value(obj, *path)
    return len(found) if isinstance(found, list | dict) else 0


def format_amount(obj: Any, *path: str) -> str:
    """A quantity in its canonical form; 0 where there is none, as Go's zero value prints."""
    found = get_value(obj, *path)
    if isinstance(found, bool) or not isinstance(found, str | int | float):
        return "0"
    try:
        return str(Quantity.parse(found))
    except InvalidQuantity:
        return str(found)


def format_labels(pairs: Json) -> str:
    """A map of labels: `a=1,b=2`, sorted."""
    return ",".join(f"{key}={pairs[key]}" for key in sorted(pairs)) or NONE


def format_selector(obj: Json, *path: str, empty: str = NONE, unreadable: str = "<error>") -> str:
    """A label selector with expressions in the syntax that `kubectl -l` takes."""
    written = get_mapping(obj, *path)
    try:
        parts = [
            build_requirement(key, Operator.EQUALS, (str(item),))
            for key, item in get_mapping(written, "matchLabels").items()
        ]
        parts += [
            parse_requirement(get_text(item, "key"), get_text(item, "operator"), get_texts(item, "values"))
            for item in get_items(written, "matchExpressions")
        ]
    except InvalidSelector:
        return unreadable
    return str(LabelSelector(parts)) or empty


def find_condition(obj: Json, kind: str) -> Json | None:
    """The first condition of that type in the status."""
    return next((item for item in get_items(obj, "status", "conditions") if item.get("type") == kind), None)


def join_first(parts: list[str], *, most: int = 3, total: int | None = None) -> str:
    """`a,b,c + 2 more...`."""
    shown = ",".join(parts[:most])
    number = len(parts) if total is None else total
    return f"{shown} + {number - most} more..." if number > most else shown
