"""The values of literals: numbers with their limits, strings and bytes with their escapes."""

from __future__ import annotations

import re

from plimsoll.objects.cel.values.numbers import INT_MAX, INT_MIN, UINT_MAX, UInt

_ESCAPE = re.compile(r"\\(?:[xX]([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|([0-3][0-7]{2})|(.))", re.DOTALL)
_SIMPLE = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}


class BadLiteral(ValueError):
    """A token that has the shape of a literal but no value; the parser turns it into an issue."""


def parse_int(text: str) -> int:
    """The value of an int token, with a leading minus sign."""
    value = int(text, 16) if "0x" in text else _parse_decimal(text, "invalid int literal")
    if not INT_MIN <= value <= INT_MAX:
        raise BadLiteral("invalid int literal")
    return value


def parse_uint(text: str) -> UInt:
    digits = text[:-1]
    value = int(digits, 16) if digits.startswith("0x") else _parse_decimal(digits, "invalid uint literal")
    if value > UINT_MAX:
        raise BadLiteral("invalid uint literal")
    return UInt(value)


def parse_double(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise BadLiteral("invalid double literal")
    return value


def parse_string(text: str) -> str:
    body, raw = _split_quotes(text)
    if raw:
        return body
    return _ESCAPE.sub(_unescape_char, body)


def parse_bytes(text: str) -> bytes:
    body, raw = _split_quotes(text[1:])
    if raw:
        return body.encode("utf-8", "surrogatepass")
    pieces: list[bytes] = []
    end = 0
    for found in _ESCAPE.finditer(body):
        pieces += [body[end : found.start()].encode("utf-8", "surrogatepass"), _unescape_bytes(found)]
        end = found.end()
    pieces.append(body[end:].encode("utf-8", "surrogatepass"))
    return b"".join(pieces)


def _parse_decimal(text: str, complaint: str) -> int:
    # Python refuses to read thousands of digits at all; nothing longer than 20 fits anyway.
    digits = text.lstrip("-").lstrip("0") or "0"
    if len(digits) > 20:
        raise BadLiteral(complaint)
    return -int(digits) if text.startswith("-") else int(digits)


def _split_quotes(text: str) -> tuple[str, bool]:
    """The text between the quotes, and whether backslashes are plain characters in it."""
    raw = text[0] in "rR"
    quoted = text[1:] if raw else text
    width = 3 if quoted.startswith(('"""', "'''")) and len(quoted) >= 6 else 1
    body = quoted[width:-width]
    return (body.replace("\r\n", "\n").replace("\r", "\n") if "\r" in body else body), raw


def _unescape_char(found: re.Match[str]) -> str:
    two, four, eight, octal, simple = found.groups()
    if simple is not None:
        return _SIMPLE.get(simple, simple)
    code = int(octal, 8) if octal else int(two or four or eight, 16)
    if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
        raise BadLiteral("invalid unicode code point")
    return chr(code)


def _unescape_bytes(found: re.Match[str]) -> bytes:
    two, four, eight, octal, simple = found.groups()
    if four or eight:
        raise BadLiteral("unable to unescape string")
    if simple is not None:
        return _SIMPLE.get(simple, simple).encode()
    return bytes([int(octal, 8) if octal else int(two, 16)])
