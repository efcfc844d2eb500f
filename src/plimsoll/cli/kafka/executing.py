"""An executor with its record on disk, for the commands that move replicas."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from plimsoll.kafka.brokers.ports import KafkaAdmin
    from plimsoll.kafka.executor.executor import Executor


@asynccontextmanager
async def open_executor(admin: KafkaAdmin, directory: Path) -> AsyncIterator[Executor]:
    """An executor whose record is in `directory`. Another process with the same directory is refused."""
    from plimsoll.kafka.executor.executor import Executor
    from plimsoll.kafka.executor.record_stores import FileExecutionStore
    from plimsoll.runtime.clocks import RealClock

    store = FileExecutionStore(directory)
    try:
        yield Executor(admin, RealClock(), store)
    finally:
        store.close()
