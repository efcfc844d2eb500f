"""Kafka in a scenario: the operator over simulated brokers, with the same parts as against a real cluster.

It runs in live worlds whose scenario has objects of Kafka. Replicas are moved by our engine, in process; there is no
Cruise Control.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.app.kafka.simulated_connector import SimulatedBrokers
from plimsoll.journal.memory import MemoryJournal
from plimsoll.kafka.builder import KafkaOperatorParts, OperatorDependencies
from plimsoll.kafka.engine.config_map_store import ConfigMapExecutionStore
from plimsoll.kafka.engine.engine import run_inline
from plimsoll.kafka.settings import NAME, KafkaSettings
from plimsoll.objects.api.kafka import KAFKA_GROUP, POD_SET_GROUP
from plimsoll.simulation.scenario import ApplyStep
from plimsoll.web.client import RequestFailed

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.local.components import Components
    from plimsoll.local.kafka.simulated import SimulatedClusters
    from plimsoll.runtime.supervisor import Service
    from plimsoll.simulation.scenario import Scenario
    from plimsoll.web.client import Request, Response

_GROUPS: Final = (f"{KAFKA_GROUP}/", f"{POD_SET_GROUP}/")


class NoCruiseControl:
    """An `HttpClient` in a world without servers."""

    async def send(self, request: Request) -> Response | RequestFailed:
        return RequestFailed(problem=f"a simulated world has no server at {request.url}")


def has_kafka_objects(scenario: Scenario) -> bool:
    """At the beginning, or applied later."""
    applied = [manifest for step in scenario.steps if isinstance(step, ApplyStep) for manifest in step.manifests]
    return any(_is_of_kafka(manifest) for manifest in (*scenario.objects, *applied))


def build_kafka_services(
    components: Components, clusters: SimulatedClusters, *, clock: Clock, entropy: Entropy
) -> list[Service]:
    """The operator with its pod-set controller."""
    component = components.build_component(NAME, manager=NAME)
    client = component.client
    parts = KafkaOperatorParts(
        OperatorDependencies(
            client=client,
            clock=clock,
            entropy=entropy,
            connector=SimulatedBrokers(clusters.find),
            open_store=lambda kafka: ConfigMapExecutionStore(client, kafka, clock=clock),
            settings=KafkaSettings(),
            web=NoCruiseControl(),
            recorder=component.recorder,
            journal=MemoryJournal(),
            keeps_last_plans=False,
            run_blocking=run_inline,
        )
    )
    return parts.build_controllers(component.informers).list_services()


def _is_of_kafka(manifest: dict[str, Any]) -> bool:
    return str(manifest.get("apiVersion", "")).startswith(_GROUPS)
