"""The rules that protect data, when lists are wrong and when things are away (docs/design/fleet.md 17.1 and 17.8)."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.journal.entries import Query
from plimsoll.web.client import Response
from tests.fleet.agent.agent_world import HOME, AgentWorld
from tests.fleet.agent.control_planes import build_item, build_reserved_item

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from plimsoll.core.clock import Clock


@pytest.fixture
def world() -> Iterator[AgentWorld]:
    with AgentWorld() as world:
        yield world


def run_instances(world: AgentWorld, *items: dict[str, Any]) -> None:
    """These instances run, and a reserved one beside them."""
    world.list_items(*items, build_reserved_item(1)).start_agent()
    world.pass_polls()
    world.operate()


def get_difference(world: AgentWorld, namespace: str) -> str:
    return str(world.get_condition(namespace, "ListDiffers").get("reason", ""))


# ---- (a) a deleted instance does not come back


def test_a_deleted_instance_does_not_come_back_when_the_list_no_longer_has_it_as_deleted(world: AgentWorld):
    # Its namespace stays: something in it has a finalizer.
    run_instances(world, build_item("a"))
    body = {"metadata": {"name": "held", "finalizers": ["example.com/held"]}}
    world.made("/api/v1/namespaces/kafka-a/configmaps", body)
    world.list_items(build_item("a", deleted=True)).pass_polls()
    world.list_items(build_item("a")).pass_polls(3)
    (namespace,) = [item for item in world.list_all("/api/v1/namespaces") if item["metadata"]["name"] == "kafka-a"]
    assert "deletionTimestamp" in namespace["metadata"]
    assert all(item["spec"]["deleted"] for item in world.list_managed().values() if "kafka-a" in str(item))


def test_a_local_deleted_flag_is_never_taken_back(world: AgentWorld):
    run_instances(world, build_item("a"))
    url = "/apis/managedkafka.bf2.org/v1alpha1/namespaces/kafka-a/managedkafkas/k-a"
    reply = world.ask("PATCH", url, {"spec": {"deleted": True}}, content="application/merge-patch+json")
    assert reply.status == 200
    refused = world.ask("PATCH", url, {"spec": {"deleted": False}}, content="application/merge-patch+json")
    assert refused.status == 422
    world.pass_polls(4)
    assert "kafka-a" not in world.list_managed()
    assert world.get_last("a")["reason"] == "Deleted"


# ---- (b) another placement


def test_the_next_placement_begins_when_the_last_one_is_gone(world: AgentWorld):
    run_instances(world, build_item("a"))
    first = world.list_managed()["kafka-a"]["metadata"]["uid"]
    body = {"metadata": {"name": "held", "finalizers": ["example.com/held"]}}
    world.made("/api/v1/namespaces/kafka-a/configmaps", body)
    world.list_items(build_item("a", placement="p2")).pass_polls(3)
    assert world.get_claims()["kafka-a"] == 1
    assert world.list_kafkas() == []
    patch = {"metadata": {"finalizers": None}}
    url = "/api/v1/namespaces/kafka-a/configmaps/held"
    assert world.ask("PATCH", url, patch, content="application/merge-patch+json").status == 200
    world.pass_polls(3)
    second = world.list_managed()["kafka-a"]["metadata"]
    assert second["annotations"]["bf2.org/placementId"] == "p2"
    assert second["uid"] != first
    assert world.get_claims()["kafka-a"] == 1


def test_a_placement_that_was_removed_here_does_not_replace_the_one_that_runs(world: AgentWorld):
    """A restored database lists the placement before the last one."""
    run_instances(world, build_item("a"))
    world.list_items(build_item("a", placement="p2")).pass_polls(4)
    world.operate()
    running = world.list_kafkas()[0]["metadata"]["uid"]
    world.list_items(build_item("a", placement="p1")).pass_polls(4)
    assert world.list_kafkas()[0]["metadata"]["uid"] == running
    assert get_difference(world, "kafka-a") == "EarlierPlacement"


@pytest.mark.parametrize("changed", ["p0", "", None])
def test_an_annotation_that_was_changed_here_is_set_again_and_removes_no_data(world: AgentWorld, changed: str | None):
    run_instances(world, build_item("a"))
    running = world.list_kafkas()[0]["metadata"]["uid"]
    patch_placement(world, "kafka-a", changed)
    world.pass_polls(4)
    assert world.list_managed()["kafka-a"]["metadata"]["annotations"]["bf2.org/placementId"] == "p1"
    assert [kafka["metadata"]["uid"] for kafka in world.list_kafkas()] == [running]


@pytest.mark.parametrize("changed", ["p0", None])
def test_where_object_and_claim_disagree_a_next_placement_removes_no_data(world: AgentWorld, changed: str | None):
    run_instances(world, build_item("a"))
    running = world.list_kafkas()[0]["metadata"]["uid"]
    patch_placement(world, "kafka-a", changed)
    world.list_items(build_item("a", placement="p2")).pass_polls(4)
    assert [kafka["metadata"]["uid"] for kafka in world.list_kafkas()] == [running]
    assert get_difference(world, "kafka-a") == "PlacementUnknown"


def test_an_instance_whose_annotation_was_changed_is_still_deleted_by_its_control_plane(world: AgentWorld):
    run_instances(world, build_item("a"))
    patch_placement(world, "kafka-a", "p0")
    world.list_items(build_item("a", deleted=True)).pass_polls(4)
    assert "kafka-a" not in world.list_managed()


def patch_placement(world: AgentWorld, namespace: str, placement: str | None) -> None:
    name = world.list_managed()[namespace]["metadata"]["name"]
    url = f"/apis/managedkafka.bf2.org/v1alpha1/namespaces/{namespace}/managedkafkas/{name}"
    patch = {"metadata": {"annotations": {"bf2.org/placementId": placement}}}
    assert world.ask("PATCH", url, patch, content="application/merge-patch+json").status == 200


# ---- (c) missing from the list


def test_what_is_missing_from_the_list_runs_on_with_a_condition(world: AgentWorld):
    run_instances(world, build_item("a"), build_item("b"))
    world.list_items(build_item("a"), build_reserved_item(1)).pass_polls(5)
    assert len(world.list_kafkas()) == 2
    assert get_difference(world, "kafka-b") == "NotInList"
    assert get_difference(world, "kafka-a") == ""


def test_a_rejected_instance_that_is_placed_elsewhere_goes(world: AgentWorld):
    run_instances(world, build_item("a", units=2), build_item("b"))
    assert world.get_last("b")["reason"] == "Rejected"
    world.list_items(build_item("a", units=2)).pass_polls(4)
    assert world.list_namespaces() == ["kafka-a"]


# ---- (d) deleted and not here


def test_what_is_deleted_and_not_here_is_reported_as_deleted(world: AgentWorld):
    world.list_items(build_item("a", deleted=True)).start_agent()
    world.pass_polls()
    assert world.get_last("a")["reason"] == "Deleted"
    assert world.list_namespaces() == []


def test_deleted_is_reported_only_when_the_namespace_is_gone(world: AgentWorld):
    run_instances(world, build_item("a"))
    body = {"metadata": {"name": "held", "finalizers": ["example.com/held"]}}
    world.made("/api/v1/namespaces/kafka-a/configmaps", body)
    world.list_items(build_item("a", deleted=True)).pass_polls(3)
    assert world.get_last("a")["reason"] != "Deleted"
    assert world.get_claims() == {"kafka-a": 1}
    url = "/api/v1/namespaces/kafka-a/configmaps/held"
    patch = {"metadata": {"finalizers": None}}
    assert world.ask("PATCH", url, patch, content="application/merge-patch+json").status == 200
    world.pass_polls(2)
    assert world.get_last("a")["reason"] == "Deleted"
    assert world.get_claims() == {}


# ---- (e) paused by the control plane


def test_a_paused_item_passes_only_its_deletion(world: AgentWorld):
    run_instances(world, build_item("a"))

    def pause(item: dict[str, Any]) -> dict[str, Any]:
        item["metadata"]["annotations"]["managedkafka.bf2.org/pause-reconciliation"] = "true"
        return item

    world.list_items(pause(build_item("a", units=2)), pause(build_item("new"))).pass_polls(2)
    assert world.count_replicas("kafka-a")["brokers"] == 3
    assert "kafka-new" not in world.list_managed()
    assert get_difference(world, "kafka-a") == "Paused"
    world.list_items(pause(build_item("a", units=2, deleted=True))).pass_polls(2)
    assert "kafka-a" not in world.list_managed()


# ---- (f) lists that cannot be read


@pytest.mark.parametrize(
    "answer",
    [
        Response(status=500, body=b"{}"),
        Response(status=404, body=b'{"items": []}'),
        Response(status=200, body=b'{"kind": "ManagedKafkaList", "items": ['),
        Response(status=200, body=b"<html></html>"),
        Response(status=200, body=b'{"items": null}'),
        Response(status=200, body=b"[]"),
        Response(status=200, body=b"\xff\xfe"),
        Response(status=204),
    ],
    ids=["500", "404", "cut off", "html", "no items", "a list", "no text", "nothing"],
)
def test_an_answer_that_is_no_list_changes_nothing(world: AgentWorld, answer: Response):
    run_instances(world, build_item("a"))
    before = world.list_managed().keys()
    world.control_plane.list_answer = answer
    world.pass_polls(6)
    assert world.list_managed().keys() == before
    assert len(world.list_kafkas()) == 1
    assert world.get_condition("kafka-a", "ControlPlaneReachable")["status"] == "False"


@pytest.mark.parametrize(
    "path",
    [
        ("id",),
        ("metadata", "name"),
        ("metadata", "namespace"),
        ("metadata", "annotations", "bf2.org/placementId"),
        ("metadata", "annotations"),
        ("metadata",),
    ],
    ids=".".join,
)
@pytest.mark.parametrize("value", [None, "", 5, {"x": 1}], ids=["null", "empty", "number", "object"])
def test_an_item_without_id_namespace_or_placement_changes_nothing(
    world: AgentWorld, path: tuple[str, ...], value: Any
):
    run_instances(world, build_item("a"), build_item("b"))
    broken = build_item("a", units=2, placement="p9", deleted=True)
    place: Any = broken
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = value
    world.list_items(broken, build_item("b", deleted=True)).pass_polls(5)
    # The other item is good, and taken; of the broken one nothing is.
    assert [kafka["metadata"]["name"] for kafka in world.list_kafkas()] == ["k-a"]
    assert world.count_replicas("kafka-a")["brokers"] == 3


def test_an_item_that_names_nothing_keeps_reserved_instances_too(world: AgentWorld):
    run_instances(world, build_item("a"))
    world.list_items(build_item("a"), {}).pass_polls(5)
    assert "reserved-kafka-standard-1" in world.list_managed()


def test_an_item_that_comes_twice_changes_nothing(world: AgentWorld):
    run_instances(world, build_item("a"))
    world.list_items(build_item("a"), build_item("a", deleted=True)).pass_polls(3)
    assert len(world.list_kafkas()) == 1


@pytest.mark.parametrize("left", [(), (build_item("a"),)], ids=["empty", "short"])
def test_a_list_that_lacks_the_reserve_is_taken_after_three_polls_and_removes_no_data(
    world: AgentWorld, left: tuple[dict[str, Any], ...]
):
    run_instances(world, build_item("a"))
    world.list_items(*left).pass_polls(2)
    assert "reserved-kafka-standard-1" in world.list_managed()
    world.pass_polls(3)
    assert list(world.list_managed()) == ["kafka-a"]
    assert len(world.list_kafkas()) == 1
    assert get_difference(world, "kafka-a") == ("" if left else "NotInList")


def test_lists_that_lack_the_reserve_are_counted_in_a_row(world: AgentWorld):
    run_instances(world, build_item("a"))
    for _ in range(4):
        world.list_items().pass_polls(2)
        world.list_items(build_item("a"), build_reserved_item(1)).pass_polls(1)
    assert "reserved-kafka-standard-1" in world.list_managed()


# ---- amnesia


def test_an_agent_with_an_empty_cluster_makes_what_the_list_has_and_deletes_nothing(world: AgentWorld):
    world.list_items(build_item("a"), build_item("b", deleted=True)).start_agent()
    world.pass_polls(2)
    assert list(world.list_managed()) == ["kafka-a"]
    assert world.get_last("b")["reason"] == "Deleted"


def test_an_agent_that_starts_anew_changes_nothing(world: AgentWorld):
    world.list_items(build_item("a"), build_reserved_item(1))
    agent = world.start_agent()
    world.pass_polls()
    world.operate()
    versions = {key: found["metadata"]["resourceVersion"] for key, found in world.list_managed().items()}
    generations = [kafka["metadata"]["generation"] for kafka in world.list_kafkas()]
    agent.kill()
    world.start_agent()
    world.pass_polls(2)
    assert {key: found["metadata"]["resourceVersion"] for key, found in world.list_managed().items()} == versions
    assert [kafka["metadata"]["generation"] for kafka in world.list_kafkas()] == generations


def test_an_instance_whose_object_a_user_deleted_keeps_its_kafka(world: AgentWorld):
    run_instances(world, build_item("a"))
    running = world.list_kafkas()[0]["metadata"]["uid"]
    url = "/apis/managedkafka.bf2.org/v1alpha1/namespaces/kafka-a/managedkafkas/k-a"
    assert world.ask("DELETE", url).status == 200
    world.pass_polls(2)
    assert "kafka-a" in world.list_managed()
    assert world.list_kafkas()[0]["metadata"]["uid"] == running


# ---- namespaces of others


def test_a_namespace_of_others_is_neither_used_nor_deleted(world: AgentWorld):
    world.namespace("kafka-a")
    world.made("/api/v1/namespaces/kafka-a/configmaps", {"metadata": {"name": "theirs"}})
    world.list_items(build_item("a")).start_agent()
    world.pass_polls(2)
    world.list_items(build_item("a", deleted=True)).pass_polls(2)
    world.list_items().pass_polls(5)
    assert world.ask("GET", "/api/v1/namespaces/kafka-a/configmaps/theirs").status == 200
    assert world.list_managed() == {}


# ---- when things are away


def test_without_its_control_plane_everything_runs_on_for_a_day(world: AgentWorld):
    run_instances(world, build_item("a"))
    world.control_plane.is_away = True
    world.run.advance_by(86_400)
    assert len(world.list_kafkas()) == 1
    assert world.get_condition("kafka-a")["status"] == "True"
    assert world.get_condition("kafka-a", "ControlPlaneReachable")["status"] == "False"
    world.control_plane.is_away = False
    world.pass_polls(2)
    assert world.get_condition("kafka-a", "ControlPlaneReachable")["status"] == "True"


def test_an_agent_that_starts_without_its_control_plane_keeps_what_runs(world: AgentWorld):
    world.list_items(build_item("a"))
    agent = world.start_agent()
    world.pass_polls()
    agent.kill()
    world.control_plane.is_away = True
    url = "/apis/kafka.strimzi.io/v1/namespaces/kafka-a/kafkanodepools/brokers"
    assert world.ask("DELETE", url).status == 200
    world.start_agent()
    world.pass_polls(2)
    assert world.count_replicas("kafka-a")["brokers"] == 3


# ---- hostile circumstances


def test_two_agents_with_one_identity_do_not_both_give_the_last_units_away(world: AgentWorld):
    world.list_items(*(build_item(f"k{number}") for number in range(6)))
    for _ in range(2):
        world.start_agent()
    world.pass_polls(3)
    assert sum(world.get_claims().values()) == 2
    assert len(world.list_kafkas()) == 2
    rejected = [name for name in world.list_managed() if world.get_condition(name)["reason"] == "Rejected"]
    assert len(rejected) == 4


class _OtherClock:
    """The clock of a machine whose hour is wrong."""

    def __init__(self, inner: Clock, by: timedelta) -> None:
        self._inner = inner
        self._by = by

    def now(self) -> datetime:
        return self._inner.now() + self._by

    def monotonic_s(self) -> float:
        return self._inner.monotonic_s()

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


@pytest.mark.parametrize("days", [-1, 1])
def test_an_agent_whose_clock_is_a_day_off_works_as_any_other(world: AgentWorld, days: int):
    world.list_items(build_item("a"))
    world.start_agent(clock=_OtherClock(world.run.clock, timedelta(days=days)))
    world.pass_polls()
    world.report_kafka("kafka-a", "k-a", ready=False, reason="Creating", message="")
    world.pass_polls(2)
    assert world.get_last("a")["reason"] == "Installing"
    world.operate()
    assert world.get_last("a")["status"] == "True"


def test_unknown_fields_of_an_item_are_ignored(world: AgentWorld):
    item = build_item("a", future={"x": [1]})
    item |= {"later": True}
    item["metadata"]["finalizers"] = ["theirs"]
    item["metadata"]["labels"]["bad label value"] = "no label!"
    world.list_items(item).start_agent()
    world.pass_polls()
    assert "future" not in world.list_managed()["kafka-a"]["spec"]
    assert len(world.list_kafkas()) == 1


def test_secrets_of_an_item_are_in_a_secret_only(world: AgentWorld):
    endpoint = {"bootstrapServerHost": "k-a.kas.a.example.com", "tls": {"cert": "CERT", "key": "PRIVATE-KEY"}}
    accounts = [{"name": "canary", "principal": "canary-1", "password": "PASSWORD-1"}]
    world.list_items(build_item("a", endpoint=endpoint, serviceAccounts=accounts))
    agent = world.start_agent()
    world.pass_polls()
    managed = json.dumps(world.list_managed()["kafka-a"])
    secret = world.ask("GET", "/api/v1/namespaces/kafka-a/secrets/k-a-credentials").body
    assert sorted(secret["data"]) == ["canary.password", "tls.crt", "tls.key"]
    journal = str(world.run.run_until(agent.journal.list_entries(Query())))
    for text in (managed, journal, json.dumps(world.control_plane.kafka_reports)):
        assert "PRIVATE-KEY" not in text
        assert "PASSWORD-1" not in text


def test_a_paused_agent_changes_nothing_and_reports_on(world: AgentWorld):
    run_instances(world, build_item("a"))
    body = {"metadata": {"name": "plimsoll", "annotations": {"plimsoll.io/paused": "true"}}}
    world.made(f"/api/v1/namespaces/{HOME}/configmaps", body)
    reports = len(world.control_plane.cluster_reports)
    world.list_items(build_item("a", deleted=True), build_item("b")).pass_polls(5)
    assert len(world.list_kafkas()) == 1
    assert "kafka-b" not in world.list_managed()
    assert len(world.control_plane.cluster_reports) > reports
