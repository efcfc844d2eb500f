"""Nodes that fall silent, report again, or never reported; and what becomes of their pods."""

from __future__ import annotations

import pytest

from plimsoll.local.controller_manager.node_lifecycle.controller import NodeLifecycleSettings
from plimsoll.local.controller_manager.node_lifecycle.health import NodeGracePeriods
from plimsoll.local.controller_manager.pod_gc import PodGcSettings
from plimsoll.local.controller_manager.services import build_node_lifecycle_services
from plimsoll.local.liveness import LeaseLiveness
from tests.local.apiserver.builders import MERGE
from tests.local.controller_manager.builders import NODES, NodeLifecycleCluster
from tests.local.local_cluster import LocalClusterHarness

UNREACHABLE_2_S = {
    "key": "node.kubernetes.io/unreachable",
    "operator": "Exists",
    "effect": "NoExecute",
    "tolerationSeconds": 2,
}


def two_nodes(world: NodeLifecycleCluster) -> None:
    world.node("good")
    world.node("bad")


def test_a_node_that_lives_keeps_its_conditions_and_no_taints():
    with NodeLifecycleCluster() as world:
        world.node("good")
        world.run.advance_by(3_600)
        assert world.taints("good") == []
        assert world.conditions("good")["Ready"] == "True Kubelet"


def test_an_hour_in_which_all_nodes_live_writes_nothing():
    with NodeLifecycleCluster() as world:
        two_nodes(world)
        version = world.ask("GET", NODES).body["metadata"]["resourceVersion"]
        world.run.advance_by(3_600)
        assert world.ask("GET", NODES).body["metadata"]["resourceVersion"] == version


def test_a_silent_node_is_left_alone_within_its_grace():
    with NodeLifecycleCluster() as world:
        two_nodes(world)
        world.silence("bad")
        world.run.advance_by(39.9)
        assert world.conditions("bad")["Ready"] == "True Kubelet"
        assert world.taints("bad") == []


def test_a_silent_node_becomes_unknown_and_unreachable_after_its_grace():
    with NodeLifecycleCluster() as world:
        two_nodes(world)
        world.silence("bad")
        world.run.advance_by(40)
        assert set(world.conditions("bad").values()) == {"Unknown NodeStatusUnknown"}
        assert world.taints("bad") == ["unreachable:NoSchedule", "unreachable:NoExecute"]
        assert "NodeNotReady: Node bad status is now: NodeNotReady" in world.events("bad")


def test_the_grace_is_a_setting():
    with NodeLifecycleCluster(NodeLifecycleSettings(patience=NodeGracePeriods(grace_s=12))) as world:
        two_nodes(world)
        world.silence("bad")
        world.run.advance_by(12)
        assert world.taints("bad") == ["unreachable:NoSchedule", "unreachable:NoExecute"]


def test_taints_go_when_the_node_reports_again():
    with NodeLifecycleCluster() as world:
        two_nodes(world)
        world.silence("bad")
        world.run.advance_by(60)
        world.liveness.report_alive("bad")
        world.report("bad", at="2026-01-01T00:01:00Z")
        assert world.taints("bad") == []
        world.run.advance_by(300)
        assert world.conditions("bad")["Ready"] == "True Kubelet"


def test_a_report_counts_as_a_heartbeat():
    with NodeLifecycleCluster() as world:
        world.node("good")
        world.node("bad", lives=False)
        for minute in range(3):
            world.run.advance_by(30)
            world.report("bad", at=f"2026-01-01T00:0{minute}:30Z")
        assert world.taints("bad") == []
        world.run.advance_by(40)
        assert "unreachable:NoExecute" in world.taints("bad")


def test_a_node_that_says_it_is_not_ready_is_tainted_without_unknown_conditions():
    with NodeLifecycleCluster() as world:
        world.node("good")
        world.node("false", Ready="False")
        assert world.taints("false") == ["not-ready:NoSchedule", "not-ready:NoExecute"]
        assert world.events("false") == ["RegisteredNode: Node false event: Registered Node false in Controller"]


def test_a_not_ready_node_that_falls_silent_swaps_its_taints():
    with NodeLifecycleCluster() as world:
        world.node("good")
        world.node("false", Ready="False")
        world.silence("false")
        world.run.advance_by(40)
        assert world.taints("false") == ["unreachable:NoSchedule", "unreachable:NoExecute"]


def test_pressure_keeps_new_pods_away_and_nothing_else():
    with NodeLifecycleCluster() as world:
        world.node("n", MemoryPressure="True", PIDPressure="True")
        assert world.taints("n") == ["memory-pressure:NoSchedule", "pid-pressure:NoSchedule"]
        world.report("n")
        assert world.taints("n") == []


def test_a_cordon_shows_as_a_taint():
    with NodeLifecycleCluster() as world:
        world.node("n")
        world.ask("PATCH", f"{NODES}/n", {"spec": {"unschedulable": True}}, content="application/merge-patch+json")
        world.run.settle()
        assert world.taints("n") == ["unschedulable:NoSchedule"]


def test_taints_of_others_stay():
    with NodeLifecycleCluster() as world:
        two_nodes(world)
        taint = {"key": "ex.com/own", "value": "v", "effect": "NoSchedule"}
        world.ask("PATCH", f"{NODES}/bad", {"spec": {"taints": [taint]}}, content="application/merge-patch+json")
        world.silence("bad")
        world.run.advance_by(40)
        assert world.taints("bad") == ["ex.com/own:NoSchedule", "unreachable:NoSchedule", "unreachable:NoExecute"]


def test_a_node_that_never_reported_is_reported_after_the_startup_grace():
    with NodeLifecycleCluster() as world:
        world.node("good")
        world.made(NODES, {"metadata": {"name": "never"}})
        world.run.advance_by(59)
        assert world.conditions("never") == {}
        world.run.advance_by(1)
        assert set(world.conditions("never").values()) == {"Unknown NodeStatusNeverUpdated"}
        assert world.taints("never") == ["unreachable:NoSchedule", "unreachable:NoExecute"]


def test_when_every_node_is_silent_nothing_is_driven_off():
    with NodeLifecycleCluster() as world:
        two_nodes(world)
        world.pod("p", "bad")
        world.silence("bad", "good")
        world.run.advance_by(3_600)
        assert world.taints("bad") == world.taints("good") == ["unreachable:NoSchedule"]
        assert "deletionTimestamp" not in world.pods()["p"]["metadata"]


def test_an_evicting_taint_is_taken_back_when_the_last_node_falls_silent():
    with NodeLifecycleCluster() as world:
        two_nodes(world)
        world.silence("bad")
        world.run.advance_by(40)
        assert "unreachable:NoExecute" in world.taints("bad")
        world.silence("good")
        world.run.advance_by(40)
        assert world.taints("bad") == ["unreachable:NoSchedule"]


def test_after_a_full_disruption_nodes_that_stay_silent_are_tainted_again():
    with NodeLifecycleCluster() as world:
        two_nodes(world)
        world.silence("bad", "good")
        world.run.advance_by(100)
        world.liveness.report_alive("good")
        world.report("good", at="2026-01-01T00:02:00Z")
        assert world.taints("good") == []
        assert world.taints("bad") == ["unreachable:NoSchedule", "unreachable:NoExecute"]


def test_nodes_of_a_zone_are_emptied_one_every_ten_seconds():
    with NodeLifecycleCluster() as world:
        for name in ("a", "b", "c", "d", "e"):
            world.node(name)
        world.silence("a", "b")
        world.run.advance_by(40)
        emptied = [name for name in ("a", "b") if "unreachable:NoExecute" in world.taints(name)]
        assert len(emptied) == 1
        world.run.advance_by(10)
        assert all("unreachable:NoExecute" in world.taints(name) for name in ("a", "b"))


def test_pods_of_a_silent_node_are_not_ready_and_leave_when_their_toleration_ends():
    with NodeLifecycleCluster() as world:
        two_nodes(world)
        world.pod("short", "bad", tolerations=[UNREACHABLE_2_S])
        world.pod("long", "bad")
        world.pod("forever", "bad", tolerations=[{"operator": "Exists"}])
        world.silence("bad")
        world.run.advance_by(40)
        ready = {name: pod["status"]["conditions"][0]["status"] for name, pod in world.pods().items()}
        assert ready == {"short": "False", "long": "False", "forever": "False"}
        assert world.events("long") == ["NodeNotReady: Node is not ready"]

        world.run.advance_by(2)
        assert [name for name, pod in world.pods().items() if "deletionTimestamp" in pod["metadata"]] == ["short"]
        target = world.pods()["short"]["status"]["conditions"][-1]
        assert (target["type"], target["reason"]) == ("DisruptionTarget", "DeletionByTaintManager")
        assert "TaintManagerEviction: Marking for deletion Pod default/short" in world.events("short")

        world.run.advance_by(298)
        leaving = {name for name, pod in world.pods().items() if "deletionTimestamp" in pod["metadata"]}
        assert leaving == {"short", "long"}


def test_a_pod_stays_when_its_node_reports_in_time():
    with NodeLifecycleCluster() as world:
        two_nodes(world)
        world.pod("long", "bad")
        world.silence("bad")
        world.run.advance_by(100)
        world.liveness.report_alive("bad")
        world.report("bad", at="2026-01-01T00:02:00Z")
        world.run.advance_by(1_000)
        assert "deletionTimestamp" not in world.pods()["long"]["metadata"]
        assert "TaintManagerEviction: Cancelling deletion of Pod default/long" in world.events("long")


def test_a_taint_that_is_added_drives_off_pods_that_do_not_tolerate_it():
    with NodeLifecycleCluster() as world:
        world.node("n")
        world.pod("p", "n")
        taints = [{"key": "ex.com/out", "effect": "NoExecute"}]
        world.ask("PATCH", f"{NODES}/n", {"spec": {"taints": taints}}, content="application/merge-patch+json")
        world.run.settle()
        assert "deletionTimestamp" in world.pods()["p"]["metadata"]


def test_after_a_restart_pods_have_their_time_again():
    with NodeLifecycleCluster() as world:
        two_nodes(world)
        world.pod("long", "bad")
        world.silence("bad")
        world.run.advance_by(100)
        world.kill()
        world.run.advance_by(100)
        world.start()
        world.liveness.report_alive("good")
        world.run.advance_by(299)
        assert "deletionTimestamp" not in world.pods()["long"]["metadata"]
        world.run.advance_by(1)
        assert "deletionTimestamp" in world.pods()["long"]["metadata"]


def test_pods_of_a_deleted_node_are_collected_after_a_while():
    with NodeLifecycleCluster() as world:
        two_nodes(world)
        world.pod("p", "bad", tolerations=[{"operator": "Exists"}])
        world.ask("DELETE", f"{NODES}/bad")
        world.run.advance_by(59)
        assert "deletionTimestamp" not in world.pods()["p"]["metadata"]
        world.run.advance_by(1)
        assert world.pods() == {}
        assert "RemovingNode: Node bad event: Removing Node bad from Controller" in world.events("bad")


def test_pods_are_kept_when_the_node_comes_back():
    with NodeLifecycleCluster() as world:
        two_nodes(world)
        world.pod("p", "bad")
        world.ask("DELETE", f"{NODES}/bad")
        world.run.advance_by(30)
        world.node("bad")
        world.run.advance_by(300)
        assert list(world.pods()) == ["p"]


@pytest.mark.parametrize("size", [1, 3])
def test_finished_pods_beyond_the_threshold_go(size: int):
    with NodeLifecycleCluster(collection=PodGcSettings(kept_finished=size)) as world:
        world.node("n")
        for number in range(5):
            world.pod(f"p{number}", "n")
            world.run.advance_by(1)
            url = f"/api/v1/namespaces/default/pods/p{number}/status"
            world.ask("PATCH", url, {"status": {"phase": "Succeeded"}}, content="application/merge-patch+json")
            world.run.settle()
        assert list(world.pods()) == [f"p{number}" for number in range(5 - size, 5)]


def test_a_node_whose_lease_is_renewed_stays_ready_and_one_whose_is_not_does_not():
    leases = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
    ready = {"type": "Ready", "status": "True", "reason": "Kubelet", "lastHeartbeatTime": "2026-01-01T00:00:00Z"}

    with LocalClusterHarness(
        lambda parts: build_node_lifecycle_services(
            parts, LeaseLiveness.from_informers(parts.informers, clock=parts._clock)
        )
    ) as world:
        for name in ("good", "bad"):
            world.made(NODES, {"metadata": {"name": name}})
            world.ask("PATCH", f"{NODES}/{name}/status", {"status": {"conditions": [ready]}}, content=MERGE)
            world.made(leases, {"metadata": {"name": name}, "spec": {"renewTime": "2026-01-01T00:00:00.000000Z"}})
        for number in range(1, 10):
            world.run.advance_by(10)
            renewed = {"spec": {"renewTime": f"2026-01-01T00:0{number // 6}:{number % 6}0.000000Z"}}
            world.ask("PATCH", f"{leases}/good", renewed, content=MERGE)
        world.run.settle()
        taints = {name: world.ask("GET", f"{NODES}/{name}").body["spec"].get("taints", []) for name in ("good", "bad")}
        assert taints["good"] == []
        assert [taint["effect"] for taint in taints["bad"]] == ["NoSchedule", "NoExecute"]
