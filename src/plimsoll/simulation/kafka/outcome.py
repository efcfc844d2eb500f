"""The simulated Kafka clusters in the outcome of a scenario: brokers with their replicas, and topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from plimsoll.local.kafka.brokers import SimulatedBroker
    from plimsoll.local.kafka.simulated import SimulatedClusters
    from plimsoll.local.kafka.state import KafkaState, SimulatedTopic

Json = dict[str, Any]


def build_kafka_outcome(clusters: SimulatedClusters) -> Json:
    """By namespace and name of the Kafka."""
    outcome: Json = {}
    for key in clusters.list_keys():
        kafka = clusters.find(key.namespace, key.name)
        if kafka is not None:
            outcome[str(key)] = _build_cluster(kafka.catch_up())
    return outcome


def _build_cluster(state: KafkaState) -> Json:
    partitions = list(state.iterate_partitions())
    brokers = {
        str(broker.id): {
            "rack": broker.rack,
            "state": _describe_state(broker),
            "replicas": sum(broker.id in partition.replicas for partition in partitions),
            "leaders": sum(broker.id == partition.leader for partition in partitions),
        }
        for broker in sorted(state.brokers.values(), key=lambda broker: broker.id)
        if broker.is_registered
    }
    return {"brokers": brokers, "topics": {name: _build_topic(state.topics[name]) for name in sorted(state.topics)}}


def _describe_state(broker: SimulatedBroker) -> str:
    if broker.is_fenced:
        return "Fenced"
    return "Running" if broker.is_running else "Stopped"


def _build_topic(topic: SimulatedTopic) -> Json:
    partitions = topic.partitions.values()
    return {
        "partitions": len(partitions),
        "underReplicated": sum(bool(partition.lagging) for partition in partitions),
        "reassigning": sum(partition.is_reassigning for partition in partitions),
    }
