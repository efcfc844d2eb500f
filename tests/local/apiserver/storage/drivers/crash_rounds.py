"""Kill -9 in the middle of writing, again and again on one data directory, and look at what is left.

The moment is a count of acknowledged writes drawn from a seed: where in the code that hits is up to the machine, how
often and how far into the run is not up to a timer.
"""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

from plimsoll.local.apiserver.storage import EventType, Key, SqliteDriver, Store, Watch
from tests.local.apiserver.storage.builders import StoppedClock
from tests.local.apiserver.storage.drivers.crashing_writer import DELETE_EVERY, WRITERS, body_of

WRITER = Path(__file__).with_name("crashing_writer.py")


class Acknowledged(NamedTuple):
    name: str
    sequence: int
    revision: int


def crash_rounds(directory: Path, *, seed: int, rounds: int) -> int:
    """Returns how many acknowledged writes were checked."""
    chance = random.Random(seed)
    newest = 0
    checked = 0
    settled: dict[str, dict[str, Any] | None] = {}
    for number in range(rounds):
        durability = chance.choice(["process", "power"])
        lines = killed_after(directory, turn=f"r{number}", durability=durability, lines=chance.randint(1, 400))
        opening, acknowledged = lines[0], lines[1:]
        assert opening.revision >= newest
        assert all(item.revision > opening.revision for item in acknowledged)
        newest = asyncio.run(check(directory, opening, acknowledged, settled))
        checked += len(acknowledged)
    return checked


def killed_after(directory: Path, *, turn: str, durability: str, lines: int) -> list[Acknowledged]:
    command = [sys.executable, str(WRITER), str(directory), turn, durability]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        reported = [process.stdout.readline() for _ in range(lines)]
        process.kill()
        reported += process.stdout.readlines()
    words = [line.decode().split() for line in reported if line.endswith(b"\n")]
    assert words, "the writer ended before it began"
    return [Acknowledged(name, int(sequence), int(revision)) for name, sequence, revision in words]


async def check(
    directory: Path,
    opening: Acknowledged,
    acknowledged: list[Acknowledged],
    settled: dict[str, dict[str, Any] | None],
) -> int:
    """Look at everything after a kill; returns the revision the store goes on from."""
    store = Store.open(SqliteDriver(directory), clock=StoppedClock())
    try:
        last = max((item.revision for item in acknowledged), default=opening.revision)
        assert store.revision > last
        for name, expected in settled.items():
            assert body(store, name) == expected, f"{name} of an earlier round changed"
        for name, sequence in {item.name: item.sequence for item in acknowledged}.items():
            found = body(store, name)
            assert found in (state(name, sequence), state(name, sequence + 1)), f"{name}: {found}"
            settled[name] = found
        for stored in store.list("pods").items:
            settled.setdefault(stored.name, body(store, stored.name))
        await check_resumption(store, opening.revision, acknowledged)
        return store.revision
    finally:
        await store.aclose()


def state(name: str, sequence: int) -> dict[str, Any] | None:
    return body_of(name, sequence) if sequence % DELETE_EVERY else None


def body(store: Store, name: str) -> dict[str, Any] | None:
    found = store.get(Key("pods", "default", name))
    if found is None:
        return None
    read = found.decode_body()
    assert read["metadata"].pop("resourceVersion") == str(found.revision)
    return read


async def check_resumption(store: Store, since: int, acknowledged: list[Acknowledged]) -> None:
    """A watcher that had seen the first half goes on without gap or duplicate."""
    in_order = sorted(acknowledged, key=lambda item: item.revision)
    resumed_at = in_order[len(in_order) // 2].revision if in_order else since
    with store.watch("pods", since=resumed_at) as watch:
        reported = await everything(watch, until=store.revision)
    revisions = [revision for revision, _, _ in reported]
    assert revisions == sorted(set(revisions))
    assert all(revision > resumed_at for revision in revisions)
    expected = {
        (item.revision, item.name, item.sequence % DELETE_EVERY == 0) for item in in_order if item.revision > resumed_at
    }
    assert expected <= set(reported), "an acknowledged write was not told"
    assert len(reported) - len(expected) <= WRITERS, "more was told than could have been under way"


async def everything(watch: Watch, *, until: int) -> list[tuple[int, str, bool]]:
    reported = []
    while watch.revision < until:
        event = await asyncio.wait_for(anext(watch), 10)
        reported.append((event.revision, event.object.name, event.type is EventType.DELETED))
    return reported
