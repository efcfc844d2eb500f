"""Decodes the body of a list in portions that do not block the event loop, whatever the server put into it.

A page of usual size is one parse. A larger body (a server that ignores `limit`, objects of a megabyte each) is cut into
arrays of some of its items, and a body that does not fit the struct is decoded object by object; in both cases the
caller gets control back after every portion.

A cut is guessed first, where text like the beginning of the first item follows a closing brace, and proved by a parser:
if the text between two positions is a whole array, the second position is between two items. Where the guess is wrong,
strings and brackets are followed one by one, which is slow and exact. Text that is no list raises `BrokenText`.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING, Final, Generic, NamedTuple, TypeVar

import msgspec
from msgspec import Raw

from plimsoll.core.values import Wire
from plimsoll.kube.errors import UnreadableAnswer
from plimsoll.kube.informer.events import V
from plimsoll.kube.informer.reflector.type_meta import strip_all
from plimsoll.kube.informer.reflector.watch_decoder import build_items_decoder, decode_special_type, get_item_decoder
from plimsoll.objects.api.meta import ListMeta, WireObject
from plimsoll.objects.codec.decoding import decode_list

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from plimsoll.objects.codec.decode_problems import BadObject


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


class _List(Wire, Generic[T]):
    kind: str | None = None
    metadata: Raw = Raw(b"null")
    items: tuple[T, ...] | None = None


class ListReader(Generic[V]):
    """Reads one body: go through `read_portions` to the end, then `metadata` is there."""

    def __init__(self, struct: type[WireObject], body: bytes, *, keep_raw: bool = False) -> None:
        self._struct = struct
        self._body = body
        self._fast = None if keep_raw else build_items_decoder(struct)
        self._decode = get_item_decoder(keep_raw=keep_raw)
        self.metadata = ListMeta()

    def read_portions(self, *, whole_bytes: int = _WHOLE_BYTES, cut_bytes: int = _CUT_BYTES) -> Iterator[Portion[V]]:
        """Raises `UnreadableAnswer` if this is no list of the kind, or breaks off."""
        if len(self._body) <= whole_bytes and self._fast is not None:
            try:
                whole = _build_list_decoder(self._struct).decode(self._body)
            except _UNREADABLE:
                pass
            else:
                values = whole.items or ()
                if self._are_of_kind(values):
                    self._decode_rest(whole.kind or "", whole.metadata, has_items=whole.items is not None)
                    yield Portion(strip_all(values), len(self._body))
                    return
        yield from self._read_cuts(cut_bytes)

    def _read_cuts(self, cut_bytes: int) -> Iterator[Portion[V]]:
        told: dict[str, bytes] = {}
        has_items = False
        try:
            for part in split_list(self._body, size_bytes=cut_bytes):
                if isinstance(part, Cut):
                    has_items = True
                    yield from self._read_array(part.array)
                else:
                    told[part.key] = part.value
        except BrokenText as error:
            raise UnreadableAnswer(f"a list that cannot be read: {error}") from error
        try:
            kind = msgspec.json.decode(told.get("kind", b'""'), type=str | None) or ""
        except _UNREADABLE:
            raise UnreadableAnswer("a list that cannot be read: kind: not a text") from None
        self._decode_rest(kind, Raw(told.get("metadata", b"null")), has_items=has_items)

    def _read_array(self, array: bytes) -> Iterator[Portion[V]]:
        if self._fast is not None:
            try:
                values = self._fast.decode(array)
            except _UNREADABLE:
                pass
            else:
                if self._are_of_kind(values):
                    yield Portion(strip_all(values), len(array))
                    return
        slow: list[V | BadObject] = []
        size_bytes = 0
        for item in _split_array(array):
            slow.append(self._decode(self._struct, item))
            size_bytes += len(bytes(item))
            if len(slow) >= _SLOW_AT_ONCE:
                yield Portion(tuple(slow), size_bytes)
                slow, size_bytes = [], 0
        if slow:
            yield Portion(tuple(slow), size_bytes)

    def _are_of_kind(self, values: Sequence[WireObject]) -> bool:
        return all(wire_object.kind in ("", self._struct.kind_name()) for wire_object in values)

    def _decode_rest(self, kind: str, metadata: Raw, *, has_items: bool) -> None:
        """The rest of the list, by the rules that hold for every list: read as one without items."""
        items = b"[]" if has_items else b"null"
        rest = msgspec.json.encode({"kind": kind or None, "metadata": metadata, "items": Raw(items)})
        listed = decode_list(self._struct, rest)
        if listed.problem:
            raise UnreadableAnswer(f"a list that cannot be read: {listed.problem}")
        self.metadata = listed.metadata


def _split_array(array: bytes) -> Iterator[Raw | bytes]:
    try:
        yield from msgspec.json.decode(array, type=tuple[Raw, ...])
    except RecursionError:
        # One object is nested too deeply; the others are still to be had.
        for part in split_list(b'{"items":' + array + b"}", size_bytes=1):
            if isinstance(part, Cut):
                yield part.array[1:-1]
    except _UNREADABLE as error:
        raise BrokenText(str(error)) from error


@cache
def _build_list_decoder(struct: type[T]) -> msgspec.json.Decoder[_List[T]]:
    return msgspec.json.Decoder(_List[struct], dec_hook=decode_special_type)  # type: ignore[valid-type] # made at run time


# Possessive, so that text which ends inside a string is walked once and not once for each quote.
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
_KEY: Final = re.compile(rb"[ \t\r\n,]*+(" + _STRING + rb")[ \t\r\n]*+:[ \t\r\n]*+", re.DOTALL)
_SCALAR: Final = re.compile(_STRING + rb"|[^ \t\r\n,\[\]{}\":]++", re.DOTALL)
_PLAIN: Final = rb'[^"\[\]{}]*+'
_NEXT_BRACKET: Final = re.compile(_PLAIN + rb"(?:" + _STRING + _PLAIN + rb")*+([\[\]{}])", re.DOTALL)
_BETWEEN_ITEMS: Final = re.compile(rb"[ \t\r\n]*+,?[ \t\r\n]*+")
_RAW_ITEMS: Final = msgspec.json.Decoder(tuple[Raw, ...])

# So many characters of the first item tell items from what is inside of them: `{"metadata":{`.
_ITEM_START: Final = 13


class BrokenText(ValueError):
    """The text ends too early, or is no JSON."""


class Member(NamedTuple):
    """A member of the list other than its items, as text."""

    key: str
    value: bytes


class Cut(NamedTuple):
    """Some items, as the text of an array."""

    array: bytes


def split_list(text: bytes, *, size_bytes: int) -> Iterator[Member | Cut]:
    """Everything in the list, in its order; of the items as many at once as make up about `size_bytes`.

    `items` that hold nothing give one empty cut, so that they can be told from no items at all.
    """
    place = _skip(_SPACE, text, 0)
    if text[place : place + 1] != b"{":
        raise BrokenText("not an object")
    place += 1
    while found := _KEY.match(text, place):
        key, place = found[1][1:-1].decode(errors="replace"), found.end()
        if key == "items" and text[place : place + 1] == b"[":
            place = yield from _split_items(text, place + 1, size_bytes)
        else:
            end = _find_value_end(text, place)
            yield Member(key, text[place:end])
            place = end
    if text[place : place + 64].strip() != b"}":
        raise BrokenText("it breaks off, or goes on after its end")


def _split_items(text: bytes, place: int, size_bytes: int) -> Generator[Cut, None, int]:
    """Returns where they end."""
    place = _skip(_SPACE, text, place)
    likeness = b"," + text[place : place + _ITEM_START]
    if text[place : place + 1] == b"]":
        yield Cut(b"[]")
    while text[place : place + 1] != b"]":
        end = _guess_item_end(text, place, likeness, size_bytes) or _find_item_end(text, place, size_bytes)
        yield Cut(b"[" + text[place:end] + b"]")
        place = _skip(_BETWEEN_ITEMS, text, end)
    return place + 1


def _guess_item_end(text: bytes, start: int, likeness: bytes, size_bytes: int) -> int:
    """Where an item ends, about `size_bytes` on; 0 if none could be guessed."""
    end = text.find(likeness, start + size_bytes, start + 3 * size_bytes)
    if end < 0:
        return 0
    try:
        _RAW_ITEMS.decode(b"[" + text[start:end] + b"]")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return 0
    return end


def _find_item_end(text: bytes, start: int, size_bytes: int) -> int:
    """The same by following brackets, item after item."""
    end = _find_value_end(text, start)
    while end - start < size_bytes:
        following = _skip(_BETWEEN_ITEMS, text, end)
        if text[following : following + 1] in (b"]", b""):
            break
        end = _find_value_end(text, following)
    return end


def _find_value_end(text: bytes, start: int) -> int:
    if text[start : start + 1] not in (b"{", b"["):
        found = _SCALAR.match(text, start)
        if found is None:
            raise BrokenText(f"no value at byte {start}")
        return found.end()
    depth, place = 1, start + 1
    while depth:
        found = _NEXT_BRACKET.match(text, place)
        if found is None:
            raise BrokenText(f"what begins at byte {start} does not end")
        depth += 1 if found[1] in b"{[" else -1
        place = found.end()
    return place


def _skip(pattern: re.Pattern[bytes], text: bytes, place: int) -> int:
    found = pattern.match(text, place)
    return place if found is None else found.end()
