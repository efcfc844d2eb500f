"""Splits JSON text into the members of its outermost object or the elements of its outermost array.

It is needed where a parser fails: msgspec recurses, so an object that is nested a thousand levels deep would make its
list unreadable, and a broken object would hide its own name. It follows strings and brackets and checks nothing: a
parser has to decode the parts.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_STRING: Final = rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"'
# Up to the next mark that matters: separators do so only in the outermost object or array. Possessive, so that text
# which ends inside a string is walked once and not once for each quote.
_OUTER: Final = re.compile(rb'(?:[^"\[\]{},:]|' + _STRING + rb")*+([\[\]{},:])", re.DOTALL)
_INNER: Final = re.compile(rb'(?:[^"\[\]{}]|' + _STRING + rb")*+([\[\]{}])", re.DOTALL)


def split_members(text: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Pairs of key (as it is written, with quotes; empty in an array) and value, as far as the text is whole."""
    depth = start = end = 0
    key = b""
    while found := (_INNER if depth > 1 else _OUTER).match(text, end):
        mark, end = found[1], found.end()
        if mark in b"{[":
            depth += 1
            start = end if depth == 1 else start
        elif mark in b"}]":
            depth -= 1
            if depth == 0:
                yield from _yield_whole(key, text[start : end - 1])
            if depth <= 0:
                return
        elif mark == b":":
            key, start = text[start : end - 1].strip(), end
        else:
            yield from _yield_whole(key, text[start : end - 1])
            key, start = b"", end


def _yield_whole(key: bytes, value: bytes) -> Iterator[tuple[bytes, bytes]]:
    value = value.strip()
    if value:
        yield key, value


def index_members(text: bytes) -> dict[str, bytes]:
    """The values of an object by their keys. The last of two equal ones wins, as it does for every parser."""
    return {key[1:-1].decode(errors="replace"): value for key, value in split_members(text) if key}
