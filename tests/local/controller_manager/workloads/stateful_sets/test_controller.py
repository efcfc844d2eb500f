"""Stateful sets: order, names, claims and revisions."""

from __future__ import annotations

from typing import Any

from plimsoll.local.controller_manager.workloads.stateful_sets.controller import build_stateful_set_services
from tests.local.controller_manager.workloads.builders import (
    APPS,
    CLAIMS,
    PODS,
    CrashingWorkloadCluster,
    WorkloadCluster,
    stateful_set,
    sweep_crashes,
    with_image,
)

_SETS = f"{APPS}/statefulsets"
_REVISIONS = f"{APPS}/controllerrevisions"


def _claim(name: str = "data") -> dict[str, Any]:
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    return {"metadata": {"name": name, "labels": {"kind": "fast"}}, "spec": spec}


def _images(world: WorkloadCluster) -> dict[str, str]:
    return {pod["metadata"]["name"]: pod["spec"]["containers"][0]["image"] for pod in world.pods}


def test_pods_start_one_after_the_other_each_when_the_one_before_is_ready():
    with WorkloadCluster() as world:
        world.make(_SETS, stateful_set(replicas=3))
        assert world.names == ["s-0"]
        world.phase("s-0", "Running")
        assert world.names == ["s-0"]
        world.ready("s-0")
        assert world.names == ["s-0", "s-1"]
        world.ready("s-1")
        assert world.names == ["s-0", "s-1", "s-2"]


def test_a_parallel_set_does_not_wait():
    with WorkloadCluster() as world:
        world.make(_SETS, stateful_set(replicas=3, podManagementPolicy="Parallel"))
        assert world.names == ["s-0", "s-1", "s-2"]
        world.patch(f"{_SETS}/s", {"spec": {"replicas": 0}})
        assert world.names == []


def test_the_next_pod_waits_until_the_one_before_is_available():
    with WorkloadCluster() as world:
        world.make(_SETS, stateful_set(minReadySeconds=20))
        world.ready("s-0")
        assert world.names == ["s-0"]
        world.run.advance_by(21)
        assert world.names == ["s-0", "s-1"]


def test_scaling_down_goes_from_the_top_and_waits_for_what_is_not_well():
    with WorkloadCluster() as world:
        world.make(_SETS, stateful_set(replicas=3))
        for name in ("s-0", "s-1", "s-2"):
            world.ready(name)
        world.phase("s-0", "Running")
        world.patch(f"{_SETS}/s", {"spec": {"replicas": 1}})
        assert world.names == ["s-0", "s-1", "s-2"]
        world.ready("s-0")
        assert world.names == ["s-0"]
        deletes = [message for reason, message in world.reported("StatefulSet") if reason == "SuccessfulDelete"]
        assert deletes == ["delete Pod s-2 in StatefulSet s successful", "delete Pod s-1 in StatefulSet s successful"]


def test_ordinals_may_start_elsewhere():
    with WorkloadCluster() as world:
        world.make(_SETS, stateful_set(ordinals={"start": 5}))
        world.ready("s-5")
        assert world.names == ["s-5", "s-6"]


def test_a_pod_that_ended_is_made_again_under_its_name():
    with WorkloadCluster() as world:
        world.make(_SETS, stateful_set(replicas=1))
        before = world.pods[0]["metadata"]["uid"]
        world.phase("s-0", "Failed")
        assert world.names == ["s-0"]
        assert world.pods[0]["metadata"]["uid"] != before


def test_a_rolling_update_goes_from_the_top_and_waits_for_each():
    with WorkloadCluster() as world:
        world.make(_SETS, stateful_set(replicas=2))
        world.ready("s-0")
        world.ready("s-1")
        world.patch(f"{_SETS}/s", with_image("nginx:2"))
        assert _images(world) == {"s-0": "nginx:1", "s-1": "nginx:2"}
        world.ready("s-1")
        assert _images(world) == {"s-0": "nginx:2", "s-1": "nginx:2"}
        world.ready("s-0")
        status = world.get(f"{_SETS}/s")["status"]
        assert status["currentRevision"] == status["updateRevision"]
        assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 2)


def test_below_the_partition_pods_stay_and_come_back_as_they_were():
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 1}}
    with WorkloadCluster() as world:
        world.make(_SETS, stateful_set(replicas=2, updateStrategy=strategy))
        world.ready("s-0")
        world.ready("s-1")
        world.patch(f"{_SETS}/s", with_image("nginx:2"))
        world.ready("s-1")
        assert _images(world) == {"s-0": "nginx:1", "s-1": "nginx:2"}
        world.delete(f"{PODS}/s-0")
        assert _images(world)["s-0"] == "nginx:1"


def test_on_delete_waits_for_a_deletion():
    with WorkloadCluster() as world:
        world.make(_SETS, stateful_set(replicas=1, updateStrategy={"type": "OnDelete"}))
        world.ready("s-0")
        world.patch(f"{_SETS}/s", with_image("nginx:2"))
        assert _images(world) == {"s-0": "nginx:1"}
        world.delete(f"{PODS}/s-0")
        assert _images(world) == {"s-0": "nginx:2"}


def test_each_pod_has_its_own_claims_and_finds_them_again():
    with WorkloadCluster() as world:
        world.make(_SETS, stateful_set(replicas=1, volumeClaimTemplates=[_claim()]))
        claim = world.get(f"{CLAIMS}/data-s-0")
        assert claim["metadata"]["labels"] == {"app": "s", "kind": "fast"}
        volumes = {pod["name"]: pod for pod in world.pods[0]["spec"]["volumes"]}
        assert volumes["data"]["persistentVolumeClaim"]["claimName"] == "data-s-0"
        assert world.reported("StatefulSet")[0] == (
            "SuccessfulCreate",
            "create Claim data-s-0 Pod s-0 in StatefulSet s success",
        )
        world.delete(f"{PODS}/s-0")
        assert world.names == ["s-0"]
        assert world.get(f"{CLAIMS}/data-s-0")["metadata"]["uid"] == claim["metadata"]["uid"]


def test_claims_are_left_behind_or_owned_as_the_retention_policy_says():
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    with WorkloadCluster() as world:
        world.make(
            _SETS,
            stateful_set(volumeClaimTemplates=[_claim()], persistentVolumeClaimRetentionPolicy=policy),
        )
        world.ready("s-0")
        world.ready("s-1")
        assert _owners(world, "data-s-1") == [("StatefulSet", "s")]
        world.patch(f"{_SETS}/s", {"spec": {"replicas": 1}})
        assert _owners(world, "data-s-1") == [("Pod", "s-1")]
        assert _owners(world, "data-s-0") == [("StatefulSet", "s")]
        retain = {"whenDeleted": "Retain", "whenScaled": "Retain"}
        world.patch(f"{_SETS}/s", {"spec": {"persistentVolumeClaimRetentionPolicy": retain}})
        assert _owners(world, "data-s-0") == []


def _owners(world: WorkloadCluster, claim: str) -> list[tuple[str, str]]:
    owners = world.get(f"{CLAIMS}/{claim}")["metadata"].get("ownerReferences", [])
    return [(owner["kind"], owner["name"]) for owner in owners]


def test_going_back_to_an_older_template_gives_its_revision_the_highest_number():
    with WorkloadCluster() as world:
        world.make(_SETS, stateful_set(replicas=0))
        first = world.all(_REVISIONS)[0]["metadata"]["name"]
        world.patch(f"{_SETS}/s", with_image("nginx:2"))
        world.patch(f"{_SETS}/s", with_image("nginx:1"))
        revisions = {revision["metadata"]["name"]: revision["revision"] for revision in world.all(_REVISIONS)}
        assert (len(revisions), revisions[first]) == (2, 3)
        assert world.get(f"{_SETS}/s")["status"]["updateRevision"] == first


def test_a_name_that_is_taken_is_counted_as_a_collision():
    with WorkloadCluster() as world:
        world.make(_SETS, stateful_set(replicas=0))
        name = world.all(_REVISIONS)[0]["metadata"]["name"]
        world.ask("DELETE", f"{_SETS}/s")
        world.ask("DELETE", f"{_REVISIONS}/{name}")
        stranger = {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": name}, "data": {"a": 1}}
        world.make(_REVISIONS, stranger)
        world.make(_SETS, stateful_set(replicas=0))
        status = world.get(f"{_SETS}/s")["status"]
        assert status["collisionCount"] == 1
        assert status["updateRevision"] != name


def test_a_crash_after_any_call_leaves_each_ordinal_once_with_its_claim():
    def story(world: CrashingWorkloadCluster) -> None:
        world.surviving(lambda: world.ask("POST", _SETS, stateful_set(volumeClaimTemplates=[_claim()])))
        for _ in range(3):
            world.surviving(lambda: world.run.advance_by(10))
            world.surviving(world.all_ready)
        world.surviving(lambda: world.patch(f"{_SETS}/s", with_image("nginx:2")))
        for _ in range(3):
            world.surviving(lambda: world.run.advance_by(10))
            world.surviving(world.all_ready)
        world.surviving(lambda: world.run.advance_by(10))
        assert _images(world) == {"s-0": "nginx:2", "s-1": "nginx:2"}
        assert sorted(claim["metadata"]["name"] for claim in world.all(CLAIMS)) == ["data-s-0", "data-s-1"]
        status = world.get(f"{_SETS}/s")["status"]
        assert (status["currentRevision"], status["readyReplicas"]) == (status["updateRevision"], 2)

    assert sweep_crashes(build_stateful_set_services, story) > 15
