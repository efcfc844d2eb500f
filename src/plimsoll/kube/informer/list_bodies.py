"""Reads the body of a list in portions that do not hold the event loop, whatever the server put into it.

A page of usual size is one parse. What is larger (a server that ignores `limit`, objects of a megabyte each) is cut by
`list_scanning`, and what does not fit the struct is read object by object; in both cases the caller gets control
back after every portion.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from plimsoll.core.values import Wire
from plimsoll.kube.errors import UnreadableAnswer
from plimsoll.kube.informer.changes import V
from plimsoll.kube.informer.list_scanning import BrokenText, Cut, cuts
from plimsoll.kube.informer.type_marks import all_unmarked
from plimsoll.kube.informer.watch_events import from_wire, item_decoder, items_decoder
from plimsoll.objects.decoding import decode_list
from plimsoll.objects.meta import ListMeta, WireObject

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plimsoll.objects.problems import BadObject

T = TypeVar("T", bound=WireObject)

_UNREADABLE: Final = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
_WHOLE_BYTES: Final = 4 * 1024 * 1024
_CUT_BYTES: Final = 256 * 1024
# An object that does not fit costs a millisecond to find out why.
_SLOW_AT_ONCE: Final = 16


class Portion(NamedTuple, Generic[V]):
    """Some of the objects, and how much text they were."""

    values: Sequence[V | BadObject]
    size_bytes: int


class _Whole(Wire, Generic[T]):
    kind: str | None = None
    metadata: Raw = Raw(b"null")
    items: tuple[T, ...] | None = None


class ListReader(Generic[V]):
    """Reads one body: go through `portions` to the end, then `metadata` is there."""

    def __init__(self, struct: type[WireObject], body: bytes, *, keep_raw: bool = False) -> None:
        self._struct = struct
        self._body = body
        self._fast = None if keep_raw else items_decoder(struct)
        self._decode = item_decoder(keep_raw=keep_raw)
        self.metadata = ListMeta()

    def portions(self, *, whole_bytes: int = _WHOLE_BYTES, cut_bytes: int = _CUT_BYTES) -> Iterator[Portion[V]]:
        """Raises `UnreadableAnswer` if this is no list of the kind, or breaks off."""
        if len(self._body) <= whole_bytes and self._fast is not None:
            try:
                whole = _whole_decoder(self._struct).decode(self._body)
            except _UNREADABLE:
                pass
            else:
                values = whole.items or ()
                if self._all_of_kind(values):
                    self._open(whole.kind or "", whole.metadata, has_items=whole.items is not None)
                    yield Portion(all_unmarked(values), len(self._body))
                    return
        yield from self._in_cuts(cut_bytes)

    def _in_cuts(self, cut_bytes: int) -> Iterator[Portion[V]]:
        told: dict[str, bytes] = {}
        has_items = False
        try:
            for part in cuts(self._body, size_bytes=cut_bytes):
                if isinstance(part, Cut):
                    has_items = True
                    yield from self._read(part.array)
                else:
                    told[part.key] = part.value
        except BrokenText as error:
            raise UnreadableAnswer(f"a list that cannot be read: {error}") from error
        try:
            kind = msgspec.json.decode(told.get("kind", b'""'), type=str | None) or ""
        except _UNREADABLE:
            raise UnreadableAnswer("a list that cannot be read: kind: not a text") from None
        self._open(kind, Raw(told.get("metadata", b"null")), has_items=has_items)

    def _read(self, array: bytes) -> Iterator[Portion[V]]:
        if self._fast is not None:
            try:
                values = self._fast.decode(array)
            except _UNREADABLE:
                pass
            else:
                if self._all_of_kind(values):
                    yield Portion(all_unmarked(values), len(array))
                    return
        slow: list[V | BadObject] = []
        size_bytes = 0
        for item in _items(array):
            slow.append(self._decode(self._struct, item))
            size_bytes += len(bytes(item))
            if len(slow) >= _SLOW_AT_ONCE:
                yield Portion(tuple(slow), size_bytes)
                slow, size_bytes = [], 0
        if slow:
            yield Portion(tuple(slow), size_bytes)

    def _all_of_kind(self, values: Sequence[WireObject]) -> bool:
        return all(one.kind in ("", self._struct.kind_name()) for one in values)

    def _open(self, kind: str, metadata: Raw, *, has_items: bool) -> None:
        """The rest of the list, by the rules that hold for every list: read as one without items."""
        items = b"[]" if has_items else b"null"
        rest = msgspec.json.encode({"kind": kind or None, "metadata": metadata, "items": Raw(items)})
        listed = decode_list(self._struct, rest)
        if listed.problem:
            raise UnreadableAnswer(f"a list that cannot be read: {listed.problem}")
        self.metadata = listed.metadata


def _items(array: bytes) -> Iterator[Raw | bytes]:
    try:
        yield from msgspec.json.decode(array, type=tuple[Raw, ...])
    except RecursionError:
        # One object is nested too deeply; the others are still to be had.
        for part in cuts(b'{"items":' + array + b"}", size_bytes=1):
            if isinstance(part, Cut):
                yield part.array[1:-1]
    except _UNREADABLE as error:
        raise BrokenText(str(error)) from error


@cache
def _whole_decoder(struct: type[T]) -> msgspec.json.Decoder[_Whole[T]]:
    return msgspec.json.Decoder(_Whole[struct], dec_hook=from_wire)  # type: ignore[valid-type] # made at run time
