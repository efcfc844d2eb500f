"""Caches lag behind the controllers' own writes: nothing is done twice, whenever they catch up."""

from __future__ import annotations

from typing import Any

from plimsoll.local.controller_manager.workloads.daemon_sets.controller import build_daemon_set_services
from plimsoll.local.controller_manager.workloads.jobs.controller import build_job_services
from plimsoll.local.controller_manager.workloads.replica_sets.controller import build_replica_set_services
from plimsoll.local.controller_manager.workloads.stateful_sets.controller import build_stateful_set_services
from tests.local.controller_manager.workloads.builders import (
    APPS,
    JOBS,
    NODES,
    PODS,
    WorkloadCluster,
    daemon_set,
    job,
    node,
    stateful_set,
    template,
)
from tests.local.controller_manager.workloads.replica_sets.builders import SETS, ReplicaSetCluster, replica_set
from tests.local.controller_manager.workloads.slow_transport import SlowPort


def _orphan(name: str, app: str, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "labels": {"app": app}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**template(app)["spec"], **spec}}


def _slow_to_adopt(owner: str) -> SlowPort:
    """Asking for the owner, as is done before an adoption, takes so long that the news of a turn before come in."""
    return SlowPort(late_s=1, slow=("GET", owner), takes_s=5)


def test_a_replica_set_that_adopts_while_its_pods_come_in_makes_none_twice():
    slow = _slow_to_adopt("/replicasets/r")
    with ReplicaSetCluster(build_replica_set_services, through=slow.wrap) as world:
        world.made(PODS, _orphan("stray", "a"))
        world.run.advance_by(10)
        world.made(SETS, replica_set(replicas=3))
        world.run.advance_by(60)
        assert len(world.live_pods) == 3
        assert slow.count("POST", PODS) == 2


def test_a_daemon_set_that_adopts_while_its_pods_come_in_makes_none_twice():
    slow = _slow_to_adopt("/daemonsets/d")
    with WorkloadCluster(build_daemon_set_services, through=slow.wrap) as world:
        for name in ("a", "b", "c"):
            world.make(NODES, node(name))
            world.patch(f"{NODES}/{name}", {"spec": {"taints": None}})
        world.make(PODS, _orphan("stray", "d", nodeName="a"))
        world.run.advance_by(10)
        world.make(f"{APPS}/daemonsets", daemon_set(updateStrategy={"type": "OnDelete"}))
        world.run.advance_by(5.5)
        world.patch(f"{NODES}/a", {"metadata": {"labels": {"seen": "again"}}})
        world.run.advance_by(60)
        assert len(world.pods) == 3
        assert slow.count("POST", PODS) == 2


def test_a_daemon_set_waits_until_it_sees_its_pods():
    slow = SlowPort(late_s=3)
    with WorkloadCluster(build_daemon_set_services, through=slow.wrap) as world:
        world.make(NODES, node("a"))
        world.patch(f"{NODES}/a", {"spec": {"taints": None}})
        world.make(f"{APPS}/daemonsets", daemon_set())
        world.run.advance_by(1)
        world.patch(f"{NODES}/a", {"metadata": {"labels": {"seen": "again"}}})
        world.run.advance_by(60)
        assert slow.count("POST", PODS) == 1


def test_a_stateful_set_that_adopts_while_its_pods_come_in_makes_none_twice():
    slow = _slow_to_adopt("/statefulsets/s")
    with WorkloadCluster(build_stateful_set_services, through=slow.wrap) as world:
        world.make(PODS, _orphan("s-0", "s"))
        world.run.advance_by(10)
        world.make(f"{APPS}/statefulsets", stateful_set(replicas=3, podManagementPolicy="Parallel"))
        world.run.advance_by(5.5)
        world.patch(f"{APPS}/statefulsets/s", {"metadata": {"labels": {"seen": "again"}}})
        world.run.advance_by(60)
        assert world.names == ["s-0", "s-1", "s-2"]
        assert slow.count("POST", PODS) == 2


def test_a_job_waits_until_it_sees_its_pods():
    slow = SlowPort(late_s=3)
    with WorkloadCluster(build_job_services, through=slow.wrap) as world:
        world.make(JOBS, job(parallelism=2, completions=2))
        world.run.advance_by(1)
        world.patch(f"{JOBS}/j", {"spec": {"activeDeadlineSeconds": 600}})
        world.run.advance_by(60)
        assert slow.count("POST", PODS) == 2


def test_a_job_made_anew_while_the_old_ones_pods_are_let_go_is_seen_at_once():
    slow = SlowPort(slow=("PATCH", "/stray"), takes_s=5)
    with WorkloadCluster(build_job_services, through=slow.wrap) as world:
        old = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "old", "controller": True}
        stray = _orphan("stray", "j")
        stray["metadata"].update(ownerReferences=[old], finalizers=["batch.kubernetes.io/job-tracking"])
        world.make(PODS, stray)
        world.run.advance_by(2)
        world.make(JOBS, job())
        world.run.advance_by(4.5)
        assert slow.count("POST", PODS) == 1


def test_an_owner_that_was_deleted_unseen_adopts_nothing():
    late = SlowPort(late="replicasets", late_s=3)
    with ReplicaSetCluster(build_replica_set_services, through=late.wrap) as world:
        world.made(SETS, replica_set(replicas=1))
        world.run.advance_by(10)
        world.ask("DELETE", f"{SETS}/r", {"propagationPolicy": "Background"})
        world.made(PODS, _orphan("stray", "a"))
        world.run.advance_by(20)
        stray = world.get(PODS, "stray")
        assert stray["kind"] == "Pod"
        assert "ownerReferences" not in stray["metadata"]
