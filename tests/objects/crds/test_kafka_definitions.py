"""Our definitions of Kafka's resources on the embedded server: what is kept, what is refused and with which path."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.local.apiserver.builders import APPLY, MERGE
from tests.objects.crds.kafka_definitions import (
    DefinedKafka,
    kafka,
    list_our_definitions,
    list_strimzi_definitions,
    node_pool,
    pod_set,
    rebalance,
    url_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

PATH = "spec.cruiseControl.autoRebalance"
UNKNOWN: dict[str, Any] = {"aFieldOfLater": {"deep": [1, {"x": "y"}]}}
MODES = [{"mode": "add-brokers"}, {"mode": "remove-brokers"}]


@pytest.fixture
def server() -> Iterator[DefinedKafka]:
    with DefinedKafka(list_our_definitions()) as server:
        yield server


def get_version(definition: dict[str, Any], name: str = "v1") -> dict[str, Any]:
    (found,) = [version for version in definition["spec"]["versions"] if version["name"] == name]
    return dict(found)


# ---- names, columns and versions


def test_both_versions_are_served_in_one_schema_and_v1_is_stored():
    for definition in list_our_definitions():
        v1, v1beta2 = get_version(definition), get_version(definition, "v1beta2")
        assert (v1["served"], v1["storage"]) == (True, True)
        assert (v1beta2["served"], v1beta2["storage"]) == (True, False)
        fields = ("schema", "subresources", "additionalPrinterColumns")
        assert [v1[field] for field in fields] == [v1beta2[field] for field in fields]
        assert definition["spec"]["conversion"] == {"strategy": "None"}


def test_names_subresources_and_columns_are_those_of_strimzi():
    ours = {definition["metadata"]["name"]: definition for definition in list_our_definitions()}
    theirs = {definition["metadata"]["name"]: definition for definition in list_strimzi_definitions()}
    assert theirs.keys() == ours.keys() - {"kafkarebalancesettings.kafka.strimzi.io"}
    for name, definition in theirs.items():
        assert ours[name]["spec"]["names"] == definition["spec"]["names"]
        expected, found = get_version(definition), get_version(ours[name])
        assert found["subresources"] == expected["subresources"]
        columns = [column for column in found["additionalPrinterColumns"] if not column.get("priority")]
        assert columns[: len(expected["additionalPrinterColumns"])] == expected["additionalPrinterColumns"]


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        ("Kafka", "spec.cruiseControl.autoRebalance"),
        ("Kafka", "status.cruiseControl.autoRebalance"),
        ("KafkaRebalance", "spec"),
        ("KafkaRebalanceSettings", "spec"),
    ],
)
def test_kubectl_explains_every_field_of_rebalancing(kind: str, path: str):
    (definition,) = [found for found in list_our_definitions() if found["spec"]["names"]["kind"] == kind]
    field = get_version(definition)["schema"]["openAPIV3Schema"]
    for name in path.split("."):
        field = field["properties"][name]
    assert field["description"]
    fields = field.get("items", field)["properties"]
    assert [name for name, found in fields.items() if not found.get("description")] == []
    rules = field.get("items", field).get("x-kubernetes-validations", ())
    forbidden = {rule["fieldPath"].removeprefix(".") for rule in rules}
    assert all(fields[name]["description"].startswith("Forbidden") for name in forbidden)


def test_no_column_lists_the_brokers_of_a_rebalance():
    """A rebalance may name 100,000 of them."""
    (definition,) = [found for found in list_our_definitions() if found["spec"]["names"]["kind"] == "KafkaRebalance"]
    paths = [column["jsonPath"] for column in get_version(definition)["additionalPrinterColumns"]]
    assert not [path for path in paths if path.startswith(".spec.brokers")]


def test_kubectl_sees_the_state_of_automatic_rebalancing(server: DefinedKafka):
    body = server.create(kafka(auto_rebalance=MODES)).body
    body["status"] = {"cruiseControl": {"autoRebalance": {"state": "ScalingUp", "add-brokers": [3]}}}
    assert server.ask("PUT", f"{url_of(body)}/c/status", body).status == 200

    table = server.ask("GET", url_of(body), headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}).body
    names = [column["name"] for column in table["columnDefinitions"]]
    assert table["rows"][0]["cells"][names.index("Auto rebalance")] == "ScalingUp"


def test_kubectl_sees_why_a_kafka_is_not_ready(server: DefinedKafka):
    """The column Ready is Strimzi's, and empty then: as Strimzi's operator, ours writes NotReady, not Ready=False."""
    body = server.create(kafka()).body
    condition = {"type": "NotReady", "status": "True", "reason": "KafkaUnavailable", "message": "no broker answers"}
    body["status"] = {"conditions": [condition]}
    assert server.ask("PUT", f"{url_of(body)}/c/status", body).status == 200
    table = server.ask("GET", url_of(body), headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}).body
    names = [column["name"] for column in table["columnDefinitions"]]
    cells = dict(zip(names, table["rows"][0]["cells"], strict=True))
    assert (cells["Ready"], cells["Not ready"], cells["Message"]) == (None, "KafkaUnavailable", "no broker answers")


def test_a_pool_is_scaled_through_the_subresource(server: DefinedKafka):
    server.create(node_pool())
    url = f"{url_of(node_pool())}/p"
    assert server.ask("PATCH", f"{url}/scale", {"spec": {"replicas": 4}}, content=MERGE).status == 200
    assert server.read(node_pool())["spec"]["replicas"] == 4


# ---- what is kept


@pytest.mark.parametrize(
    "body",
    [
        kafka(auto_rebalance=[{"mode": "add-brokers", **UNKNOWN}], **UNKNOWN),
        kafka(version="v1beta2", replicas=3, storage={"type": "jbod", "volumes": [{"id": 0, "type": "ephemeral"}]}),
        kafka(auto_rebalance=MODES, template={"pod": UNKNOWN, **UNKNOWN}, rack={"topologyKey": "zone"}, **UNKNOWN),
        node_pool(template={"pod": UNKNOWN}, jvmOptions={"-Xmx": "1g"}, **UNKNOWN),
        node_pool(version="v1beta2", storage={"type": "jbod", "volumes": [{"id": 1, "type": "ephemeral", **UNKNOWN}]}),
        rebalance(mode="remove-brokers", brokers=[3], **UNKNOWN),
        rebalance(version="v1beta2", moveReplicasOffVolumes=[{"brokerId": 1, "volumeIds": [0], **UNKNOWN}]),
        rebalance("KafkaRebalanceSettings", goals=["RackAwareGoal"], skipHardGoalCheck=True, **UNKNOWN),
        pod_set(pods=[{"metadata": {"name": "c-p-0"}, "spec": UNKNOWN}], **UNKNOWN),
    ],
    ids=lambda body: f"{body['kind']} {body['apiVersion'].rpartition('/')[2]}",
)
def test_nothing_that_a_user_writes_is_lost_between_the_versions(server: DefinedKafka, body: dict[str, Any]):
    assert server.create(body).status == 201
    for version in ("v1", "v1beta2"):
        found = server.read(body, version=version)
        assert found["apiVersion"].endswith(f"/{version}")
        assert found["spec"] == body["spec"]


def test_k31_replicas_and_storage_of_v1beta2_survive_storage_as_v1(server: DefinedKafka):
    """Written as v1beta2, changed as v1, read as v1beta2."""
    written = kafka(version="v1beta2", replicas=3, storage={"type": "persistent-claim", "size": "1Gi"})
    server.create(written)
    patch = {"metadata": {"labels": {"a": "b"}}}
    assert server.ask("PATCH", f"{url_of(kafka())}/c", patch, content=MERGE).status == 200

    found = server.read(written)
    assert found["spec"] == written["spec"]
    assert found["metadata"]["generation"] == 1


def test_both_views_of_the_status_are_kept(server: DefinedKafka):
    body = server.create(kafka(auto_rebalance=MODES)).body
    hints = {"running": "add-brokers", "rebalanceUid": "u", "attempts": 2, "nextRetryTime": "2026-01-01T00:00:00Z"}
    status = {
        "cruiseControl": {"autoRebalance": {"state": "Rebalancing", "add-brokers": [3], **hints, **UNKNOWN}},
        "autoRebalance": {"state": "RebalanceOnScaleUp", "modes": [{"mode": "add-brokers", "brokers": [3]}]},
        "conditions": [{"type": "Warning", "status": "True"}, {"type": "Warning", "status": "True", "reason": "B"}],
    }
    body["status"] = status
    assert server.ask("PUT", f"{url_of(body)}/c/status", body).status == 200
    assert server.read(body, version="v1beta2")["status"] == status


@pytest.mark.parametrize("settings", ["by-name", {"name": "by-name"}, 7, ["odd"]])
def test_settings_are_kept_in_whichever_form_they_are_written(server: DefinedKafka, settings: Any):
    """A schema cannot say string or object: odd forms are reported by the reconciler."""
    entries = [{"mode": "add-brokers", "settings": settings, "onFailure": "Retry"}]
    assert server.create(kafka(auto_rebalance=entries)).status == 201
    assert server.read(kafka())["spec"]["cruiseControl"]["autoRebalance"] == entries


# ---- what is refused


@pytest.mark.parametrize(
    ("auto_rebalance", "path", "problem"),
    [
        ({"modes": ["add-brokers", "remove-brokers"]}, PATH, 'must be of type array: "object"'),
        ([], PATH, "should have at least 1 items"),
        ([{"mode": "full"}], f"{PATH}[0].mode", "Unsupported value"),
        ([{"settings": "s"}], f"{PATH}[0].mode", "Required value"),
        ([{"mode": "add-brokers"}, {"mode": "add-brokers", "settings": "s"}], f"{PATH}[1]", "Duplicate value"),
        ([{"mode": "add-brokers", "goals": ["RackAwareGoal"]}], f"{PATH}[0].goals", "KafkaRebalanceSettings"),
        ([{"mode": "add-brokers", "goals": []}], f"{PATH}[0].goals", "KafkaRebalanceSettings"),
        ([*MODES[:1], {**MODES[1], "skipHardGoalCheck": True}], f"{PATH}[1].skipHardGoalCheck", "settings"),
        ([{"mode": "add-brokers", "brokers": [3]}], f"{PATH}[0].brokers", "found when the cluster scales"),
        ([{"mode": "add-brokers", "onFailure": "Panic"}], f"{PATH}[0].onFailure", "Unsupported value"),
        ([{"mode": "add-brokers", "template": "t"}], f"{PATH}[0].template", "must be of type object"),
        (["add-brokers"], f"{PATH}[0]", "must be an object"),
    ],
)
def test_a_wrong_auto_rebalance_is_refused_with_its_path(
    server: DefinedKafka, auto_rebalance: Any, path: str, problem: str
):
    reply = server.create(kafka(auto_rebalance=auto_rebalance))
    assert reply.status == 422, reply
    causes = {cause["field"]: cause["message"] for cause in reply.body["details"]["causes"]}
    assert problem in causes[path]


@pytest.mark.parametrize(
    "field",
    [
        "goals",
        "skipHardGoalCheck",
        "brokers",
        "excludedTopics",
        "replicationThrottle",
        "replicaMovementStrategies",
        "concurrentPartitionMovementsPerBroker",
        "concurrentIntraBrokerPartitionMovements",
        "concurrentLeaderMovements",
    ],
)
def test_no_field_of_a_rebalance_is_written_into_an_entry(server: DefinedKafka, field: str):
    values = {"goals": ["A"], "skipHardGoalCheck": False, "brokers": [], "excludedTopics": "a.*"}
    values["replicaMovementStrategies"] = ["A"]
    reply = server.create(kafka(auto_rebalance=[{"mode": "add-brokers", field: values.get(field, 1)}]))
    assert [cause["field"] for cause in reply.body["details"]["causes"]] == [f"{PATH}[0].{field}"]


@pytest.mark.parametrize("version", ["v1", "v1beta2"])
@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("mode", "add-brokers"),
        ("brokers", [3]),
        ("rebalanceDisk", False),
        ("moveReplicasOffVolumes", [{"brokerId": 1}]),
    ],
)
def test_settings_have_no_mode_and_no_brokers(server: DefinedKafka, version: str, field: str, value: Any):
    reply = server.create(rebalance("KafkaRebalanceSettings", version=version, **{field: value}))
    assert reply.status == 422, reply
    assert [cause["field"] for cause in reply.body["details"]["causes"]] == [f"spec.{field}"]


@pytest.mark.parametrize(
    ("body", "path"),
    [
        (rebalance(mode="sideways"), "spec.mode"),
        (rebalance(mode="add-brokers", brokers=["three"]), "spec.brokers[0]"),
        (rebalance(replicationThrottle=-1), "spec.replicationThrottle"),
        (rebalance("KafkaRebalanceSettings", concurrentLeaderMovements=-1), "spec.concurrentLeaderMovements"),
        (node_pool(replicas=-1), "spec.replicas"),
        (node_pool(roles=["leader"]), "spec.roles[0]"),
        (node_pool(storage={"type": "tape"}), "spec.storage.type"),
        (pod_set(pods={}), "spec.pods"),
        (kafka(replicas=0), "spec.kafka.replicas"),
    ],
)
def test_a_wrong_value_is_refused_with_its_path(server: DefinedKafka, body: dict[str, Any], path: str):
    reply = server.create(body)
    assert reply.status == 422, reply
    assert path in [cause["field"] for cause in reply.body["details"]["causes"]]


def test_modes_are_applied_side_by_side(server: DefinedKafka):
    """The list is a map by mode: two managers each apply their own."""
    for manager, mode in (("a", "add-brokers"), ("b", "remove-brokers")):
        body = kafka(auto_rebalance=[{"mode": mode}])
        url = f"{url_of(body)}/c?fieldManager={manager}&force=true"
        assert server.ask("PATCH", url, body, content=APPLY).status in {200, 201}
    assert server.read(kafka())["spec"]["cruiseControl"]["autoRebalance"] == MODES
