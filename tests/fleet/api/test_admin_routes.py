"""Routes of administrators: Kafkas, clusters, decisions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.plans import Action, NotDone, Outcome, Plan, Reason, Ref, Result
from plimsoll.fleet.model.clusters import StrimziVersion, VersionItem
from plimsoll.fleet.model.statuses import ClusterStatus, KafkaStatus
from plimsoll.fleet.model.workers import Worker

if TYPE_CHECKING:
    from tests.fleet.api.api_world import ApiWorld

VERSIONS = tuple(
    StrimziVersion(
        version=f"strimzi-cluster-operator.v0.{minor}.0-0",
        ready=minor != 25,
        kafkaVersions=(VersionItem(version="2.7.0"), VersionItem(version="2.8.0"), VersionItem(version="2.6.0")),
        kafkaIBPVersions=(VersionItem(version="2.6"), VersionItem(version="2.7"), VersionItem(version="2.8")),
    )
    for minor in (23, 24, 25)
)


def make_running(world: ApiWorld, **changes: Any) -> str:
    cluster = world.add_cluster(available_strimzi_versions=VERSIONS)
    row_id: str = world.create("orders").document["id"]
    fields: Any = {
        "status": KafkaStatus.READY,
        "desired_strimzi_version": VERSIONS[0].version,
        "desired_kafka_version": "2.7.0",
        "desired_kafka_ibp_version": "2.7",
        "actual_kafka_version": "2.7.0",
        "actual_kafka_ibp_version": "2.7",
        **changes,
    }
    assert world.run.run_until(world.store.place_kafka(row_id, cluster, fields, statuses={KafkaStatus.ACCEPTED}))
    return f"/admin/kafkas/{row_id}"


def test_an_administrator_sees_kafkas_of_all_organisations(world: ApiWorld):
    path = make_running(world)
    listed = world.call("GET", "/admin/kafkas", token=world.admin_token(), query="search=name%20=%20orders").document
    assert (listed["kind"], listed["total"]) == ("KafkaList", 1)
    assert world.call("GET", path, token=world.admin_token()).document == listed["items"][0]
    assert listed["items"][0]["organisation_id"] == "org-1"
    assert world.call("GET", "/admin/kafkas/unknown", token=world.admin_token()).code == "7"


def test_versions_are_raised(world: ApiWorld):
    path = make_running(world)
    body = {"strimzi_version": VERSIONS[1].version, "kafka_version": "2.8.0", "max_data_retention_size": "2000Gi"}
    changed = world.call("PATCH", path, body, token=world.admin_token())
    assert changed.status == 200
    assert changed.document["desired_kafka_version"] == "2.8.0"
    assert changed.document["desired_kafka_ibp_version"] == "2.7"
    assert changed.document["max_data_retention_size"] == {"bytes": 2000 << 30}


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "37"),
        ({"suspended": True}, "21"),
        ({"strimzi_version": "unknown"}, "21"),
        ({"strimzi_version": VERSIONS[2].version}, "21"),
        ({"kafka_version": "3.0.0"}, "21"),
        ({"kafka_version": "2.6.0", "kafka_ibp_version": "2.6"}, "21"),
        ({"kafka_ibp_version": "2.6"}, "21"),
        ({"kafka_ibp_version": "2.8"}, "21"),
        ({"max_data_retention_size": "1Gi"}, "37"),
        ({"max_data_retention_size": "much"}, "37"),
        ({"max_data_retention_size": "1e30"}, "37"),
        ({"kafka_version": 2}, "37"),
    ],
)
def test_a_change_that_is_not_possible_is_refused(world: ApiWorld, body: dict[str, Any], code: str):
    answer = world.call("PATCH", make_running(world), body, token=world.admin_token())
    assert (answer.status, answer.code) == (400, code)


def test_no_second_upgrade_begins_while_one_runs(world: ApiWorld):
    path = make_running(world, kafka_upgrading=True)
    assert world.call("PATCH", path, {"kafka_version": "2.8.0"}, token=world.admin_token()).code == "21"


def test_an_administrator_deletes_a_kafka(world: ApiWorld):
    path = make_running(world)
    assert world.call("DELETE", path, token=world.admin_token()).code == "103"
    deleted = world.call("DELETE", path, token=world.admin_token(), query="async=true")
    assert (deleted.status, deleted.document["status"]) == (200, "deprovision")
    assert world.call("PATCH", path, {"kafka_version": "2.8.0"}, token=world.admin_token()).status == 200


# ---- clusters

CLUSTER = {
    "name": "context-1",
    "cluster_id": "cluster-1",
    "cloud_provider": "aws",
    "region": "us-east-1",
    "cluster_dns": "apps.example.com",
    "supported_instance_type": "standard",
}


def test_a_cluster_is_registered_and_shown_without_secrets(world: ApiWorld):
    created = world.call("POST", "/admin/clusters", CLUSTER, token=world.admin_token())
    assert (created.status, created.document["status"]) == (201, "cluster_accepted")
    path = f"/admin/clusters/{created.document['id']}"
    assert world.call("GET", path, token=world.admin_token()).document == created.document
    assert "client_secret" not in created.document
    again = world.call("POST", "/admin/clusters", CLUSTER, token=world.admin_token())
    assert (again.status, again.code) == (409, "44")
    listed = world.call("GET", "/admin/clusters", token=world.admin_token()).document
    assert [item["cluster_id"] for item in listed["items"]] == ["cluster-1"]
    assert Worker.CLUSTER in world.signals.notified


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"cluster_id": ""}, "37"),
        ({"cluster_id": "../x"}, "37"),
        ({"provider_type": "ocm"}, "37"),
        ({"cloud_provider": "gcp"}, "30"),
        ({"region": "mars"}, "31"),
        ({"supported_instance_type": "premium"}, "41"),
        ({"max_nodes": {"developer": 3}}, "37"),
        ({"max_nodes": {"standard": 0}}, "37"),
        ({"name": ""}, "37"),
        ({"cluster_type": "enterprise"}, "37"),
    ],
)
def test_a_cluster_with_a_mistake_is_refused(world: ApiWorld, fields: dict[str, Any], code: str):
    answer = world.call("POST", "/admin/clusters", CLUSTER | fields, token=world.admin_token())
    assert (answer.status, answer.code) == (400, code)


def test_a_cluster_is_closed_and_its_pools_follow_what_runs(world: ApiWorld):
    make_running(world)
    patch = {"schedulable": False, "max_nodes": {"standard": 2}}
    changed = world.call("PATCH", "/admin/clusters/a", patch, token=world.admin_token())
    assert (changed.status, changed.document["schedulable"]) == (200, False)
    assert changed.document["dynamic_capacity_info"]["standard"] == {
        "max_nodes": 2,
        "max_units": 10,
        "remaining_units": 10,
    }
    world.add_cluster("full", units=1)
    row_id = world.create("bills").document["id"]
    fields: Any = {"status": KafkaStatus.READY}
    place = world.store.place_kafka(row_id, world.get_cluster("full"), fields, statuses={KafkaStatus.ACCEPTED})
    assert world.run.run_until(place)
    small = world.call("PATCH", "/admin/clusters/full", {"max_nodes": {"standard": 17}}, token=world.admin_token())
    assert (small.status, small.code) == (409, "6")
    for body, code in (({}, "37"), ({"max_nodes": {"developer": 3}}, "37")):
        assert world.call("PATCH", "/admin/clusters/a", body, token=world.admin_token()).code == code


def test_a_failed_cluster_is_retired_at_once_and_a_ready_one_when_it_is_empty(world: ApiWorld):
    world.add_cluster("bad", status=ClusterStatus.FAILED)
    world.add_cluster("good")
    bad = world.call("POST", "/admin/clusters/bad/retire", token=world.admin_token()).document
    assert (bad["status"], "delete_requested_at" in bad) == ("deprovisioning", True)
    good = world.call("POST", "/admin/clusters/good/retire", token=world.admin_token()).document
    assert (good["status"], good["schedulable"], "retire_requested_at" in good) == ("ready", False, True)
    again = world.call("POST", "/admin/clusters/bad/retire", token=world.admin_token())
    assert (again.status, again.code) == (409, "6")


def test_the_problems_of_a_cluster_are_listed(world: ApiWorld):
    world.add_cluster(status_details="no quota")
    world.run.advance_by(3600)
    problems = world.call("GET", "/admin/clusters/a", token=world.admin_token()).document["problems"]
    assert problems == ["no quota", "the agent is silent"]


# ---- decisions


def record(world: ApiWorld, worker: Worker, code: str) -> None:
    action = Action(
        verb="place",
        target=Ref(kind="kafka", name="k1"),
        reason=Reason(code=code, message="there is room", facts={"free": 3}),
        concerns=(Ref(kind="cluster", name="a"),),
    )
    kept = NotDone(
        what="none",
        about=(Ref(kind="capacity", name="aws.us-east-1.standard"),),
        reason=Reason(code="Enough", message="m"),
    )
    plan = Plan(
        subsystem="fleet",
        snapshot=1,
        at=world.clock.now(),
        actions=(action,),
        not_done=(kept,),
        subject=Ref(kind="worker", name=worker),
    )
    world.run.run_until(world.journal.append(plan, (Outcome(action=action, result=Result.DONE),)))


def list_decisions(world: ApiWorld, query: str = "") -> list[dict[str, Any]]:
    answer = world.call("GET", "/admin/scaling/decisions", token=world.admin_token(), query=query)
    assert (answer.status, answer.document["kind"]) == (200, "ScalingDecisionList")
    items: list[dict[str, Any]] = answer.document["items"]
    return items


def test_decisions_are_listed_newest_first_and_selected(world: ApiWorld):
    record(world, Worker.ACCEPTED_KAFKA, "FirstWithRoom")
    world.run.advance_by(60)
    since = world.clock.now().isoformat().replace("+00:00", "Z")
    record(world, Worker.DYNAMIC_SCALE_UP, "BestFit")
    everything = list_decisions(world)
    assert [item["reason"] for item in everything] == ["BestFit", "Enough", "FirstWithRoom", "Enough"]
    assert everything[0] == {
        "id": "2-1",
        "at": since,
        "worker": "dynamic_scale_up",
        "subject": "kafka/k1",
        "decision": "place",
        "reason": "BestFit",
        "inputs": {"free": 3},
        "message": "there is room",
        "outcome": "Done",
    }
    assert [item["reason"] for item in list_decisions(world, f"since={since}")] == ["BestFit", "Enough"]
    assert len(list_decisions(world, "worker=accepted_kafka")) == 2
    assert [item["subject"] for item in list_decisions(world, "subject=cluster/a")] == ["cluster/a"] * 2
    assert len(list_decisions(world, "subject=capacity/aws.us-east-1.standard&size=1&page=2")) == 1
    assert list_decisions(world, "subject=kafka/other") == []


@pytest.mark.parametrize(
    "query", ["subject=pod/x", "subject=kafka", "worker=x", "since=now", "since=9999-99-99", "page=0"]
)
def test_a_query_for_decisions_that_cannot_be_read_is_refused(world: ApiWorld, query: str):
    answer = world.call("GET", "/admin/scaling/decisions", token=world.admin_token(), query=query)
    assert (answer.status, answer.code) == (400, "8")


def test_regions_list_the_sizes_that_have_room(world: ApiWorld):
    token = world.user_token()
    providers = world.call("GET", "/cloud_providers", token=token).document
    assert [(item["id"], item["enabled"]) for item in providers["items"]] == [("aws", True)]
    (region,) = world.call("GET", "/cloud_providers/aws/regions", token=token).document["items"]
    assert region["capacity"] == [
        {"instance_type": "standard", "available_sizes": ["x1", "x2"]},
        {"instance_type": "developer", "available_sizes": ["x1"]},
    ]
    assert world.call("GET", "/cloud_providers/gcp/regions", token=token).document["items"] == []
    types = world.call("GET", "/instance_types/aws/us-east-1", token=token).document["instance_types"]
    assert [found["id"] for found in types] == ["developer", "standard"]
    assert types[1]["sizes"][0]["ingress_throughput_per_sec"] == {"bytes": 50 << 20}
    assert world.call("GET", "/instance_types/gcp/us-east-1", token=token).code == "30"
    assert world.call("GET", "/instance_types/aws/mars", token=token).code == "31"
