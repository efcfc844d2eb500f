"""Fields of nodes and pods that may be unknown: what they say cannot be decoded, and the object is still understood.

An API server accepts times and numbers that no datetime or 64-bit integer holds, such as the year 0. For a Node or a
Pod such a field counts as absent, where absent is the careful reading: a time is unknown, a deadline is not set. Other
fields that cannot be decoded make the object a `BadObject`.
"""

from __future__ import annotations

import re
from typing import Any, Final

DEGRADING_KINDS: Final = frozenset({"Node", "Pod"})
MOST_UNKNOWN: Final = 50
"""An object with more such fields is a bad object."""
_PATH: Final = re.compile(r" - at `\$\.(?P<path>[^`]*)`$")
_STEP: Final = re.compile(r"\[(\d+)\]|[^.\[\]]+")
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
    if found is None or "..." in found["path"]:
        return None
    steps: list[str | int] = [int(step[1]) if step[1] else step[0] for step in _STEP.finditer(found["path"])]
    name = str(steps[-1]).replace("_", "").lower() if steps else ""
    if not (name.endswith(_TIME) or name in _NUMBERS):
        return None
    return _without(value, steps)


def _without(value: Any, steps: list[str | int]) -> Any | None:
    """A copy along the path; None if the path is not there."""
    step, *rest = steps
    if isinstance(step, int):
        if not isinstance(value, list) or step >= len(value) or not rest:
            return None
        inner = _without(value[step], rest)
        return None if inner is None else [*value[:step], inner, *value[step + 1 :]]
    if not isinstance(value, dict) or step not in value:
        return None
    if not rest:
        return {key: member for key, member in value.items() if key != step}
    inner = _without(value[step], rest)
    return None if inner is None else {**value, step: inner}
