"""What happens to a node that goes, in which order and at what times (docs/design/nodes.md 6.8)."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.nodes.actuation.timing import Pacing
from plimsoll.objects.api.pods import Pod
from tests.narrowing import present
from tests.nodes.actuation.builders import DAEMON, DELETED, NAMESPACE, DeletionCluster, policy, removal

DS_EVICTION = "cluster-autoscaler.kubernetes.io/enable-ds-eviction"
DELAY = {"delay-deletion.cluster-autoscaler.kubernetes.io__volumes": "detaching"}


def test_an_empty_node_is_tainted_cordoned_and_deleted_after_the_delay():
    with DeletionCluster() as world:
        world.group("g", target=2)
        world.remove(removal("g-0", is_empty=True))
        world.after(4)
        node = world.node("g-0")
        (taint,) = node.spec.taints
        started = str(int(world.clock.now().timestamp()) - 4)
        assert (taint.key, taint.value, taint.effect) == (DELETED, started, "NoSchedule")
        assert node.spec.unschedulable
        assert world.nodes() == ["g-0", "g-1"]
        world.after(2)
        assert world.results() == {"g-0": "removed"}
        assert world.nodes() == ["g-1"]
        assert world.get_group().spec.target == 1


def test_an_occupied_node_is_drained_before_it_goes():
    with DeletionCluster(stop_s=20) as world:
        world.group("g", target=2)
        world.pod("web-0", node="g-0")
        world.pod("web-1", node="g-1")
        world.remove(removal("g-0"))
        world.after(20)
        assert world.nodes() == ["g-0", "g-1"]
        assert world.pods() == ["web-0", "web-1"]
        world.after(15)
        assert world.nodes() == ["g-1"]
        assert world.pods() == ["web-1"]
        ended = world.end_of("g-0")
        assert (ended.result, ended.evicted, ended.failed_evictions) == ("removed", 1, 0)
        assert [pod.pod.metadata.name for pod in ended.pods] == ["web-0"]


def test_taints_of_others_are_not_lost():
    with DeletionCluster() as world:
        world.group("g", target=1, template={"taints": [{"key": "team", "value": "red", "effect": "NoSchedule"}]})
        world.remove(removal("g-0", is_empty=True))
        world.after(1)
        assert world.marks("g-0") == (["team", DELETED], True)


def test_without_the_flag_nodes_are_not_cordoned():
    with DeletionCluster(cordon_first=False) as world:
        world.group("g", target=1)
        world.remove(removal("g-0", is_empty=True))
        world.after(1)
        assert world.marks("g-0") == ([DELETED], False)


@pytest.mark.parametrize(("asked", "most", "given"), [(900, 600, 600), (20, 600, 20), (None, 600, 30), (900, 0, 900)])
def test_the_grace_period_of_pods_is_capped(asked: int | None, most: int, given: int):
    with DeletionCluster(stop_s=3000, graceful_termination_s=most) as world:
        world.group("g", target=1)
        grace: dict[str, Any] = {} if asked is None else {"terminationGracePeriodSeconds": asked}
        world.pod("web-0", node="g-0", **grace)
        world.remove(removal("g-0"))
        world.after(6)
        pod = world.kube.do(world.client.get(Pod, "web-0", namespace=NAMESPACE))
        assert pod.metadata.deletion_grace_period_seconds == given


def test_pods_of_lower_priority_leave_first_each_tier_with_its_own_grace():
    with DeletionCluster(stop_s=3000, drain_priority_config="1000:40,0:20") as world:
        world.group("g", target=1)
        for name, value in (("low", 10), ("high", 5000)):
            body = {"metadata": {"name": name}, "value": value}
            world.kube.made("/apis/scheduling.k8s.io/v1/priorityclasses", body)
            world.pod(name, node="g-0", priorityClassName=name, terminationGracePeriodSeconds=100)
        world.remove(removal("g-0"))
        world.after(6)
        found = {item.metadata.name: item.metadata for item in world.kube.do(world.client.list(Pod)).items}
        assert found["low"].deletion_grace_period_seconds == 20
        assert found["high"].deletion_timestamp is None
        world.after(25)
        (left,) = world.kube.do(world.client.list(Pod)).items
        assert (left.metadata.name, left.metadata.deletion_grace_period_seconds) == ("high", 40)
        world.after(45)
        assert world.results() == {"g-0": "removed"}


# ---- daemons


@pytest.mark.parametrize(
    ("flags", "annotation", "is_evicted"),
    [
        ({}, None, True),
        ({"evict_daemons_of_occupied": False}, None, False),
        ({"evict_daemons_of_occupied": False}, "true", True),
        ({}, "false", False),
    ],
)
def test_daemon_pods_of_occupied_nodes_are_evicted_if_configured(
    flags: dict[str, Any], annotation: str | None, is_evicted: bool
):
    with DeletionCluster(stop_s=10, **flags) as world:
        world.group("g", target=1)
        world.pod("web-0", node="g-0")
        notes = {} if annotation is None else {DS_EVICTION: annotation}
        world.pod("agent-0", node="g-0", owner=DAEMON, annotations=notes)
        world.remove(removal("g-0"))
        world.after(8)
        found = {pod.metadata.name: pod.metadata for pod in world.kube.do(world.client.list(Pod)).items}
        assert (found["agent-0"].deletion_timestamp is not None) is is_evicted


@pytest.mark.parametrize(("wanted", "evicted"), [(False, []), (True, ["agent-0"])])
def test_daemon_pods_of_empty_nodes_are_evicted_only_with_the_flag(wanted: bool, evicted: list[str]):
    with DeletionCluster(evict_daemons_of_empty=wanted) as world:
        world.group("g", target=1)
        world.pod("agent-0", node="g-0", owner=DAEMON)
        world.remove(removal("g-0", is_empty=True))
        world.after(6)
        assert world.results() == {"g-0": "removed"}
        assert [evicted_pod.pod.metadata.name for evicted_pod in world.end_of("g-0").pods] == evicted


def test_a_daemon_pod_that_may_not_go_delays_no_other():
    with DeletionCluster() as world:
        world.group("g", target=1)
        world.pod("web-0", node="g-0")
        world.pod("agent-0", node="g-0", owner=DAEMON, labels={"app": "agent"})
        world.budget(maxUnavailable=0, selector={"matchLabels": {"app": "agent"}})
        world.remove(removal("g-0"))
        world.after(11)
        ended = world.end_of("g-0")
        assert (ended.result, ended.evicted, ended.failed_evictions) == ("removed", 1, 1)


# ---- waiting for others


def test_an_annotation_holds_the_deletion_up_until_it_is_gone():
    with DeletionCluster() as world:
        world.group("g", target=1)
        world.annotate("g-0", **DELAY)
        world.remove(removal("g-0", is_empty=True))
        world.after(60)
        assert world.nodes() == ["g-0"]
        world.annotate("g-0", **dict.fromkeys(DELAY))
        world.after(5)
        assert world.nodes() == []


def test_an_annotation_holds_the_deletion_up_for_so_long_and_no_longer():
    with DeletionCluster() as world:
        world.group("g", target=1)
        world.annotate("g-0", **DELAY)
        world.remove(removal("g-0", is_empty=True))
        world.after(5 + 119)
        assert world.nodes() == ["g-0"]
        world.after(6)
        assert world.nodes() == []


# ---- many at once


def test_without_a_batch_time_each_node_is_a_call_of_its_own():
    with DeletionCluster() as world:
        world.group("g", target=3)
        world.remove(*(removal(f"g-{number}", is_empty=True) for number in range(3)))
        world.after(6)
        assert sorted(world.deletions()) == [["g-0"], ["g-1"], ["g-2"]]


def test_nodes_of_a_group_that_are_ready_within_the_batch_time_are_one_call():
    with DeletionCluster(stop_s=8, batcher_interval_s=12) as world:
        world.group("g", target=2)
        world.group("h", target=1)
        world.pod("web-0", node="g-1")
        world.remove(removal("g-0", is_empty=True), removal("g-1"), removal("h-0", group="h", is_empty=True))
        world.after(40)
        assert sorted(sorted(names) for names in world.deletions()) == [["g-0", "g-1"], ["h-0"]]
        assert world.results() == dict.fromkeys(("g-0", "g-1", "h-0"), "removed")


def test_a_group_that_goes_whole_is_one_call_when_all_are_ready():
    with DeletionCluster(stop_s=15) as world:
        world.group("g", target=3, zeroOrMax=True)
        world.pod("web-0", node="g-1")
        world.remove(*(removal(f"g-{number}", is_empty=number != 1, goes_whole=True) for number in range(3)))
        world.after(15)
        assert world.deletions() == []
        world.after(20)
        assert world.deletions() == [["g-0", "g-1", "g-2"]]
        assert set(world.results().values()) == {"removed"}


def test_a_group_that_goes_whole_stays_whole_when_one_node_cannot_go():
    with DeletionCluster() as world:
        world.group("g", target=2, zeroOrMax=True)
        world.pod("lone", node="g-1", owner=None)
        world.remove(*(removal(f"g-{number}", is_empty=number != 1, goes_whole=True) for number in range(2)))
        world.after(10)
        assert world.deletions() == []
        assert world.marks("g-0") == world.marks("g-1") == ([], False)
        assert present(world.end_of("g-0").reason).code == "AtomicScaleDownFailed"
        assert present(world.end_of("g-1").reason).code == "BlockedByPod"


# ---- what the loop asks


def test_what_is_under_way_is_reported_until_the_node_is_gone():
    with DeletionCluster(stop_s=20) as world:
        world.group("g", target=3)
        world.pod("web-0", node="g-0")
        world.remove(removal("g-0"), removal("g-1", is_empty=True))
        world.after(1)
        reported = world.remover.in_progress
        assert (reported.nodes, dict(reported.by_group), reported.removals, reported.drains) == (
            {"g-0", "g-1"},
            {"g": 2},
            2,
            1,
        )
        world.after(6)
        reported = world.remover.in_progress
        assert (reported.nodes, dict(reported.by_group), reported.removals, reported.drains) == (
            {"g-0", "g-1"},
            {"g": 1},
            1,
            1,
        )
        world.remover.forget_deleted({"g-0": world.node("g-0")}, {})
        assert world.remover.in_progress.nodes == {"g-0"}


def test_a_node_that_outlives_its_deletion_counts_as_leaving_for_five_minutes():
    with DeletionCluster() as world:
        world.group("g", target=1)
        node = world.node("g-0")
        world.remove(removal("g-0", is_empty=True))
        world.after(5)
        for has_machine, patience_s in ((False, 180), (True, 300)):
            world.after(patience_s - (0 if not has_machine else 180) - 1)
            world.remover.forget_deleted({"g-0": node}, {"g-0": has_machine})
            assert world.remover.in_progress.nodes == {"g-0"}
            world.after(1)
        world.remover.forget_deleted({"g-0": node}, {"g-0": True})
        assert world.remover.in_progress.nodes == frozenset()


def test_every_end_is_reported_once():
    with DeletionCluster() as world:
        world.group("g", target=1)
        world.remove(removal("g-0", is_empty=True))
        world.after(6)
        assert [finished.removal.node for finished in world.remover.take_finished()] == ["g-0"]
        assert world.remover.take_finished() == ()


def test_a_node_is_not_begun_twice():
    with DeletionCluster() as world:
        world.group("g", target=2)
        world.remove(removal("g-0", is_empty=True))
        world.after(1)
        world.remove(removal("g-0", is_empty=True))
        world.after(10)
        assert world.deletions() == [["g-0"]]
        assert len(world.remover.take_finished()) == 1


def test_a_node_that_failed_may_be_begun_again_while_others_of_its_batch_are_under_way():
    with DeletionCluster(stop_s=60) as world:
        world.group("g", target=2)
        world.pod("lone", node="g-0", owner=None)
        world.pod("web-0", node="g-1", terminationGracePeriodSeconds=60)
        world.remove(removal("g-0"), removal("g-1"))
        world.after(10)
        assert world.results() == {"g-0": "overtaken"}
        world.kube.ask("DELETE", "/api/v1/namespaces/here/pods/lone?gracePeriodSeconds=0")
        world.pod("web-1", node="g-0", terminationGracePeriodSeconds=60)
        world.after(40)
        world.remove(removal("g-0"))
        world.after(30)
        assert world.results()["g-1"] == "removed"
        assert world.remover.in_progress.removals == 1
        world.after(60)
        assert world.end_of("g-0").result == "overtaken"
        assert [deletion.result for deletion in world.ended] == ["overtaken", "removed", "removed"]


def test_evicted_pods_are_remembered_until_they_are_made_again_or_time_is_up():
    with DeletionCluster() as world:
        world.group("g", target=2)
        world.pod("web-0", node="g-0")
        world.remove(removal("g-0"))
        world.after(10)
        (evicted,) = world.remover.find_recently_evicted(world.clock.now())
        assert (evicted.metadata.name, evicted.spec.node_name) == ("web-0", "")
        world.pod("web-1", node="g-1")
        pods = world.kube.do(world.client.list(Pod)).items
        assert world.remover.find_recently_evicted(world.clock.now(), pods) == ()
        world.remove(removal("g-1"))
        world.after(10)
        assert len(world.remover.find_recently_evicted(world.clock.now())) == 1
        world.after(120)
        assert world.remover.find_recently_evicted(world.clock.now()) == ()


# ---- the stepped world


def test_a_stepped_removal_ends_within_the_turn_and_takes_no_time():
    with DeletionCluster(runs=False, pacing=Pacing.STEPPED) as world:
        world.group("g", target=3)
        for number in range(20):
            world.pod(f"web-{number}", node="g-0", terminationGracePeriodSeconds=300)
        world.annotate("g-0", **DELAY)
        before = world.clock.now()
        world.remove(removal("g-0"), removal("g-1", is_empty=True))
        world.do(world.remover.wait_until_idle())
        assert world.clock.now() == before
        assert world.results() == {"g-0": "removed", "g-1": "removed"}
        assert world.nodes() == ["g-2"]
        assert world.pods() == []


def test_a_stepped_removal_that_would_have_to_wait_fails_within_the_turn():
    with DeletionCluster(runs=False, pacing=Pacing.STEPPED, stop_s=5) as world:
        world.group("g", target=2)
        world.pod("web-0", node="g-0")
        before = world.clock.now()
        world.remove(removal("g-0"))
        world.do(world.remover.wait_until_idle())
        assert world.clock.now() == before
        assert world.results() == {"g-0": "failed"}
        assert world.marks("g-0") == ([], False)


def test_pacing_follows_the_flags():
    paced = Pacing.from_policy(policy(delay_after_taint_s=1.0, eviction_time_s=2.0, batcher_interval_s=3.0))
    assert (paced.after_taint_s, paced.eviction_time_s, paced.batch_s, paced.eviction_retry_s) == (1, 2, 3, 10)
    assert not paced.is_stepped
