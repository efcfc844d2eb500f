"""Daemon sets: a pod on every node that is fit for it, and how the pods follow the template and the nodes."""

from __future__ import annotations

from functools import partial
from typing import Any

from plimsoll.local.controller_manager.workloads.daemon_sets.controller import build_daemon_set_services
from tests.local.controller_manager.workloads.builders import (
    APPS,
    NODES,
    PODS,
    CrashingWorkloadCluster,
    WorkloadCluster,
    daemon_set,
    node,
    sweep_crashes,
    with_image,
)

_SETS = f"{APPS}/daemonsets"
_REVISIONS = f"{APPS}/controllerrevisions"


def _with_nodes(world: WorkloadCluster, *names: str, **more: Any) -> None:
    for name in names:
        world.make(NODES, node(name, **more))
        world.patch(f"{NODES}/{name}", {"spec": {"taints": more.get("taints")}})


def _target(pod: Any) -> str:
    required = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return str(required["nodeSelectorTerms"][0]["matchFields"][0]["values"][0])


def _targets(world: WorkloadCluster) -> list[str]:
    return sorted(_target(pod) for pod in world.pods)


def _images(world: WorkloadCluster) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in world.pods)


def test_every_node_gets_one_pod_and_a_new_node_too():
    with WorkloadCluster() as world:
        _with_nodes(world, "a", "b")
        world.make(_SETS, daemon_set())
        assert _targets(world) == ["a", "b"]
        _with_nodes(world, "c")
        assert _targets(world) == ["a", "b", "c"]
        assert world.get(f"{_SETS}/d")["status"]["desiredNumberScheduled"] == 3


def test_only_nodes_that_the_selector_and_the_affinity_allow():
    term = {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}
    pod = {"nodeSelector": {"zone": "x"}, "affinity": {"nodeAffinity": required}}
    with WorkloadCluster() as world:
        _with_nodes(world, "good", labels={"zone": "x", "disk": "ssd"})
        _with_nodes(world, "slow", labels={"zone": "x"})
        _with_nodes(world, "far", labels={"zone": "y", "disk": "ssd"})
        world.make(_SETS, daemon_set(pod=pod))
        assert _targets(world) == ["good"]


def test_a_noschedule_taint_keeps_pods_off_but_does_not_drive_them_out():
    with WorkloadCluster() as world:
        _with_nodes(world, "a", "b")
        world.make(_SETS, daemon_set())
        world.patch(f"{NODES}/a", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}})
        assert _targets(world) == ["a", "b"]
        assert world.get(f"{_SETS}/d")["status"]["numberMisscheduled"] == 1
        world.patch(f"{NODES}/b", {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}})
        assert _targets(world) == ["a"]


def test_a_cordoned_node_keeps_its_pods():
    with WorkloadCluster() as world:
        _with_nodes(world, "a")
        world.patch(f"{NODES}/a", {"spec": {"unschedulable": True}})
        world.make(_SETS, daemon_set())
        assert _targets(world) == ["a"]


def test_own_tolerations_stand_before_the_added_ones_and_host_network_adds_one():
    own = [{"key": "mine", "operator": "Exists"}]
    with WorkloadCluster() as world:
        _with_nodes(world, "a")
        world.make(_SETS, daemon_set(pod={"tolerations": own, "hostNetwork": True}))
        keys = [pod["key"].rpartition("/")[2] for pod in world.pods[0]["spec"]["tolerations"]]
        assert keys == [
            "mine",
            "not-ready",
            "unreachable",
            "disk-pressure",
            "memory-pressure",
            "pid-pressure",
            "unschedulable",
            "network-unavailable",
        ]


def test_a_rolling_update_replaces_one_after_the_other():
    with WorkloadCluster() as world:
        _with_nodes(world, "a", "b", "c")
        world.make(_SETS, daemon_set())
        world.all_ready()
        world.patch(f"{_SETS}/d", with_image("nginx:2"))
        assert _images(world) == ["nginx:1", "nginx:1", "nginx:2"]
        for _ in range(3):
            world.all_ready()
        assert _images(world) == ["nginx:2"] * 3
        status = world.get(f"{_SETS}/d")["status"]
        assert (status["updatedNumberScheduled"], status["numberAvailable"], status["observedGeneration"]) == (3, 3, 2)
        assert len(world.all(_REVISIONS)) == 2


def test_surging_starts_the_new_pod_before_the_old_one_ends():
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    with WorkloadCluster() as world:
        _with_nodes(world, "a", "b")
        world.make(_SETS, daemon_set(updateStrategy=strategy))
        world.all_ready()
        world.patch(f"{_SETS}/d", with_image("nginx:2"))
        assert _images(world) == ["nginx:1", "nginx:1", "nginx:2"]
        for _ in range(4):
            world.all_ready()
        assert _images(world) == ["nginx:2", "nginx:2"]


def test_on_delete_waits_for_a_deletion():
    with WorkloadCluster() as world:
        _with_nodes(world, "a", "b")
        world.make(_SETS, daemon_set(updateStrategy={"type": "OnDelete"}))
        world.all_ready()
        world.patch(f"{_SETS}/d", with_image("nginx:2"))
        assert _images(world) == ["nginx:1", "nginx:1"]
        world.delete(f"{PODS}/{world.names[0]}")
        assert _images(world) == ["nginx:1", "nginx:2"]


def test_pods_become_available_after_min_ready_seconds():
    with WorkloadCluster() as world:
        _with_nodes(world, "a")
        world.make(_SETS, daemon_set(minReadySeconds=30))
        world.all_ready()
        assert "numberAvailable" not in world.get(f"{_SETS}/d")["status"]
        world.run.advance_by(31)
        assert world.get(f"{_SETS}/d")["status"]["numberAvailable"] == 1


def test_a_failed_pod_is_replaced_and_reported_and_a_second_one_has_to_wait():
    with WorkloadCluster() as world:
        _with_nodes(world, "a")
        world.make(_SETS, daemon_set())
        first = world.names[0]
        world.phase(first, "Failed")
        assert world.names not in ([], [first])
        message = f"Found failed daemon pod here/{first} on node a, will try to kill it"
        assert ("FailedDaemonPod", message) in world.reported("DaemonSet")
        second = world.names[0]
        world.phase(second, "Failed")
        assert world.names == [second]
        world.run.advance_by(2)
        assert world.names != [second]


def test_old_revisions_are_forgotten_beyond_the_limit():
    with WorkloadCluster() as world:
        _with_nodes(world, "a")
        world.make(_SETS, daemon_set(revisionHistoryLimit=1))
        for version in (2, 3, 4):
            world.all_ready()
            world.patch(f"{_SETS}/d", with_image(f"nginx:{version}"))
        world.all_ready()
        assert sorted(revision["revision"] for revision in world.all(_REVISIONS)) == [3, 4]


def test_a_crash_after_any_call_leaves_one_pod_of_the_new_template_on_every_node():
    def story(world: CrashingWorkloadCluster) -> None:
        for name in ("a", "b"):
            world.surviving(partial(world.ask, "POST", NODES, node(name)))
            world.surviving(partial(world.patch, f"{NODES}/{name}", {"spec": {"taints": None}}))
        world.surviving(lambda: world.ask("POST", _SETS, daemon_set()))
        world.surviving(lambda: world.run.advance_by(10))
        world.surviving(world.all_ready)
        world.surviving(lambda: world.patch(f"{_SETS}/d", with_image("nginx:2")))
        for _ in range(3):
            world.surviving(lambda: world.run.advance_by(10))
            world.surviving(world.all_ready)
        world.surviving(lambda: world.run.advance_by(10))
        assert _targets(world) == ["a", "b"]
        assert _images(world) == ["nginx:2", "nginx:2"]
        assert sorted(revision["revision"] for revision in world.all(_REVISIONS)) == [1, 2]

    assert sweep_crashes(build_daemon_set_services, story) > 15
