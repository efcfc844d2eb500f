"""Cuts the JSON text of a list into arrays of some of its items, lazily: for answers too large to parse in one go.

A cut is guessed first, where text like the beginning of the first item follows a closing brace, and proved by a parser:
if what lies between two places is a whole array, then the second place is between two items. Where the guess is wrong
strings and brackets are followed one by one, which is slow and exact. Text that is no list ends in `BrokenText`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec import Raw

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

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
_LIKENESS: Final = 13


class BrokenText(ValueError):
    """The text ends too early, or is no JSON."""


class Member(NamedTuple):
    """A member of the list other than its items, as text."""

    key: str
    value: bytes


class Cut(NamedTuple):
    """Some items, as the text of an array."""

    array: bytes


def cuts(text: bytes, *, size_bytes: int) -> Iterator[Member | Cut]:
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
            place = yield from _items(text, place + 1, size_bytes)
        else:
            end = _end_of_value(text, place)
            yield Member(key, text[place:end])
            place = end
    if text[place : place + 64].strip() != b"}":
        raise BrokenText("it breaks off, or goes on after its end")


def _items(text: bytes, place: int, size_bytes: int) -> Generator[Cut, None, int]:
    """Returns where they end."""
    place = _skip(_SPACE, text, place)
    likeness = b"," + text[place : place + _LIKENESS]
    if text[place : place + 1] == b"]":
        yield Cut(b"[]")
    while text[place : place + 1] != b"]":
        end = _guessed(text, place, likeness, size_bytes) or _followed(text, place, size_bytes)
        yield Cut(b"[" + text[place:end] + b"]")
        place = _skip(_BETWEEN_ITEMS, text, end)
    return place + 1


def _guessed(text: bytes, start: int, likeness: bytes, size_bytes: int) -> int:
    """Where an item ends, about `size_bytes` on; 0 if none could be guessed."""
    end = text.find(likeness, start + size_bytes, start + 3 * size_bytes)
    if end < 0:
        return 0
    try:
        _RAW_ITEMS.decode(b"[" + text[start:end] + b"]")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return 0
    return end


def _followed(text: bytes, start: int, size_bytes: int) -> int:
    """The same by following brackets, item after item."""
    end = _end_of_value(text, start)
    while end - start < size_bytes:
        following = _skip(_BETWEEN_ITEMS, text, end)
        if text[following : following + 1] in (b"]", b""):
            break
        end = _end_of_value(text, following)
    return end


def _end_of_value(text: bytes, start: int) -> int:
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
