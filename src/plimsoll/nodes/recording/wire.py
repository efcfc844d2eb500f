"""Converts between structs and the JSON of recordings, with the path of any problem."""

from __future__ import annotations

from typing import Any, TypeVar

import msgspec

from plimsoll.journal.errors import UnreadableRecording

T = TypeVar("T")

Json = dict[str, Any]


def to_plain(value: Any) -> Any:
    """Structs, times and tuples as JSON values."""
    return msgspec.json.decode(msgspec.json.encode(value))


def read(kind: type[T], value: Any, *, path: str) -> T:
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise UnreadableRecording(str(error), path=path) from error
