"""The examples of Kafka apply on the embedded server as they are, and nothing of them is lost."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.objects.crds.kafka_definitions import NAMESPACE, PLURALS, DefinedKafka, list_our_definitions

EXAMPLES = sorted((Path(__file__).parents[2] / "examples" / "kafka").glob("*.yaml"))


def documents(path: Path) -> list[dict[str, Any]]:
    return list(yaml.safe_load_all(path.read_text()))


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_applies_and_is_kept(path: Path):
    with DefinedKafka(list_our_definitions()) as server:
        for body in documents(path):
            if body["kind"] == "Namespace":
                assert body["metadata"]["name"] == NAMESPACE
                continue
            url = f"/apis/{body['apiVersion']}/namespaces/{NAMESPACE}/{PLURALS[body['kind']]}?fieldValidation=Strict"
            reply = server.ask("POST", url, body)
            assert (reply.status, reply.warnings) == (201, ())
            assert reply.body["spec"] == body["spec"]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_settings_that_an_example_names_are_in_it(path: Path):
    bodies = documents(path)
    names = {body["metadata"]["name"] for body in bodies if body["kind"] == "KafkaRebalanceSettings"}
    used = [
        entry["settings"]
        for body in bodies
        if body["kind"] == "Kafka"
        for entry in body["spec"]["cruiseControl"]["autoRebalance"]
    ]
    assert {name if isinstance(name, str) else name["name"] for name in used} <= names


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_kafka_of_an_example_has_nodes(path: Path):
    bodies = documents(path)
    pools = [body["metadata"]["labels"]["strimzi.io/cluster"] for body in bodies if body["kind"] == "KafkaNodePool"]
    for kafka in (body for body in bodies if body["kind"] == "Kafka"):
        assert kafka["metadata"]["name"] in pools or kafka["spec"]["kafka"].get("replicas")


def test_the_forms_of_the_design_are_among_them():
    found = {path.stem: documents(path) for path in EXAMPLES}
    same, per_mode = found["same-settings"][0], found["settings-per-mode"][0]
    assert len({entry["settings"] for entry in same["spec"]["cruiseControl"]["autoRebalance"]}) == 1
    assert len({entry["settings"]["name"] for entry in per_mode["spec"]["cruiseControl"]["autoRebalance"]}) == 2
    (goals,) = found["goals"]
    assert (len(goals["spec"]["goals"]), goals["spec"]["skipHardGoalCheck"]) == (7, True)
