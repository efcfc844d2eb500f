"""Mistakes in dumps, capacity files and options: each is named with its file and path, none is guessed around."""

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


class Dump:
    """A dump on disk that tests change."""

    def __init__(self, file: Path) -> None:
        self.file = file
        self.content: dict[str, Any] = json.loads(write_dump(describe_cluster(brokers=4, hosting=3)))

    def run(self, command: str, *arguments: str | Path) -> CommandResult:
        self.file.write_text(json.dumps(self.content), encoding="utf-8")
        return plimsoll("kafka", command, "-f", self.file, *arguments)


@pytest.fixture
def dump(tmp_path: Path) -> Dump:
    return Dump(tmp_path / "cluster.json")


def silence(broker: dict[str, Any], problem: str = "") -> None:
    broker["logDirs"], broker["problem"] = None, problem


def forget_sizes(dump: Dump, *topics: str) -> None:
    for topic in dump.content["topics"]:
        if topic["name"] in topics:
            for partition in topic["partitions"]:
                partition["logs"] = []


def test_unknown_fields_are_named_and_ignored(dump: Dump):
    dump.content["brokers"][1]["logDirs"][0]["totalByte"] = 5
    dump.content["topics"][0]["partitions"][2]["leadr"] = 5
    dump.content["extra"] = {"format": 1}
    planned = dump.run("plan", "-o", "json")
    assert planned.returncode == 0
    assert json.loads(planned.stdout)["mode"] == "full"
    assert planned.stderr.splitlines() == [
        f"warning: {dump.file}: {path} is not known and is ignored"
        for path in ("brokers[1].logDirs[0].totalByte", "topics[0].partitions[2].leadr", "extra")
    ]


def test_a_dump_of_our_own_has_no_unknown_fields(dump: Dump):
    assert dump.run("status").stderr == ""


@pytest.mark.parametrize(
    ("field", "value"), [("diskMb", -5.0), ("diskMb", 1e300), ("nwInKbS", 0), ("cpuPct", -1), ("numCores", 0)]
)
def test_capacities_that_cannot_be_true_are_refused(dump: Dump, field: str, value: float):
    dump.content["brokers"][2]["capacity"][field] = value
    refused = dump.run("plan")
    assert refused.returncode == 2
    assert f"{dump.file}: brokers[2].capacity.{field}: must be a number " in refused.stderr


@pytest.mark.parametrize("value", [-2, 2**62])
def test_sizes_of_volumes_that_cannot_be_true_are_refused(dump: Dump, value: int):
    dump.content["brokers"][0]["logDirs"][0]["totalBytes"] = value
    refused = dump.run("status")
    assert refused.returncode == 2
    assert "brokers[0].logDirs[0].totalBytes" in refused.stderr


def test_a_volume_with_more_usable_than_total_bytes_is_empty_and_not_below(dump: Dump):
    dump.content["brokers"][0]["logDirs"][0] |= {"totalBytes": 10**9, "usableBytes": 10**12}
    row = next(line for line in dump.run("status").stdout.splitlines() if line.startswith("0 "))
    assert row.endswith("0 % of 1 GB")
    assert "-" not in row.rpartition("rack-0")[2]


@pytest.mark.parametrize("command", ["status", "plan"])
def test_what_makes_no_sense_as_a_whole_names_the_file(dump: Dump, command: str):
    dump.content["brokers"].append(dump.content["brokers"][0])
    refused = dump.run(command)
    assert refused.returncode == 2
    assert f"{dump.file}: brokers: broker 0 is listed twice" in refused.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ("--goals", ","),
        ("--goals", " , "),
        ("--brokers", ",,"),
        ("--destination-brokers", ","),
        ("--mode", "remove-disks", "--log-dirs", ","),
    ],
)
def test_lists_that_name_nothing_are_refused(dump: Dump, arguments: tuple[str, ...]):
    refused = dump.run("plan", *arguments)
    assert refused.returncode == 2
    assert arguments[-2] in refused.stderr
    assert "names nothing" in refused.stderr


@pytest.mark.parametrize(
    ("document", "path"),
    [
        ({"brokerCapacities": []}, "brokerCapacities"),
        ({"brokerCapacities": [{"brokerId": "0", "capacity": {"DISK": "-1"}}]}, "brokerCapacities[0].capacity.DISK"),
        ({"brokerCapacities": [{"brokerId": "0", "capacity": {"DISK": 1e300}}]}, "brokerCapacities[0].capacity.DISK"),
    ],
)
def test_capacity_files_are_checked_alike(dump: Dump, tmp_path: Path, document: dict[str, Any], path: str):
    file = tmp_path / "capacity.json"
    file.write_text(json.dumps(document), encoding="utf-8")
    refused = dump.run("plan", "--capacity", file)
    assert refused.returncode == 2
    assert f"{file}: {path}" in refused.stderr


def test_unknown_fields_of_capacity_files_are_named(dump: Dump, tmp_path: Path):
    file = tmp_path / "capacity.json"
    entry = {"brokerId": "-1", "capacity": {"DISK": "100000"}, "doc": "the default", "capacty": {}}
    file.write_text(json.dumps({"brokerCapacities": [entry]}), encoding="utf-8")
    planned = dump.run("plan", "--capacity", file)
    assert planned.returncode == 0
    assert planned.stderr == f"warning: {file}: brokerCapacities[0].capacty is not known and is ignored\n"


@pytest.mark.parametrize("command", ["status", "plan"])
def test_a_dump_in_which_no_broker_answered_is_not_planned_on(dump: Dump, command: str):
    for broker in dump.content["brokers"]:
        silence(broker, "timed out")
    ended = dump.run(command)
    assert ended.returncode == 3
    assert "no broker answered with its log directories: broker 0 did not answer (timed out)" in ended.stderr
    assert ("BROKER" in ended.stdout) == (command == "status")


def test_refusals_of_racks_name_the_brokers_that_do_not_count(dump: Dump):
    dump.content["brokers"][1]["isFenced"] = True
    refused = dump.run("plan")
    assert refused.returncode == 1
    assert "racks left 2 (broker 1 is fenced and does not count)" in refused.stderr
    as_json = json.loads(dump.run("plan", "-o", "json").stdout)["refused"]["reason"]
    assert [cause["facts"]["broker"] for cause in as_json["because"]] == [1]


def test_refusals_of_capacity_name_the_brokers_that_do_not_count(dump: Dump):
    for broker in dump.content["brokers"]:
        broker["capacity"]["diskMb"] = 200.0
    silence(dump.content["brokers"][3], "timed out")
    refused = dump.run("plan")
    assert refused.returncode == 1
    assert "(broker 3 did not answer (timed out) and does not count)" in refused.stderr


def test_unknown_sizes_are_not_shown_as_nothing(dump: Dump):
    forget_sizes(dump, "solo")
    shown = dump.run("status")
    assert "partitions of unknown size: 6" in shown.stdout
    assert " + 2 unknown" in shown.stdout
    as_json = json.loads(dump.run("status", "-o", "json").stdout)
    assert as_json["partitionsOfUnknownSize"] == 6
    assert [row["replicasOfUnknownSize"] for row in as_json["brokers"]] == [2, 2, 2, 0]


def test_brokers_without_any_known_size_have_unknown_data(dump: Dump):
    forget_sizes(dump, "t0", "t1", "t2", "solo")
    row = next(line for line in dump.run("status").stdout.splitlines() if line.startswith("0 "))
    assert " unknown " in row
    as_json = json.loads(dump.run("status", "-o", "json").stdout)
    assert [as_json["bytes"], as_json["brokers"][0]["bytes"], as_json["brokers"][3]["bytes"]] == [None, None, 0]
    planned = dump.run("plan", "--mode", "add-brokers", "--brokers", "3")
    assert " with unknown size move" in planned.stdout
    moved = json.loads(dump.run("plan", "--mode", "add-brokers", "--brokers", "3", "-o", "json").stdout)
    assert moved["moves"]["replicasOfUnknownSize"] == moved["moves"]["replicas"] > 0
    assert not any(proposal["isSizeKnown"] for proposal in moved["proposals"])


def test_sizes_that_cannot_be_true_are_unknown(dump: Dump):
    for log in dump.content["topics"][0]["partitions"][0]["logs"]:
        log["sizeBytes"] = -7
    assert json.loads(dump.run("status", "-o", "json").stdout)["partitionsOfUnknownSize"] == 1


def test_one_thing_is_not_written_as_several(tmp_path: Path):
    dump = Dump(tmp_path / "one.json")
    dump.content["brokers"] = dump.content["brokers"][:1]
    dump.content["topics"] = [
        {"name": "a", "partitions": [{"partition": 0, "replicas": [0], "leader": 0, "isr": [0], "logs": []}]}
    ]
    assert "1 broker, 1 topic, 1 partition, 1 replica, " in dump.run("status").stdout


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("bytes-in=sum(rate(x[5m]))",), "needs --prometheus"),
        (("bytes=up", "--prometheus", "http://monitor:9090"), "is not NAME=PROMQL"),
        (("bytes-in", "--prometheus", "http://monitor:9090"), "is not NAME=PROMQL"),
        (("bytes-in=", "--prometheus", "http://monitor:9090"), "the query is empty"),
        (("bytes-in=sum(rate(x[5m])", "--prometheus", "http://monitor:9090"), "( is not closed"),
        (("bytes-in=up{job='a}", "--prometheus", "http://monitor:9090"), "a quotation mark is not closed"),
        (
            ("bytes-in=a", "--prometheus-query", "bytes-in=b", "--prometheus", "http://monitor:9090"),
            "bytes-in is given twice",
        ),
    ],
)
def test_queries_that_are_none_are_refused(dump: Dump, arguments: tuple[str, ...], problem: str):
    refused = dump.run("plan", "--prometheus-query", *arguments)
    assert refused.returncode == 2
    assert "--prometheus-query" in refused.stderr
    assert problem in refused.stderr


def set_leader(dump: dict[str, Any]) -> None:
    dump["topics"][1]["partitions"][2]["leader"] = 99


def name_topic(name: str) -> Any:
    def change(dump: dict[str, Any]) -> None:
        dump["topics"][0]["name"] = name

    return change


def set_log_dir(dump: dict[str, Any]) -> None:
    dump["topics"][1]["partitions"][0]["logs"][1]["logDir"] = "/elsewhere"


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (set_leader, "topics[1].partitions[2].leader: broker 99 is not among the replicas [2, 0, 1]"),
        (name_topic(".."), "topics[0].name: '..' is no name of a topic"),
        (name_topic("a/b"), "topics[0].name: 'a/b' is no name of a topic"),
        (
            set_log_dir,
            "topics[1].partitions[0].logs[1].logDir: broker 1 has no log directory /elsewhere; it has /data/1",
        ),
    ],
)
def test_references_to_what_is_not_there_are_refused(dump: Dump, change: Any, problem: str):
    change(dump.content)
    refused = dump.run("plan")
    assert refused.returncode == 2
    assert f"{dump.file}: {problem}" in refused.stderr


def test_the_content_decides_between_json_and_yaml(dump: Dump):
    as_json = dump.run("status").stdout
    file = dump.file.with_suffix(".txt")
    file.write_text(yaml.safe_dump(dump.content), encoding="utf-8")
    assert plimsoll("kafka", "status", "-f", file).stdout == as_json


HEAD = '{"format": "plimsoll.dev/kafka-dump/v1", '


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "is empty"),
        (" \n", "is empty"),
        ("[]", "is not a dump"),
        (HEAD + '"brokers": [{"id": 1, "id": 2}]}', 'key "id" occurs twice'),
        ("format: plimsoll.dev/kafka-dump/v1\nbrokers:\n- id: 1\n  id: 2\n", 'key "id" occurs twice'),
        ("format: other", "format: is 'other'; a dump of Kafka has plimsoll.dev/kafka-dump/v1"),
        (HEAD + '"brokers": [{}]}', "brokers[0]: the field id is missing"),
        (HEAD + '"brokers": [{"id": "1"}]}', "brokers[0].id: must be a whole number, and is a text"),
        (HEAD + '"brokers": [{"id": -1}]}', "brokers[0].id: out of range; the least is 0"),
        (
            HEAD + '"topics": [{"name": "", "partitions": []}]}',
            "topics[0].name: must be a text of at least 1 ",
        ),
    ],
)
def test_what_is_no_dump_is_named_in_words(dump: Dump, text: str, problem: str):
    dump.file.write_text(text, encoding="utf-8")
    refused = plimsoll("kafka", "status", "-f", dump.file)
    assert refused.returncode == 2
    assert refused.stderr.startswith(f"error: {dump.file}: ")
    assert problem in refused.stderr


@pytest.mark.parametrize("command", ["status", "plan"])
def test_one_dump_is_read_and_a_second_one_is_refused(dump: Dump, command: str):
    refused = dump.run(command, "-f", "other.json")
    assert refused.returncode == 2
    assert f"-f: one dump is read, and 2 are given: {dump.file}, other.json" in refused.stderr


def test_a_partition_with_an_empty_list_of_replicas_is_named_and_left_out(dump: Dump):
    partition = dump.content["topics"][1]["partitions"][2]
    partition |= {"replicas": [], "isr": [], "logs": [], "leader": -1}
    planned = dump.run("plan", "--mode", "add-brokers", "--brokers", "3", "-o", "json")
    assert planned.returncode == 0
    topic = dump.content["topics"][1]["name"]
    moved = {(move["topic"], move["partition"]) for move in json.loads(planned.stdout)["proposals"]}
    assert moved
    assert (topic, 2) not in moved
    assert f"problem: partition {topic}-2 has no replicas: it is left out" in dump.run("status").stdout
