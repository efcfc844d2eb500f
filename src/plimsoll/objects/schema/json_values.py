"""JSON values from outside: checked and copied once, so that all other code may rely on their shape.

`take_over` copies a value, rejects values that no Kubernetes API server could have decoded (endless
nesting, NaN, keys that are not strings) and converts numbers to the form in which Go stores them. The result is nested
at most `MAX_NESTING` deep, so code that walks schemas may recurse.
"""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec

from plimsoll.core.values import Value
from plimsoll.objects.schema import go_text

# Go's decoder stops at 10,000. This is far below Python's recursion limit and far above what an object needs.
MAX_NESTING = 128

_INT64 = range(-(2**63), 2**63)

# Walks of whole values are left to msgspec where it has one: in C they cost a tenth.
_decoder: Final = msgspec.json.Decoder()
_encoder: Final = msgspec.json.Encoder()
_sorting_encoder: Final = msgspec.json.Encoder(order="sorted")


class Refused(Value):
    """A value that is not JSON as Kubernetes understands it; `build_path` is where, in field-path notation."""

    path: str
    problem: str


class _Trail:
    """The way to a container as a linked list: a path is only spelled when something is wrong."""

    __slots__ = ("depth", "step", "up")

    def __init__(self, up: _Trail | None, step: str | int) -> None:
        self.up = up
        self.step = step
        self.depth: int = up.depth + 1 if up else 1

    def build_path(self, last: str | int | None = None) -> str:
        steps: list[str | int] = [] if last is None else [last]
        trail: _Trail | None = self
        while trail is not None:
            steps.append(trail.step)
            trail = trail.up
        spelled = "".join(
            f"[{step}]" if isinstance(step, int) else f".{step}" for step in reversed(steps) if step != ""
        )
        return spelled.removeprefix(".")


class _NotPlainError(Exception):
    """A value is unusual: it must be looked at item by item."""


def take_over(value: Any) -> Any | Refused:
    """A copy that shares nothing with `value`, or why it cannot be had."""
    try:
        return _copy_plain(value, MAX_NESTING)
    except _NotPlainError:
        return _take_over_closely(value)


def _copy_plain(value: Any, levels: int) -> Any:
    """A copy of a value of the usual types, nested at most `levels` deep."""
    type_ = type(value)
    if type_ is str and value.isascii():
        return value
    if type_ is dict and levels:
        copied = {}
        for name, item in value.items():
            if type(name) is not str or not name.isascii():
                raise _NotPlainError
            copied[name] = _copy_plain(item, levels - 1)
        return copied
    if type_ is list and levels:
        return [_copy_plain(item, levels - 1) for item in value]
    if value is None or type_ is bool or (type_ is int and -(2**63) <= value < 2**63):
        return value
    raise _NotPlainError


def _take_over_closely(value: Any) -> Any | Refused:
    """The same without recursion, for values of any kind and depth; a refusal names the place."""
    if not isinstance(value, (dict, list)):
        return _convert_scalar(value, _Trail(None, ""), None)
    root: Any = {} if isinstance(value, dict) else []
    pending: list[tuple[Any, Any, _Trail]] = [(value, root, _Trail(None, ""))]
    while pending:
        source, target, trail = pending.pop()
        if trail.depth > MAX_NESTING:
            return Refused(
                path=_shorten(trail.build_path()), problem=f"must not be nested deeper than {MAX_NESTING} levels"
            )
        refused = _copy_into(target, source, trail=trail, pending=pending)
        if refused is not None:
            return refused
    return root


def _copy_into(target: Any, source: Any, *, trail: _Trail, pending: list[tuple[Any, Any, _Trail]]) -> Refused | None:
    is_map = isinstance(source, dict)
    for step, item in source.items() if is_map else enumerate(source):
        if is_map and not isinstance(step, str):
            return Refused(path=trail.build_path(), problem=f"keys must be strings, found {step!r}")
        if type(item) is str and item.isascii():
            copied: Any = item
        elif isinstance(item, dict):
            copied = {}
            pending.append((item, copied, _Trail(trail, step)))
        elif isinstance(item, list):
            copied = []
            pending.append((item, copied, _Trail(trail, step)))
        else:
            copied = _convert_scalar(item, trail, step)
            if isinstance(copied, Refused):
                return copied
        if is_map:
            target[_replace_surrogates(str(step))] = copied
        else:
            target.append(copied)
    return None


def _convert_scalar(value: Any, trail: _Trail, step: str | int | None) -> Any | Refused:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return _replace_surrogates(value)
    if isinstance(value, int):
        return value if value in _INT64 else _convert_large_number(value, trail, step)
    if isinstance(value, float):
        if not math.isfinite(value):
            return Refused(path=trail.build_path(step), problem="must be a finite number")
        return int(value) if value.is_integer() and abs(value) < 2**63 else value
    return Refused(path=trail.build_path(step), problem=f"{type(value).__name__} is not a JSON type")


def _convert_large_number(value: int, trail: _Trail, step: str | int | None) -> Any | Refused:
    try:
        return float(value)
    except OverflowError:
        return Refused(path=trail.build_path(step), problem="must be a finite number")


def _replace_surrogates(text: str) -> str:
    """Go's decoder puts U+FFFD where JSON escapes half of a surrogate pair."""
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _shorten(path: str) -> str:
    return path if len(path) <= 120 else f"{path[:117]}..."


def is_same(left: Any, right: Any) -> bool:
    """Deep equality of JSON values that were taken over: `1` is not `true`, although they are equal in Python."""
    return left is right or (bool(left == right) and _are_of_same_types(left, right))


def _are_of_same_types(left: Any, right: Any) -> bool:
    """Whether values that Python considers equal are equal in JSON: only numbers and booleans can still differ."""
    if type(left) is not type(right):
        return False
    if not isinstance(left, (dict, list)):
        return True
    return _sorting_encoder.encode(left) == _sorting_encoder.encode(right)


def build_identity(value: Any) -> tuple[str, Any]:
    """Something hashable that is equal exactly for values that are the `is_same`."""
    if isinstance(value, (dict, list)):
        return ("compound", go_text.as_json(value))
    return (type(value).__name__, value)


def copy(value: Any) -> Any:
    """A deep copy of a value that was taken over before."""
    return _decoder.decode(_encoder.encode(value)) if isinstance(value, (dict, list)) else value
