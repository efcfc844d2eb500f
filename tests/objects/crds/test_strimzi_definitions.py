"""Strimzi's own definitions apply unchanged on the embedded server, and keep what Strimzi knows (K39)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.local.apiserver.builders import APPLY
from tests.objects.crds.kafka_definitions import (
    DEFINITIONS,
    STRIMZI,
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

OURS_ONLY = {"settings": "s", "onFailure": "Retry"}
STATUS = {
    "cruiseControl": {"autoRebalance": {"state": "ScalingUp", "add-brokers": [3]}},
    "autoRebalance": {
        "state": "Idle",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "modes": [{"mode": "add-brokers", "brokers": [3]}],
    },
}


@pytest.fixture
def strimzi() -> Iterator[DefinedKafka]:
    with DefinedKafka(list_strimzi_definitions()) as server:
        yield server


def test_the_definitions_are_established_and_kept_as_they_are(strimzi: DefinedKafka):
    assert len(STRIMZI) == 4
    for body in list_strimzi_definitions():
        found = strimzi.ask("GET", f"{DEFINITIONS}/{body['metadata']['name']}").body
        assert found["spec"]["versions"] == without_empty_properties(body["spec"]["versions"])
        conditions = {condition["type"]: condition["status"] for condition in found["status"]["conditions"]}
        assert conditions == {"NamesAccepted": "True", "Established": "True"}


def without_empty_properties(schema: Any) -> Any:
    """As every API server answers: an empty map of properties is left out."""
    if isinstance(schema, list):
        return [without_empty_properties(item) for item in schema]
    if isinstance(schema, dict):
        return {
            key: without_empty_properties(value)
            for key, value in schema.items()
            if not (key == "properties" and not value)
        }
    return schema


def test_they_apply_as_kubectl_applies_them():
    with DefinedKafka([]) as server:
        for path, body in zip(STRIMZI, list_strimzi_definitions(), strict=True):
            url = f"{DEFINITIONS}/{body['metadata']['name']}?fieldManager=kubectl"
            assert server.ask("PATCH", url, path.read_bytes(), content=APPLY).status == 201


@pytest.mark.parametrize(
    "body",
    [
        kafka(auto_rebalance=[{"mode": "add-brokers", "template": {"name": "t"}}], config={"a": 1}),
        node_pool(storage={"type": "jbod", "volumes": [{"id": 0, "type": "persistent-claim", "size": "1Gi"}]}),
        rebalance(mode="add-brokers", brokers=[3], goals=["RackAwareGoal"], replicationThrottle=1),
        pod_set(pods=[{"metadata": {"name": "c-p-0"}, "spec": {"containers": []}}]),
    ],
    ids=lambda body: str(body["kind"]),
)
def test_an_object_of_strimzi_comes_back_as_it_was_written(strimzi: DefinedKafka, body: dict[str, Any]):
    assert strimzi.create(body).status == 201
    assert strimzi.read(body)["spec"] == body["spec"]


def test_settings_and_what_follows_a_failure_are_pruned_by_strimzi_and_kept_by_us(strimzi: DefinedKafka):
    body = kafka(auto_rebalance=[{"mode": "add-brokers", **OURS_ONLY}])
    assert strimzi.create(body).status == 201
    assert strimzi.read(body)["spec"]["cruiseControl"]["autoRebalance"] == [{"mode": "add-brokers"}]

    with DefinedKafka(list_our_definitions()) as ours:
        ours.create(body)
        assert ours.read(body)["spec"] == body["spec"]


def test_the_view_of_the_design_is_pruned_by_strimzi_and_kept_by_us(strimzi: DefinedKafka):
    assert write_status(strimzi) == {"autoRebalance": STATUS["autoRebalance"]}
    with DefinedKafka(list_our_definitions()) as ours:
        assert write_status(ours) == STATUS


def write_status(server: DefinedKafka) -> Any:
    body = server.create(kafka()).body
    body["status"] = STATUS
    assert server.ask("PUT", f"{url_of(body)}/c/status", body).status == 200
    return server.read(kafka())["status"]


def test_settings_objects_are_no_kind_of_strimzi(strimzi: DefinedKafka):
    assert strimzi.create(rebalance("KafkaRebalanceSettings")).status == 404


def test_objects_of_strimzi_survive_the_change_to_our_definitions(strimzi: DefinedKafka):
    """An operator that takes over from Strimzi applies our definitions over Strimzi's."""
    body = kafka(auto_rebalance=[{"mode": "add-brokers", "template": {"name": "t"}}])
    strimzi.create(body)
    for definition in list_our_definitions():
        url = f"{DEFINITIONS}/{definition['metadata']['name']}?fieldManager=kubectl&force=true"
        assert strimzi.ask("PATCH", url, definition, content=APPLY).status in {200, 201}
    strimzi.run.settle()
    assert strimzi.read(body)["spec"] == strimzi.read(body, version="v1beta2")["spec"] == body["spec"]
