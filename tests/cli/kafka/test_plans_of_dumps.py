"""`plimsoll kafka status` and `plan` on dumps, without a cluster."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from plimsoll.kafka.brokers.dump import write_dump
from tests.cli.runner import plimsoll
from tests.kafka.cruise_control.server.server_bench import describe_cluster

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.runner import CommandResult

EMPTY = {"format": "plimsoll.dev/kafka-dump/v1"}


@pytest.fixture
def dump(tmp_path: Path) -> Path:
    file = tmp_path / "cluster.json"
    file.write_bytes(write_dump(describe_cluster(brokers=4, hosting=3)))
    return file


def plan(dump: Path, *arguments: str) -> CommandResult:
    return plimsoll("kafka", "plan", "-f", dump, *arguments)


@pytest.mark.parametrize(
    "arguments", [("--mode", "add-brokers", "--brokers", "3"), ("--mode", "remove-brokers", "--brokers", "2")]
)
def test_yaml_and_json_say_the_same(dump: Path, arguments: tuple[str, ...]):
    as_json, as_yaml = plan(dump, *arguments, "-o", "json"), plan(dump, *arguments, "-o", "yaml")
    assert as_yaml.returncode == as_json.returncode
    assert yaml.safe_load(as_yaml.stdout) == json.loads(as_json.stdout)


def test_leaders_that_move_with_their_replicas_are_counted(dump: Path):
    planned = json.loads(plan(dump, "--mode", "add-brokers", "--brokers", "3", "-o", "json").stdout)
    gained = sum(max(0, after - before) for before, after in (row["leaders"] for row in planned["load"]))
    assert planned["moves"]["leaders"] >= gained > 0


def test_moves_between_log_directories_are_counted(dump: Path):
    described = json.loads(dump.read_bytes())
    for broker in described["brokers"]:
        broker["logDirs"].append({**broker["logDirs"][0], "path": "/data/new"})
    dump.write_text(json.dumps(described), encoding="utf-8")
    replicas = sum(0 in partition["replicas"] for topic in described["topics"] for partition in topic["partitions"])
    summary = plan(dump, "--mode", "remove-disks", "--log-dirs", "0-/data/0").stdout.splitlines()[1]
    assert summary.startswith(f"{replicas} replicas with ")
    assert "between log directories" in summary


@pytest.mark.parametrize(
    ("arguments", "option"),
    [
        (("--mode", "remove-disks", "--log-dirs", "-/data/0"), "--log-dirs"),
        (("--log-dirs", "0-/data/0"), "--log-dirs"),
        (("--rebalance-disk", "--mode", "remove-brokers", "--brokers", "0"), "--rebalance-disk"),
    ],
)
def test_options_that_do_not_fit_are_refused_by_name(dump: Path, arguments: tuple[str, ...], option: str):
    refused = plan(dump, *arguments)
    assert refused.returncode == 2
    assert option in refused.stderr


@pytest.mark.parametrize(
    ("topic", "path"),
    [
        ({"name": "a", "partitions": [{"partition": 2**70, "replicas": []}]}, "topics[0].partitions[0].partition"),
        ({"name": "a", "partitions": [], "minIsr": 2**70}, "topics[0].minIsr"),
    ],
)
def test_numbers_beyond_those_of_kafka_are_refused(dump: Path, topic: dict[str, Any], path: str):
    dump.write_text(json.dumps({**EMPTY, "topics": [topic]}), encoding="utf-8")
    refused = plan(dump)
    assert refused.returncode == 2
    assert path in refused.stderr


def test_a_cluster_without_brokers_is_refused(dump: Path):
    dump.write_text(json.dumps(EMPTY), encoding="utf-8")
    refused = plan(dump)
    assert refused.returncode == 2
    assert "no brokers" in refused.stderr


def test_a_removal_that_leaves_a_replica_behind_is_not_a_success(tmp_path: Path):
    described = json.loads(write_dump(describe_cluster(brokers=4, hosting=4, racks=4)))
    stuck = next(
        partition for topic in described["topics"] for partition in topic["partitions"] if 3 in partition["replicas"]
    )
    stuck["leader"] = -1
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(described), encoding="utf-8")
    ended = plan(file, "--mode", "remove-brokers", "--brokers", "3")
    assert ended.returncode == 1
    assert "broker 3 keeps 1 replica:" in ended.stderr


@pytest.mark.parametrize(
    ("arguments", "flag"),
    [
        (("--destination-brokers", "77"), "--destination-brokers"),
        (("--excluded-topics", "("), "--excluded-topics"),
        (("--mode", "remove-disks", "--log-dirs", "0-/none"), "--log-dirs"),
        (("--goals", "NoSuchGoal"), "--goals"),
        (("--mode", "remove-brokers", "--brokers", "9"), "--brokers"),
    ],
)
def test_refusals_name_the_flag_and_not_the_parameter_of_the_server(dump: Path, arguments: tuple[str, ...], flag: str):
    refused = plan(dump, *arguments)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"error: {flag}: ")
    assert "_" not in refused.stderr


def test_a_broker_that_another_client_still_empties_may_not_be_switched_off(tmp_path: Path):
    described = json.loads(write_dump(describe_cluster(brokers=4, hosting=3, racks=4)))
    partition = described["topics"][0]["partitions"][0]
    partition["replicas"], partition["removing"] = [*partition["replicas"], 3], [3]
    file = tmp_path / "cluster.json"
    file.write_text(json.dumps(described), encoding="utf-8")
    ended = plan(file, "--mode", "remove-brokers", "--brokers", "3")
    assert ended.returncode == 1
    assert "broker 3 keeps 1 replica: do not switch it off" in ended.stderr
    assert "a reassignment is under way" in ended.stdout


@pytest.mark.parametrize("given", [("--prometheus", "http://monitor:9090"), ("--command-config", "client.properties")])
def test_options_of_a_live_cluster_are_refused_with_a_dump(dump: Path, given: tuple[str, str]):
    refused = plan(dump, *given)
    assert refused.returncode == 2
    assert f"error: {given[0]}: a dump " in refused.stderr


def test_log_directories_are_refused_with_their_form(dump: Path):
    refused = plan(dump, "--mode", "remove-disks", "--log-dirs", "nope")
    assert refused.returncode == 2
    assert "--log-dirs: 'nope' is not BROKER-/PATH, e.g. 0-/data/a" in refused.stderr


def test_missing_hard_goals_name_the_option_that_accepts_them(dump: Path):
    refused = plan(dump, "--goals", "ReplicaDistributionGoal")
    assert refused.returncode == 2
    assert "--skip-hard-goal-check accepts the goals without them" in refused.stderr


def test_a_usage_error_points_to_the_help_of_its_command(dump: Path):
    assert "see plimsoll kafka plan --help" in plan(dump, "--no-such-option").stderr


@pytest.mark.parametrize(("throttle", "shown"), [("1", "at least"), ("9000000000000", "less than a second")])
def test_the_time_at_a_throttle_is_never_zero_seconds(dump: Path, throttle: str, shown: str):
    table = plan(dump, "--mode", "add-brokers", "--brokers", "3", "--throttle", throttle).stdout
    [line] = [line for line in table.splitlines() if line.startswith("time at")]
    assert shown in line
    assert " 0 s" not in line


def test_a_status_without_brokers_and_without_kubernetes_names_the_option(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    ended = plimsoll("kafka", "status")
    assert ended.returncode == 2
    assert "--kubeconfig" in ended.stderr
    assert "--bootstrap HOST:PORT" in ended.stderr
