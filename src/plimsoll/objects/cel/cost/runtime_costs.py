"""The cost of a call at run time, by the actual sizes of its arguments; charged before the work is done.

The numbers are those of Kubernetes, and a little more where Python copies what Go shares (joining lists) or visits
every element (comparing them): the budget must bound the time too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from plimsoll.objects.cel.cost.ranges import PATTERN, TRAVERSAL

Arguments = Sequence[object]


def call_cost(function: str, arguments: Arguments) -> int:
    priced = _COSTS.get(function)
    return 1 if priced is None else priced(arguments)


def length(value: object) -> int:
    """The size of text, lists and maps; everything else counts as one."""
    if type(value) is int:
        return 1
    return len(value) if isinstance(value, str | bytes | Sequence | Mapping) else 1


def _traversal(size: float) -> int:
    return math.ceil(size * TRAVERSAL)


def _first(arguments: Arguments) -> int:
    return 1 + _traversal(length(arguments[0]))


def _twice_first(arguments: Arguments) -> int:
    return 1 + _traversal(2 * length(arguments[0]))


def _last(arguments: Arguments) -> int:
    return 1 + _traversal(length(arguments[-1]))


def _both(arguments: Arguments) -> int:
    return 1 + _traversal(length(arguments[0]) + length(arguments[1]))


def _comparison(arguments: Arguments) -> int:
    return 1 + len(arguments[0]) // 10 if isinstance(arguments[0], str | bytes) else 1


def _pattern(arguments: Arguments) -> int:
    return _traversal(1 + length(arguments[0])) * max(1, math.ceil(length(arguments[1]) * PATTERN))


def _substring(arguments: Arguments) -> int:
    return 1 + _traversal(length(arguments[0])) * _traversal(length(arguments[1]))


def _elements(arguments: Arguments) -> int:
    """One step per element, and for text its length."""
    items = arguments[0]
    if isinstance(items, str):
        return 1 + _traversal(len(items))
    return 1 + length(items) + _text_within(items)


def _text_within(items: object) -> int:
    if not isinstance(items, Sequence):
        return 0
    return _traversal(sum(len(item) for item in items if isinstance(item, str | bytes)))


def _product(arguments: Arguments) -> int:
    return 1 + length(arguments[0]) * length(arguments[1])


def _replace(arguments: Arguments) -> int:
    """The result may be longer than the text by as much as was put in."""
    text, old, new = arguments[0], arguments[1], arguments[2]
    if not (isinstance(text, str) and isinstance(old, str) and isinstance(new, str)):
        return 1
    return 1 + _traversal(2 * len(text) + text.count(old) * len(new))


def _join(arguments: Arguments) -> int:
    separators = length(arguments[1]) * length(arguments[0]) if len(arguments) > 1 else 0
    return 1 + length(arguments[0]) + 2 * _text_within(arguments[0]) + _traversal(2 * separators)


_COSTS: dict[str, Callable[[Arguments], int]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _elements),
    **dict.fromkeys(("url", "isURL", "lowerAscii", "upperAscii", "substring", "trim", "strings.quote"), _first),
    **dict.fromkeys(("string", "bytes", "quantity", "isQuantity", "semver", "isSemver", "format"), _first),
    **dict.fromkeys(("ip", "isIP", "cidr", "isCIDR", "int", "double", "timestamp", "duration"), _first),
    **dict.fromkeys(("split", "ip.isCanonical"), _twice_first),
    **dict.fromkeys(("startsWith", "endsWith", "containsIP", "containsCIDR"), _last),
    **dict.fromkeys(("matches", "find", "findAll"), _pattern),
    **dict.fromkeys(("sets.contains", "sets.equivalent", "sets.intersects"), _product),
    "validate": lambda arguments: 1 + 32 * _traversal(length(arguments[-1])),
    "contains": _substring,
    "replace": _replace,
    "join": _join,
    "_+_": _both,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _comparison),
}
