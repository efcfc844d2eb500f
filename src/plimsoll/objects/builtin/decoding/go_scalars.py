"""Scalars with a special decoding in Go: quantities, times, ints that may be strings, and base64.

Each function returns the value as Go stores it, or Go's message.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.quantity import Quantity
from plimsoll.objects.builtin.decoding import go_times

if TYPE_CHECKING:
    from collections.abc import Callable

_QUANTITY_TEXTS: Final = (
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    "unable to parse numeric part of quantity",
    "unable to parse quantity's suffix",
)
_INT32: Final = range(-(2**31), 2**31)
_BASE64: Final = re.compile(rb"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_NOT_BASE64: Final = re.compile(rb"[^A-Za-z0-9+/\r\n]")


class NotConverted(NamedTuple):
    """Go's complaint about a value."""

    text: str


def get_json_kind(value: Any, go_type: str) -> str:
    """Go's name of the JSON value that does not fit the type."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        if go_type not in ("int32", "int64"):
            return "number"
        return f"number {int(value) if float(value).is_integer() else value}"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def _read_quantity(value: Any) -> str | NotConverted:
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return NotConverted(_QUANTITY_TEXTS[0])
    try:
        return _canonicalize(value) if isinstance(value, str) else str(Quantity.parse(value))
    except InvalidQuantity as refused:
        return NotConverted(next((text for text in _QUANTITY_TEXTS if refused.problem.endswith(text)), refused.problem))


@lru_cache(maxsize=4096)
def _canonicalize(text: str) -> str:
    return str(Quantity.parse(text))


def _read_time(value: Any, layout: str = go_times.RFC3339) -> str | NotConverted:
    if not isinstance(value, str):
        return NotConverted(f"json: cannot unmarshal {get_json_kind(value, '')} into Go value of type string")
    problem = go_times.find_time_problem(value, layout)
    return NotConverted(problem) if problem else value


def _read_micro_time(value: Any) -> str | NotConverted:
    return _read_time(value, go_times.RFC3339_MICRO)


def _read_int_or_string(value: Any) -> Any:
    if isinstance(value, str):
        return value
    if isinstance(value, bool) or not isinstance(value, int) or value not in _INT32:
        return NotConverted(f"json: cannot unmarshal {get_json_kind(value, 'int32')} into Go value of type int32")
    return value


SPECIAL_READERS: Final[dict[str, Callable[[Any], Any]]] = {
    "Quantity": _read_quantity,
    "Time": _read_time,
    "MicroTime": _read_micro_time,
    "IntOrString": _read_int_or_string,
}
SPECIAL_ZEROS: Final[dict[str, Any]] = {"Quantity": "0", "Time": None, "MicroTime": None, "IntOrString": 0}


def find_base64_problem(text: str) -> str | None:
    """None, or Go's complaint: standard alphabet, padded, line breaks ignored."""
    data = text.encode("utf-8", "surrogatepass")
    plain = data.replace(b"\r", b"").replace(b"\n", b"")
    if _BASE64.fullmatch(plain):
        return None
    foreign = _NOT_BASE64.search(data)
    if foreign is None:
        return f"illegal base64 data at input byte {len(data) - len(plain) % 4}"
    position = foreign.start()
    in_quantum = len(data[:position].replace(b"\r", b"").replace(b"\n", b"")) % 4
    if data[position : position + 1] == b"=" and in_quantum >= 2:
        return f"illegal base64 data at input byte {_find_misplaced_padding(data, position, in_quantum)}"
    return f"illegal base64 data at input byte {position}"


def _find_misplaced_padding(data: bytes, position: int, in_quantum: int) -> int:
    """Padding may only close the text: `xx==` or `xxx=`."""
    following = position + 1
    if in_quantum == 2:
        if following >= len(data):
            return len(data)
        if data[following : following + 1] != b"=":
            return following - 1
        following += 1
    return following
