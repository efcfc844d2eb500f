"""Fields of nodes and pods that may be unknown: what they say cannot be decoded, and the object is still understood.

An API server accepts times and numbers that no datetime or 64-bit number holds, such as the year 0 or 1e400. For a
Node or a Pod such a field counts as absent, where absent is the careful reading: a time is unknown, a deadline is not
set. What stands in place of a quantity stays as a text, so that whatever reads the quantity says what is wrong.
Other fields that cannot be decoded make the object a `BadObject`: a pod whose node is unknown must not look unbound.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, NoReturn

import msgspec

if TYPE_CHECKING:
    from collections.abc import Callable

DEGRADING_KINDS: Final = frozenset({"Node", "Pod"})
MOST_UNKNOWN: Final = 50
"""An object with more such fields is a bad object."""
_PATH: Final = re.compile(r" - at `\$\.(?P<path>[^`]*)`$")
_STEP: Final = re.compile(r"\[(\d+)\]|[^.\[\]]+")
_QUANTITIES: Final = re.compile(r"(?P<list>.*\.(?:capacity|allocatable|requests|limits|overhead))\[\.\.\.\]")
_ANNOTATIONS: Final = "metadata.annotations"
_LONGEST_QUOTE: Final = 40
_INT64: Final = range(-(2**63), 2**63)
_MOST_DIGITS: Final = 20
_OUT_OF_RANGE: Final = ("Number out of range", "Integer value out of range")
"""What msgspec says of a number that it cannot hold; it then refuses the whole text."""
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


@dataclass(frozen=True, slots=True)
class OutOfRange:
    """A JSON number that no float or no 64-bit integer holds, of a type that no field has."""

    written: str

    def __str__(self) -> str:
        return f"{self.written[:_LONGEST_QUOTE]} is out of range"


class Rest(NamedTuple):
    """A JSON value without the fields that cannot be decoded."""

    value: Any
    unknown: tuple[str, ...]
    """The fields that are missing from it, `path: problem`. A quantity is not missing: it is a text."""


def decode_numbers_out_of_range(data: bytes, error: Exception) -> Any | None:
    """The JSON value with `OutOfRange` in place of numbers that no float holds; None if that is not what is wrong."""
    if not str(error).startswith(_OUT_OF_RANGE):
        return None
    try:
        return json.loads(data, parse_float=_read_float, parse_int=_read_int, parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return None


def remove_unknown(value: Any, error: Exception) -> Rest | None:
    """The JSON value without the field that the error names; None if that field may not be unknown."""
    found = _PATH.search(str(error))
    if found is None:
        return None
    path, complaint = found["path"], str(error)[: found.start()]
    if (quantities := _QUANTITIES.fullmatch(path)) is not None:
        return _build_rest(_change(value, _read_steps(quantities["list"]), _write_out_quantities))
    if path == f"{_ANNOTATIONS}[...]":
        return _remove_annotations(value)
    *parents, last = _read_steps(path) or [""]
    if "..." in path or not (_may_be_unknown(str(last)) or _is_number_for_int(value, path, complaint)):
        return None
    problem = f"{path}: {_describe(value, path, complaint)}"
    return _build_rest(_change(value, parents, lambda parent: _remove(parent, str(last))), problem)


def _read_float(written: str) -> float | OutOfRange:
    number = float(written)
    return OutOfRange(written) if abs(number) == float("inf") else number


def _read_int(written: str) -> int | OutOfRange:
    return int(written) if len(written) <= _MOST_DIGITS else OutOfRange(written)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


def _may_be_unknown(name: str) -> bool:
    plain = name.replace("_", "").lower()
    return plain.endswith(_TIME) or plain in _NUMBERS


def _is_number_for_int(value: Any, path: str, complaint: str) -> bool:
    """Whether a number stands where a whole number belongs, and is none of 64 bits."""
    found = _find(value, _read_steps(path))
    return complaint.startswith("Expected `int") and (isinstance(found, float) or _is_out_of_range(found))


def _is_out_of_range(value: Any) -> bool:
    return isinstance(value, OutOfRange) or (isinstance(value, int) and value not in _INT64)


def _describe(value: Any, path: str, complaint: str) -> str:
    found = _find(value, _read_steps(path))
    return _describe_out_of_range(found) if _is_out_of_range(found) else complaint


def _describe_out_of_range(number: Any) -> str:
    return str(number if isinstance(number, OutOfRange) else OutOfRange(str(number)))


def _build_rest(value: Any | None, *unknown: str) -> Rest | None:
    return None if value is None else Rest(value, unknown)


def _remove_annotations(value: Any) -> Rest | None:
    """Without annotations that are numbers out of range; others that are not texts are a mistake of another kind."""
    steps = _read_steps(_ANNOTATIONS)
    members = _find(value, steps)
    if not isinstance(members, dict):
        return None
    gone = {key: member for key, member in members.items() if _is_out_of_range(member)}
    if not gone:
        return None
    rest = {key: member for key, member in members.items() if key not in gone}
    unknown = [f"{_ANNOTATIONS}[{key}]: {_describe_out_of_range(member)}" for key, member in gone.items()]
    return _build_rest(_change(value, steps, lambda _members: rest), *unknown)


def _find(value: Any, steps: list[str | int]) -> Any:
    for step in steps:
        if isinstance(step, int):
            value = value[step] if isinstance(value, list) and step < len(value) else None
        else:
            value = value.get(step) if isinstance(value, dict) else None
    return value


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
    return {name: _write_out_quantity(quantity) for name, quantity in quantities.items()}


def _write_out_quantity(quantity: Any) -> str | float:
    if isinstance(quantity, str | int | float) and not isinstance(quantity, bool):
        return quantity
    written = quantity.written if isinstance(quantity, OutOfRange) else msgspec.json.encode(quantity).decode()
    return str(written[:_LONGEST_QUOTE])


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
