"""Every exception of Plimsoll, in one tree.

Exceptions mean "this turn cannot go on"; outcomes that are expected (a pod that does not fit, an object that is not
valid) are values and are not here.

    PlimsollError
    ├── InvalidInput             what somebody gave us cannot be used; carries the path of the field
    │   ├── InvalidQuantity
    │   ├── InvalidSelector
    │   └── UnreadableDocument   a file or body that is not YAML or JSON at all
    ├── NotEnoughData            the answer would be a guess
    ├── Unreachable              a server did not answer
    ├── LeftVirtualTime          something tried to leave the virtual loop
    ├── Deadlock                 virtual time has nothing left to jump to, and somebody still waits
    ├── Runaway                  virtual time stands still, and callbacks never end
    └── GaveUp                   a retry policy is used up

`exit_code` is what the command line ends with (docs/reference/cli.md).
"""

from __future__ import annotations

from typing import ClassVar


class PlimsollError(Exception):
    """Base of everything we raise on purpose."""

    exit_code: ClassVar[int] = 1


class InvalidInput(PlimsollError):
    """What was given cannot be used: `path` names the field (empty: the whole), `problem` what is wrong."""

    exit_code: ClassVar[int] = 2

    def __init__(self, problem: str, *, path: str = "") -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.problem = problem
        self.path = path

    def under(self, parent: str) -> InvalidInput:
        """The same complaint, seen from the object that holds the field."""
        return type(self)(self.problem, path=f"{parent}.{self.path}" if self.path else parent)


class InvalidQuantity(InvalidInput):
    """Text that is not a Kubernetes quantity."""


class InvalidSelector(InvalidInput):
    """A label, field or node selector that Kubernetes would refuse."""


class UnreadableDocument(InvalidInput):
    """A file or body that is neither YAML nor JSON."""


class NotEnoughData(PlimsollError):
    """Data is missing or stale, and acting without it would be a guess."""

    exit_code: ClassVar[int] = 3


class Unreachable(PlimsollError):
    """A server could not be reached."""

    exit_code: ClassVar[int] = 4


class LeftVirtualTime(PlimsollError):
    """Something tried to leave the loop's thread while time was virtual: a thread, an executor, a socket, a process."""


class Deadlock(PlimsollError):
    """Tasks wait for something that nothing will ever bring: no callback is ready and no timer is set."""


class Runaway(PlimsollError):
    """Callbacks call each other without end and without time passing."""


class GaveUp(PlimsollError):
    """A retry policy ran out of attempts."""
