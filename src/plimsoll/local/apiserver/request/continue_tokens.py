"""Continue tokens: where a list continues, and at which revision. Base64url of a small JSON object, as recorded.

`start` is the key of the next object below the prefix of the list, with a leading slash when the list is consistent. A
revision of -1 means: continue with the current state.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Final, NamedTuple

from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.request.json import describe_like_go

_VERSION: Final = "meta.k8s.io/v1"
NEWEST: Final = -1


class ContinueToken(NamedTuple):
    """A place in a list. `start` is a path below the list's namespace."""

    revision: int
    start: str


def encode_token(place: ContinueToken) -> str:
    slash = "" if place.revision == NEWEST else "/"
    text = json.dumps({"v": _VERSION, "rv": place.revision, "start": f"{slash}{place.start}"}, separators=(",", ":"))
    return base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_token(token: str) -> ContinueToken:
    """Raises the 400 for text that is not a token."""
    try:
        raw = base64.b64decode(token + "=" * (-len(token) % 4), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError) as error:
        raise _invalid(f"illegal base64 data at input byte {_find_first_bad(token)}") from error
    text = raw.decode("latin-1")
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _invalid(describe_like_go(text)) from error
    if not isinstance(content, dict) or content.get("v") != _VERSION:
        raise _invalid("server does not recognize this encoded version")
    revision, start = content.get("rv"), content.get("start")
    if not isinstance(revision, int) or isinstance(revision, bool) or revision == 0:
        raise _invalid("incorrect encoded start resourceVersion (version meta.k8s.io/v1)")
    if not isinstance(start, str) or not start:
        raise _invalid("encoded start key empty (version meta.k8s.io/v1)")
    if ".." in start.split("/"):
        raise _invalid(start)
    return ContinueToken(revision, start.removeprefix("/"))


def _invalid(problem: str) -> status_errors.StatusError:
    return status_errors.bad_request(f"invalid continue token: continue key is not valid: {problem}")


def _find_first_bad(token: str) -> int:
    allowed = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_")
    return next((place for place, character in enumerate(token) if character not in allowed), len(token))
