"""The overview of clusters for `plimsoll kafka status`."""

from __future__ import annotations

from plimsoll.kafka.reporting.cluster_overview import describe_clusters
from plimsoll.objects.api.kafka import Kafka, KafkaRebalance
from plimsoll.objects.api.meta import ObjectMeta


def build_rebalance(name: str, annotations: dict[str, str]) -> KafkaRebalance:
    labels = {"strimzi.io/cluster": "c"}
    return KafkaRebalance(metadata=ObjectMeta(namespace="kafka", name=name, labels=labels, annotations=annotations))


def test_a_template_is_no_new_rebalance():
    kafka = Kafka(metadata=ObjectMeta(namespace="kafka", name="c"))
    template = build_rebalance("t", {"strimzi.io/rebalance-template": "true"})
    (cluster,) = describe_clusters([kafka], [template, build_rebalance("r", {})])
    assert [(found.name, found.state) for found in cluster.rebalances] == [("r", "New"), ("t", "template")]
