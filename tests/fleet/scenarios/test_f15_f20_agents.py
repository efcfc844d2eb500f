"""Scenarios of agents and prewarming (docs/design/fleet.md 16): F15 to F20, black box over HTTP."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.fleet.model.clusters import DynamicCapacity, StrimziVersion, VersionItem
from plimsoll.fleet.model.policy import Reserve
from plimsoll.fleet.model.statuses import ClusterStatus, KafkaStatus
from plimsoll.fleet.model.workers import Worker
from tests.fleet.api.api_world import Answer, ApiWorld
from tests.fleet.fleet_rows import make_policy, offer

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.fleet.model.clusters import Cluster

POOL = {"standard": DynamicCapacity(max_nodes=18)}
VERSION = "strimzi-cluster-operator.v0.23.0-0"
STRIMZI = [{"version": VERSION, "ready": True, "kafkaVersions": ["2.7.0"], "kafkaIbpVersions": ["2.7"]}]


class Agent:
    """What an agent does: it polls and reports with the token of its client."""

    def __init__(self, world: ApiWorld, cluster: Cluster) -> None:
        self._world = world
        self._path = f"/agent-clusters/{cluster.cluster_id}"
        self._token = world.agent_token(cluster)

    def get_configuration(self) -> Answer:
        return self._world.call("GET", self._path, token=self._token)

    def list_kafkas(self) -> list[dict[str, Any]]:
        answer = self._world.call("GET", f"{self._path}/kafkas", token=self._token)
        assert (answer.status, answer.document["kind"]) == (200, "ManagedKafkaList")
        items: list[dict[str, Any]] = answer.document["items"]
        return items

    def report(self, status: str = "True", **fields: Any) -> Answer:
        body = {"conditions": [{"type": "Ready", "status": status}], **fields}
        return self._world.call("PUT", f"{self._path}/status", body, token=self._token)

    def report_kafkas(self, reports: dict[str, Any]) -> Answer:
        return self._world.call("PUT", f"{self._path}/kafkas/status", reports, token=self._token)


@pytest.fixture
def world() -> Iterator[ApiWorld]:
    reserves = {"standard": Reserve(instances=7, size_id="x1"), "developer": Reserve(instances=0, size_id="x1")}
    world = ApiWorld(make_policy(offer("standard"), offer("developer"), reserves=reserves))
    yield world
    world.close()


def ready(status: str, reason: str = "", message: str = "") -> dict[str, Any]:
    return {"conditions": [{"type": "Ready", "status": status, "reason": reason, "message": message}]}


def test_f15_a_report_makes_a_cluster_ready_with_the_units_of_its_pools(world: ApiWorld):
    cluster = world.add_cluster(status=ClusterStatus.WAITING, dynamic_capacity_info=POOL)
    capacity = {
        "standard": {"maxUnits": 10, "remainingUnits": 4},
        "developer": {"maxUnits": 5, "remainingUnits": 5},
    }
    answer = Agent(world, cluster).report(capacity=capacity, strimzi=STRIMZI)
    assert (answer.status, answer.document) == (204, b"")
    stored = world.get_cluster("a")
    assert stored.status is ClusterStatus.READY
    assert stored.dynamic_capacity_info == {"standard": DynamicCapacity(max_nodes=18, max_units=10, remaining_units=4)}
    assert stored.last_report_at == world.clock.now()
    assert Worker.ACCEPTED_KAFKA in world.signals.notified
    spec = Agent(world, cluster).get_configuration().document["spec"]
    assert spec == {"net": {"private": False}, "capacity": {"standard": {"maxNodes": 18}}}


def test_f16_a_cluster_that_is_not_ready_waits_and_reserves_nothing(world: ApiWorld):
    cluster = world.add_cluster()
    agent = Agent(world, cluster)
    assert len(agent.list_kafkas()) == 7
    lost = {"standard": {"maxUnits": 0, "remainingUnits": 0}}
    assert agent.report("False", capacity=lost, strimzi=[]).status == 204
    stored = world.get_cluster("a")
    assert stored.status is ClusterStatus.WAITING
    assert stored.dynamic_capacity_info == cluster.dynamic_capacity_info
    assert agent.list_kafkas() == []


@pytest.mark.parametrize("missing", ["version", "kafkaVersions", "kafkaIbpVersions"])
def test_f17_a_strimzi_without_its_versions_is_refused(world: ApiWorld, missing: str):
    item = {name: value for name, value in STRIMZI[0].items() if name != missing}
    answer = Agent(world, world.add_cluster()).report(strimzi=[item])
    assert (answer.status, answer.code) == (400, "37")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"strimzi": [{**STRIMZI[0], "version": "latest"}]}, "8"),
        ({"conditions": [{"type": "Ready", "status": "maybe"}]}, "21"),
        ({"capacity": {"standard": {"maxUnits": -1}}}, "8"),
        ({"capacity": {"standard": {"maxUnits": "many"}}}, "8"),
        ({"conditions": "Ready"}, "8"),
    ],
)
def test_a_report_that_is_false_is_400_and_changes_nothing(world: ApiWorld, fields: dict[str, Any], code: str):
    cluster = world.add_cluster(status=ClusterStatus.WAITING)
    answer = Agent(world, cluster).report(**fields)
    assert (answer.status, answer.code) == (400, code)
    assert world.get_cluster("a").status is ClusterStatus.WAITING


@pytest.mark.parametrize(
    "status", [ClusterStatus.DEPROVISIONING, ClusterStatus.CLEANUP, ClusterStatus.FAILED, ClusterStatus.PROVISIONED]
)
def test_a_late_report_does_not_undo_a_status(world: ApiWorld, status: ClusterStatus):
    cluster = world.add_cluster(status=status)
    assert Agent(world, cluster).report(strimzi=STRIMZI).status == 204
    assert world.get_cluster("a").status is status


def test_f18_the_token_of_another_cluster_opens_no_route(world: ApiWorld):
    world.add_cluster("a")
    stranger = world.agent_token(world.add_cluster("b"))
    for method, path in (("GET", ""), ("PUT", "/status"), ("GET", "/kafkas"), ("PUT", "/kafkas/status")):
        answer = world.call(method, f"/agent-clusters/cid-a{path}", {}, token=stranger)
        assert (answer.status, answer.code) == (404, "7")


def test_f19_seven_reserved_instances_are_listed_with_the_latest_versions(world: ApiWorld):
    versions = tuple(
        StrimziVersion(
            version=f"strimzi-cluster-operator.v0.{minor}.0-0",
            ready=is_ready,
            kafkaVersions=(VersionItem(version="2.7.0"), VersionItem(version=f"2.{minor}.1")),
            kafkaIBPVersions=(VersionItem(version="2.7"), VersionItem(version=f"2.{minor}")),
        )
        for minor, is_ready in ((9, True), (23, True), (24, False))
    )
    cluster = world.add_cluster(units={"standard": 10, "developer": 5}, available_strimzi_versions=versions)
    items = Agent(world, cluster).list_kafkas()
    assert [item["id"] for item in items] == [f"reserved-kafka-standard-{number}" for number in range(1, 8)]
    for item in items:
        name = item["id"]
        assert (item["metadata"]["name"], item["metadata"]["namespace"]) == (name, name)
        assert item["metadata"]["labels"]["bf2.org/deployment"] == "reserved"
        assert item["spec"]["versions"] == {
            "strimzi": "strimzi-cluster-operator.v0.23.0-0",
            "kafka": "2.23.1",
            "kafkaIbp": "2.23",
        }


def test_f20_reports_of_reserved_instances_are_counted_by_status(world: ApiWorld):
    cluster = world.add_cluster(units={"standard": 10, "developer": 5})
    agent = Agent(world, cluster)
    reports = {
        "reserved-kafka-standard-1": ready("False", "Error"),
        "reserved-kafka-standard-2": ready("True"),
        "reserved-kafka-developer-1": ready("False"),
        "reserved-kafka-premium-1": ready("True"),
        "reserved-7": ready("True"),
        "reserved-kafka-standard-3": {"conditions": 7},
    }
    assert agent.report_kafkas(reports).status == 200
    counts = world.metrics.reserved["cid-a"]
    assert {key: number for key, number in counts.items() if number} == {
        ("standard", "error"): 1,
        ("standard", "ready"): 1,
        ("developer", "installing"): 1,
    }
    assert len(counts) == 14
    assert agent.report_kafkas({}).status == 200
    assert set(world.metrics.reserved["cid-a"].values()) == {0}


# ---- Kafkas


def place(world: ApiWorld, name: str, cluster: Cluster) -> str:
    """A Kafka that its agent is asked to run."""
    row_id: str = world.create(name).document["id"]
    changes: Any = {
        "status": KafkaStatus.PROVISIONING,
        "bootstrap_server_host": f"{name}.kafka.example.com",
        "namespace": f"kafka-{row_id}",
        "placement_id": f"placement of {name}",
        "canary_service_account_client_id": "canary",
        "canary_service_account_client_secret": "password of the canary",
    }
    placed = world.store.place_kafka(row_id, cluster, changes, statuses={KafkaStatus.ACCEPTED})
    assert world.run.run_until(placed)
    return row_id


def read_status(world: ApiWorld, row_id: str) -> str:
    document = world.call("GET", f"/kafkas/{row_id}", token=world.user_token()).document
    return str(document["status"])


ROUTES = [{"name": "bootstrap", "prefix": "", "router": "router.example.com"}]


def test_a_kafka_becomes_ready_when_its_routes_are_reported(world: ApiWorld):
    cluster = world.add_cluster()
    row_id = place(world, "orders", cluster)
    agent = Agent(world, cluster)
    first, *reserved = agent.list_kafkas()
    assert (first["id"], first["spec"]["deleted"], len(reserved)) == (row_id, False, 7)
    assert first["spec"]["serviceAccounts"][0]["password"] == "password of the canary"
    agent.report_kafkas({row_id: ready("True"), "other": ready("True")})
    assert read_status(world, row_id) == "provisioning"
    agent.report_kafkas({"broken": 7, row_id: ready("True") | {"routes": ROUTES, "versions": {"kafka": "2.7.0"}}})
    document = world.call("GET", f"/kafkas/{row_id}", token=world.user_token()).document
    assert (document["status"], document["version"]) == ("ready", "2.7.0")
    assert document["bootstrap_server_host"] == "orders.kafka.example.com:443"
    decisions = world.call(
        "GET", "/admin/scaling/decisions", token=world.admin_token(), query=f"subject=kafka/{row_id}"
    )
    assert [item["reason"] for item in decisions.document["items"]] == ["ReportedReady"]


def test_a_deleted_kafka_leaves_when_the_agent_reports_its_end(world: ApiWorld):
    cluster = world.add_cluster()
    row_id = place(world, "orders", cluster)
    agent = Agent(world, cluster)
    agent.report_kafkas({row_id: ready("False", "Deleted")})
    assert read_status(world, row_id) == "provisioning"
    world.call("DELETE", f"/kafkas/{row_id}", token=world.user_token(), query="async=true")
    assert agent.list_kafkas()[0]["spec"]["deleted"] is True
    agent.report_kafkas({row_id: ready("True") | {"routes": ROUTES}})
    assert read_status(world, row_id) == "deprovision"
    agent.report_kafkas({row_id: ready("False", "Deleted")})
    assert read_status(world, row_id) == "deleting"


def test_a_kafka_of_another_cluster_is_not_touched(world: ApiWorld):
    row_id = place(world, "orders", world.add_cluster("a"))
    stranger = Agent(world, world.add_cluster("b"))
    assert stranger.report_kafkas({row_id: ready("True") | {"routes": ROUTES}}).status == 200
    assert read_status(world, row_id) == "provisioning"


def test_a_kafka_that_is_rejected_for_want_of_room_has_no_place_again(world: ApiWorld):
    cluster = world.add_cluster()
    row_id = place(world, "orders", cluster)
    message = "Cluster has insufficient resources"
    Agent(world, cluster).report_kafkas({row_id: ready("False", "Rejected", message)})
    kafka = world.run.run_until(world.store.get_kafka(row_id))
    assert kafka is not None
    assert (kafka.cluster_id, kafka.status) == ("", KafkaStatus.PROVISIONING)
    assert kafka.placement_id != "placement of orders"
    assert Worker.PROVISIONING_KAFKA in world.signals.notified


def test_no_answer_holds_a_secret_but_the_list_of_the_agent(world: ApiWorld):
    cluster = world.add_cluster()
    row_id = place(world, "orders", cluster)
    user, admin, agent = world.user_token(), world.admin_token(), world.agent_token(cluster)
    asked = [
        ("/kafkas", user),
        (f"/kafkas/{row_id}", user),
        ("/admin/kafkas", admin),
        (f"/admin/kafkas/{row_id}", admin),
        ("/admin/clusters", admin),
        ("/admin/clusters/a", admin),
        ("/admin/scaling/decisions", admin),
        ("/agent-clusters/cid-a", agent),
    ]
    for path, token in asked:
        answer = world.call("GET", path, token=token)
        assert answer.status == 200
        for secret in (cluster.client_secret, "password of the canary"):
            assert secret not in str(answer.document)


def test_the_time_until_a_cluster_is_ready_is_measured_once(world: ApiWorld):
    agent = Agent(world, world.add_cluster(status=ClusterStatus.WAITING, dynamic_capacity_info=POOL))
    for status in ("True", "False", "True"):
        world.run.run_until(world.clock.sleep(60))
        assert agent.report(status, strimzi=STRIMZI).status == 204
    cluster = world.get_cluster("a")
    assert cluster.ready_at is not None
    assert world.metrics.cluster_creations_s == [(cluster.ready_at - cluster.created_at).total_seconds()]


def test_reports_with_unknown_fields_are_read_without_them(world: ApiWorld):
    cluster = world.add_cluster()
    row_id = place(world, "orders", cluster)
    agent = Agent(world, cluster)
    assert agent.report(capacity={"standard": {"maxUnits": 9, "later": 1}}, strimzi=STRIMZI, later=[{}]).status == 204
    assert world.get_cluster("a").dynamic_capacity_info["standard"].max_units == 9
    report = {**ready("False", "Error"), "later": {"x": 1}, "capacity": "anything"}
    assert agent.report_kafkas({row_id: report}).status == 200
    kafka = world.run.run_until(world.store.get_kafka(row_id))
    assert kafka is not None
    assert kafka.status is KafkaStatus.FAILED


def test_of_a_condition_that_comes_twice_the_first_counts(world: ApiWorld):
    cluster = world.add_cluster()
    row_id = place(world, "orders", cluster)
    twice = [*ready("False", "Error")["conditions"], *ready("True")["conditions"]]
    agent = Agent(world, cluster)
    assert agent.report_kafkas({row_id: {"conditions": twice}}).status == 200
    kafka = world.run.run_until(world.store.get_kafka(row_id))
    assert kafka is not None
    assert kafka.status is KafkaStatus.FAILED
    assert agent.report("False", conditions=[*ready("False")["conditions"], *ready("True")["conditions"]]).status == 204
    assert world.get_cluster("a").status is ClusterStatus.WAITING


def test_a_report_about_5000_kafkas_changes_the_one_that_is_known(world: ApiWorld):
    cluster = world.add_cluster()
    row_id = place(world, "orders", cluster)
    reports = {f"unknown-{number}": ready("True") for number in range(5_000)}
    assert Agent(world, cluster).report_kafkas(reports | {row_id: ready("False", "Error")}).status == 200
    kafka = world.run.run_until(world.store.get_kafka(row_id))
    assert kafka is not None
    assert kafka.status is KafkaStatus.FAILED
