"""TiDB in `plimsoll up`: the autoscaler over simulated PDs and Prometheus, and both behind sockets.

Inside the process the autoscaler's requests are routed to the simulated servers in memory. Other processes reach the
planner (`/NAMESPACE/TIDBCLUSTER/autoscaling`, and `/autoscaling` while there is one cluster) and the PDs with their
metrics over sockets; both ask for the administrator's token.
"""

from __future__ import annotations

from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Final

from plimsoll.kube.informer.events import Key
from plimsoll.kube.leases import LeaseSettings
from plimsoll.local.tidb.server import HEALTH, SimulatedServers, guard_server
from plimsoll.local.tidb.simulated import route_to_simulated
from plimsoll.runtime.supervisor import Service
from plimsoll.tidb.builder import Dependencies, TidbAutoscalerParts
from plimsoll.tidb.external.recommender import LARGEST_ANSWER_BYTES
from plimsoll.tidb.model.reconcile_types import ReconcilePolicy
from plimsoll.tidb.pd.client import PdClient
from plimsoll.tidb.pd.members import BaseCluster
from plimsoll.tidb.planner.collector import Collector, CollectorSettings
from plimsoll.tidb.planner.service import PLANNING_PATH, PlannerService
from plimsoll.tidb.reporting.metrics import ReconcileMetrics
from plimsoll.tidb.settings import LEASE, NAME, TidbSettings
from plimsoll.web.client import PinnedHttpClient
from plimsoll.web.in_memory import InMemoryClient
from plimsoll.web.responses import build_json_response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Receive, Scope, Send

    from plimsoll.app.embedded_election import EmbeddedElection
    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.journal.ports import Journal
    from plimsoll.kube.controller.controller import Controller
    from plimsoll.local.components import Components
    from plimsoll.local.tidb.simulated import SimulatedTidb

_REGISTRATION_GRACE_S: Final = 180.0
"""Simulated stores register when their pod is ready, and machines boot in seconds, so a short time is enough."""

TIDB_LEASE: Final = LeaseSettings(name=LEASE, namespace=TidbSettings().controller_namespace, field_manager=NAME)
"""The lease that `plimsoll run tidb` takes too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedTidbDependencies:
    """What the parts are made from. `adds_nodes`: a node autoscaler is at work, so nodes that may come count too."""

    tidb: SimulatedTidb
    clock: Clock
    entropy: Entropy
    journal: Journal
    adds_nodes: bool
    election: EmbeddedElection | None = None
    """None: it acts at once, because no other autoscaler can be started beside it."""


class EmbeddedTidb:
    """The TiDB autoscaler and its servers; made before the informers run."""

    def __init__(self, components: Components, dependencies: EmbeddedTidbDependencies) -> None:
        component = components.build_component(NAME, manager=NAME)
        self._dependencies = dependencies
        self._election = election = dependencies.election
        self._web = InMemoryClient(dependencies.tidb.answer, route=route_to_simulated)
        self.metrics = ReconcileMetrics()
        self._parts = TidbAutoscalerParts(
            Dependencies(
                client=component.client.with_guard(election) if election else component.client,
                web=self._web,
                caller=PinnedHttpClient(max_bytes=LARGEST_ANSWER_BYTES),
                clock=dependencies.clock,
                settings=TidbSettings(
                    drains_actively=True,
                    potential_nodes=dependencies.adds_nodes,
                    policy=ReconcilePolicy(registration_grace_s=_REGISTRATION_GRACE_S),
                ),
                informers=component.informers,
                recorder=component.recorder,
                journal=dependencies.journal,
                metrics=self.metrics,
            )
        )
        self._controller = self._parts.build_controller(dependencies.entropy)

    def list_services(self) -> list[Service]:
        if self._election is None:
            return self._controller.list_services()
        return [Service(name="TiDB autoscaler", run=self._contend)]

    def list_controllers(self) -> list[Controller[Key]]:
        return [self._controller.controller]

    async def _contend(self) -> None:
        assert self._election is not None
        await self._election.run(self._controller.list_services(), on_end=self._parts.reporter.close)

    def build_planner_app(self, *, token: str) -> ASGIApp:
        return guard_server(
            PlannerRouter(self._dependencies.tidb, web=self._web, clock=self._dependencies.clock), token=token
        )

    def build_servers_app(self, *, token: str) -> ASGIApp:
        return guard_server(SimulatedServers(self._dependencies.tidb), token=token)


class PlannerRouter:
    """Routes to the planning service of each cluster, as ASGI."""

    def __init__(self, tidb: SimulatedTidb, *, web: InMemoryClient, clock: Clock) -> None:
        self._tidb = tidb
        self._web = web
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        base, path = self._route(scope["path"])
        if base is None and path != HEALTH:
            problem = {
                "error": "not_found",
                "detail": f"there is /NAMESPACE/TIDBCLUSTER{PLANNING_PATH}, for clusters with a PD",
            }
            await build_json_response(problem, HTTPStatus.NOT_FOUND)(scope, receive, send)
            return
        await self._get_service(base or Key("", ""))({**scope, "path": path}, receive, send)

    def _route(self, path: str) -> tuple[Key | None, str]:
        """The cluster that a path names, and the rest of the path."""
        bases = self._tidb.topology.list_bases()
        if path in {PLANNING_PATH, HEALTH}:
            return (bases[0] if len(bases) == 1 else None), path
        namespace, _, rest = path.removeprefix("/").partition("/")
        name, _, rest = rest.partition("/")
        key = Key(namespace, name)
        return (key if key in bases else None), f"/{rest}"

    def _get_service(self, base: Key) -> PlannerService:
        pd = PdClient(f"http://{base.name}-pd.{base.namespace}:2379", web=self._web)
        cluster = BaseCluster(namespace=base.namespace, name=base.name)
        return PlannerService(Collector(CollectorSettings(base=cluster), pd=pd, web=self._web), now=self._clock.now)
