"""Reading plain JSON of recordings back into structs, with the path of whatever is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from plimsoll.journal.errors import UnreadableRecording

if TYPE_CHECKING:
    from collections.abc import Sequence

T = TypeVar("T")

Json = dict[str, Any]


def plain(value: Any) -> Any:
    """Structs, times and tuples as JSON has them."""
    return msgspec.json.decode(msgspec.json.encode(value))


def read(kind: type[T], value: Any, *, path: str) -> T:
    try:
        return msgspec.convert(value, kind)
    except (msgspec.ValidationError, RecursionError) as error:
        raise UnreadableRecording(str(error), path=path) from error


def read_all(kind: type[T], values: Sequence[Any], *, path: str) -> tuple[T, ...]:
    return tuple(read(kind, one, path=f"{path}[{index}]") for index, one in enumerate(values))
