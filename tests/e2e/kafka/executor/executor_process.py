"""A process that resumes an execution, or begins it, and says where it is: for tests that kill it."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import msgspec

from plimsoll.kafka.brokers.connection_settings import ConnectionSettings
from plimsoll.kafka.brokers.kafka_python import KafkaPythonAdmin
from plimsoll.kafka.executor.executor import Executor
from plimsoll.kafka.executor.record_stores import FileExecutionStore
from plimsoll.kafka.model.executions import ExecutionOptions  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.kafka.model.proposals import Proposal  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.runtime.clocks import RealClock


class Work(msgspec.Struct):
    """What the process does."""

    bootstrap: str
    directory: str
    proposals: tuple[Proposal, ...]
    options: ExecutionOptions


async def run(work: Work) -> None:
    store = FileExecutionStore(Path(work.directory))
    async with KafkaPythonAdmin(ConnectionSettings(bootstrap=tuple(work.bootstrap.split(",")))) as admin:
        executor = Executor(admin, RealClock(), store)
        say("started")
        outcome = await executor.resume()
        if outcome is None:
            outcome = await executor.execute("e1", work.proposals, work.options)
        say(outcome.end.value)


def say(word: str) -> None:
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(run(msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=Work)))
