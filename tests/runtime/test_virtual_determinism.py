"""The same story gives the same bytes in every process, whatever PYTHONHASHSEED says."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# Sets of strings, sets of tasks, cancellations, seeded chance and a crashing service, all in one.
STORY = """
import asyncio, structlog
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.supervisor import Service, Supervisor
from plimsoll.testing import run_virtual

structlog.configure(
    processors=[structlog.processors.KeyValueRenderer()],
    logger_factory=structlog.PrintLoggerFactory(),
)

async def main(clock):
    chance = SeededEntropy(7)
    loop = asyncio.get_running_loop()

    def say(*words):
        print(clock.now().isoformat(), asyncio.current_task().get_name(), *words)

    async def flaky():
        await clock.sleep(chance.draw_uniform(0, 5))
        raise ValueError(chance.generate_suffix())

    async def wait(number):
        try:
            await clock.sleep(3600)
        finally:
            say("cancelled", number)

    async def fail():
        await clock.sleep(60)
        raise KeyError(chance.generate_uid())

    supervisor = Supervisor(
        [Service(name=name, run=flaky) for name in ("a", "b")], clock=clock, entropy=chance.spawn_child("supervisor")
    )
    supervising = asyncio.create_task(supervisor.run())
    try:
        async with asyncio.TaskGroup() as group:
            for number in range(300):
                group.create_task(wait(number))
            group.create_task(fail())
    except* KeyError as errors:
        say(errors.exceptions)
    done, _ = await asyncio.wait({asyncio.create_task(clock.sleep(1)) for _ in range(50)})
    say([task.get_name() for task in done])
    say(supervisor.get_status())
    supervising.cancel()
    await asyncio.wait({supervising})

run_virtual(main)
"""


def output_under(hash_seed: str, *, padding: int) -> bytes:
    environment = {**os.environ, "PYTHONHASHSEED": hash_seed, "PADDING": "x" * padding}
    ran = subprocess.run([sys.executable, "-c", STORY], env=environment, capture_output=True, check=False, timeout=60)
    assert ran.returncode == 0, ran.stderr.decode()
    return ran.stdout


@pytest.fixture(scope="module")
def reference() -> bytes:
    return output_under("0", padding=0)


@pytest.mark.parametrize(("hash_seed", "padding"), [("1", 0), ("4242", 5_000), ("random", 77)])
def test_the_same_story_gives_the_same_bytes(reference: bytes, hash_seed: str, padding: int):
    assert output_under(hash_seed, padding=padding) == reference


def test_the_story_is_worth_comparing(reference: bytes):
    assert reference.count(b"cancelled") == 300
    assert reference.count(b"service.crashed") > 10
