"""The record in a directory, and in memory.

Files are replaced, never changed: written beside, flushed to the disk, renamed. Readers see the old content or the new
one, also after a crash. A lock keeps a second process out.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from plimsoll.kafka.executor.errors import RecordUnusable
from plimsoll.kafka.executor.record import (
    ExecutionRecord,
    RecordedPlan,
    RecordedState,
    build_record,
    decode_plan,
    decode_state,
    encode_record,
)
from plimsoll.runtime.atomic_files import remove_file, replace_file
from plimsoll.runtime.sqlite_file import FileErrors, FileLock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PLAN_FILE: Final = "plan.json"
STATE_FILE: Final = "state.json"
LOCK_FILE: Final = "lock"
LARGEST_FILE_BYTES: Final = 1 << 30
"""A plan of a million movements has 200 MB."""


class MemoryExecutionStore:
    """The record of a simulated cluster. It keeps bytes, so that what cannot be encoded fails here too."""

    def __init__(self) -> None:
        self._plan: bytes | None = None
        self._state: bytes | None = None
        self.writes = 0

    @property
    def is_settled(self) -> bool:
        """A plan without a state was never begun."""
        return self._state is None or decode_state(self._state, source="the state in memory").is_settled

    async def read(self) -> ExecutionRecord | None:
        if self._state is None:
            return None
        plan = None if self._plan is None else decode_plan(self._plan, source="the plan in memory")
        return build_record(decode_state(self._state, source="the state in memory"), plan, source="the memory")

    async def write_plan(self, plan: RecordedPlan) -> None:
        self._plan = encode_record(plan)
        self.writes += 1

    async def write_state(self, state: RecordedState) -> None:
        self._state = None if state.is_empty else encode_record(state)
        if not state.execution_id:
            self._plan = None
        self.writes += 1


class FileExecutionStore:
    """The record in a directory of its own, readable by its owner only. Blocking work leaves the loop's thread."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._lock = FileLock(directory / LOCK_FILE, errors=_ERRORS, in_use=_build_in_use_error)

    def close(self) -> None:
        """Lets another process use the directory."""
        self._lock.release()

    async def read(self) -> ExecutionRecord | None:
        return await asyncio.to_thread(read_record, self._directory)

    async def write_plan(self, plan: RecordedPlan) -> None:
        await asyncio.to_thread(self._write_plan, plan)

    def _write_plan(self, plan: RecordedPlan) -> None:
        _replace_file(self._directory / PLAN_FILE, encode_record(plan))

    async def write_state(self, state: RecordedState) -> None:
        await asyncio.to_thread(self._write_state, state)

    def _write_state(self, state: RecordedState) -> None:
        if state.is_empty:
            _remove_file(self._directory / STATE_FILE)
        else:
            _replace_file(self._directory / STATE_FILE, encode_record(state))
        if not state.execution_id:
            _remove_file(self._directory / PLAN_FILE)


def read_record(directory: Path) -> ExecutionRecord | None:
    """The record in a directory, without its lock. Blocking."""
    raw = _read_file(directory / STATE_FILE)
    if raw is None:
        return None
    state = decode_state(raw, source=str(directory / STATE_FILE))
    plan: RecordedPlan | None = None
    if state.execution_id:
        raw_plan = _read_file(directory / PLAN_FILE)
        plan = None if raw_plan is None else decode_plan(raw_plan, source=str(directory / PLAN_FILE))
    return build_record(state, plan, source=str(directory))


def _read_file(file: Path) -> bytes | None:
    with _explain_errors(file, "cannot be read"):
        try:
            if file.stat().st_size > LARGEST_FILE_BYTES:
                raise RecordUnusable(f"{file} has more than {LARGEST_FILE_BYTES} bytes: it is no record of ours")
            return file.read_bytes()
        except FileNotFoundError:
            return None


def _replace_file(file: Path, content: bytes) -> None:
    with _explain_errors(file, "cannot be written"):
        replace_file(file, content)


def _remove_file(file: Path) -> None:
    with _explain_errors(file, "cannot be removed"):
        remove_file(file)


@contextmanager
def _explain_errors(file: Path, what: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise RecordUnusable(f"{file} {what}: {error.strerror}") from error


def _build_error(file: Path, problem: str) -> RecordUnusable:
    return RecordUnusable(f"{file}: {problem}")


def _build_version_error(file: Path, found: int, newest: int) -> RecordUnusable:
    return RecordUnusable(f"{file}: version {found}, and {newest} is the newest that is known")


def _build_in_use_error(file: Path, holder: str) -> RecordUnusable:
    by = f" by process {holder}" if holder else ""
    end = "; Ctrl-C or SIGTERM stops it" if holder else ""
    return RecordUnusable(f"{file.parent} is in use{by}: one process executes at a time{end}")


_ERRORS: Final = FileErrors(noun="record", unusable=_build_error, corrupt=_build_error, too_new=_build_version_error)
