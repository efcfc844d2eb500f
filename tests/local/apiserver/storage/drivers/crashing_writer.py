"""A process that writes as fast as it can and says so, to be killed: `crashing_writer.py DIRECTORY TURN DURABILITY`.

Several writers, each with keys of its own, so that the order of a key's writes is known. A line is printed after the
write was acknowledged, never before.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

from plimsoll.local.apiserver.storage import Delete, HistoryLimits, Key, Put, SqliteDriver, Store
from plimsoll.runtime.clocks import RealClock

WRITERS = 8
KEYS_PER_WRITER = 3
DELETE_EVERY = 5
"""Every fifth write of a key deletes it."""


def body_of(name: str, sequence: int) -> dict[str, Any]:
    """An object that shows if a part of it is missing or of another write."""
    return {"metadata": {"name": name, "namespace": "default"}, "sequence": sequence, "text": f"{sequence:06d}" * 500}


async def write(store: Store, turn: str, writer: int) -> None:
    sequence = 0
    while True:
        sequence += 1
        for number in range(KEYS_PER_WRITER):
            name = f"{turn}-{writer}-{number}"
            decision = Put(body_of(name, sequence)) if sequence % DELETE_EVERY else Delete()
            written = await store.update(Key("pods", "default", name), lambda _, decision=decision: decision)  # type: ignore[misc]
            assert written is not None
            os.write(1, f"{name} {sequence} {written.revision}\n".encode())


async def main() -> None:
    directory, turn, durability = sys.argv[1:]
    limits = HistoryLimits(changes_per_resource=2_000)
    store = Store.open(SqliteDriver(directory, durability=durability), clock=RealClock(), limits=limits)
    os.write(1, f"open 0 {store.revision}\n".encode())
    await asyncio.gather(*(write(store, turn, writer) for writer in range(WRITERS)))


if __name__ == "__main__":
    asyncio.run(main())
