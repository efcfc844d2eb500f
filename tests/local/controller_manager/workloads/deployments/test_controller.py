"""The deployment controller against an API server, with the replica set controller beside it."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.local.controller_manager.workloads.controlled_objects.template_hash import compute_template_hash
from plimsoll.local.controller_manager.workloads.deployments.controller import build_deployment_services
from tests.local.controller_manager.workloads.replica_sets.builders import (
    DEPLOYMENTS,
    PODS,
    SETS,
    ReplicaSetCluster,
    deployment,
    rolling,
    template,
    with_image,
)

REVISION = "deployment.kubernetes.io/revision"
DESIRED = "deployment.kubernetes.io/desired-replicas"
MOST = "deployment.kubernetes.io/max-replicas"


def condition(world: ReplicaSetCluster, type_: str, name: str = "d") -> Any:
    status = world.get(DEPLOYMENTS, name).get("status", {})
    return next((item for item in status.get("conditions", []) if item["type"] == type_), None)


def running(world: ReplicaSetCluster, **spec: Any) -> None:
    """A deployment whose pods are all ready."""
    world.made(DEPLOYMENTS, deployment(**spec))
    world.run.settle()
    world.roll_out(3)


def revisions(world: ReplicaSetCluster) -> dict[str, str]:
    sets = world.all(SETS)
    image = [set_["spec"]["template"]["spec"]["containers"][0]["image"] for set_ in sets]
    return {name: item["metadata"]["annotations"][REVISION] for name, item in zip(image, sets, strict=True)}


def test_a_rollout_ends_with_new_pods_only():
    with ReplicaSetCluster() as w:
        running(w, replicas=4)
        w.patch(DEPLOYMENTS, "d", with_image("nginx:2"))
        w.roll_out()
        assert w.sizes() == {"nginx:2": 4}
        assert {pod["spec"]["containers"][0]["image"] for pod in w.pods} == {"nginx:2"}
        assert condition(w, "Progressing")["reason"] == "NewReplicaSetAvailable"
        assert w.get(DEPLOYMENTS, "d")["status"]["observedGeneration"] == 2


@pytest.mark.parametrize(
    ("surge", "unavailable", "first"),
    [
        (1, 0, {"nginx:1": 4, "nginx:2": 1}),
        (0, 1, {"nginx:1": 3, "nginx:2": 1}),
        ("50%", "25%", {"nginx:1": 3, "nginx:2": 3}),
        ("100%", 0, {"nginx:1": 4, "nginx:2": 4}),
        (0, "100%", {"nginx:2": 4}),
        (0, "1%", {"nginx:1": 3, "nginx:2": 1}),
    ],
)
def test_a_rollout_begins_as_far_as_surge_and_unavailability_allow(
    surge: int | str, unavailable: int | str, first: dict[str, int]
):
    with ReplicaSetCluster() as w:
        running(w, replicas=4, strategy=rolling(surge, unavailable))
        w.patch(DEPLOYMENTS, "d", with_image("nginx:2"))
        w.run.advance_by(2)
        assert w.sizes() == first


def test_recreate_waits_until_the_last_old_pod_is_gone():
    with ReplicaSetCluster() as w:
        slow = {**template("d"), "spec": {**template("d")["spec"], "terminationGracePeriodSeconds": 30}}
        running(w, replicas=2, strategy={"type": "Recreate"}, template=slow)
        for number, pod in enumerate(w.pods):
            target = {"apiVersion": "v1", "kind": "Node", "name": f"n{number}"}
            name = pod["metadata"]["name"]
            w.ask("POST", f"{PODS}/{name}/binding", {"metadata": {"name": name}, "target": target})
        w.patch(DEPLOYMENTS, "d", with_image("nginx:2"))
        w.run.advance_by(5)
        assert w.sizes() == {}
        assert all("deletionTimestamp" in pod["metadata"] for pod in w.pods)
        old = [pod["metadata"]["name"] for pod in w.pods]
        w.ask("DELETE", f"{PODS}/{old[0]}", {"gracePeriodSeconds": 0})
        w.run.advance_by(5)
        assert w.sizes() == {}
        w.ask("DELETE", f"{PODS}/{old[1]}", {"gracePeriodSeconds": 0})
        w.run.advance_by(5)
        assert w.sizes() == {"nginx:2": 2}


def test_scaling_changes_the_set_and_what_it_remembers():
    with ReplicaSetCluster() as w:
        running(w, replicas=2)
        w.patch(DEPLOYMENTS, "d", {"spec": {"replicas": 6}})
        w.roll_out(3)
        (one,) = w.all(SETS)
        assert one["spec"]["replicas"] == 6
        assert (one["metadata"]["annotations"][DESIRED], one["metadata"]["annotations"][MOST]) == ("6", "8")
        assert w.get(DEPLOYMENTS, "d")["status"]["availableReplicas"] == 6
        assert w.reported("Deployment")[-1][1] == f"Scaled up replica set {one['metadata']['name']} from 2 to 6"


def test_scaling_in_the_middle_of_a_rollout_keeps_the_proportion():
    with ReplicaSetCluster() as w:
        running(w, replicas=10, strategy=rolling(3, 2))
        w.patch(DEPLOYMENTS, "d", with_image("broken"))
        w.run.advance_by(2)
        assert w.sizes() == {"nginx:1": 8, "broken": 5}
        w.patch(DEPLOYMENTS, "d", {"spec": {"replicas": 15}})
        w.run.advance_by(2)
        assert w.sizes() == {"nginx:1": 11, "broken": 7}


def test_a_paused_deployment_is_scaled_and_not_rolled():
    with ReplicaSetCluster() as w:
        running(w, replicas=2)
        w.patch(DEPLOYMENTS, "d", {"spec": {"paused": True}})
        w.run.advance_by(1)
        paused = condition(w, "Progressing")
        assert (paused["status"], paused["reason"], paused["message"]) == (
            "Unknown",
            "DeploymentPaused",
            "Deployment is paused",
        )
        w.patch(DEPLOYMENTS, "d", {"spec": {"replicas": 3, **with_image("nginx:2")["spec"]}})
        w.run.advance_by(5)
        assert w.sizes() == {"nginx:1": 3}
        w.patch(DEPLOYMENTS, "d", {"spec": {"paused": False}})
        w.run.settle()
        w.roll_out()
        assert w.sizes() == {"nginx:2": 3}


def test_going_back_to_a_former_template_takes_its_set_again_with_a_new_revision():
    with ReplicaSetCluster() as w:
        running(w, replicas=2)
        w.patch(DEPLOYMENTS, "d", with_image("nginx:2"))
        w.roll_out()
        w.patch(DEPLOYMENTS, "d", with_image("nginx:1"))
        w.roll_out()
        assert w.sizes() == {"nginx:1": 2}
        assert revisions(w) == {"nginx:1": "3", "nginx:2": "2"}
        assert w.get(DEPLOYMENTS, "d")["metadata"]["annotations"][REVISION] == "3"
        (back,) = [set_ for set_ in w.all(SETS) if set_["spec"]["replicas"]]
        assert back["metadata"]["annotations"]["deployment.kubernetes.io/revision-history"] == "1"


def test_old_sets_beyond_the_history_limit_are_removed():
    with ReplicaSetCluster() as w:
        running(w, replicas=1, revisionHistoryLimit=1)
        for number in range(2, 5):
            w.patch(DEPLOYMENTS, "d", with_image(f"nginx:{number}"))
            w.roll_out(8)
        assert revisions(w) == {"nginx:3": "3", "nginx:4": "4"}


def test_a_rollout_without_progress_is_reported_after_its_deadline_and_only_then():
    with ReplicaSetCluster() as w:
        w.made(DEPLOYMENTS, deployment(progressDeadlineSeconds=60))
        w.run.advance_by(59)
        assert condition(w, "Progressing")["reason"] == "ReplicaSetUpdated"
        w.run.advance_by(3)
        late = condition(w, "Progressing")
        assert (late["status"], late["reason"]) == ("False", "ProgressDeadlineExceeded")
        w.make_all_ready()
        assert condition(w, "Progressing")["reason"] == "NewReplicaSetAvailable"


def test_annotations_of_the_deployment_are_copied_to_its_set():
    with ReplicaSetCluster() as w:
        body = deployment()
        body["metadata"]["annotations"] = {
            "kubernetes.io/change-cause": "first",
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
        }
        w.made(DEPLOYMENTS, body)
        w.run.settle()
        (one,) = w.all(SETS)
        assert one["metadata"]["annotations"]["kubernetes.io/change-cause"] == "first"
        assert "kubectl.kubernetes.io/last-applied-configuration" not in one["metadata"]["annotations"]


def test_min_ready_seconds_reach_the_set():
    with ReplicaSetCluster() as w:
        running(w, replicas=1)
        w.patch(DEPLOYMENTS, "d", {"spec": {"minReadySeconds": 7}})
        w.run.settle()
        assert w.all(SETS)[0]["spec"]["minReadySeconds"] == 7


def test_a_hash_that_is_taken_is_counted_as_a_collision_and_another_is_found():
    with ReplicaSetCluster(build_deployment_services) as w:
        body = deployment()
        stored = w.ask("POST", f"{DEPLOYMENTS}?dryRun=All", body).body
        taken = f"d-{compute_template_hash(stored['spec']['template'])}"
        w.made(SETS, {**_foreign_set(), "metadata": {"name": taken}})
        w.made(DEPLOYMENTS, body)
        w.run.advance_by(5)
        assert w.get(DEPLOYMENTS, "d")["status"]["collisionCount"] == 1
        assert len([set_ for set_ in w.all(SETS) if "ownerReferences" in set_["metadata"]]) == 1


def _foreign_set() -> dict[str, Any]:
    spec = {"replicas": 0, "selector": {"matchLabels": {"app": "x"}}, "template": template("x")}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "spec": spec}


def test_a_matching_set_without_an_owner_is_adopted_instead_of_making_one():
    with ReplicaSetCluster() as w:
        labels = {"app": "d", "pod-template-hash": "x"}
        orphan = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {"name": "was-there", "labels": labels},
            "spec": {
                "replicas": 1,
                "selector": {"matchLabels": labels},
                "template": {**template("d"), "metadata": {"labels": labels}},
            },
        }
        w.made(SETS, orphan)
        w.made(DEPLOYMENTS, deployment(replicas=2))
        w.run.advance_by(2)
        (one,) = w.all(SETS)
        assert one["spec"]["replicas"] == 2
        assert one["metadata"]["ownerReferences"][0]["kind"] == "Deployment"


def test_a_set_that_is_deleted_is_made_again():
    with ReplicaSetCluster() as w:
        running(w, replicas=2)
        w.ask("DELETE", f"{SETS}/{w.all(SETS)[0]['metadata']['name']}")
        w.run.advance_by(2)
        assert w.sizes() == {"nginx:1": 2}


def test_without_a_replica_set_controller_the_status_is_reported_all_the_same():
    with ReplicaSetCluster(build_deployment_services) as w:
        w.made(DEPLOYMENTS, deployment())
        w.run.advance_by(5)
        status = w.get(DEPLOYMENTS, "d")["status"]
        assert (status["observedGeneration"], status["unavailableReplicas"]) == (1, 2)


def test_nothing_is_written_while_nothing_changes():
    with ReplicaSetCluster() as w:
        running(w)
        before = w.ask("GET", PODS).body["metadata"]["resourceVersion"]
        w.run.advance_by(3_600)
        assert w.ask("GET", PODS).body["metadata"]["resourceVersion"] == before
