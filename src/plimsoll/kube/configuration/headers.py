"""Header fields that authenticate a request: a bearer token, a name with a password, and impersonation.

Values are checked here, because a line break in a token would start another header.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

AUTHORIZATION: Final = "Authorization"
_SENDABLE: Final = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?")
# The characters of a header's name (RFC 9110) but for the percent sign, which is the escape itself.
_PLAIN_IN_NAMES: Final = frozenset(b"!#$&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")


def build_bearer_header(token: str) -> dict[str, str]:
    return {AUTHORIZATION: f"Bearer {check_value(token)}"}


def build_basic_header(user: str, password: str) -> dict[str, str]:
    together = base64.b64encode(f"{user}:{password}".encode()).decode("ascii")
    return {AUTHORIZATION: f"Basic {together}"}


def check_value(value: str) -> str:
    """Validate a value for one header line; the error does not quote it."""
    if not _SENDABLE.fullmatch(value):
        raise InvalidInput(
            "holds characters that no HTTP header can hold: a line break, a space at an end, or no ASCII"
        )
    return value


def impersonate_user(user: str, uid: str) -> dict[str, str]:
    headers = {"Impersonate-User": check_value(user)}
    if uid:
        headers["Impersonate-Uid"] = check_value(uid)
    return headers


def impersonate_more(groups: Iterable[str], extra: Mapping[str, Iterable[str]]) -> tuple[tuple[str, str], ...]:
    """Groups and extra attributes, one line per value."""
    lines = [("Impersonate-Group", check_value(group)) for group in groups]
    for key, values in extra.items():
        name = f"Impersonate-Extra-{_escape(key)}"
        lines += [(name, check_value(value)) for value in values]
    return tuple(lines)


def _escape(key: str) -> str:
    """Percent-encode what a header name cannot contain; the server decodes it."""
    return "".join(chr(byte) if byte in _PLAIN_IN_NAMES else f"%{byte:02X}" for byte in key.encode())
