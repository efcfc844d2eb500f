"""What a scenario promises about itself: it never leaves the loop, and it always ends with the same bytes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from plimsoll.core.errors import InvalidInput, LeftVirtualTime
from plimsoll.simulation.files.scenario_reader import read_scenario
from plimsoll.simulation.ports import Plugins
from plimsoll.simulation.runner import run_scenario
from plimsoll.simulation.worlds.world import World
from tests.simulation.builders import group, outcome, replica_set
from tests.simulation.busy_scenario import busy_scenario

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.simulation.ports import LoopDependencies

REPOSITORY = Path(__file__).parents[2]
LIVE = REPOSITORY / "tests" / "scenarios" / "c09-live-cluster.yaml"
# A child that hangs would hang us: we wait for it without using the processor.
_LONGEST_S = 300


class LeavingAutoscaler:
    """An autoscaler that leaves virtual time."""

    def __init__(self, leave: Callable[[], Any]) -> None:
        self._leave = leave

    def list_services(self) -> list[Any]:
        return []

    def get_metrics(self) -> dict[str, float]:
        return {}

    async def run_loop(self) -> dict[str, Any]:
        left = self._leave()
        if asyncio.iscoroutine(left):
            await left
        return {}


def in_a_thread() -> None:
    threading.Thread(target=int).start()


async def through_a_socket() -> None:
    await asyncio.open_connection("127.0.0.1", 1)


async def in_an_executor() -> None:
    await asyncio.to_thread(int)


@pytest.mark.parametrize("leave", [in_a_thread, through_a_socket, in_an_executor])
def test_whoever_leaves_the_loop_is_named(leave: Callable[[], Any]):
    def make(_: LoopDependencies) -> LeavingAutoscaler:
        return LeavingAutoscaler(leave)

    scenario = read_scenario(b"steps: [{loop: 1}]", source="test")
    with pytest.raises(LeftVirtualTime, match=leave.__name__):
        run_scenario(scenario, plugs=Plugins(make_loop=make))


def test_a_live_cluster_stays_inside():
    """The whole of it: everything that tried to leave would end the run with LeftVirtualTime."""
    assert run_scenario(read_scenario(LIVE.read_bytes(), source="live")).failed == ()


def reported_by_a_process(scenario: dict[str, Any], *, hash_seed: str) -> bytes:
    command = [sys.executable, "-m", "plimsoll", "simulate", "-f", "-", "-o", "json"]
    finished = subprocess.run(
        command,
        input=msgspec.json.encode(scenario),
        env={**os.environ, "PYTHONHASHSEED": hash_seed},
        capture_output=True,
        check=True,
        cwd=REPOSITORY,
        timeout=_LONGEST_S,
    )
    return finished.stdout


@pytest.mark.parametrize("world", ["stepped", "live"])
@pytest.mark.slow
def test_two_processes_with_two_hash_seeds_give_the_same_bytes(world: str):
    first = reported_by_a_process(busy_scenario(world), hash_seed="1")
    assert first == reported_by_a_process(busy_scenario(world), hash_seed="4242")
    ended = msgspec.json.decode(first)
    pods = ended["pods"]
    assert sum(name.startswith("default/web-") for name in pods) == 10, "the deployment has grown"
    assert [name for name in pods if name.startswith("default/db-")] == [f"default/db-{index}" for index in range(3)]
    assert not any(name.startswith("default/sums-") for name in pods), "the job is gone with its pods"
    if world == "live":
        assert ended["nodes"]["a-0"]["pods"] == [], "it is drained"


def test_a_world_that_cannot_begin_leaves_nothing_behind():
    def make(_: LoopDependencies) -> LeavingAutoscaler:
        raise InvalidInput("no such flag", path="options")

    world = World(read_scenario(b"{}", source="test"), plugs=Plugins(make_loop=make))
    with pytest.raises(InvalidInput, match="no such flag"):
        world.__enter__()
    assert world.run.loop.is_closed()


def test_the_seed_decides_about_names():
    def names(seed: int) -> list[str]:
        return list(outcome(seed=seed, nodeGroups=[group()], objects=[replica_set()])["pods"])

    assert names(0) == names(0)
    assert names(0) != names(1)
