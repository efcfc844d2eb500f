"""Parameters of a request. What cannot be read is `BadParameter`, which names it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidInput, PlimsollError
from plimsoll.core.plans import Ref

if TYPE_CHECKING:
    from starlette.requests import Request

_LONGEST = 1_000


class BadParameter(PlimsollError):
    """A parameter of a request cannot be read."""


class Parameters:
    """The query and the path of a request."""

    def __init__(self, request: Request) -> None:
        self._query = request.query_params
        self._path = request.path_params

    def get_text(self, name: str) -> str:
        text = self._query.get(name, "")
        if len(text) > _LONGEST:
            raise BadParameter(f"{name}: at most {_LONGEST} characters")
        return text

    def get_number(self, name: str, default: int, *, most: int) -> int:
        text = self._query.get(name, "")
        return _parse_number(name, text, most) if text else default

    def get_path_number(self, name: str) -> int:
        return _parse_number(name, str(self._path[name]), 2**53)

    def get_ref(self, name: str) -> Ref | None:
        text = self.get_text(name)
        if not text:
            return None
        try:
            return Ref.parse(text)
        except InvalidInput as error:
            raise BadParameter(f"{name}: {error}") from error

    def get_time(self, name: str) -> datetime | None:
        text = self.get_text(name)
        if not text:
            return None
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None:
            raise BadParameter(f"{name}: {text!r} is no time with a zone, e.g. 2026-01-31T12:00:00Z")
        return moment


def _parse_number(name: str, text: str, most: int) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) <= len(str(most)) and 0 < int(text) <= most):
        raise BadParameter(f"{name}: {text[:40]!r} is no whole number from 1 to {most}")
    return int(text)
