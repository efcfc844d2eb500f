"""Kafka in a scenario: the operator over simulated brokers, with the same parts as against a real cluster.

It runs in live worlds whose scenario has objects of Kafka. Replicas are moved by our engine, in process; there is no
Cruise Control.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.app.kafka.embedded_kafka import EmbeddedKafka, EmbeddedKafkaDependencies
from plimsoll.app.kafka.simulated_connector import SimulatedBrokers
from plimsoll.journal.memory import MemoryJournal
from plimsoll.kafka.engine.engine import run_inline
from plimsoll.objects.api.kafka import KAFKA_GROUP, POD_SET_GROUP
from plimsoll.simulation.scenario import ApplyStep

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.local.components import Components
    from plimsoll.local.kafka.simulated import SimulatedClusters
    from plimsoll.runtime.supervisor import Service
    from plimsoll.simulation.scenario import Scenario

KAFKA_GROUPS: Final = (KAFKA_GROUP, POD_SET_GROUP)


def has_kafka_objects(scenario: Scenario) -> bool:
    """At the beginning, or applied later."""
    applied = [manifest for step in scenario.steps if isinstance(step, ApplyStep) for manifest in step.manifests]
    return any(_is_of_kafka(manifest) for manifest in (*scenario.objects, *applied))


def build_kafka_services(
    components: Components, clusters: SimulatedClusters, *, clock: Clock, entropy: Entropy
) -> list[Service]:
    """The operator with its pod-set controller."""
    dependencies = EmbeddedKafkaDependencies(
        connector=SimulatedBrokers(clusters.find),
        clock=clock,
        entropy=entropy,
        journal=MemoryJournal(),
        run_blocking=run_inline,
    )
    return EmbeddedKafka(components, dependencies).list_services()


def _is_of_kafka(manifest: dict[str, Any]) -> bool:
    return str(manifest.get("apiVersion", "")).partition("/")[0] in KAFKA_GROUPS
