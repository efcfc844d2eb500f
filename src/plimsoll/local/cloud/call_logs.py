"""What was asked of the cloud: every call that would change something, refused ones too.

The log outlives the callers: a scenario keeps one and hands it to each `SimulatedCloud` it builds, so that a crash of
the autoscaler does not lose what it did before.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 -- msgspec resolves the annotations of Values at run time
from typing import TYPE_CHECKING

from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator


class CallRecord(Value):
    """One call, as the caller saw it end. `arg` is a delta, names of nodes, or nothing."""

    time: datetime
    group: str
    call: str
    arg: int | tuple[str, ...] | None
    ok: bool
    message: str = ""


class CallLog:
    """Calls in the order in which they were made."""

    def __init__(self) -> None:
        self._records: list[CallRecord] = []

    def add(self, record: CallRecord) -> None:
        self._records.append(record)

    def __iter__(self) -> Iterator[CallRecord]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)
