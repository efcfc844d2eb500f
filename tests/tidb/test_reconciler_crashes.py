"""A crash between raising the cluster and writing the status: the server knows who wrote the replicas, and when."""

from __future__ import annotations

from itertools import pairwise

from tests.faults import CrashAfter
from tests.tidb.actuation.draining_clusters import DrainingCluster
from tests.tidb.autoscaled_clusters import EmbeddedServer, homogeneous

OWN = "default_homogeneous_tikv"
REPLICAS = ("spec", "tikv", "replicas")


# ---- the whole autoscaler


def raises(crash: CrashAfter | None) -> list[tuple[int, float]]:
    """The sizes of the cluster, and when each was first seen, while the planner never has enough."""
    with DrainingCluster(EmbeddedServer, crash=crash) as world:
        world.autoscaler().cluster()
        start = world.run.clock.now()
        found = [(3, 0.0)]
        for _ in range(25):
            world.planner.says(homogeneous(found[-1][0] + 1))
            world.pass_by(30, every_s=30)
            replicas = world.tc("db")["spec"]["tikv"]["replicas"]
            if replicas != found[-1][0]:
                found.append((replicas, (world.run.clock.now() - start).total_seconds()))
        return found


def test_after_a_crash_at_any_write_the_interval_is_kept() -> None:
    expected = raises(None)
    assert expected == [(3, 0), (4, 30), (5, 330), (6, 630)]
    for number in range(1, 100):
        crash = CrashAfter(number)
        found = raises(crash)
        assert [size for size, _ in found] == [3, 4, 5, 6], f"after write {number}: {found}"
        steps = [later - earlier for (_, earlier), (_, later) in pairwise(found[1:])]
        assert min(steps) >= 300, f"after write {number}, {crash.struck}: {found}"
        if crash.struck is None:
            assert number > 6, "so many writes it takes"
            return
    raise AssertionError("is there an end to this?")


def test_the_lost_time_is_written_down_and_asked_for_only_once() -> None:
    # The first write is the raise.
    with DrainingCluster(EmbeddedServer, crash=CrashAfter(1)) as world:
        world.autoscaler().cluster()
        world.planner.says(homogeneous(4))
        world.pass_by(10)
        raised = world.run.clock.now()
        assert world.tc("db")["spec"]["tikv"]["replicas"] == 4
        assert "status" not in world.tac()
        world.planner.says(homogeneous(5))
        world.pass_by(10)
        assert world.entry(OWN)["lastAutoScalingTimestamp"] == f"{raised:%Y-%m-%dT%H:%M:%SZ}"
        assert world.entry(OWN)["replicas"] == 4
        world.pass_by(30)
        assert world.sent.wrote == []


def test_a_raise_of_one_component_does_not_hold_the_other() -> None:
    """Both are fields of one entry, whose time is that of the last."""
    rules = {"cpu": {"max_threshold": 0.8, "min_threshold": 0.2}}
    with DrainingCluster(EmbeddedServer) as world:
        world.autoscaler("as1").autoscaler("as2", tikv=None, tidb={"rules": rules}).cluster()
        world.planner.says(homogeneous(4))
        world.pass_by(10)
        world.run.advance_by(250)
        world.planner.says(homogeneous(3, "tidb"))
        world.pass_by(10)
        assert world.tc("db")["spec"]["tidb"]["replicas"] == 3
        world.planner.says(homogeneous(5))
        world.pass_by(50)
        assert world.tc("db")["spec"]["tikv"]["replicas"] == 5


def test_replicas_that_another_writer_set_hold_nothing() -> None:
    with DrainingCluster(EmbeddedServer) as world:
        world.autoscaler().cluster()
        world.pass_by(10)
        world.server.edit("tidbclusters", "db", {"spec": {"tikv": {"replicas": 4}}})
        world.planner.says(homogeneous(5))
        world.pass_by(10)
        assert world.tc("db")["spec"]["tikv"]["replicas"] == 5
