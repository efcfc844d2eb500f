"""Fields of nodes and pods that may be unknown: what they say cannot be decoded, and the object is still understood.

An API server accepts times and numbers that no datetime or 64-bit integer holds, such as the year 0. For a Node or a
Pod such a field counts as absent, where absent is the careful reading: a time is unknown, a deadline is not set. What
stands in place of a quantity stays as a text, so that whatever reads the quantity finds it and says what is wrong.
Other fields that cannot be decoded make the object a `BadObject`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

DEGRADING_KINDS: Final = frozenset({"Node", "Pod"})
MOST_UNKNOWN: Final = 50
"""An object with more such fields is a bad object."""
_PATH: Final = re.compile(r" - at `\$\.(?P<path>[^`]*)`$")
_STEP: Final = re.compile(r"\[(\d+)\]|[^.\[\]]+")
_QUANTITIES: Final = re.compile(r"(?P<list>.*\.(?:capacity|allocatable|requests|limits|overhead))\[\.\.\.\]")
_LONGEST_QUOTE: Final = 40
_TIME: Final = ("timestamp", "time", "timeadded", "startedat", "finishedat")
_NUMBERS: Final = frozenset(
    {
        "activedeadlineseconds",
        "generation",
        "observedgeneration",
        "priority",
        "restartcount",
        "deletiongraceperiodseconds",
    }
)


def remove_unknown(value: Any, error: Exception) -> Any | None:
    """The JSON value without the field that the error names; None if that field may not be unknown."""
    found = _PATH.search(str(error))
    if found is None:
        return None
    if (quantities := _QUANTITIES.fullmatch(found["path"])) is not None:
        return _change(value, _read_steps(quantities["list"]), _write_out_quantities)
    steps = [] if "..." in found["path"] else _read_steps(found["path"])
    *parents, last = steps or [""]
    name = str(last).replace("_", "").lower()
    if not (name.endswith(_TIME) or name in _NUMBERS):
        return None
    return _change(value, parents, lambda parent: _remove(parent, str(last)))


def _read_steps(path: str) -> list[str | int]:
    return [int(step[1]) if step[1] else step[0] for step in _STEP.finditer(path)]


def _remove(parent: Any, name: str) -> Any | None:
    if not isinstance(parent, dict) or name not in parent:
        return None
    return {key: member for key, member in parent.items() if key != name}


def _write_out_quantities(quantities: Any) -> Any | None:
    """A resource list in which what is neither text nor number is a text, which is no quantity either."""
    if not isinstance(quantities, dict):
        return None
    return {
        name: quantity
        if isinstance(quantity, str | int | float) and not isinstance(quantity, bool)
        else msgspec.json.encode(quantity).decode()[:_LONGEST_QUOTE]
        for name, quantity in quantities.items()
    }


def _change(value: Any, steps: list[str | int], change: Callable[[Any], Any | None]) -> Any | None:
    """A copy along the path with its end changed; None if the path is not there, or the change is not possible."""
    if not steps:
        return change(value)
    step, *rest = steps
    if isinstance(step, int):
        if not isinstance(value, list) or step >= len(value):
            return None
        inner = _change(value[step], rest, change)
        return None if inner is None else [*value[:step], inner, *value[step + 1 :]]
    if not isinstance(value, dict) or step not in value:
        return None
    inner = _change(value[step], rest, change)
    return None if inner is None else {**value, step: inner}
