"""Answers of brokers, good and absurd, as kafka-python decodes them."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import pytest
from kafka.protocol.admin import DescribeLogDirsResponse
from kafka.protocol.metadata import MetadataResponse

from plimsoll.kafka.brokers import answers
from plimsoll.kafka.brokers.connection import get_error_name
from plimsoll.kafka.brokers.ports import KafkaRefused, KafkaUnavailable
from plimsoll.kafka.model.cluster import build_model
from plimsoll.kafka.model.description import BrokerDescription, ClusterDescription, LogDir, TopicPartition

_DIR = DescribeLogDirsResponse.DescribeLogDirsResult
_DIR_TOPIC = _DIR.DescribeLogDirsTopic
_TOPIC = MetadataResponse.MetadataResponseTopic


def _make_dir(path: str, *sizes: int, code: int = 0, total: int = 1000, usable: int = 10, lag: int = 0) -> Any:
    partitions = [
        _DIR_TOPIC.DescribeLogDirsPartition(
            partition_index=number, partition_size=size, offset_lag=lag, is_future_key=False
        )
        for number, size in enumerate(sizes)
    ]
    return _DIR(
        error_code=code,
        log_dir=path,
        topics=[_DIR_TOPIC(name="a", partitions=partitions)] if partitions else [],
        total_bytes=total,
        usable_bytes=usable,
        is_cordoned=False,
    )


def _exchange_log_dirs(*dirs: Any, version: int = 5, code: int = 0) -> Any:
    """The answer as it comes from the wire."""
    sent = DescribeLogDirsResponse(throttle_time_ms=0, error_code=code, results=list(dirs))
    return DescribeLogDirsResponse.decode(sent.encode(version=version), version=version)


def test_an_offline_log_directory_has_no_replicas_and_says_so() -> None:
    answer = _exchange_log_dirs(_make_dir("/b", 5, 6), _make_dir("/a", code=56, total=-1, usable=-1))
    logs = answers.read_log_dirs(answer, 7)
    assert logs.log_dirs == (
        LogDir(path="/a", is_online=False),
        LogDir(path="/b", total_bytes=1000, usable_bytes=10),
    )
    assert [(key, log.broker, log.log_dir, log.size_bytes) for key, log in logs.replicas] == [
        (TopicPartition("a", 0), 7, "/b", 5),
        (TopicPartition("a", 1), 7, "/b", 6),
    ]


def test_absurd_sizes_are_zero_and_an_empty_disk_is_not_an_unknown_one() -> None:
    answer = _exchange_log_dirs(_make_dir("/b", -1, 2**62, 2**60, total=2**62, usable=0, lag=-5))
    logs = answers.read_log_dirs(answer, 0)
    assert [log.size_bytes for _, log in logs.replicas] == [0, 0, 2**60]
    assert [log.offset_lag for _, log in logs.replicas] == [0, 0, 0]
    assert (logs.log_dirs[0].total_bytes, logs.log_dirs[0].usable_bytes) == (-1, 0)


@pytest.mark.parametrize("version", [1, 3, 4])
def test_older_brokers_say_less(version: int) -> None:
    logs = answers.read_log_dirs(_exchange_log_dirs(_make_dir("/b", 5), version=version), 0)
    assert logs.log_dirs[0].path == "/b"
    assert not logs.log_dirs[0].is_cordoned
    assert (logs.log_dirs[0].total_bytes == -1) == (version < 4)


def test_an_answer_in_error_is_no_answer() -> None:
    with pytest.raises(KafkaRefused) as refused:
        answers.read_log_dirs(_exchange_log_dirs(code=31), 0)
    assert refused.value.code == "CLUSTER_AUTHORIZATION_FAILED"
    with pytest.raises(KafkaUnavailable, match="NOT_CONTROLLER"):
        answers.read_reassignments(SimpleNamespace(error_code=41, error_message=None, topics=[]))


def test_the_voters_of_the_quorum_are_read_and_an_answer_without_voters_is_none() -> None:
    def make(*voters: int, code: int = 0) -> Any:
        states = [SimpleNamespace(replica_id=voter) for voter in voters]
        partition = SimpleNamespace(error_code=code, leader_id=101, current_voters=states)
        return SimpleNamespace(error_code=0, topics=[SimpleNamespace(partitions=[partition])])

    quorum = answers.read_quorum(make(100, 101))
    assert (quorum.leader, quorum.voters) == (101, {100, 101})
    with pytest.raises(KafkaRefused, match="no voters"):
        answers.read_quorum(make())
    with pytest.raises(KafkaRefused):
        answers.read_quorum(make(100, code=31))


def test_partitions_in_error_stay_with_their_error_and_the_others_are_read() -> None:
    def make(number: int, code: int, replicas: list[int]) -> Any:
        return _TOPIC.MetadataResponsePartition(
            error_code=code,
            partition_index=number,
            leader_id=replicas[0] if replicas else -1,
            leader_epoch=0,
            replica_nodes=replicas,
            isr_nodes=replicas,
            offline_replicas=[],
        )

    topic = _TOPIC(
        error_code=0,
        name="a",
        topic_id=None,
        is_internal=False,
        partitions=[make(2, 0, [1]), make(0, 5, []), make(1, 4242, [0, 1])],
    )
    deleted = _TOPIC(error_code=3, name="gone", topic_id=None, is_internal=False, partitions=[])
    sent = MetadataResponse(
        throttle_time_ms=0, brokers=[], cluster_id="c", controller_id=0, topics=[deleted, topic], error_code=0
    )
    topics = answers.read_topics(MetadataResponse.decode(sent.encode(version=13), version=13))
    assert [(topic.name, topic.problem) for topic in topics] == [("a", ""), ("gone", "UNKNOWN_TOPIC_OR_PARTITION")]
    assert [(entry.partition, entry.problem) for entry in topics[0].partitions] == [
        (0, "LEADER_NOT_AVAILABLE"),
        (1, "ERROR_4242"),
        (2, ""),
    ]
    model = build_model(ClusterDescription(brokers=(BrokerDescription(id=0), BrokerDescription(id=1)), topics=topics))
    assert model.partition_count == 2
    assert "partition a-0: LEADER_NOT_AVAILABLE" in model.problems


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (-1, "UNKNOWN_SERVER_ERROR"),
        (3, "UNKNOWN_TOPIC_OR_PARTITION"),
        (6, "NOT_LEADER_OR_FOLLOWER"),
        (39, "INVALID_REPLICA_ASSIGNMENT"),
        (85, "NO_REASSIGNMENT_IN_PROGRESS"),
        (999, "ERROR_999"),
    ],
)
def test_errors_have_kafkas_own_names(code: int, name: str) -> None:
    assert get_error_name(code) == name


def test_the_library_is_loaded_with_the_first_connection_only() -> None:
    modules = "kafka_python, source, dump, rates, connection_settings"
    program = f"from plimsoll.kafka.brokers import {modules}; import sys; sys.exit('kafka' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
