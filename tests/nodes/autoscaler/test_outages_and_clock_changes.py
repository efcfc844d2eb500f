"""The autoscaler cannot see for ten minutes, or its clock is set: nothing is done for it, then or afterwards."""

from __future__ import annotations

from datetime import timedelta

import pytest
from structlog.testing import capture_logs

from tests.nodes.autoscaler.faulty_clusters import FaultyCluster
from tests.nodes.autoscaler.loop_scenarios import group, replica_set

PATIENT = {"scale-down-unneeded-time": "5m", "max-node-provision-time": "5m"}
CHANGES = ("IncreaseSize", "DecreaseTargetSize", "Create", "DeleteNodes", "ForceDeleteNodes", "Delete")
LARGE, SMALL = replica_set("large", 1, cpu="2500m"), replica_set("small", 1)


def health(kind: str, **options: str) -> FaultyCluster:
    """Three nodes, of which one is needed."""
    return FaultyCluster(
        world=kind, nodeGroups=[group("g", target=3)], objects=[LARGE, SMALL], options={**PATIENT, **options}
    )


def minutes(world: FaultyCluster, count: int) -> None:
    if world.scenario.world == "live":
        world.take({"advance": f"{count}m"})
        return
    # A turn that gets no answer lets time pass by itself.
    end = world.run.clock.now() + timedelta(minutes=count)
    while world.run.clock.now() < end:
        world.take({"schedule": True}, {"loop": 1, "every": "10s"})


def nodes_of(world: FaultyCluster) -> set[str]:
    return set(world.outcome()["nodes"])


def cut(world: FaultyCluster, what: str) -> None:
    if "api" in what:
        world.api.cut()
    if "cloud" in what:
        world.cloud_line.cut()


def mend(world: FaultyCluster) -> None:
    world.api.mend()
    world.cloud_line.mend()


@pytest.mark.parametrize("kind", ["live", "stepped"])
@pytest.mark.parametrize("what", ["api and cloud", "api", "cloud"])
def test_nothing_is_done_while_it_cannot_see_and_afterwards_it_goes_on(kind: str, what: str):
    with health(kind) as world:
        minutes(world, 4)
        cut(world, what)
        world.take({"apply": [replica_set("more", 4, cpu="2")]})
        minutes(world, 10)
        assert world.calls(*CHANGES) == []
        mend(world)
        minutes(world, 3)
        assert [call["call"] for call in world.calls(*CHANGES)] == ["IncreaseSize"]
        assert len(nodes_of(world)) == 4
        assert None not in world.outcome()["pods"].values()


@pytest.mark.parametrize("kind", ["live", "stepped"])
@pytest.mark.parametrize("what", ["api and cloud", "api", "cloud"])
def test_time_in_which_it_could_not_see_makes_no_node_unneeded(kind: str, what: str):
    with health(kind) as world:
        minutes(world, 3)
        cut(world, what)
        minutes(world, 10)
        mend(world)
        minutes(world, 1)
        assert world.calls(*CHANGES) == []
        assert len(nodes_of(world)) == 3
        minutes(world, 6)
        assert len(nodes_of(world)) == 1


def test_silent_watches_of_a_server_without_bookmarks_make_no_iteration_blind():
    world = health("live", **{"scale-down-enabled": "false"})
    world.api.sends_bookmarks = False
    with world, capture_logs() as logs:
        minutes(world, 20)
        assert len(world.outcome()["loops"]) > 0
    assert [entry for entry in logs if entry["event"] in {"loop.blind", "informer.trouble"}] == []


def slow_to_boot(kind: str) -> FaultyCluster:
    """Growth is asked for, and takes longer than anybody waits, were it not for the time without observation."""
    return FaultyCluster(
        world=kind,
        nodeGroups=[group("g", target=0, bootSeconds=13 * 60)],
        objects=[LARGE],
        options={**PATIENT, "scale-down-enabled": "false"},
    )


@pytest.mark.parametrize("kind", ["live", "stepped"])
@pytest.mark.parametrize("what", ["api and cloud", "api", "cloud"])
def test_no_growth_and_no_instance_is_given_up_for_want_of_news(kind: str, what: str):
    with slow_to_boot(kind) as world:
        minutes(world, 1)
        assert world.outcome()["nodeGroups"]["g"]["target"] == 1
        cut(world, what)
        minutes(world, 10)
        mend(world)
        minutes(world, 4)
        assert [call["call"] for call in world.calls(*CHANGES)] == ["IncreaseSize"]
        assert len(nodes_of(world)) == 1


# ---- clocks


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_is_set_removes_no_node_early_and_none_late(hours: int):
    with health("stepped") as world:
        world.take({"schedule": True}, {"loop": 12, "every": "10s"})
        world.clock.ahead += timedelta(hours=hours)
        world.take({"loop": 19, "every": "10s"})
        assert world.calls(*CHANGES) == []
        world.take({"loop": 1, "every": "10s"})
        assert [call["arg"] for call in world.calls("DeleteNodes")] == [["g-2"], ["g-1"]]


@pytest.mark.parametrize("hours", [1, -1])
def test_a_clock_that_is_set_times_no_growth_out_early(hours: int):
    with slow_to_boot("stepped") as world:
        world.take({"loop": 6, "every": "10s"})
        world.clock.ahead += timedelta(hours=hours)
        world.take({"loop": 26, "every": "10s"})
        assert [call["call"] for call in world.calls(*CHANGES)] == ["IncreaseSize"]
        world.take({"loop": 1, "every": "10s"})
        assert [call["call"] for call in world.calls(*CHANGES)] == ["IncreaseSize", "DeleteNodes"]


@pytest.mark.parametrize("hours", [1, -1])
def test_pods_that_come_after_a_clock_was_set_are_planned_for_at_once(hours: int):
    """Their own time is that of the API server, whose clock was not set."""
    with FaultyCluster(world="live", nodeGroups=[group("g", target=1)], objects=[LARGE]) as world:
        world.take({"advance": "1m"})
        world.clock.ahead += timedelta(hours=hours)
        world.take({"apply": [replica_set("more", 1, cpu="3")]}, {"advance": "1m"})
        assert [call["arg"] for call in world.calls("IncreaseSize")] == [1]


@pytest.mark.parametrize("hours", [1, -1])
def test_a_group_that_failed_is_left_alone_for_as_long_as_ever(hours: int):
    with FaultyCluster(nodeGroups=[group("g", target=0)], objects=[LARGE]) as world:
        world.take({"provider": {"failIncrease": {"g": "no"}}}, {"loop": 6, "every": "10s"})
        world.clock.ahead += timedelta(hours=hours)
        world.take({"loop": 25, "every": "10s"})
        assert len(world.calls("IncreaseSize")) == 1
        world.take({"loop": 1, "every": "10s"})
        assert len(world.calls("IncreaseSize")) == 2


@pytest.mark.parametrize("hours", [1, -1])
def test_the_hour_of_removals_is_as_long_as_ever(hours: int):
    with FaultyCluster(
        nodeGroups=[group("g", target=2)],
        options={"max-removals-per-hour": 1, "scale-down-unneeded-time": "10s"},
    ) as world:
        world.take({"loop": 6, "every": "10s"})
        assert len(world.calls("DeleteNodes")) == 1
        world.clock.ahead += timedelta(hours=hours)
        world.take({"loop": 59, "every": "1m"})
        assert len(world.calls("DeleteNodes")) == 1
        world.take({"loop": 3, "every": "1m"})
        assert len(world.calls("DeleteNodes")) == 2


@pytest.mark.parametrize("hours", [1, -1])
def test_a_saving_is_looked_at_again_for_as_long_as_ever(hours: int):
    """A proposal is found again after 15 s; a clock that was set neither confirms it nor puts it off."""
    roomy = {"cpu": 4, "memory": "16Gi", "pods": 110}
    dear = {"id": "dear", "min": 0, "max": 9, "target": 2, "price": 1.0, "template": {"capacity": roomy}}
    cheap = {**dear, "id": "cheap", "target": 0, "price": 0.5, "template": {"capacity": {**roomy, "cpu": 6}}}
    with FaultyCluster(
        nodeGroups=[dear, cheap],
        objects=[replica_set("web", 2, cpu="2500m")],
        options={
            "consolidation": "underutilized",
            "consolidation-budget": "100%",
            "max-drain-parallelism": 2,
            "scale-down-utilization-threshold": 0.1,
        },
    ) as world:
        world.take({"schedule": True}, {"loop": 1, "every": "10s"})
        world.clock.ahead += timedelta(hours=hours)
        world.take({"loop": 1, "every": "10s"})
        assert world.calls(*CHANGES) == []
        world.take({"loop": 1, "every": "10s"})
        assert [call["group"] for call in world.calls("IncreaseSize")] == ["cheap"]
