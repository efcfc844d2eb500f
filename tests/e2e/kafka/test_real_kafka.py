"""The harness itself: a cluster starts, is as new for each test, is replaced if it must be, and ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.e2e.kafka.shared_cluster import ClusterNotStarted, SharedCluster

if TYPE_CHECKING:
    from tests.e2e.kafka.real_kafka import RealKafka


def test_a_cluster_is_as_new_after_a_test_that_broke_it(kafka: RealKafka) -> None:
    kafka.create_topic("left-behind", {0: [0, 1, 2]})
    kafka.produce("left-behind", total_bytes=1 << 20)
    kafka.start_broker(3)
    kafka.kill_broker(2)
    kafka.make_as_new()
    assert kafka.running == [0, 1, 2]
    assert [name for name in kafka.client.list_topics() if not name.startswith("__")] == []
    nodes = kafka.client.describe_cluster()["brokers"]
    assert sorted((node["broker_id"], node["rack"]) for node in nodes) == [(0, "rack-0"), (1, "rack-1"), (2, "rack-2")]


class PlayedCluster:
    """Starts, unless its number is among the broken ones."""

    def __init__(self, number: int, *broken: int) -> None:
        self.number = number
        self.is_closed = False
        self._is_broken = number in broken

    def start(self) -> None:
        if self._is_broken:
            raise AssertionError("broker 0 ended")

    def close(self) -> None:
        self.is_closed = True

    def describe_processes(self) -> str:
        return f"log of {self.number}"


def share(made: list[PlayedCluster], *broken: int) -> SharedCluster[PlayedCluster]:
    def build(number: int) -> PlayedCluster:
        made.append(PlayedCluster(number, *broken))
        return made[-1]

    return SharedCluster(build)


def test_one_cluster_serves_all_tests() -> None:
    made: list[PlayedCluster] = []
    shared = share(made)
    assert shared.get() is shared.get()
    shared.close()
    assert [cluster.is_closed for cluster in made] == [True]


def test_a_cluster_that_does_not_start_is_started_once_more(capsys: pytest.CaptureFixture[str]) -> None:
    made: list[PlayedCluster] = []
    assert share(made, 1).get().number == 2
    assert [cluster.is_closed for cluster in made] == [True, False]
    assert capsys.readouterr().out == "cluster 1 is given up: broker 0 ended\nlog of 1\n"


def test_the_error_has_the_logs_of_both_starts() -> None:
    made: list[PlayedCluster] = []
    shared = share(made, 1, 2)
    with pytest.raises(ClusterNotStarted, match=r"(?s)broker 0 ended.*log of 1.*broker 0 ended.*log of 2"):
        shared.get()
    assert [cluster.is_closed for cluster in made] == [True, True]
    assert shared.get().number == 3, "the next test tries again"


def test_a_cluster_that_cannot_be_restored_is_replaced() -> None:
    def restore(cluster: PlayedCluster) -> None:
        assert cluster.number > 1, "a topic stays"

    made: list[PlayedCluster] = []
    shared = share(made)
    assert shared.get(restore).number == 1
    assert shared.get(restore).number == 2
    assert shared.get(restore).number == 2
    assert made[0].is_closed
