"""JSON values measured, copied and named, for all patch formats.

Nothing here recurses. The operations of a JSON patch can add up nesting, so an intermediate value may be deeper than
what a request body may contain.
"""

from __future__ import annotations

from typing import Any

import msgspec

_KINDS = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}


def get_go_kind(value: Any) -> str:
    """What Go's JSON decoder calls a value it did not expect."""
    return _KINDS.get(type(value), "null")


def copy_within_limit(value: Any, *, at_most_bytes: int) -> tuple[Any, int]:
    """A deep copy and its size as JSON; gives up, with a size above the limit, as soon as the limit is passed."""
    holder: list[Any] = []
    size = 0
    pending: list[tuple[Any, Any, str | None]] = [(value, holder, None)]
    while pending and size <= at_most_bytes:
        source, target, key = pending.pop()
        size += _measure_own_size(source)
        if isinstance(source, dict):
            fresh: Any = dict.fromkeys(source)
            pending += [(item, fresh, name) for name, item in source.items()]
        elif isinstance(source, list):
            fresh = []
            pending += [(item, fresh, None) for item in reversed(source)]
        else:
            fresh = source
        if key is None:
            target.append(fresh)
        else:
            target[key] = fresh
    return holder[0], size


def _measure_own_size(value: Any) -> int:
    """The bytes of a scalar, or of a container without what is in it: brackets, commas, keys and colons."""
    if isinstance(value, dict):
        names = sum(len(msgspec.json.encode(name)) + 1 for name in value)
        return 2 + names + max(len(value) - 1, 0)
    if isinstance(value, list):
        return 2 + max(len(value) - 1, 0)
    return len(msgspec.json.encode(value))


def is_nested_deeper(value: Any, limit: int) -> bool:
    """Whether more than `limit` containers lie in one another."""
    level = [value]
    for _ in range(limit):
        level = [
            item
            for container in level
            if isinstance(container, (dict, list))
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, (dict, list))
        ]
        if not level:
            return False
    return True
