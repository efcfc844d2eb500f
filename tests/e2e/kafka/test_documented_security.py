"""The section on TLS and SASL of docs/kafka.md, followed on real brokers: its file, its command, its permissions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.kafka.real_kafka import SECURE_PASSWORD, SECURE_USER
from tests.e2e.kafka.test_commands import run

if TYPE_CHECKING:
    from tests.cli.runner import CommandResult
    from tests.e2e.kafka.real_kafka import RealKafka

GUIDE = Path(__file__).parents[3] / "docs" / "kafka.md"
SECTION = GUIDE.read_text(encoding="utf-8").partition("## TLS and SASL\n")[2].partition("\n## ")[0]
MOVED = {number: [0] for number in range(6)}


def write_documented_properties(kafka: RealKafka, directory: Path) -> Path:
    """The properties of the guide, with the user and the authority of the test."""
    found = re.search(r"```properties\n(.*?)```", SECTION, re.DOTALL)
    assert found is not None
    text = found[1].replace('"ops"', f'"{SECURE_USER}"').replace('"..."', f'"{SECURE_PASSWORD}"')
    path = directory / "client.properties"
    path.write_text(text.replace("/etc/kafka/ca.pem", str(kafka.ca_file)), encoding="utf-8")
    return path


def read_documented_permissions() -> dict[str, list[str]]:
    """The operations of the guide's commands, in the words of the protocol."""
    commands = re.findall(r"\$ kafka-acls\.sh (.*?)(?=\n\$|\n```)", SECTION, re.DOTALL)
    return {
        "TOPIC" if "--topic" in command else "CLUSTER": [
            re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).upper()
            for operation in re.findall(r"--operation (\w+)", command)
        ]
        for command in commands
    }


def run_secure(kafka: RealKafka, directory: Path, verb: str, *arguments: str, code: int = 0) -> CommandResult:
    properties = str(write_documented_properties(kafka, directory))
    where = ("--bootstrap", kafka.secure_bootstrap, "--command-config", properties)
    return run("kafka", verb, *where, *arguments, code=code)


def rebalance(kafka: RealKafka, directory: Path, *, code: int = 0) -> CommandResult:
    arguments = ("--throttle", "50000000", "--yes", "--data", str(directory / "data"))
    return run_secure(kafka, directory, "rebalance", *arguments, code=code)


def test_the_documented_file_and_permissions_are_enough(kafka: RealKafka, tmp_path: Path):
    kafka.create_topic("orders", MOVED)
    for number in MOVED:
        kafka.produce("orders", partition=number, total_bytes=200_000)
    kafka.permit(read_documented_permissions())
    assert "3 brokers, " in run_secure(kafka, tmp_path, "status").stdout
    assert "Completed: " in rebalance(kafka, tmp_path).stdout
    assert {broker for replicas in kafka.list_replicas("orders").values() for broker in replicas} == {0, 1, 2}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "operation"), [("CLUSTER", "ALTER"), ("CLUSTER", "ALTER_CONFIGS"), ("TOPIC", "ALTER_CONFIGS")]
)
def test_without_a_permission_to_change_nothing_moves(kafka: RealKafka, tmp_path: Path, kind: str, operation: str):
    prepare(kafka, without=(kind, operation))
    ended = rebalance(kafka, tmp_path, code=1)
    assert "AUTHORIZATION_FAILED" in ended.stderr + ended.stdout
    assert kafka.list_replicas("orders") == MOVED


@pytest.mark.slow
def test_topics_that_the_user_may_not_describe_are_neither_moved_nor_forgotten(kafka: RealKafka, tmp_path: Path):
    prepare(kafka, without=("TOPIC", "DESCRIBE"))
    status = run_secure(kafka, tmp_path, "status").stdout
    assert "topic orders: TOPIC_AUTHORIZATION_FAILED: its replicas are known from log directories only" in status
    arguments = ("--mode", "remove-brokers", "--brokers", "0", "--goals", "ReplicaDistributionGoal")
    ended = run_secure(kafka, tmp_path, "plan", *arguments, "--skip-hard-goal-check", code=1)
    # Internal topics of earlier tests are still there, and the user may not describe them either.
    kept = [replicas for topic in kafka.client.list_topics() for replicas in kafka.list_replicas(topic).values()]
    assert f"broker 0 keeps {sum(0 in replicas for replicas in kept)} replicas" in ended.stderr


def prepare(kafka: RealKafka, *, without: tuple[str, str]) -> None:
    kafka.create_topic("orders", MOVED)
    kafka.produce("orders", total_bytes=200_000)
    granted = read_documented_permissions()
    granted[without[0]].remove(without[1])
    kafka.permit(granted)
