"""Findings of an examination of a cluster, as values for the command line and for scripts."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import Unreachable
from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterable


class Level(StrEnum):
    """The result of a check, from harmless to bad."""

    OK = "ok"
    UNKNOWN = "unknown"
    """The result is unknown, mostly for lack of permission."""
    WARN = "warn"
    FAIL = "fail"
    """Something that is needed is missing."""


_BADNESS: Final = tuple(Level)


def find_worst(levels: Iterable[Level]) -> Level:
    """The worst of them; of none: ok."""
    return max(levels, key=_BADNESS.index, default=Level.OK)


class Finding(Value):
    """The outcome of one check. `check` is its stable name: `clock`, `permissions.nodes`."""

    check: str
    level: Level
    message: str
    fix: str = ""
    """What to do about it; may have several lines."""
    details: dict[str, Any] = {}


class Examination(Value):
    """All findings of one cluster, in the order of the checks."""

    server: str
    controllers: tuple[str, ...]
    findings: tuple[Finding, ...]

    @property
    def level(self) -> Level:
        return find_worst(finding.level for finding in self.findings)

    @property
    def is_healthy(self) -> bool:
        """Nothing that is needed is missing; warnings are allowed."""
        return self.level is not Level.FAIL


class NoExamination(Unreachable):
    """The server could not be reached, so there are no findings; `hint` says what may help."""

    def __init__(self, problem: str, *, hint: str = "") -> None:
        super().__init__(problem)
        self.hint = hint
