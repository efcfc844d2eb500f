"""The whole chain in virtual time: load, a group of stores, pending pods, machines; and back, one store at a time.

The story is `examples/scenarios/tidb-breathes.yaml`; here it is looked at while it goes on.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from plimsoll.kube.informer.events import Key
from plimsoll.local.tidb.pd.stores import OFFLINE, TOMBSTONE
from plimsoll.simulation.files.scenario_reader import read_scenario
from plimsoll.simulation.ports import Plugins
from plimsoll.simulation.worlds.autoscaler import ScenarioLoop
from plimsoll.simulation.worlds.world import World

STORY = Path(__file__).parents[2] / "examples" / "scenarios" / "tidb-breathes.yaml"
BASE = Key("prod", "db")
TIDB = "/apis/pingcap.com/v1alpha1"
END_S = 2_760


class StateSample(NamedTuple):
    """How the world stood. `offline` and `buried` are pods."""

    at_s: int
    base: int
    groups: dict[str, int]
    pods: set[str]
    pending: set[str]
    nodes: int
    offline: set[str]
    buried: set[str]


def reported(*, every_s: int = 15, crash_at_s: int = -1, crashing: str = "") -> list[StateSample]:
    """The story, moment by moment."""
    scenario = read_scenario(STORY.read_bytes(), source=STORY.name)
    moments = []
    with World(scenario, plugs=Plugins(make_loop=ScenarioLoop)) as world:
        for at_s in range(every_s, END_S, every_s):
            world.run.advance_by(every_s)
            if at_s == crash_at_s:
                world.crash(crashing, after_calls=2, path="here")
            moments.append(world.run_now(_moment(world, at_s)))
        assert not world.planned_crashes.waiting
    return moments


async def _moment(world: World, at_s: int) -> StateSample:
    async def listed(path: str) -> list[dict[str, Any]]:
        found = await world.client.get_json(path)
        return list(found["items"])

    sizes = {
        cluster["metadata"]["name"]: cluster["spec"]["tikv"]["replicas"]
        for cluster in await listed(f"{TIDB}/tidbclusters")
    }
    pods = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in await listed("/api/v1/pods")}
    assert world.cluster is not None
    assert world.cluster.tidb is not None
    state = world.cluster.tidb.pds.get_state(BASE)
    stores = state.stores if state is not None else ()
    return StateSample(
        at_s=at_s,
        base=sizes.pop("db"),
        groups=sizes,
        pods=set(pods),
        pending={name for name, node in pods.items() if not node},
        nodes=len(await listed("/api/v1/nodes")),
        offline={store_state.pod for store_state in stores if store_state.state == OFFLINE},
        buried={store_state.pod for store_state in stores if store_state.state == TOMBSTONE},
    )


@pytest.fixture(scope="module")
def story() -> list[StateSample]:
    return reported()


def _first(story: list[StateSample], holds: Any) -> int:
    """The index of the first moment at which something holds."""
    return next(index for index, moment in enumerate(story) if holds(moment))


def test_load_brings_a_group_its_pods_wait_and_machines_follow(story: list[StateSample]) -> None:
    grown = _first(story, lambda observed: observed.groups)
    waiting = _first(story, lambda observed: len(observed.pending) == 2)
    machines = _first(story, lambda observed: observed.nodes == 5)
    running = next(index for index in range(machines, len(story)) if not story[index].pending)

    assert list(story[grown].groups.values()) == [2]
    assert grown <= waiting < machines <= running
    assert story[running].at_s - story[grown].at_s < 180


def test_while_the_load_lasts_nothing_else_happens(story: list[StateSample]) -> None:
    busy = [moment for moment in story if 900 <= moment.at_s <= 1_500]

    assert {(tuple(moment.groups.values()), moment.nodes, len(moment.pending)) for moment in busy} == {((2,), 5, 0)}


def test_when_it_falls_stores_leave_one_at_a_time_and_then_the_machines(story: list[StateSample]) -> None:
    fewer = _first(story, lambda observed: list(observed.groups.values()) == [1])
    none = next(index for index in range(fewer, len(story)) if not story[index].groups)
    machines = next(index for index in range(none, len(story)) if story[index].nodes == 3)

    assert story[none].at_s - story[fewer].at_s >= 485  # the interval of scaling in, as fine as one looks
    assert none < machines
    assert story[-1].nodes == 3
    assert len(story[-1].pods) == 7


def test_at_most_one_store_is_on_its_way_out(story: list[StateSample]) -> None:
    assert max(len(moment.offline) for moment in story) <= 1


def test_no_pod_goes_before_its_store_is_buried(story: list[StateSample]) -> None:
    for before, after in pairwise(story):
        gone = {pod for pod in before.pods - after.pods if "-tikv-" in pod}
        assert gone <= after.buried


def test_the_cluster_itself_keeps_its_size(story: list[StateSample]) -> None:
    assert {moment.base for moment in story} == {3}


@pytest.mark.parametrize(
    ("crashing", "crash_at_s"),
    [("tidb-autoscaler", 360), ("tidb-operator", 1_560)],
)
def test_a_crash_on_the_way_changes_neither_the_end_nor_what_is_safe(crashing: str, crash_at_s: int) -> None:
    story = reported(every_s=60, crash_at_s=crash_at_s, crashing=crashing)

    assert any(list(moment.groups.values()) == [2] for moment in story)
    assert max(len(moment.offline) for moment in story) <= 1
    assert not story[-1].groups
    assert story[-1].nodes == 3
    assert story[-1].buried == {pod for moment in story for pod in moment.pods if pod.startswith("auto-")}
