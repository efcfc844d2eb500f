"""The section `kafka` of scenarios: topics of clusters, and every mistake with its path."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from plimsoll.kube.informer.events import Key
from plimsoll.local.kafka.topic_seeds import TopicSeed
from plimsoll.simulation.document import InvalidDocument
from plimsoll.simulation.files.scenario_reader import read_scenario


def read(kafka: Any) -> dict[Key, tuple[TopicSeed, ...]]:
    scenario = read_scenario(yaml.safe_dump({"kafka": kafka}).encode(), source="a.yaml")
    return {entry.key: entry.topics for entry in scenario.kafka}


def test_topics_are_read_by_the_name_of_their_kafka():
    topics = [{"name": "orders", "partitions": 30, "replicationFactor": 3, "partitionSize": "1Ki"}]
    found = read([{"name": "c", "topics": topics}, {"name": "c", "namespace": "other"}])
    orders = TopicSeed(name="orders", partitions=30, replication_factor=3, partition_bytes=1024)
    assert found == {Key("default", "c"): (orders,), Key("other", "c"): ()}


@pytest.mark.parametrize(
    ("kafka", "path"),
    [
        ({"name": "c"}, "kafka"),
        ([{"topics": []}], "kafka[0]"),
        ([{"name": "c"}, {"name": "c"}], "kafka[1].name"),
        ([{"name": "c", "topic": []}], "kafka[0].topic"),
        ([{"name": "c", "topics": {}}], "kafka[0].topics"),
        ([{"name": "c", "topics": [{"name": "t", "partitions": -1}]}], "kafka[0].topics[0].partitions"),
    ],
)
def test_a_mistake_is_named_by_its_path(kafka: Any, path: str):
    with pytest.raises(InvalidDocument) as caught:
        read(kafka)
    assert caught.value.path == path
