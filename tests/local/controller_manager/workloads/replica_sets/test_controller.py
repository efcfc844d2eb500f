"""The replica set controller against an API server: pods come, go, are taken over and let go of."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.local.controller_manager.workloads.replica_sets.controller import build_replica_set_services
from tests.local.apiserver.builders import STRATEGIC
from tests.local.controller_manager.workloads.replica_sets.builders import (
    PODS,
    SETS,
    ReplicaSetCluster,
    replica_set,
    template,
)

if TYPE_CHECKING:
    from plimsoll.local.components import Components
    from plimsoll.runtime.supervisor import Service


def world() -> ReplicaSetCluster:
    return ReplicaSetCluster(build_replica_set_services)


def test_as_many_pods_as_wanted_are_made_with_their_owner_and_labels():
    with world() as w:
        made = w.made(SETS, replica_set(replicas=5))
        w.run.settle()
        assert len(w.pods) == 5
        for pod in w.pods:
            (owner,) = pod["metadata"]["ownerReferences"]
            assert (owner["uid"], owner["controller"]) == (made["metadata"]["uid"], True)
            assert pod["metadata"]["generateName"] == "r-"
        assert w.get(SETS, "r")["status"] == {"replicas": 5, "fullyLabeledReplicas": 5, "observedGeneration": 1}


def test_no_field_of_the_template_is_lost():
    odd = template(dnsConfig={"nameservers": ["192.0.2.7"]}, hostAliases=[{"ip": "192.0.2.1", "hostnames": ["x"]}])
    with world() as w:
        w.made(SETS, replica_set(replicas=1, template=odd))
        w.run.settle()
        (pod,) = w.pods
        assert pod["spec"]["dnsConfig"] == odd["spec"]["dnsConfig"]
        assert pod["spec"]["hostAliases"] == odd["spec"]["hostAliases"]


def test_scaling_down_deletes_pods_that_are_not_ready_first():
    with world() as w:
        w.made(SETS, replica_set(replicas=4))
        w.run.settle()
        kept = [pod["metadata"]["name"] for pod in w.pods[1:3]]
        for pod in w.pods[1:3]:
            w.make_ready(pod)
        w.patch(SETS, "r", {"spec": {"replicas": 2}})
        w.run.settle()
        assert [pod["metadata"]["name"] for pod in w.pods] == kept
        assert [reason for reason, _ in w.reported("ReplicaSet")].count("SuccessfulDelete") == 2


def test_a_patient_set_says_nothing_of_a_pod_that_is_replaced_in_time():
    def patient(components: Components) -> list[Service]:
        return build_replica_set_services(components, patience_s=0.5)

    with ReplicaSetCluster(patient) as w:
        w.made(SETS, replica_set(replicas=2, template=template(nodeName="n", terminationGracePeriodSeconds=30)))
        w.run.settle()
        for pod in w.pods:
            w.make_ready(pod)
        assert w.get(SETS, "r")["status"] == {"replicas": 0}
        w.run.advance_by(0.5)
        reported = w.get(SETS, "r")
        assert reported["status"]["readyReplicas"] == 2
        gone, kept = (pod["metadata"]["name"] for pod in w.pods)
        w.ask("DELETE", f"{PODS}/{gone}")
        w.run.settle()
        w.make_ready(next(pod for pod in w.pods if pod["metadata"]["name"] not in {gone, kept}))
        w.run.advance_by(5)
        assert w.get(SETS, "r")["metadata"]["resourceVersion"] == reported["metadata"]["resourceVersion"]


def test_a_pod_that_is_deleted_is_replaced():
    with world() as w:
        w.made(SETS, replica_set(replicas=2))
        w.run.settle()
        gone = w.pods[0]["metadata"]["name"]
        w.ask("DELETE", f"{PODS}/{gone}")
        w.run.settle()
        names = [pod["metadata"]["name"] for pod in w.pods]
        assert len(names) == 2
        assert gone not in names


def test_a_pod_that_comes_and_goes_in_one_instant_is_replaced_all_the_same():
    with world() as w:
        w.made(SETS, replica_set(replicas=1))
        for _ in range(200):
            # Turn by turn, until the pod is there and no controller has seen it.
            w.run.run_until(_one_turn())
            if w.pods:
                w.ask("DELETE", f"{PODS}/{w.pods[0]['metadata']['name']}")
                break
        w.run.advance_by(10)
        assert len(w.pods) == 1


async def _one_turn() -> None:
    return None


def test_a_pod_that_failed_is_replaced_and_kept():
    with world() as w:
        w.made(SETS, replica_set(replicas=1))
        w.run.settle()
        w.patch(PODS, w.pods[0]["metadata"]["name"], {"status": {"phase": "Failed"}}, subresource="status")
        w.run.settle()
        assert sorted(pod["status"]["phase"] for pod in w.pods) == ["Failed", "Pending"]


def test_an_orphan_that_matches_is_adopted():
    with world() as w:
        orphan = {"metadata": {"name": "stray", "labels": {"app": "a"}}, "spec": template()["spec"]}
        w.made(PODS, {"apiVersion": "v1", "kind": "Pod", **orphan})
        made = w.made(SETS, replica_set(replicas=2))
        w.run.settle()
        assert len(w.pods) == 2
        (owner,) = w.get(PODS, "stray")["metadata"]["ownerReferences"]
        assert owner["uid"] == made["metadata"]["uid"]
        assert owner["controller"] is True


def test_an_orphan_that_appears_later_is_adopted_and_one_pod_too_many_goes():
    with world() as w:
        w.made(SETS, replica_set(replicas=1))
        w.run.settle()
        stray = {"metadata": {"name": "stray", "labels": {"app": "a"}}, "spec": template()["spec"]}
        w.made(PODS, {"apiVersion": "v1", "kind": "Pod", **stray})
        w.run.settle()
        assert len(w.pods) == 1


def test_a_pod_that_no_longer_matches_is_let_go_and_replaced():
    with world() as w:
        w.made(SETS, replica_set(replicas=1))
        w.run.settle()
        name = w.pods[0]["metadata"]["name"]
        w.ask("PATCH", f"{PODS}/{name}", {"metadata": {"labels": {"app": "debug"}}}, content=STRATEGIC)
        w.run.settle()
        assert "ownerReferences" not in w.get(PODS, name)["metadata"]
        assert len(w.all(PODS, "app=a")) == 1


def test_the_pods_of_another_set_are_not_touched():
    with world() as w:
        w.made(SETS, replica_set("one", replicas=2))
        w.made(SETS, replica_set("two", replicas=2))
        w.run.settle()
        owners = [pod["metadata"]["ownerReferences"][0]["name"] for pod in w.pods]
        assert sorted(owners) == ["one", "one", "two", "two"]


def test_a_ready_pod_is_available_only_after_min_ready_seconds():
    with world() as w:
        w.made(SETS, replica_set(replicas=1, minReadySeconds=30))
        w.run.settle()
        w.make_all_ready()
        assert "availableReplicas" not in w.get(SETS, "r")["status"]
        w.run.advance_by(28)
        assert "availableReplicas" not in w.get(SETS, "r")["status"]
        w.run.advance_by(2)
        assert w.get(SETS, "r")["status"]["availableReplicas"] == 1


def test_pods_that_are_refused_are_reported_tried_one_at_a_time_and_made_when_they_are_allowed():
    with world() as w:
        w.made(SETS, replica_set(replicas=20, template=template(serviceAccountName="later")))
        w.run.settle()
        (failure,) = w.get(SETS, "r")["status"]["conditions"]
        assert (failure["type"], failure["reason"]) == ("ReplicaFailure", "FailedCreate")
        assert [reason for reason, _ in w.reported("ReplicaSet")] == ["FailedCreate"]
        w.made(PODS.replace("/pods", "/serviceaccounts"), {"metadata": {"name": "later"}})
        w.run.advance_by(60)
        assert len(w.pods) == 20
        assert "conditions" not in w.get(SETS, "r")["status"]


def test_a_set_comes_to_rest_in_a_namespace_that_is_going():
    with world() as w:
        w.made(SETS, replica_set(replicas=2))
        w.run.settle()
        w.ask("DELETE", PODS.removesuffix("/pods"))
        for pod in w.pods:
            w.ask("DELETE", f"{PODS}/{pod['metadata']['name']}", {"gracePeriodSeconds": 0})
        # It would try for ever, in no time at all, to make pods that may no longer be made there.
        w.run.advance_by(10)
        assert w.pods == []


def test_nothing_is_written_while_nothing_changes():
    with world() as w:
        w.made(SETS, replica_set(replicas=3))
        w.run.settle()
        w.make_all_ready()
        before = w.ask("GET", SETS).body["metadata"]["resourceVersion"]
        w.run.advance_by(3_600)
        assert w.ask("GET", SETS).body["metadata"]["resourceVersion"] == before


def test_pods_that_become_ready_together_make_one_status():
    with world() as w:
        w.made(SETS, replica_set(replicas=20))
        w.run.settle()
        watching = w.watch(f"{SETS}?watch=true&resourceVersion={w.get(SETS, 'r')['metadata']['resourceVersion']}")
        w.make_all_ready()
        assert [event["object"]["status"]["readyReplicas"] for event in watching.events] == [20]


def test_a_set_that_had_nothing_left_to_do_mends_what_others_write_into_its_status():
    with world() as w:
        w.made(SETS, replica_set(replicas=2))
        w.run.settle()
        w.patch(SETS, "r", {"status": {"replicas": 7, "fullyLabeledReplicas": 7}}, subresource="status")
        w.run.settle()
        assert w.get(SETS, "r")["status"]["replicas"] == 2


def test_a_set_that_had_nothing_left_to_do_replaces_a_pod_that_ends():
    with world() as w:
        w.made(SETS, replica_set(replicas=2))
        w.run.settle()
        ended = w.pods[0]["metadata"]["name"]
        w.patch(PODS, ended, {"status": {"phase": "Failed"}}, subresource="status")
        w.run.settle()
        assert len([pod for pod in w.pods if pod["metadata"]["name"] != ended]) == 2
