"""Public routes of Kafka requests."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import structs

from plimsoll.fleet.auth.issuer import UserIdentity
from plimsoll.fleet.model.statuses import KafkaStatus, ScalingType
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.ports import InsertResult, RegionCheck
from tests.fleet.api.api_world import ALICE, ApiWorld
from tests.fleet.fleet_rows import make_kafka, make_manual, make_policy, offer

BOB = UserIdentity(user="bob", organisation="org-1")
ADMIN_OF_ORG = UserIdentity(user="carol", organisation="org-1", is_org_admin=True)
STRANGER = UserIdentity(user="eve", organisation="org-2", is_org_admin=True)


def test_a_kafka_is_accepted_and_shown_to_its_organisation(world: ApiWorld):
    created = world.create("orders", "standard.x2")
    assert created.status == 202
    kafka = created.document
    assert (kafka["kind"], kafka["status"], kafka["owner"], kafka["size_id"]) == ("Kafka", "accepted", "alice", "x2")
    assert kafka["multi_az"] is True
    assert kafka["max_data_retention_size"] == {"bytes": 2000 << 30}
    assert "bootstrap_server_host" not in kafka
    assert Worker.ACCEPTED_KAFKA in world.signals.notified
    for identity in (ALICE, BOB):
        read = world.call("GET", f"/kafkas/{kafka['id']}", token=world.user_token(identity))
        assert read.document == kafka
        listed = world.call("GET", "/kafkas/", token=world.user_token(identity)).document
        assert (listed["kind"], listed["page"], listed["size"], listed["total"]) == ("KafkaRequestList", 1, 1, 1)
    refused = world.call("GET", f"/kafkas/{kafka['id']}", token=world.user_token(STRANGER))
    assert (refused.status, refused.code) == (404, "7")
    assert world.call("GET", "/kafkas", token=world.user_token(STRANGER)).document["total"] == 0


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"name": ""}, 400, "33"),
        ({"name": "a" * 33}, 400, "34"),
        ({"name": "Orders"}, 400, "32"),
        ({"name": "orders-"}, 400, "32"),
        ({"name": "orders\n"}, 400, "32"),
        ({"name": 7}, 400, "37"),
        ({"regio": "us-east-1"}, 400, "37"),
        ({"cloud_provider": "gcp"}, 400, "30"),
        ({"region": "mars-1"}, 400, "31"),
        ({"plan": "standard"}, 400, "42"),
        ({"plan": "standard.x9"}, 400, "42"),
        ({"plan": "premium.x1"}, 400, "21"),
        ({"cluster_id": "a" * 32}, 400, "45"),
        ({"reauthentication_enabled": "yes"}, 400, "37"),
    ],
)
def test_a_request_with_a_mistake_is_refused(world: ApiWorld, fields: dict[str, object], status: int, code: str):
    body = {"name": "orders", "plan": "standard.x1", **fields}
    answer = world.call("POST", "/kafkas", body, token=world.user_token(), query="async=true")
    assert (answer.status, answer.code) == (status, code), answer.document


@pytest.mark.parametrize("query", ["", "async=false", "async=", "async=x"])
def test_creating_and_deleting_are_asynchronous(world: ApiWorld, query: str):
    answer = world.call("POST", "/kafkas", {"name": "orders"}, token=world.user_token(), query=query)
    assert (answer.status, answer.code) == (400, "103")


def test_a_name_is_used_once_per_organisation(world: ApiWorld):
    assert world.create("orders").status == 202
    again = world.create("orders", token=world.user_token(BOB))
    assert (again.status, again.code) == (409, "36")
    assert world.create("orders", token=world.user_token(STRANGER)).status == 202


def test_defaults_come_from_the_configuration(world: ApiWorld):
    created = world.call("POST", "/kafkas", {"name": "orders"}, token=world.user_token(), query="async=true").document
    assert (created["cloud_provider"], created["region"]) == ("aws", "us-east-1")
    assert (created["instance_type"], created["size_id"]) == ("standard", "x1")
    assert created["reauthentication_enabled"] is True


def test_an_owner_has_one_developer_instance(world: ApiWorld):
    assert world.create("one", "developer.x1").status == 202
    second = world.create("two", "developer.x1")
    assert (second.status, second.code) == (403, "24")
    assert world.create("two", "developer.x1", token=world.user_token(BOB)).status == 202


def test_f06_a_region_with_the_limit_0_takes_no_kafka():
    world = ApiWorld(make_policy(offer("standard", limit=0)))
    answer = world.create("orders")
    assert (answer.status, answer.document["code"]) == (403, "KAFKAS-MGMT-24")
    world.close()


def test_f24_a_region_with_the_limit_2_takes_two_small_kafkas():
    world = ApiWorld(make_policy(offer("standard", limit=2)))
    assert [world.create(name).status for name in ("one", "two")] == [202, 202]
    third = world.create("three")
    assert (third.status, third.code) == (403, "24")
    world.close()


def test_without_automatic_scaling_a_kafka_is_placed_at_once():
    world = ApiWorld(make_policy(scaling_type=ScalingType.NONE))
    none = world.create("orders")
    assert (none.status, none.code) == (403, "24")
    cluster = world.add_cluster()
    created = world.create("orders")
    kafka = world.run.run_until(world.store.get_kafka(created.document["id"]))
    assert kafka is not None
    assert kafka.cluster_id == cluster.cluster_id
    assert "cluster_id" not in created.document
    world.close()


def test_the_owner_or_an_administrator_of_the_organisation_deletes(world: ApiWorld):
    kafka = world.create("orders").document
    path = f"/kafkas/{kafka['id']}"
    for identity in (BOB, STRANGER):
        refused = world.call("DELETE", path, token=world.user_token(identity), query="async=true")
        assert (refused.status, refused.code) == (404, "7")
    for _ in range(2):
        deleted = world.call("DELETE", path, token=world.user_token(ADMIN_OF_ORG), query="async=true")
        assert (deleted.status, deleted.document["id"]) == (202, kafka["id"])
        assert world.call("GET", path, token=world.user_token()).document["status"] == "deprovision"
    assert Worker.DELETING_KAFKA in world.signals.notified


def test_the_owner_or_an_administrator_of_the_organisation_changes(world: ApiWorld):
    path = f"/kafkas/{world.create('orders').document['id']}"
    refused = world.call("PATCH", path, {"owner": "bob"}, token=world.user_token(BOB))
    assert (refused.status, refused.code) == (403, "11")
    body = {"owner": "bob", "reauthentication_enabled": False}
    changed = world.call("PATCH", path, body, token=world.user_token(ADMIN_OF_ORG))
    assert (changed.status, changed.document["owner"]) == (200, "bob")
    assert changed.document["reauthentication_enabled"] is False
    for empty in ({}, {"owner": None}, {"owner": ""}):
        answer = world.call("PATCH", path, empty, token=world.user_token(BOB))
        assert (answer.status, answer.code) == (400, "37")


def make_ready(world: ApiWorld, name: str, **changes: Any) -> str:
    """A Kafka that runs on the cluster a."""
    row_id = world.create(name).document["id"]
    fields: Any = {"status": KafkaStatus.READY, "bootstrap_server_host": f"{name}.example.com"} | changes
    place = world.store.place_kafka(row_id, world.get_cluster("a"), fields, statuses={KafkaStatus.ACCEPTED})
    assert world.run.run_until(place)
    return f"/kafkas/{row_id}"


def end_resizing(world: ApiWorld, path: str, **report: Any) -> None:
    """The agent reports the Kafka as ready, with what it holds."""
    cluster = world.get_cluster("a")
    document = {"conditions": [{"type": "Ready", "status": "True"}], "resizing": False, **report}
    body = {path.rpartition("/")[2]: document}
    url = f"/agent-clusters/{cluster.cluster_id}/kafkas/status"
    assert world.call("PUT", url, body, token=world.agent_token(cluster)).status == 200


def test_e16_a_ready_kafka_gets_another_size(world: ApiWorld):
    world.add_cluster(units=3)
    path, other = make_ready(world, "orders"), make_ready(world, "bills")
    grown = world.call("PATCH", path, {"plan": "standard.x2"}, token=world.user_token())
    assert (grown.status, grown.document["size_id"]) == (200, "x2")
    assert grown.document["max_data_retention_size"] == {"bytes": 2000 << 30}
    full = world.call("PATCH", other, {"plan": "standard.x2"}, token=world.user_token())
    assert (full.status, full.code) == (403, "24")
    for plan in ("standard.x9", "developer.x1", "x2"):
        answer = world.call("PATCH", path, {"plan": plan}, token=world.user_token())
        assert (answer.status, answer.code) == (400, "42")
    end_resizing(world, path, units=2)
    assert world.call("PATCH", path, {"plan": "standard.x1"}, token=world.user_token()).document["size_id"] == "x1"


def test_e16_a_size_does_not_change_while_another_change_runs(world: ApiWorld):
    world.add_cluster()
    upgrading = make_ready(world, "orders", kafka_upgrading=True)
    waiting = f"/kafkas/{world.create('bills').document['id']}"
    for path in (upgrading, waiting):
        answer = world.call("PATCH", path, {"plan": "standard.x2"}, token=world.user_token())
        assert (answer.status, answer.code) == (409, "6")


@pytest.mark.parametrize(
    ("report", "status"),
    [
        pytest.param({"units": 1}, 409, id="the agent has not begun"),
        pytest.param({"units": 2, "resizing": True}, 409, id="replicas move"),
        pytest.param({"units": 2, "conditions": []}, 409, id="brokers start"),
        pytest.param({"units": 2}, 200, id="the size is there"),
        pytest.param({"units": 1, "refusedUnits": 2}, 200, id="the cluster has no room"),
        pytest.param({"resizing": None}, 200, id="an agent that knows of no sizes"),
    ],
)
def test_e16_a_second_change_of_size_waits_for_the_end_of_the_first(
    world: ApiWorld, report: dict[str, Any], status: int
):
    world.add_cluster()
    path = make_ready(world, "orders", routes_created=True)
    assert world.call("PATCH", path, {"plan": "standard.x2"}, token=world.user_token()).status == 200
    end_resizing(world, path, **report)
    again = world.call("PATCH", path, {"plan": "standard.x2"}, token=world.user_token())
    assert again.status == 200, "the same request again changes nothing"
    back = world.call("PATCH", path, {"plan": "standard.x1"}, token=world.user_token())
    assert (back.status, back.code) == (status, "6" if status == 409 else "")


def test_e16_a_size_that_is_too_small_for_the_stored_bytes_is_refused(world: ApiWorld):
    world.add_cluster()
    path = make_ready(world, "orders", size_id="x2", bytes_stored=900 << 30)
    answer = world.call("PATCH", path, {"plan": "standard.x1"}, token=world.user_token())
    assert (answer.status, answer.code) == (400, "42")


def test_e16_the_limit_of_the_region_holds_for_a_bigger_size():
    world = ApiWorld(make_policy(offer("standard", limit=1)))
    world.add_cluster()
    answer = world.call("PATCH", make_ready(world, "orders"), {"plan": "standard.x2"}, token=world.user_token())
    assert (answer.status, answer.code) == (403, "24")
    world.close()


def test_e16_a_smaller_size_needs_no_limit_of_the_region():
    """The operator closed the region meanwhile; what shrinks takes nothing there."""
    world = ApiWorld(make_policy(offer("standard", limit=0)))
    world.add_cluster()
    kafka = make_kafka("k", cluster_id="cid-a", size_id="x2", status=KafkaStatus.READY, organisation_id="org-1")
    check = RegionCheck(limit=None, sizes={}, unknown_size_units=1)
    world.run.run_until(world.store.insert_kafka(structs.replace(kafka, owner="alice"), check))
    smaller = world.call("PATCH", "/kafkas/k", {"plan": "standard.x1"}, token=world.user_token())
    assert (smaller.status, smaller.document["size_id"]) == (200, "x1")
    end_resizing(world, "/kafkas/k", units=1)
    bigger = world.call("PATCH", "/kafkas/k", {"plan": "standard.x2"}, token=world.user_token())
    assert (bigger.status, bigger.code) == (403, "24")
    world.close()


def test_e16_all_types_share_the_limit_of_a_manual_cluster():
    manual = (make_manual("a", 3),)
    world = ApiWorld(
        make_policy(offer("standard"), offer("developer"), scaling_type=ScalingType.MANUAL, manual_clusters=manual)
    )
    world.add_cluster(units={"standard": 0, "developer": 0})
    path = f"/kafkas/{world.create('orders').document['id']}"
    assert world.create("trial", "developer.x1").status == 202
    assert world.create("bills").status == 202
    row_id = path.rpartition("/")[2]
    ready: Any = {"status": KafkaStatus.READY}
    world.run.run_until(world.store.change_kafka(row_id, ready, statuses=frozenset(KafkaStatus)))
    full = world.call("PATCH", path, {"plan": "standard.x2"}, token=world.user_token())
    assert (full.status, full.code) == (403, "24")
    world.close()


def test_a_cluster_that_another_request_filled_is_passed_over(monkeypatch: pytest.MonkeyPatch):
    """Both requests saw the same room. The insert looks again, and the loser goes to the next cluster or is refused."""
    manual = (make_manual("a", 1), make_manual("b", 1))
    world = ApiWorld(make_policy(offer("standard"), scaling_type=ScalingType.MANUAL, manual_clusters=manual))
    for row_id in ("a", "b"):
        world.add_cluster(row_id)
    insert = world.store.insert_kafka
    rivals = iter((make_kafka("rival", cluster_id="cid-a"), None, make_kafka("other", cluster_id="cid-b"), None))

    async def insert_after_rival(*given: Any, **named: Any) -> InsertResult:
        if (rival := next(rivals, None)) is not None:
            await insert(rival, None)
        return await insert(*given, **named)

    monkeypatch.setattr(world.store, "insert_kafka", insert_after_rival)
    created = world.create("orders")
    assert created.status == 202
    placed = world.run.run_until(world.store.get_kafka(created.document["id"]))
    assert placed is not None
    assert placed.cluster_id == "cid-b"
    world.run.run_until(world.store.remove_kafka(placed.id, statuses=frozenset(KafkaStatus)))
    refused = world.create("bills")
    assert (refused.status, refused.code) == (403, "24")
    world.close()


def test_pages_are_cut_and_ordered(world: ApiWorld):
    for name in ("c", "a", "d", "b"):
        assert world.create(name).status == 202
    names = []
    for page in (1, 2, 3):
        answer = world.call("GET", "/kafkas", token=world.user_token(), query=f"page={page}&size=3").document
        assert answer["total"] == 4
        assert answer["size"] == len(answer["items"])
        names.append([kafka["name"] for kafka in answer["items"]])
    assert names == [["a", "b", "c"], ["d"], []]
    backwards = world.call("GET", "/kafkas", token=world.user_token(), query="orderBy=name%20desc,region").document
    assert [kafka["name"] for kafka in backwards["items"]] == ["d", "c", "b", "a"]


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("page=0", "8"),
        ("page=x", "8"),
        ("size=-1", "8"),
        (f"page={2**63}", "8"),
        (f"size={2**64}", "8"),
        (f"page={2**63 - 1}&size=65500", "8"),
        (f"page={'9' * 5000}", "8"),
        ("page=%D9%A1", "8"),
        ("orderBy=secret", "21"),
        ("orderBy=name%20sideways", "21"),
        ("orderBy=name;drop", "21"),
    ],
)
def test_pages_that_do_not_exist_are_refused(world: ApiWorld, query: str, code: str):
    answer = world.call("GET", "/kafkas", token=world.user_token(), query=query)
    assert (answer.status, answer.code) == (400, code)


def test_a_page_size_beyond_the_largest_is_the_largest(world: ApiWorld):
    assert world.call("GET", "/kafkas", token=world.user_token(), query=f"size={2**63 - 1}").status == 200


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("name = orders", ["orders"]),
        ("name like 'or%25'", ["orders"]),
        ("name like '%25''%25' or name = 'bills'", ["bills"]),
        ("name <> orders and region = us-east-1", ["bills"]),
        ("name in (orders, 'bills')", ["bills", "orders"]),
        ("name not in ('orders')", ["bills"]),
        ("owner ilike 'AL%25' and (name = bills or name = orders)", ["bills", "orders"]),
        ("owner like 'AL%25'", []),
        ("name = 'x'' or 1=1 --'", []),
    ],
)
def test_a_search_selects(world: ApiWorld, search: str, found: list[str]):
    for name in ("orders", "bills"):
        world.create(name)
    query = f"search={search}".replace(" ", "%20")
    answer = world.call("GET", "/kafkas", token=world.user_token(), query=query)
    assert answer.status == 200, answer.document
    assert [kafka["name"] for kafka in answer.document["items"]] == found
