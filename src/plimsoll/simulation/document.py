"""Reading of documents that people wrote: every value knows its path, and errors are collected instead of raised.

An invalid value is replaced by a harmless one, so that reading continues and further errors are found.
"""

from __future__ import annotations

import difflib
import math
import re
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.core.value_parsing import LARGEST_NUMBER
from plimsoll.objects.api.meta import Time

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|d|h|m|s))+")
_PART: Final = re.compile(r"(\d+(?:\.\d+)?)(ms|d|h|m|s)")
_UNIT_S: Final = {"d": 86_400.0, "h": 3_600.0, "m": 60.0, "s": 1.0, "ms": 0.001}
# Virtual time counts nanoseconds in 64 bits and dates end in the year 9999; a century is more than enough.
LONGEST_S: Final = 100 * 366 * 86_400.0
_PLAIN_KEY: Final = re.compile(r"[A-Za-z0-9_-]+")


class InvalidDocument(InvalidInput):
    """All errors of a document, one per line. `path` is that of the first."""

    def __init__(self, problem: str, *, path: str = "", more: Iterable[str] = ()) -> None:
        super().__init__(problem, path=path)
        lines = [str(self), *more]
        self.args = ("\n".join(lines),)


class Problems:
    """The errors found so far."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str], None] = {}

    def add(self, path: str, problem: str) -> None:
        """The same error is reported once."""
        self._found[path, problem] = None

    @contextmanager
    def collect_errors(self) -> Iterator[None]:
        """Record errors raised inside the block, and continue after it."""
        try:
            yield
        except InvalidInput as error:
            self.add(error.path, error.problem)

    def raise_if_any(self) -> None:
        if self._found:
            (path, problem), *others = self._found
            more = [f"{path}: {problem}" if path else problem for path, problem in others]
            raise InvalidDocument(problem, path=path, more=more)


class DocumentValue:
    """A value at a path."""

    def __init__(self, value: Any, path: str, problems: Problems) -> None:
        self.value = value
        self.path = path
        self._problems = problems

    def add_problem(self, problem: str) -> None:
        self._problems.add(self.path, problem)

    # ---- what is inside

    def read_fields(self, known: Iterable[str]) -> dict[str, DocumentValue]:
        """The known fields that are present; null is absent."""
        names = tuple(known)
        found = self.read_members()
        for name in found:
            if name not in names:
                near = difflib.get_close_matches(name, names, n=1)
                hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(names)}"
                self._problems.add(self._join_path(name), f"unknown field{hint}")
        return {name: given for name, given in found.items() if name in names and given.value is not None}

    def read_members(self) -> dict[str, DocumentValue]:
        """All entries of a map, by key."""
        if not isinstance(self.value, dict):
            self.add_problem(f"must be a map, is {describe_value(self.value)}")
            return {}
        return {key: DocumentValue(value, self._join_path(key), self._problems) for key, value in self.value.items()}

    def read_items(self) -> Iterator[DocumentValue]:
        if not isinstance(self.value, list):
            self.add_problem(f"must be a list, is {describe_value(self.value)}")
            return
        for index, value in enumerate(self.value):
            yield DocumentValue(value, f"{self.path}[{index}]", self._problems)

    def get_member(self, key: str, value: Any) -> DocumentValue:
        """The entry of a map under a key."""
        return DocumentValue(value, self._join_path(key), self._problems)

    def get_place(self, path: str) -> DocumentValue:
        """A place further inside, for errors about it. Empty: here."""
        dot = "." if self.path and path and not path.startswith("[") else ""
        return DocumentValue(None, f"{self.path}{dot}{path}", self._problems)

    def get_item_field(self, index: int, field: str) -> DocumentValue:
        """A field of a list item, for errors about it."""
        return DocumentValue(None, f"{self.path}[{index}].{field}", self._problems)

    def _join_path(self, key: str) -> str:
        return join_path(self.path, key)

    # ---- what it is

    def read_text(self) -> str:
        if isinstance(self.value, str) and self.value:
            return self.value
        self.add_problem(f"must be a text, is {describe_value(self.value)}")
        return ""

    def read_choice(self, *among: str) -> str:
        if self.value in among:
            return str(self.value)
        self.add_problem(f"must be one of {', '.join(among)}, is {describe_value(self.value)}")
        return among[0]

    def read_flag(self) -> bool:
        if isinstance(self.value, bool):
            return self.value
        self.add_problem(f"must be true or false, is {describe_value(self.value)}")
        return False

    def read_whole(self, *, least: int = 0) -> int:
        if isinstance(self.value, int) and not isinstance(self.value, bool) and self.value >= least:
            return self.value
        self.add_problem(f"must be a whole number of at least {least}, is {describe_value(self.value)}")
        return least

    def read_number(self, *, most: float = LARGEST_NUMBER) -> float:
        value = self.value
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= most:
            return float(value)
        limit = f" and at most {most:g}" if isinstance(value, int | float) and value > most else ""
        self.add_problem(f"must be a number of at least 0{limit}, is {describe_value(value)}")
        return 0.0

    def read_seconds(self) -> float:
        """A duration: `90s`, `1m30s`, `1.5h`, `2d`, or a number of seconds."""
        value = self.value
        if isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= LONGEST_S:
            return float(value)
        if isinstance(value, str) and _DURATION.fullmatch(value):
            # Each part is bounded: fsum raises if finite parts have an infinite sum.
            parts = (float(count) * _UNIT_S[unit] for count, unit in _PART.findall(value))
            total_s = math.fsum(min(part_s, 2 * LONGEST_S) for part_s in parts)
            if total_s <= LONGEST_S:
                return total_s
            value = total_s
        if isinstance(value, int | float) and value > LONGEST_S:
            self.add_problem(
                f"is too long: the longest is {LONGEST_S / _UNIT_S['d']:.0f}d, is {describe_value(self.value)}"
            )
            return 0.0
        self.add_problem(f"must be a duration such as 90s, 1m30s or 2h, is {describe_value(value)}")
        return 0.0

    def read_time(self) -> datetime:
        """RFC 3339, in UTC."""
        try:
            return msgspec.convert(self.value, Time).astimezone(UTC)
        except (msgspec.ValidationError, OverflowError):
            self.add_problem(f"must be a time such as 2025-01-01T00:00:00Z, is {describe_value(self.value)}")
            return datetime.min.replace(tzinfo=UTC)

    def read_texts(self) -> dict[str, str]:
        """A map of strings."""
        return {
            key: given.value if given.value == "" else given.read_text() for key, given in self.read_members().items()
        }


def join_path(path: str, key: str) -> str:
    """The path of an entry of a map."""
    if not _PLAIN_KEY.fullmatch(key):
        return f"{path}[{key}]"
    return f"{path}.{key}" if path else key


def describe_value(value: Any) -> str:
    """A value in an error message, short."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case dict():
            return "a map"
        case list():
            return "a list"
        case str():
            return f'"{value[:60]}"' if value else "an empty text"
        case _:
            return str(value)[:60]
