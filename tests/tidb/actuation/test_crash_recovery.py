"""CrashAfter every write of a scale-out and a scale-in, to Kubernetes and to PD: the same end, and no store lost."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.effort import CALLS_APART, choose_calls
from tests.faults import CrashAfter
from tests.tidb.actuation.draining_clusters import DrainingCluster
from tests.tidb.autoscaled_clusters import AUTO, GROUP, FakeServer, group

MARK = "autoscaler.tidb.pingcap.com/drain"


def scaled_out(world: DrainingCluster) -> None:
    world.planner.says(group(1))
    world.pass_by(60, every_s=30)
    world.planner.says(group(2))
    world.pass_by(360, every_s=60)
    assert world.tc()["spec"]["tikv"]["replicas"] == 2


def scaled_in(world: DrainingCluster) -> None:
    """One store by a smaller count; the group, when no answer names it any more."""
    world.run.advance_by(700)
    world.planner.says(group(1))
    world.pass_by(120, every_s=15)
    assert world.tc()["spec"]["tikv"]["replicas"] == 1
    world.run.advance_by(500)
    world.planner.says()
    world.pass_by(150, every_s=15)


def deleted(world: DrainingCluster) -> None:
    world.server.delete("tidbclusterautoscalers", "as1")
    world.pass_by(300, every_s=15)


def changed_mind(world: DrainingCluster) -> None:
    """A drain is begun and called off."""
    world.run.advance_by(700)
    world.planner.says(group(1))
    world.pass_by(20, every_s=10)
    world.planner.says(group(2))
    world.pass_by(60, every_s=15)


STORIES = {"scale-in": scaled_in, "deletion": deleted, "change of mind": changed_mind}


def ended(story: str, crash: CrashAfter | None) -> dict[str, Any]:
    """What is there in the end; times of changes differ with the crash and are left out."""
    with DrainingCluster(FakeServer, crash=crash) as world:
        world.autoscaler().cluster()
        scaled_out(world)
        STORIES[story](world)
        assert world.lost == []
        assert world.pd.together <= 1
        assert world.pd.evicting == set()
        is_there = AUTO in world.clusters
        assert not is_there or MARK not in world.tc()["metadata"]["annotations"]
        autoscalers = world.server.names("tidbclusterautoscalers")
        status = world.tac().get("status", {}).get("tikv", {}) if autoscalers else {}
        return {
            "clusters": world.clusters,
            "specs": {name: world.tc(name)["spec"] for name in world.clusters},
            "stores": [(breathing_store.pod, breathing_store.state) for breathing_store in world.stores],
            "autoscalers": autoscalers,
            "replicas": {key: entry.get("replicas") for key, entry in status.items()},
        }


@pytest.mark.parametrize("story", STORIES)
def test_after_a_crash_at_any_write_it_ends_the_same(story: str) -> None:
    expected = ended(story, None)
    assert expected["clusters"] == (["auto-dbf6f9fdd", "db"] if story == "change of mind" else ["db"])
    for number in choose_calls(200, list(STORIES).index(story) % CALLS_APART + 1):
        crash = CrashAfter(number)
        found = ended(story, crash)
        assert json.dumps(found) == json.dumps(expected), f"after write {number}: {crash.struck}"
        if crash.struck is None:
            assert number > 15, "so many writes a story has at least"
            return
    raise AssertionError("is there an end to this?")


def test_the_story_of_a_scale_in() -> None:
    assert ended("scale-in", None)["stores"] == [(f"{AUTO}-tikv-0", 2), (f"{AUTO}-tikv-1", 2)]
    assert ended("change of mind", None)["replicas"] == {GROUP: 2}
