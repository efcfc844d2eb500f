"""From the list to Kafka objects, and back to reports (docs/design/fleet.md 17.2 to 17.7)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from structlog.testing import capture_logs

from plimsoll.fleet.agent import instance_reconciler
from plimsoll.fleet.agent.planning.kafka_objects import compute_managed_shape
from tests.fleet.agent.agent_world import HOME, AgentWorld
from tests.fleet.agent.control_planes import TOKEN_S, build_item, build_reserved_item
from tests.local.apiserver.builders import MERGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.fleet.agent.planning.sizes import InstanceShape
    from plimsoll.objects.api.managed_kafkas import ManagedKafka


@pytest.fixture
def world() -> Iterator[AgentWorld]:
    with AgentWorld() as world:
        yield world


def test_an_item_becomes_a_namespace_a_managed_kafka_a_claim_and_kafka_objects(world: AgentWorld):
    world.list_items(build_item("one", units=1)).start_agent()
    world.pass_polls()
    managed = world.list_managed()["kafka-one"]
    assert managed["metadata"]["annotations"]["bf2.org/placementId"] == "p1"
    assert managed["spec"]["deleted"] is False
    assert world.get_claims() == {"kafka-one": 1}
    assert world.count_replicas("kafka-one") == {"brokers": 3, "controllers": 3}
    (kafka,) = world.list_kafkas()
    assert kafka["metadata"]["name"] == "k-one"
    modes = kafka["spec"]["cruiseControl"]["autoRebalance"]
    assert [entry["mode"] for entry in modes] == ["add-brokers", "remove-brokers"]
    assert world.get_last("one")["reason"] == "Installing"


def test_brokers_have_the_shape_and_the_places_of_the_table(world: AgentWorld):
    world.control_plane.max_nodes = {"standard": 6, "developer": 1}
    world.list_items(build_item("one", units=2), build_item("dev", instance_type="developer")).start_agent()
    world.pass_polls()
    pools = {pool["metadata"]["name"]: pool["spec"] for pool in world.list_pools("kafka-one")}
    brokers = pools["brokers"]
    assert (brokers["replicas"], brokers["roles"]) == (6, ["broker"])
    assert brokers["resources"]["requests"] == {"cpu": "2900m", "memory": "17408Mi"}
    # 2000 GiB of data, half as much again, on six brokers.
    assert brokers["storage"]["volumes"][0]["size"] == f"{500 * 1024}Mi"
    pod = brokers["template"]["pod"]
    assert pod["tolerations"] == [
        {
            "key": "bf2.org/kafkaInstanceProfileType",
            "operator": "Equal",
            "value": "standard",
            "effect": "NoExecute",
        }
    ]
    (avoided,) = pod["affinity"]["podAntiAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert (avoided["topologyKey"], avoided["namespaceSelector"]) == ("kubernetes.io/hostname", {})
    (spread,) = pod["topologySpreadConstraints"]
    assert (spread["maxSkew"], spread["whenUnsatisfiable"]) == (1, "DoNotSchedule")
    assert pools["controllers"]["replicas"] == 3
    (developer,) = world.list_pools("kafka-dev")
    assert (developer["spec"]["replicas"], developer["spec"]["roles"]) == (1, ["controller", "broker"])
    assert developer["spec"]["resources"]["requests"] == {"cpu": "700m", "memory": "2560Mi"}


def test_an_instance_is_ready_when_its_kafka_and_all_its_brokers_are(world: AgentWorld):
    world.list_items(build_item("one")).start_agent()
    world.pass_polls()
    world.operate(ready=False)
    assert world.get_last("one")["status"] == "False"
    world.operate()
    report = world.get_last("one")
    assert (report["type"], report["status"]) == ("Ready", "True")
    assert report["routes"] == [{"name": "bootstrap", "prefix": "", "router": "ingress.kas.a.example.com"}]
    assert report["versions"] == {"kafka": "4.3.0", "strimzi": "plimsoll-kafka.v0.1.0-0", "kafkaIbp": "4.3"}
    assert world.get_condition("kafka-one", "Claimed")["status"] == "True"


def test_statuses_are_reported_when_they_change_and_all_of_them_at_every_resync(world: AgentWorld):
    world.list_items(build_item("one")).start_agent()
    world.pass_polls()
    world.operate()
    reports = len(world.control_plane.kafka_reports)
    world.run.advance_by(240)
    assert len(world.control_plane.kafka_reports) == reports + 4


def test_a_report_that_does_not_arrive_is_sent_again(world: AgentWorld):
    world.list_items(build_item("one")).start_agent()
    world.pass_polls()
    world.control_plane.takes_reports = False
    world.operate().pass_polls()
    world.control_plane.takes_reports = True
    world.pass_polls()
    assert world.get_last("one")["status"] == "True"


# ---- claims


def test_an_instance_beyond_the_units_of_the_cluster_is_rejected_before_an_object_is_made(world: AgentWorld):
    world.list_items(build_item("a", units=2)).start_agent()
    world.pass_polls()
    world.list_items(build_item("a", units=2), build_item("b")).pass_polls()
    report = world.get_last("b")
    assert (report["reason"], report["message"]) == ("Rejected", "Cluster has insufficient resources")
    assert world.count_replicas("kafka-b") == {}
    assert world.get_claims() == {"kafka-a": 2}


def test_a_rejection_is_final_for_its_placement_and_the_next_one_begins_when_it_is_gone(world: AgentWorld):
    world.list_items(build_item("a", units=2), build_item("b")).start_agent()
    world.pass_polls(2)
    world.list_items(build_item("a", units=2, deleted=True), build_item("b")).pass_polls(3)
    assert world.get_claims() == {}
    assert world.get_condition("kafka-b")["reason"] == "Rejected"
    world.list_items(build_item("b", placement="p2")).pass_polls(3)
    assert world.get_claims() == {"kafka-b": 1}
    assert world.count_replicas("kafka-b")["brokers"] == 3


def test_developer_instances_have_units_of_their_own(world: AgentWorld):
    world.control_plane.max_nodes = {"standard": 3, "developer": 1}
    world.list_items(build_item("a"), *(build_item(f"d{n}", instance_type="developer") for n in range(11)))
    world.start_agent()
    world.pass_polls()
    held = world.get_claims()
    assert held["kafka-a"] == 1
    assert sum(held.values()) == 11
    capacity = world.control_plane.cluster_reports[-1]["capacity"]
    assert capacity["developer"] == {"maxUnits": 10, "remainingUnits": 0}


def test_the_claim_of_a_larger_size_is_raised_first_and_that_of_a_smaller_one_falls_last(world: AgentWorld):
    world.list_items(build_item("a")).start_agent()
    world.pass_polls()
    world.operate()
    assert get_size(world, "a") == (1, False)
    world.list_items(build_item("a", units=2)).pass_polls()
    assert world.get_claims() == {"kafka-a": 2}
    assert world.count_replicas("kafka-a")["brokers"] == 6
    assert get_size(world, "a") == (2, True)
    world.operate()
    assert get_size(world, "a") == (2, False)
    world.list_items(build_item("a", units=1)).pass_polls()
    assert world.count_replicas("kafka-a")["brokers"] == 3
    assert world.get_claims() == {"kafka-a": 2}
    assert get_size(world, "a") == (2, True)
    world.operate()
    assert world.get_claims() == {"kafka-a": 1}
    assert get_size(world, "a") == (1, False)


def get_size(world: AgentWorld, kafka_id: str) -> tuple[int, bool]:
    """The reported units, and whether they change."""
    report = world.get_last(kafka_id)
    return report["units"], report["resizing"]


@pytest.mark.parametrize(
    "summary",
    [
        {"state": "RebalanceOnScaleUp"},
        {"state": "Idle", "modes": [{"mode": "add-brokers", "brokers": [3, 4, 5]}]},
    ],
)
def test_a_size_changes_until_replicas_have_moved(world: AgentWorld, summary: dict[str, Any]):
    world.list_items(build_item("a", units=2)).start_agent()
    world.pass_polls()
    world.operate()
    (kafka,) = world.list_kafkas()
    url = f"/apis/kafka.strimzi.io/v1/namespaces/kafka-a/kafkas/{kafka['metadata']['name']}/status"
    for status, expected in ((summary, (2, True)), ({"state": "Idle", "modes": None}, (2, False))):
        assert world.ask("PATCH", url, {"status": {"autoRebalance": status}}, content=MERGE).status == 200
        world.settle()
        assert get_size(world, "a") == expected
        assert world.get_last("a")["status"] == "True"


def test_an_instance_that_finds_no_room_to_grow_keeps_its_size_and_runs(world: AgentWorld):
    world.list_items(build_item("a"), build_item("b")).start_agent()
    world.pass_polls()
    world.operate()
    world.list_items(build_item("a", units=2), build_item("b")).pass_polls()
    assert world.count_replicas("kafka-a")["brokers"] == 3
    assert world.get_last("a")["status"] == "True"
    assert world.get_claims() == {"kafka-a": 1, "kafka-b": 1}
    report = world.get_last("a")
    assert (report["units"], report["resizing"], report["refusedUnits"]) == (1, False, 2)


def test_lost_claims_are_made_anew_from_what_runs(world: AgentWorld):
    world.list_items(build_item("a", units=2)).start_agent()
    world.pass_polls()
    assert world.ask("DELETE", f"/api/v1/namespaces/{HOME}/configmaps/plimsoll-agent-claims").status == 200
    world.list_items(build_item("a", units=2), build_item("b")).pass_polls()
    assert world.get_claims() == {"kafka-a": 2}
    assert world.get_last("b")["reason"] == "Rejected"


def test_without_bounds_of_the_control_plane_nothing_is_rejected(world: AgentWorld):
    world.control_plane.max_nodes = {}
    world.list_items(*(build_item(f"k{n}") for n in range(4))).start_agent()
    world.pass_polls()
    assert sum(world.get_claims().values()) == 4


# ---- errors and updates


def test_a_kafka_that_is_not_ready_for_ten_minutes_is_an_error_with_its_message(world: AgentWorld):
    world.list_items(build_item("one")).start_agent()
    world.pass_polls()
    world.report_kafka("kafka-one", "k-one", ready=False, reason="NoRoom", message="no machine fits")
    world.run.advance_by(580)
    assert world.get_last("one")["reason"] == "Installing"
    world.run.advance_by(60)
    report = world.get_last("one")
    assert (report["reason"], report["message"]) == ("Error", "NoRoom: no machine fits")
    world.operate()
    assert world.get_last("one")["status"] == "True"


def test_a_kafka_that_rolls_to_another_version_is_reported_as_updating(world: AgentWorld):
    world.list_items(build_item("one")).start_agent()
    world.pass_polls()
    world.operate()
    versions = {"kafka": "4.4.0", "strimzi": "plimsoll-kafka.v0.1.0-0", "kafkaIbp": "4.3"}
    world.list_items(build_item("one", versions=versions)).pass_polls()
    assert world.get_last("one")["reason"] == "KafkaUpdating"


def test_what_others_change_in_an_object_is_set_back(world: AgentWorld):
    world.list_items(build_item("one")).start_agent()
    world.pass_polls()
    url = "/apis/kafka.strimzi.io/v1/namespaces/kafka-one/kafkanodepools/brokers"
    assert world.ask("PATCH", url, {"spec": {"replicas": 1}}, content=MERGE).status == 200
    world.settle()
    assert world.count_replicas("kafka-one")["brokers"] == 3


# ---- reserved instances


def test_a_reserved_instance_is_deployments_of_the_same_shape_with_the_lowest_priority(world: AgentWorld):
    world.list_items(build_reserved_item(1)).start_agent()
    world.pass_polls()
    deployments = world.list_all("/apis/apps/v1/deployments", labels="bf2.org/deployment=reserved")
    found = {item["metadata"]["name"]: item["spec"] for item in deployments}
    assert {name: spec["replicas"] for name, spec in found.items()} == {"brokers": 3, "controllers": 3}
    pod = found["brokers"]["template"]["spec"]
    assert pod["priorityClassName"] == "plimsoll-reserved"
    assert pod["terminationGracePeriodSeconds"] == 0
    assert pod["containers"][0]["resources"]["requests"] == {"cpu": "2900m", "memory": "17Gi"}
    priority = world.ask("GET", "/apis/scheduling.k8s.io/v1/priorityclasses/plimsoll-reserved").body
    assert (priority["value"], priority["preemptionPolicy"]) == (-10, "Never")
    assert world.get_claims() == {}
    assert world.get_last("reserved-kafka-standard-1")["reason"] == "Installing"
    world.run_reserved()
    assert world.get_last("reserved-kafka-standard-1")["status"] == "True"


def test_the_reserve_falls_with_the_list(world: AgentWorld):
    world.list_items(build_reserved_item(1), build_reserved_item(2)).start_agent()
    world.pass_polls()
    assert world.list_namespaces() == ["reserved-kafka-standard-1", "reserved-kafka-standard-2"]
    world.list_items(build_reserved_item(1)).pass_polls(4)
    assert world.list_namespaces() == ["reserved-kafka-standard-1"]


# ---- capacity and versions


def test_the_cluster_is_reported_ready_with_units_and_versions(world: AgentWorld):
    world.list_items(build_item("a")).start_agent()
    world.pass_polls()
    report = world.control_plane.cluster_reports[-1]
    assert report["conditions"][0]["status"] == "True"
    assert report["capacity"] == {"standard": {"maxUnits": 2, "remainingUnits": 1}}
    assert report["strimzi"] == [
        {
            "version": "plimsoll-kafka.v0.1.0-0",
            "ready": True,
            "kafkaVersions": ["4.2.0", "4.3.0"],
            "kafkaIbpVersions": ["4.2", "4.3"],
        }
    ]


def test_without_a_ready_operator_the_cluster_is_not_ready(world: AgentWorld):
    world.start_agent()
    world.set_operator_available(is_available=False)
    world.pass_polls(2)
    assert world.control_plane.cluster_reports[-1]["conditions"][0]["status"] == "False"


def test_smaller_limits_of_the_node_autoscaler_lower_the_units_with_a_condition(world: AgentWorld):
    status = "nodeGroups:\n" + "".join(f"- {{name: kafka-standard-{zone}, health: {{maxSize: 1}}}}\n" for zone in "abc")
    body = {"metadata": {"name": "cluster-autoscaler-status"}, "data": {"status": status}}
    world.made(f"/api/v1/namespaces/{HOME}/configmaps", body)
    world.start_agent()
    world.pass_polls()
    report = world.control_plane.cluster_reports[-1]
    assert report["capacity"] == {"standard": {"maxUnits": 1, "remainingUnits": 1}}
    assert [condition["type"] for condition in report["conditions"]] == ["Ready", "PoolSmaller"]


# ---- tokens


@pytest.mark.parametrize("expires_in", [10**350, -(10**30), 0, "300", None, [], True, 1e300])
def test_a_token_of_an_impossible_lifetime_is_used_and_renewed(world: AgentWorld, expires_in: Any):
    world.control_plane.expires_in = expires_in
    world.list_items(build_item("one")).start_agent()
    world.pass_polls(2)
    world.run.advance_by(3 * TOKEN_S)
    world.list_items(build_item("one"), build_item("two")).pass_polls(3)
    assert len(world.list_kafkas()) == 2


def test_a_token_is_renewed_before_it_expires_and_when_it_is_refused(world: AgentWorld):
    world.start_agent()
    world.run.advance_by(3 * TOKEN_S)
    gaps = [
        later - earlier
        for earlier, later in zip(world.control_plane.tokens, world.control_plane.tokens[1:], strict=False)
    ]
    assert gaps
    assert all(gap < TOKEN_S for gap in gaps)
    world.control_plane.refused_tokens.add(f"token-{len(world.control_plane.tokens)}")
    polls = world.control_plane.polls
    world.pass_polls()
    assert world.control_plane.polls > polls


def test_an_object_whose_answer_cannot_be_read_costs_only_its_instance(world: AgentWorld):
    world.control_plane.max_nodes = {"standard": 60}
    world.list_items(build_item("a"), build_item("b")).start_agent()
    world.pass_polls()
    time = {"type": "x", "status": "x", "lastTransitionTime": "0000-01-01T00:00:00Z"}
    url = "/apis/kafka.strimzi.io/v1/namespaces/kafka-a/kafkanodepools/brokers"
    assert world.ask("PATCH", f"{url}/status", {"status": {"conditions": [time]}}, content=MERGE).status == 200
    # Both have to be applied again: the first cannot be read afterwards.
    world.list_items(build_item("a", units=2), build_item("b", units=2)).pass_polls(3)
    assert world.count_replicas("kafka-b")["brokers"] == 6
    assert "brokers" in world.get_condition("kafka-a")["message"]


def test_a_value_that_no_check_foresaw_costs_only_its_instance(world: AgentWorld, monkeypatch: pytest.MonkeyPatch):
    def compute(managed: ManagedKafka, units: int) -> InstanceShape:
        if managed.metadata.name == "k-a":
            raise OverflowError("a number")
        return compute_managed_shape(managed, units)

    monkeypatch.setattr(instance_reconciler, "compute_managed_shape", compute)
    world.list_items(build_item("a"), build_item("b")).start_agent()
    with capture_logs() as logs:
        world.pass_polls(2)
    assert [kafka["metadata"]["name"] for kafka in world.list_kafkas()] == ["k-b"]
    assert {"event": "agent.instance_crashed", "instance": "k-a"}.items() <= next(
        line for line in logs if line.get("exc_info")
    ).items()
