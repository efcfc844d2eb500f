"""Lies: what a broken proxy, a lagging cache or a sick server makes of an answer. The one list of them.

A document is a list, an object that holds one (`items`, `stores`, `kvs`, `data.result`), or a single object.
`change_document` gives the changed bytes; lies about time, status codes and leases are up to the harness that asks.
"""

from __future__ import annotations

import json
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")


class Lie(StrEnum):
    """What an answer may be instead of the truth."""

    EMPTY = "empty"
    HALF = "half"
    OTHER_HALF = "the other half"
    DUPLICATED = "duplicated"
    STALE = "stale"
    TRUNCATED = "truncated"
    UNDECODABLE = "undecodable item"
    STALLED = "stalled"
    TOO_MANY_REQUESTS = "429 for a minute"
    SERVER_ERROR = "500 for a minute"
    CLOCK_AHEAD = "clock a day ahead"
    CLOCK_BEHIND = "clock a day behind"
    LEASE_STOLEN = "lease stolen"
    WARNED = "with warnings"
    FUTURE = "from the future"


METRICS_LIES = frozenset({Lie.WARNED, Lie.FUTURE})
"""Lies of which only metrics are capable."""
STATUS_CODES = {Lie.TOO_MANY_REQUESTS: 429, Lie.SERVER_ERROR: 500}
"""Lies that last for a minute."""
_GARBAGE = {"spec": 5, "status": "?"}

_LIST_KEYS = ("items", "stores", "kvs", "result")


def change_items(lie: Lie, items: Sequence[T]) -> list[T]:
    """The items of a list that a lie leaves; all of them, if it is not about their number."""
    middle = len(items) // 2
    match lie:
        case Lie.EMPTY:
            return []
        case Lie.HALF:
            return [*items[:middle]]
        case Lie.OTHER_HALF:
            return [*items[middle:]]
        case Lie.DUPLICATED:
            return [*items, *items]
    return [*items]


def change_document(lie: Lie, body: bytes) -> bytes | None:
    """The document as the lie has it; None: there is nothing at this address."""
    if lie is Lie.TRUNCATED:
        return body[: len(body) // 2]
    document = json.loads(body)
    found = _find_list(document)
    if found is None:
        return _change_object(lie, document)
    holder, key = found
    items = change_items(lie, holder[key] or [])
    if lie is Lie.UNDECODABLE and items:
        items[-1] = garble(items[-1])
    holder[key] = items
    if isinstance(holder.get("count"), int):
        holder["count"] = len(items)
    return json.dumps(document if "" not in holder else items).encode()


def _find_list(document: Any) -> tuple[dict[str, Any], str] | None:
    if isinstance(document, list):
        return {"": document}, ""
    if not isinstance(document, dict):
        return None
    for key in _LIST_KEYS:
        if isinstance(document.get(key), list):
            return document, key
    return _find_list(document["data"]) if isinstance(document.get("data"), dict) else None


def _change_object(lie: Lie, document: Any) -> bytes | None:
    if lie is Lie.EMPTY:
        return None
    if not isinstance(document, dict):
        return json.dumps(document).encode()
    if lie in {Lie.HALF, Lie.OTHER_HALF}:
        document = {key: _halve(value, lie) if key == "spec" else value for key, value in document.items()}
        if "spec" not in document:
            document = _halve(document, lie)
    elif lie is Lie.UNDECODABLE:
        document = garble(document)
    return json.dumps(document).encode()


def _halve(value: Any, lie: Lie) -> Any:
    if not isinstance(value, dict):
        return value
    fields, middle = list(value.items()), len(value) // 2
    return dict(fields[:middle] if lie is Lie.HALF else fields[middle:])


def garble(item: Any) -> Any:
    """An item with fields of another type."""
    if not isinstance(item, dict):
        return {"garbled": True}
    if isinstance(item.get("metadata"), dict):
        return {**item, **_GARBAGE}
    key = next(iter(item), "value")
    return {**item, key: [[["garbled"]]]}
