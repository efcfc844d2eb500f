"""The log of mutating calls to the cloud, including rejected ones and those in progress.

The log outlives the callers: a scenario keeps one and passes it to each `SimulatedCloud` it builds, so that a crash of
the autoscaler does not lose what it did before. It keeps the latest calls only.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 -- msgspec resolves the annotations of Values at run time
from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator


NO_ANSWER_YET: Final = "no answer yet"
NOBODY_WAITED: Final = "the caller did not wait for the answer"
MOST_KEPT: Final = 10_000


class CallRecord(Value):
    """One call, as the caller saw it end, or as it stands. `arg` is a delta, names of nodes, or nothing."""

    time: datetime
    group: str
    call: str
    arg: int | tuple[str, ...] | None
    ok: bool
    message: str = ""


class CallLog:
    """Calls in the order in which they were made, the latest `most` of them (None: all)."""

    def __init__(self, *, most: int | None = MOST_KEPT) -> None:
        self._records: dict[int, CallRecord] = {}
        self._most = most
        self._made = 0

    def add(self, record: CallRecord) -> int:
        """Returns the number for `end`."""
        self._made += 1
        self._records[self._made] = record
        if self._most is not None and len(self._records) > self._most:
            del self._records[next(iter(self._records))]
        return self._made

    def end(self, number: int, record: CallRecord) -> None:
        """A call that is too long ago to be kept stays forgotten."""
        if number in self._records:
            self._records[number] = record

    def __iter__(self) -> Iterator[CallRecord]:
        return iter(tuple(self._records.values()))

    def __len__(self) -> int:
        return len(self._records)
