"""Kafka in a scenario: whether it is there, and the controllers that run for it in a live world."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.kafka.controllers.pod_set_controller import NAME as POD_SETS
from plimsoll.kafka.controllers.pod_set_controller import PodSetController
from plimsoll.objects.api.kafka import KAFKA_GROUP, POD_SET_GROUP
from plimsoll.simulation.scenario import ApplyStep

if TYPE_CHECKING:
    from plimsoll.local.components import Components
    from plimsoll.runtime.supervisor import Service
    from plimsoll.simulation.scenario import Scenario

_GROUPS: Final = (f"{KAFKA_GROUP}/", f"{POD_SET_GROUP}/")


def has_kafka_objects(scenario: Scenario) -> bool:
    """At the beginning, or applied later."""
    applied = [manifest for step in scenario.steps if isinstance(step, ApplyStep) for manifest in step.manifests]
    return any(_is_of_kafka(manifest) for manifest in (*scenario.objects, *applied))


def build_kafka_services(components: Components) -> list[Service]:
    """The pod-set controller, over the simulated brokers of the cluster."""
    component = components.build_component(POD_SETS, manager=POD_SETS)
    controller = PodSetController(
        component.client, component.informers, component.recorder, clock=component.clock, entropy=component.entropy
    )
    return controller.list_services()


def _is_of_kafka(manifest: dict[str, Any]) -> bool:
    return str(manifest.get("apiVersion", "")).startswith(_GROUPS)
