"""Errors of the fleet manager, beside the general ones of `core.errors`.

Unreachable
└── DatabaseUnreachable      the database did not answer, or not in time
InvalidInput
├── UnusableDatabase         a schema of a newer Plimsoll, a database of another program, a wrong encoding
└── UnusableKeys             keys of secrets or tokens that are missing, or cannot be read or written
PlimsollError
├── SecretUnreadable         the key of a stored secret is missing, or the secret was changed
└── UnreadableRow            a row that no Plimsoll wrote
"""

from __future__ import annotations

from typing import ClassVar

from plimsoll.core.errors import InvalidInput, PlimsollError, Unreachable


class DatabaseUnreachable(Unreachable):
    """The database did not answer.

    `may_have_committed`: the connection was lost while the transaction was committed, so its outcome is not known.
    Otherwise nothing was changed, and the call may be repeated.
    """

    def __init__(self, problem: str, *, may_have_committed: bool = False) -> None:
        super().__init__(problem)
        self.may_have_committed = may_have_committed


class UnusableDatabase(InvalidInput):
    """A database that this Plimsoll cannot use."""


class UnusableKeys(InvalidInput):
    """Keys of stored secrets or of tokens that this process has not, or cannot read or write."""


class SecretUnreadable(PlimsollError):
    """A stored secret that the given keys do not decrypt."""

    exit_code: ClassVar[int] = 2


class UnreadableRow(PlimsollError):
    """A row with a value that no Plimsoll writes."""
