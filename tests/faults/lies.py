"""Lies about JSON documents: what a broken proxy, a lagging cache or a sick server makes of an answer.

A document is a list, an object that holds one (`items`, `stores`, `kvs`, `data.result`), or a single object. `tell`
gives the changed bytes; lies about time, status codes and leases are told by the harness that asks.
"""

from __future__ import annotations

import copy
import json
from enum import StrEnum
from typing import Any


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
    TOO_MANY = "429 for a minute"
    FAILED = "500 for a minute"
    CLOCK_AHEAD = "clock a day ahead"
    CLOCK_BEHIND = "clock a day behind"
    LEASE_STOLEN = "lease stolen"
    WARNED = "with warnings"
    FUTURE = "from the future"


METRICS_LIES = frozenset({Lie.WARNED, Lie.FUTURE})
"""Lies of which only metrics are capable."""


_LIST_KEYS = ("items", "stores", "kvs", "result")


def change_document(lie: Lie, body: bytes) -> bytes | None:
    """The document as the lie has it; None: there is nothing at this address."""
    if lie is Lie.TRUNCATED:
        return body[: len(body) // 2]
    document = json.loads(body)
    found = _find_list(document)
    if found is None:
        return _change_object(lie, document)
    holder, key = found
    items = holder[key] or []
    if lie is Lie.EMPTY:
        items = []
    elif lie is Lie.HALF:
        items = items[: len(items) // 2]
    elif lie is Lie.OTHER_HALF:
        items = items[len(items) // 2 :]
    elif lie is Lie.DUPLICATED:
        items = [*items, *copy.deepcopy(items)]
    elif lie is Lie.UNDECODABLE and items:
        items = [*items[:-1], _garble(items[-1])]
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
        document = _garble(document)
    return json.dumps(document).encode()


def _halve(value: Any, lie: Lie) -> Any:
    if not isinstance(value, dict):
        return value
    fields, middle = list(value.items()), len(value) // 2
    return dict(fields[:middle] if lie is Lie.HALF else fields[middle:])


def _garble(item: Any) -> Any:
    """An item with a field of another type."""
    if not isinstance(item, dict):
        return {"garbled": True}
    if isinstance(item.get("metadata"), dict):
        return {**item, "metadata": {**item["metadata"], "creationTimestamp": "0000-13-45"}}
    key = next(iter(item), "value")
    return {**item, key: [[["garbled"]]]}
