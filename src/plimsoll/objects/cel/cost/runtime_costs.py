"""The cost of a call at run time, by the actual sizes of its arguments; charged before the work is done.

The numbers are those of Kubernetes, and a little more where Python copies what Go shares (joining lists) or visits
every element (comparing them): the budget must bound the time too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from plimsoll.objects.cel.cost.ranges import PATTERN, TRAVERSAL

Arguments = Sequence[object]


def compute_call_cost(function: str, arguments: Arguments) -> int:
    priced = _COSTS.get(function)
    return 1 if priced is None else priced(arguments)


def measure_length(value: object) -> int:
    """The size of text, lists and maps; everything else counts as one."""
    if type(value) is int:
        return 1
    return len(value) if isinstance(value, str | bytes | Sequence | Mapping) else 1


def _compute_traversal(size: float) -> int:
    return math.ceil(size * TRAVERSAL)


def _compute_cost_of_first(arguments: Arguments) -> int:
    return 1 + _compute_traversal(measure_length(arguments[0]))


def _compute_cost_of_first_twice(arguments: Arguments) -> int:
    return 1 + _compute_traversal(2 * measure_length(arguments[0]))


def _compute_cost_of_last(arguments: Arguments) -> int:
    return 1 + _compute_traversal(measure_length(arguments[-1]))


def _compute_cost_of_both(arguments: Arguments) -> int:
    return 1 + _compute_traversal(measure_length(arguments[0]) + measure_length(arguments[1]))


def _compute_cost_of_comparison(arguments: Arguments) -> int:
    return 1 + len(arguments[0]) // 10 if isinstance(arguments[0], str | bytes) else 1


def _compute_cost_of_pattern(arguments: Arguments) -> int:
    return _compute_traversal(1 + measure_length(arguments[0])) * max(
        1, math.ceil(measure_length(arguments[1]) * PATTERN)
    )


def _compute_cost_of_substring(arguments: Arguments) -> int:
    return 1 + _compute_traversal(measure_length(arguments[0])) * _compute_traversal(measure_length(arguments[1]))


def _compute_cost_of_elements(arguments: Arguments) -> int:
    """One step per element, and for text its length."""
    items = arguments[0]
    if isinstance(items, str):
        return 1 + _compute_traversal(len(items))
    return 1 + measure_length(items) + _measure_text(items)


def _measure_text(items: object) -> int:
    if not isinstance(items, Sequence):
        return 0
    return _compute_traversal(sum(len(item) for item in items if isinstance(item, str | bytes)))


def _compute_cost_of_product(arguments: Arguments) -> int:
    return 1 + measure_length(arguments[0]) * measure_length(arguments[1])


def _replace(arguments: Arguments) -> int:
    """The result may be longer than the text by as much as was put in."""
    text, old, new = arguments[0], arguments[1], arguments[2]
    if not (isinstance(text, str) and isinstance(old, str) and isinstance(new, str)):
        return 1
    return 1 + _compute_traversal(2 * len(text) + text.count(old) * len(new))


def _join(arguments: Arguments) -> int:
    separators = measure_length(arguments[1]) * measure_length(arguments[0]) if len(arguments) > 1 else 0
    return 1 + measure_length(arguments[0]) + 2 * _measure_text(arguments[0]) + _compute_traversal(2 * separators)


_COSTS: dict[str, Callable[[Arguments], int]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _compute_cost_of_elements),
    **dict.fromkeys(
        ("url", "isURL", "lowerAscii", "upperAscii", "substring", "trim", "strings.quote"), _compute_cost_of_first
    ),
    **dict.fromkeys(
        ("string", "bytes", "quantity", "isQuantity", "semver", "isSemver", "format"), _compute_cost_of_first
    ),
    **dict.fromkeys(("ip", "isIP", "cidr", "isCIDR", "int", "double", "timestamp", "duration"), _compute_cost_of_first),
    **dict.fromkeys(("split", "ip.isCanonical"), _compute_cost_of_first_twice),
    **dict.fromkeys(("startsWith", "endsWith", "containsIP", "containsCIDR"), _compute_cost_of_last),
    **dict.fromkeys(("matches", "find", "findAll"), _compute_cost_of_pattern),
    **dict.fromkeys(("sets.contains", "sets.equivalent", "sets.intersects"), _compute_cost_of_product),
    "validate": lambda arguments: 1 + 32 * _compute_traversal(measure_length(arguments[-1])),
    "contains": _compute_cost_of_substring,
    "replace": _replace,
    "join": _join,
    "_+_": _compute_cost_of_both,
    **dict.fromkeys(("_<_", "_<=_", "_>_", "_>=_"), _compute_cost_of_comparison),
}
