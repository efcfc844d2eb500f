"""The TiDB autoscaler in a scenario: the same parts as against a real cluster, over simulated PDs and Prometheus.

It runs in live worlds whose scenario has a TidbClusterAutoScaler. It counts nodes that the node autoscaler may still
add, so that pods may go pending and nodes follow. There are no external services.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.journal.memory import MemoryJournal
from plimsoll.local.tidb.simulated import route_to_simulated
from plimsoll.objects.api.tidb import TIDB_GROUP
from plimsoll.simulation.scenario import ApplyStep
from plimsoll.tidb.builder import Dependencies, TidbAutoscalerParts
from plimsoll.tidb.settings import NAME, TidbSettings
from plimsoll.web.client import RequestFailed
from plimsoll.web.in_memory import InMemoryClient

if TYPE_CHECKING:
    import ssl

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.local.components import Components
    from plimsoll.local.tidb.simulated import SimulatedTidb
    from plimsoll.runtime.supervisor import Service
    from plimsoll.simulation.scenario import Scenario
    from plimsoll.web.client import PinnedUrl

AUTOSCALER_KIND: Final = "TidbClusterAutoScaler"
SETTINGS: Final = TidbSettings(drains_actively=True, potential_nodes=True)
"""Settings of simulated worlds: the autoscaler removes stores itself, and counts potential nodes."""


class NoExternalServices:
    """A `Caller` without external services."""

    async def resolve(self, host: str, port: int) -> tuple[str, ...] | RequestFailed:
        return RequestFailed(problem=f"the simulated world has no {host}:{port}")

    async def get(self, pinned: PinnedUrl, *, tls: ssl.SSLContext | None) -> RequestFailed:  # noqa: ARG002 - of the port
        return RequestFailed(problem="a simulated world has no external services")


def has_tidb_objects(scenario: Scenario) -> bool:
    return any(
        str(manifest.get("apiVersion", "")).startswith(f"{TIDB_GROUP}/") for manifest in _list_manifests(scenario)
    )


def needs_tidb(scenario: Scenario) -> bool:
    return any(manifest.get("kind") == AUTOSCALER_KIND for manifest in _list_manifests(scenario))


def build_tidb_services(
    components: Components, tidb: SimulatedTidb, *, clock: Clock, entropy: Entropy
) -> list[Service]:
    component = components.build_component(NAME, manager=NAME)
    parts = TidbAutoscalerParts(
        Dependencies(
            client=component.client,
            web=InMemoryClient(tidb.answer, route=route_to_simulated),
            caller=NoExternalServices(),
            clock=clock,
            settings=SETTINGS,
            informers=component.informers,
            recorder=component.recorder,
            journal=MemoryJournal(),
        )
    )
    return parts.build_controller(entropy).list_services()


def _list_manifests(scenario: Scenario) -> list[dict[str, Any]]:
    """List the manifests of the beginning and of later steps."""
    applied = [manifest for step in scenario.steps if isinstance(step, ApplyStep) for manifest in step.manifests]
    return [*scenario.objects, *applied]
