"""`plimsoll kafka …` on a real Kafka cluster, as a user runs it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from kafka.admin import ConfigResource

from tests.cli.runner import plimsoll

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.runner import CommandResult
    from tests.e2e.kafka.real_kafka import RealKafka

PARTITIONS = 12
_BYTES = 400_000


def run(*arguments: str, code: int = 0) -> CommandResult:
    ended = plimsoll(*arguments)
    assert ended.returncode == code, f"{ended.returncode}: {ended.stdout}\n{ended.stderr}"
    assert "Traceback" not in ended.stderr
    return ended


def kafka_run(kafka: RealKafka, verb: str, *arguments: str, code: int = 0) -> CommandResult:
    return run("kafka", verb, "--bootstrap", kafka.bootstrap, *arguments, code=code)


@pytest.fixture
def filled(kafka: RealKafka) -> RealKafka:
    kafka.create_topic(
        "orders.v1", {number: [number % 3, (number + 1) % 3, (number + 2) % 3] for number in range(PARTITIONS)}
    )
    for number in range(PARTITIONS):
        kafka.produce("orders.v1", partition=number, total_bytes=_BYTES)
    return kafka


def count_replicas(kafka: RealKafka, broker: int) -> int:
    """Of all topics: internal ones may exist, and plans count them too."""
    topics = kafka.client.list_topics()
    return sum(broker in replicas for topic in topics for replicas in kafka.list_replicas(topic).values())


def list_throttles(kafka: RealKafka) -> list[str]:
    """Everything of a throttle that is set on the topic or on a broker."""
    resources = [
        ConfigResource("TOPIC", "orders.v1"),
        *(ConfigResource("BROKER", str(broker)) for broker in kafka.running),
    ]
    described = kafka.client.describe_configs(resources)
    return [line for line in json.dumps(described, default=str).split("{") if "throttled" in line and "DYNAMIC" in line]


def test_a_broker_is_added_and_removed_again(filled: RealKafka, tmp_path: Path):
    status = json.loads(kafka_run(filled, "status", "-o", "json").stdout)
    assert [broker["state"] for broker in status["brokers"]] == ["Alive"] * 3
    assert status["underReplicatedPartitions"] == 0
    filled.start_broker(3)
    dump = tmp_path / "cluster.json"
    dump.write_text(kafka_run(filled, "dump").stdout, encoding="utf-8")
    saved = json.loads(
        run("kafka", "plan", "-f", str(dump), "--mode", "add-brokers", "--brokers", "3", "-o", "json").stdout
    )
    assert saved["proposals"]
    assert {
        broker
        for proposal in saved["proposals"]
        for broker in set(proposal["newReplicas"]) - set(proposal["oldReplicas"])
    } == {3}
    assert saved["moves"]["replicas"] >= saved["moves"]["leastReplicas"]
    data = str(tmp_path / "data")
    added = kafka_run(
        filled,
        "rebalance",
        "--mode",
        "add-brokers",
        "--brokers",
        "3",
        "--throttle",
        "50000000",
        "--yes",
        "--data",
        data,
        "-o",
        "json",
    )
    outcome = json.loads(added.stdout)["outcome"]
    assert outcome["end"] == "Completed"
    assert count_replicas(filled, 3) >= 6
    assert not list_throttles(filled)
    why = run("why", "broker/3", "--data", data).stdout
    assert "receive replicas" in why
    assert "orders.v1" in run("why", "topic/orders.v1", "--data", data).stdout
    kafka_run(filled, "rebalance", "--mode", "remove-brokers", "--brokers", "3", "--yes", "--data", data)
    assert count_replicas(filled, 3) == 0
    assert json.loads(kafka_run(filled, "status", "-o", "json").stdout)["underReplicatedPartitions"] == 0


def test_nothing_moves_without_a_confirmation(filled: RealKafka, tmp_path: Path):
    filled.start_broker(3)
    before = filled.list_replicas("orders.v1")
    asked = kafka_run(filled, "rebalance", "--mode", "add-brokers", "--brokers", "3", "--data", str(tmp_path), code=2)
    assert "--yes" in asked.stderr
    kafka_run(filled, "rebalance", "--mode", "add-brokers", "--brokers", "3", "--data", str(tmp_path), "--dry-run")
    assert filled.list_replicas("orders.v1") == before


def test_a_refusal_has_the_numbers(filled: RealKafka, tmp_path: Path):
    refused = kafka_run(filled, "plan", "--mode", "remove-brokers", "--brokers", "2", code=1)
    assert "RackAwareGoal" in refused.stderr
    assert "3" in refused.stderr
    assert "9" in kafka_run(filled, "plan", "--mode", "add-brokers", "--brokers", "9", code=2).stderr
    ended = kafka_run(
        filled, "rebalance", "--mode", "remove-brokers", "--brokers", "2", "--yes", "--data", str(tmp_path), code=1
    )
    assert "RackAwareGoal" in ended.stderr


def test_there_is_nothing_to_resume(kafka: RealKafka, tmp_path: Path):
    assert "nothing to finish" in kafka_run(kafka, "rebalance", "--resume", "--data", str(tmp_path)).stderr


@pytest.mark.parametrize(
    ("arguments", "code", "text"),
    [
        (("plan",), 2, "--bootstrap"),
        (("status", "--bootstrap", "127.0.0.1:1"), 4, "127.0.0.1:1"),
        (("plan", "-f", "missing.json"), 2, "missing.json"),
        (("plan", "--bootstrap", "x:1", "--mode", "add-brokers"), 2, "--brokers"),
        (("plan", "--bootstrap", "x:1", "--mode", "wonder"), 2, "--mode"),
        (("plan", "--bootstrap", "x:1", "--brokers", "a", "--mode", "add-brokers"), 2, "--brokers"),
        (("cruise-control", "--bootstrap", "x:1", "--host", "0.0.0.0"), 2, "--users-file"),
        (("cruise-control", "--bootstrap", "x:1", "--default-goals", "Wonder"), 2, "--default-goals"),
    ],
)
def test_wrong_usage_names_the_option(arguments: tuple[str, ...], code: int, text: str):
    assert text in run("kafka", *arguments, code=code).stderr
