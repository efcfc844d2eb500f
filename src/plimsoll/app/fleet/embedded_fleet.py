"""A fleet manager with a simulated OCM and its clusters, in one process and without a socket in between.

`plimsoll up` runs it live, with the agent as an add-on of each cluster. Scenarios run it in virtual time, with
simulated agents: they report what the real one would, and bring no Kafka to their clusters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from plimsoll.app.fleet.agent_addon import AGENT_ADDON, AgentAddon
from plimsoll.app.fleet.embedded_clusters import EmbeddedClusters, EmbeddedClustersSettings
from plimsoll.app.fleet.service import FleetService
from plimsoll.fleet.providers.ocm.provider import OcmProvider
from plimsoll.fleet.providers.ocm.settings import OcmClientSettings
from plimsoll.local.ocm.application import TOKEN_PATH
from plimsoll.local.ocm.combined import CombinedDataPlane
from plimsoll.local.ocm.service import SimulatedOcm
from plimsoll.local.ocm.settings import OcmSettings
from plimsoll.local.ocm.simulated_agents import AgentSettings, SimulatedAgents
from plimsoll.nodes.plan_runner import run_in_thread
from plimsoll.web.asgi_client import AsgiClient

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from plimsoll.app.fleet.addons import Addon
    from plimsoll.app.fleet.cluster_stores import ClusterStores
    from plimsoll.app.fleet.service import ServiceSettings, TokenSources, World
    from plimsoll.fleet.config.files import Configuration
    from plimsoll.fleet.store.database import FleetDatabase
    from plimsoll.nodes.plan_runner import PlanRunner
    from plimsoll.runtime.supervisor import Service
    from plimsoll.web.client import Request, RequestFailed, Response

OCM_URL: Final = "http://simulated-ocm"
"""The host is for messages: there is no socket."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedFleetSettings:
    """`ocm_file`: where OCM keeps its state; None: it ends with the process.

    `agents`: those of simulated agents; None: the agent is an add-on of the clusters.
    """

    service: ServiceSettings
    ocm: OcmSettings = field(default_factory=OcmSettings)
    ocm_file: Path | None = None
    agents: AgentSettings | None = field(default_factory=AgentSettings)
    clusters: EmbeddedClustersSettings = field(default_factory=EmbeddedClustersSettings)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedFleetDependencies:
    """`stores` None: OCM has no clusters behind it, only agents that report for them."""

    database: FleetDatabase
    tokens: TokenSources
    world: World
    stores: ClusterStores | None = None
    addons: Mapping[str, Addon] = field(default_factory=dict)
    run_planner: PlanRunner = run_in_thread


class EmbeddedFleet:
    """All parts. `service` is the fleet manager, `ocm` the provider, `clusters` what it makes."""

    def __init__(
        self, configuration: Configuration, settings: EmbeddedFleetSettings, dependencies: EmbeddedFleetDependencies
    ) -> None:
        world = dependencies.world
        web = _ServiceClient(self)
        self.agents = (
            None if settings.agents is None else SimulatedAgents(web=web, clock=world.clock, settings=settings.agents)
        )
        agent = {AGENT_ADDON: AgentAddon(web)} if settings.agents is None else {}
        self.clusters = _build_clusters(settings, dependencies, {**dependencies.addons, **agent})
        parts = [part for part in (self.clusters, self.agents) if part is not None]
        self.ocm = SimulatedOcm(
            clock=world.clock,
            entropy=world.entropy,
            data_plane=CombinedDataPlane(*parts),
            settings=settings.ocm,
            file=settings.ocm_file,
        )
        client = OcmClientSettings(
            base_url=OCM_URL,
            token_url=f"{OCM_URL}{TOKEN_PATH}",
            client_id=settings.ocm.client_id,
            client_secret=settings.ocm.client_secret,
        )
        self.service = FleetService(
            configuration,
            dependencies.database,
            settings.service,
            tokens=dependencies.tokens,
            world=world,
            providers=(OcmProvider(client, web=AsgiClient(self.ocm.application), clock=world.clock),),
        )

    def list_services(self) -> list[Service]:
        """In the order in which they are started: clusters run before OCM asks for them again."""
        clusters = [] if self.clusters is None else self.clusters.list_services()
        agents = [] if self.agents is None else self.agents.list_services()
        return [
            *clusters,
            *self.ocm.list_services(),
            *agents,
            *self.service.list_services(),
        ]


def _build_clusters(
    settings: EmbeddedFleetSettings, dependencies: EmbeddedFleetDependencies, addons: Mapping[str, Addon]
) -> EmbeddedClusters | None:
    if dependencies.stores is None:
        return None
    return EmbeddedClusters(
        dependencies.stores,
        clock=dependencies.world.clock,
        entropy=dependencies.world.entropy,
        addons=addons,
        settings=settings.clusters,
        run_planner=dependencies.run_planner,
    )


class _ServiceClient:
    """The API of the fleet manager, for agents: they are made before it."""

    def __init__(self, fleet: EmbeddedFleet) -> None:
        self._fleet = fleet

    async def send(self, request: Request) -> Response | RequestFailed:
        return await AsgiClient(self._fleet.service.application).send(request)
