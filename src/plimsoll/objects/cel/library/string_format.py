"""`'%s is %d'.format([a, 1])`: the strings extension's formatting, clause by clause."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence

from plimsoll.objects.cel.errors import CelEvaluationError
from plimsoll.objects.cel.library.conversions import to_string
from plimsoll.objects.cel.types.signatures import Library
from plimsoll.objects.cel.values.numbers import is_number
from plimsoll.objects.cel.values.values import Duration, Timestamp, TypeValue, get_type_name, is_list

LIBRARY = Library()

_CLAUSE = re.compile(r"%(?:%|(?:\.([0-9]*))?([a-zA-Z]))|%")
_MOST_DIGITS = 1000
_DEEPEST = 50


@LIBRARY.function("<string>.format(list(dyn)) -> string")
def format_string(template: str, arguments: Sequence[object]) -> str:
    pieces: list[str] = []
    end = used = 0
    for clause in _CLAUSE.finditer(template):
        pieces.append(template[end : clause.start()])
        end = clause.end()
        if clause.group() == "%%":
            pieces.append("%")
            continue
        if clause.group(2) is None:
            raise CelEvaluationError("could not parse formatting clause: unexpected end of string")
        if used >= len(arguments):
            raise CelEvaluationError(f"index {used} out of range")
        pieces.append(_format_clause(clause.group(2), clause.group(1), arguments[used]))
        used += 1
    pieces.append(template[end:])
    return "".join(pieces)


def _format_clause(verb: str, precision: str | None, value: object) -> str:
    digits = 6 if precision is None else int(precision or "0") if len(precision or "0") < 5 else _MOST_DIGITS + 1
    if digits > _MOST_DIGITS:
        raise CelEvaluationError(f"could not parse formatting clause: precision exceeds {_MOST_DIGITS}")
    match verb:
        case "s":
            return _format_text(value)
        case "d":
            return _format_decimal(value)
        case "f":
            return _format_fixed(value, digits)
        case "e":
            return _format_scientific(value, digits)
        case "b":
            return _format_binary(value)
        case "x" | "X":
            return _format_hexadecimal(value, upper=verb == "X")
        case "o":
            return _format_octal(value)
    raise CelEvaluationError(f'could not parse formatting clause: unrecognized formatting clause "{verb}"')


def _format_text(value: object, depth: int = 0) -> str:
    if depth > _DEEPEST:
        raise CelEvaluationError("value is nested too deeply to be formatted")
    if value is None:
        return "null"
    if isinstance(value, float) and not math.isfinite(value):
        return _format_special(value)
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if isinstance(value, TypeValue):
        return value.name
    if isinstance(value, str | int | float | Timestamp | Duration):
        return to_string(value)
    if isinstance(value, Mapping):
        entries = sorted(f"{_format_text(key, depth + 1)}: {_format_text(value[key], depth + 1)}" for key in value)
        return "{" + ", ".join(entries) + "}"
    if is_list(value):
        return "[" + ", ".join(_format_text(item, depth + 1) for item in value) + "]"
    raise CelEvaluationError(
        "error during formatting: string clause can only be used on strings, bools, bytes, ints, doubles, maps, "
        f"lists, types, durations, and timestamps, was given {get_type_name(value)}"
    )


def _format_special(value: float) -> str:
    if math.isnan(value):
        return "NaN"
    return ("Infinity" if value > 0 else "-Infinity") if math.isinf(value) else ""


def _format_decimal(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(int(value))
    if isinstance(value, float) and not math.isfinite(value):
        return _format_special(value)
    raise _build_clause_error("decimal clause", "integers", value)


def _format_fixed(value: object, digits: int) -> str:
    number = _as_double(value, "fixed-point clause")
    return _format_special(number) or f"{number:.{digits}f}"


def _format_scientific(value: object, digits: int) -> str:
    number = _as_double(value, "scientific clause")
    return _format_special(number) or f"{number:.{digits}e}"


def _as_double(value: object, clause: str) -> float:
    if isinstance(value, int | float) and is_number(value):
        return float(value)
    if isinstance(value, str) and value in {"NaN", "Infinity", "-Infinity"}:
        return float(value.replace("Infinity", "inf"))
    raise _build_clause_error(clause, "doubles", value)


def _format_binary(value: object) -> str:
    if isinstance(value, int):
        return f"{int(value):b}"
    raise _build_clause_error("binary clause", "integers and bools", value)


def _format_octal(value: object) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{int(value):o}"
    raise _build_clause_error("octal clause", "integers", value)


def _format_hexadecimal(value: object, *, upper: bool) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        text = f"{int(value):x}"
    elif isinstance(value, str):
        text = value.encode("utf-8", "surrogatepass").hex()
    elif isinstance(value, bytes):
        text = value.hex()
    else:
        raise _build_clause_error("hex clause", "integers, byte buffers, and strings", value)
    return text.upper() if upper else text


def _build_clause_error(clause: str, kinds: str, value: object) -> CelEvaluationError:
    return CelEvaluationError(
        f"error during formatting: {clause} can only be used on {kinds}, was given {get_type_name(value)}"
    )
