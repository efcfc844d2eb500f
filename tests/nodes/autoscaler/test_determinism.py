"""An autoscaler in a scenario never leaves virtual time, and two processes report the same in the same bytes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.nodes.autoscaler.loop_scenarios import TYPES, group, lived, pods, replica_set

REPOSITORY = Path(__file__).parents[3]
# A child that hangs would hang us: we wait for it without using the processor.
_LONGEST_S = 300


def story(world: str) -> dict[str, object]:
    """Groups are made, grow, are drained and deleted."""
    passing = [{"loop": 3}, {"schedule": True}, {"loop": 2}] if world == "stepped" else [{"advance": "1m"}]
    later = [{"loop": 10}, {"schedule": True}, {"loop": 10}] if world == "stepped" else [{"advance": "3m"}]
    return {
        "world": world,
        "machineTypes": TYPES,
        "options": {
            "node-autoprovisioning": True,
            "nodes": ["0:10:g"],
            "scale-down-unneeded-time": "30s",
            "scale-down-delay-after-add": "10s",
        },
        "nodeGroups": [group("g", target=2)],
        "objects": [replica_set("web", 5), replica_set("db", 2, cpu="1500m")],
        "pods": [pods("red", 3, nodeSelector={"color": "red"}), pods("blue", 2, nodeSelector={"color": "blue"})],
        "steps": [*passing, *passing, {"delete": {"kind": "ReplicaSet", "name": "web"}}, *later],
    }


def reported_by_a_process(world: str, **environment: str) -> bytes:
    finished = subprocess.run(
        [sys.executable, "-m", "plimsoll", "simulate", "-f", "-", "-o", "json"],
        input=msgspec.json.encode(story(world)),
        env={**os.environ, **environment},
        capture_output=True,
        check=True,
        cwd=REPOSITORY,
        timeout=_LONGEST_S,
    )
    return finished.stdout


@pytest.mark.slow
@pytest.mark.parametrize("world", ["stepped", "live"])
def test_hash_seeds_and_kernels_change_no_byte(world: str):
    first = reported_by_a_process(world, PYTHONHASHSEED="1")
    assert first == reported_by_a_process(world, PYTHONHASHSEED="4242", PLIMSOLL_KERNELS="plain")
    calls = {call["call"] for call in msgspec.json.decode(first)["providerCalls"]}
    assert calls >= {"Create", "IncreaseSize", "DeleteNodes"}


@pytest.mark.parametrize("world", ["stepped", "live"])
def test_it_stays_in_virtual_time(world: str):
    """Whatever tried to leave would end the run with LeftVirtualTime."""
    whole = story(world)
    steps = whole.pop("steps")
    assert isinstance(steps, list)
    assert lived(*steps, **whole).outcome["providerCalls"]
