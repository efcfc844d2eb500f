"""The harness itself: a cluster starts, is as new for each test, and ends."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
