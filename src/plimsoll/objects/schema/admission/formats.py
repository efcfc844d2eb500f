"""The string formats that a schema enforces, as in Go's libraries; any other format is ignored.

Names are compared without dashes, as in go-openapi. A checker returns whether a string has the format.
"""

from __future__ import annotations

import base64
import binascii
import ipaddress
import re
from datetime import date, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from plimsoll.core.names import find_dns1123_label_problems, find_subdomain_problems

if TYPE_CHECKING:
    from collections.abc import Callable

_UUID = r"[0-9a-f]{8}-?[0-9a-f]{4}-?%s-?%s-?[0-9a-f]{12}"
_ANY4 = r"[0-9a-f]{4}"
_PATTERNS = {
    "bsonobjectid": r"[0-9a-fA-F]{24}",
    "uuid": _UUID % (_ANY4, _ANY4),
    "uuid3": _UUID % (r"3[0-9a-f]{3}", _ANY4),
    "uuid4": _UUID % (r"4[0-9a-f]{3}", r"[89ab][0-9a-f]{3}"),
    "uuid5": _UUID % (r"5[0-9a-f]{3}", r"[89ab][0-9a-f]{3}"),
    "mac": r"([0-9a-f]{2}([:-])[0-9a-f]{2}(\2[0-9a-f]{2}){4}((\2[0-9a-f]{2}){2}|(\2[0-9a-f]{2}){14})?"
    r"|[0-9a-f]{4}\.[0-9a-f]{4}\.[0-9a-f]{4}(\.[0-9a-f]{4}(\.[0-9a-f]{4}){0,6})?)",
    "ssn": r"\d{3}[- ]?\d{2}[- ]?\d{4}",
    "hexcolor": r"#?([0-9a-f]{3}|[0-9a-f]{6})",
    "rgbcolor": r"rgb\(\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*,"
    r"\s*(0|[1-9]\d?|1\d\d?|2[0-4]\d|25[0-5])\s*\)",
    "quantity": r"(?-i:[+-]?(\d+(\.\d*)?|\.\d+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?\d+)?)",
}
_DATE_TIME = re.compile(r"\d{4}-\d\d-\d\dT(\d\d:\d\d:\d\d)(\.\d+)?(Z|[+-]\d\d:\d\d)", re.IGNORECASE | re.ASCII)
_HOSTNAME = re.compile(
    r"[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?(\.[a-zA-Z0-9_]([a-zA-Z0-9_-]{0,61}[a-zA-Z0-9_])?)*"
)
_ADDRESS = r"[^\s<>@]+@[^\s<>@]+"
_EMAIL = re.compile(rf"{_ADDRESS}|[^<>@]*<{_ADDRESS}>")
_GO_DURATION = re.compile(r"[+-]?((\d+(\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h))+|[+-]?0", re.ASCII)
_WORDED_DURATION = re.compile(
    r"(\d+(\.\d+)?)\s*(nanoseconds?|nanos?|nsecs?|ns|microseconds?|micros?|usecs?|us|µs|milliseconds?|millis?|ms|msecs?"
    r"|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d|weeks?|wks?|w)",
    re.ASCII,
)
_CREDIT_CARD = re.compile(
    r"4[0-9]{12}([0-9]{3})?|5[1-5][0-9]{14}|6(011|5[0-9][0-9])[0-9]{12}|3[47][0-9]{13}|3(0[0-5]|[68][0-9])[0-9]{11}"
    r"|(2131|1800|35\d{3})\d{11}",
    re.ASCII,
)


def find_checker(format_: str) -> Callable[[str], bool] | None:
    """The check of a format, or None if the format is not enforced."""
    return _CHECKERS.get(format_.replace("-", ""))


def _build_matcher(pattern: str) -> Callable[[str], bool]:
    # Compiled on first use and cached by `re`: most processes need few of the formats.
    return lambda text: re.fullmatch(pattern, text, re.IGNORECASE | re.ASCII) is not None


def is_date_time(text: str) -> bool:
    found = _DATE_TIME.fullmatch(text)
    if found is None:
        return False
    try:
        datetime.fromisoformat(f"{text[:10]}T{found[1]}")
    except ValueError:
        return False
    return True


def is_date(text: str) -> bool:
    try:
        return len(text) == 10 and date.fromisoformat(text) is not None
    except ValueError:
        return False


def is_duration(text: str) -> bool:
    """Go's `1h30m`, or words as Scala writes them: `1 minute`."""
    return bool(_GO_DURATION.fullmatch(text) or _WORDED_DURATION.fullmatch(text.strip()))


def is_base64(text: str) -> bool:
    try:
        base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except (binascii.Error, ValueError):
        return False
    return True


def is_uri(text: str) -> bool:
    """Like Go's ParseRequestURI: an absolute URI, or a path from the root."""
    if not text or any(ord(character) <= 0x20 or ord(character) == 0x7F for character in text):
        return False
    if text.startswith("/"):
        return True
    try:
        return bool(urlsplit(text).scheme)
    except ValueError:
        return False


def is_email(text: str) -> bool:
    """An address, alone or as `Name <address>`."""
    return _EMAIL.fullmatch(text.strip()) is not None


def is_hostname(text: str) -> bool:
    return len(text) <= 255 and _HOSTNAME.fullmatch(text) is not None


def is_ipv4(text: str) -> bool:
    return _parses(ipaddress.IPv4Address, text)


def is_ipv6(text: str) -> bool:
    return "%" not in text and _parses(ipaddress.IPv6Address, text)


def is_cidr(text: str) -> bool:
    _, slash, bits = text.partition("/")
    return bool(slash) and bits.isdecimal() and "%" not in text and _parses(ipaddress.ip_interface, text)


def _parses(parse: Callable[[str], object], text: str) -> bool:
    try:
        parse(text)
    except ValueError:
        return False
    return True


def is_isbn10(text: str) -> bool:
    digits = text.replace("-", "").replace(" ", "")
    if not re.fullmatch(r"[0-9]{9}[0-9X]", digits):
        return False
    total = sum((10 - place) * (10 if digit == "X" else int(digit)) for place, digit in enumerate(digits))
    return total % 11 == 0


def is_isbn13(text: str) -> bool:
    digits = text.replace("-", "").replace(" ", "")
    if not re.fullmatch(r"[0-9]{13}", digits):
        return False
    return sum(int(digit) * (3 if place % 2 else 1) for place, digit in enumerate(digits)) % 10 == 0


def is_credit_card(text: str) -> bool:
    digits = re.sub(r"[^0-9]", "", text)
    if not _CREDIT_CARD.fullmatch(digits):
        return False
    doubled = (int(digit) * (2 if place % 2 else 1) for place, digit in enumerate(reversed(digits)))
    return sum(digit - 9 if digit > 9 else digit for digit in doubled) % 10 == 0


_CHECKERS: dict[str, Callable[[str], bool]] = {
    **{name: _build_matcher(pattern) for name, pattern in _PATTERNS.items()},
    "uri": is_uri,
    "email": is_email,
    "hostname": is_hostname,
    "ipv4": is_ipv4,
    "ipv6": is_ipv6,
    "cidr": is_cidr,
    "isbn": lambda text: is_isbn10(text) or is_isbn13(text),
    "isbn10": is_isbn10,
    "isbn13": is_isbn13,
    "creditcard": is_credit_card,
    "byte": is_base64,
    "password": lambda _: True,
    "date": is_date,
    "datetime": is_date_time,
    "duration": is_duration,
    "k8sshortname": lambda text: not find_dns1123_label_problems(text),
    "k8slongname": lambda text: not find_subdomain_problems(text),
}
