"""An executor with its record on disk, its journal and its pause, for the commands that move replicas."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from plimsoll.journal.ports import Journal
    from plimsoll.journal.sqlite import SqliteJournal
    from plimsoll.kafka.brokers.ports import KafkaAdmin
    from plimsoll.kafka.executor.executor import Executor
    from plimsoll.operator.pause import ActionGuard

_PAUSE_FILE: Final = "paused"
_LONGEST_REASON: Final = 1_000


@asynccontextmanager
async def open_executor(admin: KafkaAdmin, directory: Path, journal: Journal) -> AsyncIterator[Executor]:
    """An executor whose record is in `directory`. Another process with this directory or cluster is refused."""
    from plimsoll.cli.kafka.cluster_lock import lock_cluster
    from plimsoll.kafka.executor.executor import Executor
    from plimsoll.kafka.executor.record_stores import FileExecutionStore
    from plimsoll.runtime.clocks import RealClock

    async def read_guard() -> ActionGuard:
        return _read_pause(directory)

    store = FileExecutionStore(directory)
    try:
        with lock_cluster((await admin.describe_nodes()).cluster_id):
            yield Executor(admin, RealClock(), store, read_guard=read_guard, journal=journal)
    finally:
        store.close()


@asynccontextmanager
async def open_journal(directory: Path) -> AsyncIterator[SqliteJournal]:
    """The journal in `directory`, for writing."""
    from plimsoll.journal.sqlite import SqliteJournal

    journal = await SqliteJournal.open(directory)
    try:
        yield journal
    finally:
        await journal.close()


def write_pause(directory: Path, reason: str) -> None:
    """Pause executions of this directory: what is under way ends, nothing new begins."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        (directory / _PAUSE_FILE).write_text(reason[:_LONGEST_REASON] or "true", encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"cannot be written: {error.strerror}", path=str(directory / _PAUSE_FILE)) from error


def remove_pause(directory: Path) -> bool:
    """End the pause; False: there was none."""
    try:
        (directory / _PAUSE_FILE).unlink()
    except FileNotFoundError:
        return False
    except OSError as error:
        raise InvalidInput(f"cannot be removed: {error.strerror}", path=str(directory / _PAUSE_FILE)) from error
    return True


def _read_pause(directory: Path) -> ActionGuard:
    """A pause that cannot be read is a pause."""
    from plimsoll.operator.pause import ActionGuard

    try:
        reason = (directory / _PAUSE_FILE).read_text(encoding="utf-8", errors="replace")[:_LONGEST_REASON]
    except FileNotFoundError:
        return ActionGuard()
    except OSError as error:
        reason = f"the pause file cannot be read: {error.strerror}"
    return ActionGuard(paused=reason.strip() or "true")
