"""A what-if: every evaluating worker run once, each on the rows as they are given.

docs/design/formats/fleet-evaluate.md has the form of the result.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from plimsoll.fleet.planning.capacity import build_capacity
from plimsoll.fleet.planning.deprovisioning import evaluate_deprovisioning
from plimsoll.fleet.planning.placement import place_kafkas
from plimsoll.fleet.planning.prewarming import is_listed, list_reserved
from plimsoll.fleet.planning.scale_down import evaluate_scale_down
from plimsoll.fleet.planning.scale_up import evaluate_scale_up
from plimsoll.fleet.wire.fleet_document import is_without_place

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.fleet.planning.placement import PlacementDecision
    from plimsoll.fleet.wire.fleet_document import FleetDocument, KafkaGroup


def evaluate(document: FleetDocument) -> dict[str, Any]:
    """The sections that the document asks for, in a fixed order."""
    counts = document.count_kafkas()
    policy, now = document.policy, document.now
    capacity = build_capacity(document.clusters, counts, policy, now)
    sections: dict[str, Callable[[], Any]] = {
        "scale_up": lambda: evaluate_scale_up(capacity, policy, now),
        "scale_down": lambda: evaluate_scale_down(capacity, policy, now),
        "deprovisioning": lambda: evaluate_deprovisioning(document.clusters, capacity, policy, now),
        "placement": lambda: _evaluate_placement(document),
        "prewarming": lambda: _evaluate_prewarming(document),
    }
    return {name: sections[name]() for name in document.sections}


def _evaluate_placement(document: FleetDocument) -> list[dict[str, Any]]:
    waiting = [kafka for group in document.kafkas if is_without_place(group.kafka) for kafka in group.list_kafkas()]
    decisions = place_kafkas(waiting, document.clusters, document.count_kafkas(), document.policy, document.now)
    return [_write_decision(decision) for decision in decisions]


def _write_decision(decision: PlacementDecision) -> dict[str, Any]:
    return {
        "kafka_id": decision.kafka_id,
        "decision": decision.decision,
        "cluster": decision.cluster,
        "reason": decision.reason,
        "candidates": decision.candidates,
    }


def _evaluate_prewarming(document: FleetDocument) -> list[dict[str, Any]]:
    by_cluster: defaultdict[str, list[KafkaGroup]] = defaultdict(list)
    for group in document.kafkas:
        by_cluster[group.kafka.cluster_id].append(group)
    found = []
    for cluster in document.clusters:
        listed = [group for group in by_cluster.get(cluster.cluster_id, ()) if is_listed(group.kafka, cluster)]
        names = [row_id for group in listed for row_id in group.list_ids()]
        reserved = list_reserved(cluster, document.policy)
        found.append({"id": cluster.id, "order": [*names, *reserved.names], "reserved": reserved.items})
    return found
