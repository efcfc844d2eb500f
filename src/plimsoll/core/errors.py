"""Every exception of Plimsoll, in one tree.

An exception ends the loop iteration; expected outcomes (a pod that does not fit, an invalid object) are values and are
not here.

    PlimsollError
    ├── InvalidInput             unusable input; carries the path of the field
    │   ├── InvalidQuantity
    │   ├── InvalidSelector
    │   └── UnreadableDocument   a file or body that is not YAML or JSON at all
    ├── NotEnoughData            the answer would be a guess
    ├── Unreachable              a server did not answer
    ├── LeftVirtualTime          something tried to leave the virtual loop
    ├── Deadlock                 tasks wait, and virtual time has no timer to jump to
    ├── Runaway                  callbacks never end, and no virtual time passes
    └── GaveUp                   the attempts are used up

`exit_code` is the exit code of the command line (docs/reference/cli.md).
"""

from __future__ import annotations

from typing import ClassVar


class PlimsollError(Exception):
    """The base of all deliberate errors."""

    exit_code: ClassVar[int] = 1


class InvalidInput(PlimsollError):
    """Unusable input: `path` names the field (empty: the whole), `problem` what is wrong."""

    exit_code: ClassVar[int] = 2

    def __init__(self, problem: str, *, path: str = "") -> None:
        super().__init__(f"{path}: {problem}" if path else problem)
        self.problem = problem
        self.path = path

    def with_parent(self, parent: str) -> InvalidInput:
        """The same error, with the path of the enclosing object."""
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
    """Code tried to leave the loop's thread under virtual time: a thread, an executor, a socket, a process."""


class Deadlock(PlimsollError):
    """Tasks wait forever: no callback is ready and no timer is set."""


class Runaway(PlimsollError):
    """Callbacks schedule each other without end and without time passing."""


class GaveUp(PlimsollError):
    """All attempts were used up."""
