"""Prints values like Go's `%q`, `%v` and `json.Marshal`, with which Kubernetes builds its messages."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from typing import Any

from plimsoll.core.values import Value

_ESCAPES = {
    "\a": r"\a",
    "\b": r"\b",
    "\f": r"\f",
    "\n": r"\n",
    "\r": r"\r",
    "\t": r"\t",
    "\v": r"\v",
    "\\": r"\\",
    '"': r"\"",
}

# encoding/json escapes these so that its output may stand inside HTML.
_HTML_UNSAFE = str.maketrans({"<": r"\u003c", ">": r"\u003e", "&": r"\u0026", "\u2028": r"\u2028", "\u2029": r"\u2029"})

_TYPE_NAMES = {
    type(None): "<nil>",
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


class GoStruct(Value):
    """A Go struct inside a value: its fields keep their order, where a map's keys are sorted."""

    fields: dict[str, Any]


def quote(text: str) -> str:
    """`%q`: double quotes, Go's escapes, everything printable as it is."""
    if text.isprintable():
        escaped = text.replace("\\", r"\\").replace('"', r"\"")
        return f'"{escaped}"'
    return '"' + "".join(_quote_character(character) for character in text) + '"'


def _quote_character(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    point = ord(character)
    if point < 0x80:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point < 0x10000 else f"\\U{point:08x}"


def format_number(value: float) -> str:
    """`%v` of an int64 or a float64: floats in the shortest form, with an exponent from a million on."""
    if isinstance(value, int):
        return str(value)
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(exponent, int)
    leading = len(digits) - 1 + exponent
    if -4 <= leading < 6:
        return format(Decimal(repr(value)).normalize(), "f")
    mantissa = "".join(map(str, digits))
    fraction = f".{mantissa[1:]}" if len(mantissa) > 1 else ""
    return f"{'-' if sign else ''}{mantissa[0]}{fraction}e{'-' if leading < 0 else '+'}{abs(leading):02d}"


def as_json(value: Any) -> str:
    """`json.Marshal`: compact, sorted keys, safe for HTML."""
    text = json.dumps(_marshal(value), ensure_ascii=False, separators=(",", ":"))
    return text.translate(_HTML_UNSAFE)


def _marshal(value: Any) -> Any:
    if isinstance(value, GoStruct):
        return {name: _marshal(field) for name, field in value.fields.items()}
    if isinstance(value, dict):
        return {str(key): _marshal(value[key]) for key in sorted(value, key=str)}
    if isinstance(value, (list, tuple)):
        return [_marshal(item) for item in value]
    if isinstance(value, float):
        if not math.isfinite(value):
            return None
        return int(value) if value.is_integer() and abs(value) < 1e21 else value
    return value


def format_plain(value: Any) -> str:
    """`%v`: text without quotes, `map[a:1]`, `[1 2]`."""
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return format_number(value)
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{format_plain(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(format_plain, value)) + "]"
    return str(value)


def get_type_name(value: Any) -> str:
    """`%T` of a decoded JSON value."""
    return _TYPE_NAMES.get(type(value), type(value).__name__)
