"""Decodes the body of a list in portions that do not block the event loop, whatever the server put into it.

A page of usual size is one parse. A larger body (a server that ignores `limit`, objects of a megabyte each) is cut into
arrays of some of its items, and a body that does not fit the struct is decoded object by object; in both cases the
caller gets control back after every portion.

A cut is guessed first, where text like the beginning of the first item follows a closing brace, and proved by a parser:
if the text between two positions is a whole array, the second position is between two items. Where the guess is wrong,
strings and brackets are followed one by one, which is slow and exact. Text that is not a list raises `BrokenText`.
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
# Finding out why an object does not fit takes a millisecond.
_SLOW_AT_ONCE: Final = 16


class Portion(NamedTuple, Generic[V]):
    """Some of the objects, and the size of their JSON."""

    values: Sequence[V | BadObject]
    size_bytes: int


class _List(Wire, Generic[T]):
    kind: str | None = None
    metadata: Raw = Raw(b"null")
    items: tuple[T, ...] | None = None


class ListReader(Generic[V]):
    """Decodes one body. `metadata` is set when `read_portions` has ended."""

    def __init__(self, struct: type[WireObject], body: bytes, *, keep_raw: bool = False) -> None:
        self._struct = struct
        self._body = body
        self._fast = None if keep_raw else build_items_decoder(struct)
        self._decode = get_item_decoder(keep_raw=keep_raw)
        self.metadata = ListMeta()

    def read_portions(self, *, whole_bytes: int = _WHOLE_BYTES, cut_bytes: int = _CUT_BYTES) -> Iterator[Portion[V]]:
        """Decode the objects in portions. Raises `UnreadableAnswer` if the body is not a complete list of the kind."""
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
        members: dict[str, bytes] = {}
        has_items = False
        try:
            for part in split_list(self._body, size_bytes=cut_bytes):
                if isinstance(part, Cut):
                    has_items = True
                    yield from self._read_array(part.array)
                else:
                    members[part.key] = part.value
        except BrokenText as error:
            raise UnreadableAnswer(f"a list that cannot be read: {error}") from error
        try:
            kind = msgspec.json.decode(members.get("kind", b'""'), type=str | None) or ""
        except _UNREADABLE:
            raise UnreadableAnswer("a list that cannot be read: kind: not a text") from None
        self._decode_rest(kind, Raw(members.get("metadata", b"null")), has_items=has_items)

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
        return all(wire_object.kind in ("", self._struct.get_kind_name()) for wire_object in values)

    def _decode_rest(self, kind: str, metadata: Raw, *, has_items: bool) -> None:
        """Decode the rest of the list like every list, as one without items."""
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
        # One object is nested too deeply; the others can be decoded.
        for part in split_list(b'{"items":' + array + b"}", size_bytes=1):
            if isinstance(part, Cut):
                yield part.array[1:-1]
    except _UNREADABLE as error:
        raise BrokenText(str(error)) from error


@cache
def _build_list_decoder(struct: type[T]) -> msgspec.json.Decoder[_List[T]]:
    return msgspec.json.Decoder(_List[struct], dec_hook=decode_special_type)  # type: ignore[valid-type] # made at run time


# Possessive, so that text that ends inside a string is scanned once and not once per quote.
_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
_SPACE: Final = re.compile(rb"[ \t\r\n]*+")
_KEY: Final = re.compile(rb"[ \t\r\n,]*+(" + _STRING + rb")[ \t\r\n]*+:[ \t\r\n]*+", re.DOTALL)
_SCALAR: Final = re.compile(_STRING + rb"|[^ \t\r\n,\[\]{}\":]++", re.DOTALL)
_PLAIN: Final = rb'[^"\[\]{}]*+'
_NEXT_BRACKET: Final = re.compile(_PLAIN + rb"(?:" + _STRING + _PLAIN + rb")*+([\[\]{}])", re.DOTALL)
_BETWEEN_ITEMS: Final = re.compile(rb"[ \t\r\n]*+,?[ \t\r\n]*+")
_RAW_ITEMS: Final = msgspec.json.Decoder(tuple[Raw, ...])

# This many characters of the first item distinguish items from values inside them: `{"metadata":{`.
_ITEM_START: Final = 13


class BrokenText(ValueError):
    """The text ends too early, or is not JSON."""


class Member(NamedTuple):
    """A member of the list other than its items, as JSON."""

    key: str
    value: bytes


class Cut(NamedTuple):
    """Some items, as a JSON array."""

    array: bytes


def split_list(text: bytes, *, size_bytes: int) -> Iterator[Member | Cut]:
    """Split the text of a list into its members, in order, and its items into cuts of about `size_bytes`.

    Empty `items` are one empty cut, which distinguishes them from missing `items`.
    """
    position = _skip(_SPACE, text, 0)
    if text[position : position + 1] != b"{":
        raise BrokenText("not an object")
    position += 1
    while found := _KEY.match(text, position):
        key, position = found[1][1:-1].decode(errors="replace"), found.end()
        if key == "items" and text[position : position + 1] == b"[":
            position = yield from _split_items(text, position + 1, size_bytes)
        else:
            end = _find_value_end(text, position)
            yield Member(key, text[position:end])
            position = end
    if text[position : position + 64].strip() != b"}":
        raise BrokenText("it is truncated, or continues after its end")


def _split_items(text: bytes, position: int, size_bytes: int) -> Generator[Cut, None, int]:
    """Yield the items in cuts, and return the position after them."""
    position = _skip(_SPACE, text, position)
    item_start = b"," + text[position : position + _ITEM_START]
    if text[position : position + 1] == b"]":
        yield Cut(b"[]")
    while text[position : position + 1] != b"]":
        end = _guess_item_end(text, position, item_start, size_bytes) or _find_item_end(text, position, size_bytes)
        yield Cut(b"[" + text[position:end] + b"]")
        position = _skip(_BETWEEN_ITEMS, text, end)
    return position + 1


def _guess_item_end(text: bytes, start: int, item_start: bytes, size_bytes: int) -> int:
    """Guess where an item ends, about `size_bytes` after `start`; 0 if the guess fails."""
    end = text.find(item_start, start + size_bytes, start + 3 * size_bytes)
    if end < 0:
        return 0
    try:
        _RAW_ITEMS.decode(b"[" + text[start:end] + b"]")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return 0
    return end


def _find_item_end(text: bytes, start: int, size_bytes: int) -> int:
    """Find where an item ends by following brackets, item by item."""
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
    depth, position = 1, start + 1
    while depth:
        found = _NEXT_BRACKET.match(text, position)
        if found is None:
            raise BrokenText(f"the value that starts at byte {start} does not end")
        depth += 1 if found[1] in b"{[" else -1
        position = found.end()
    return position


def _skip(pattern: re.Pattern[bytes], text: bytes, position: int) -> int:
    found = pattern.match(text, position)
    return position if found is None else found.end()
