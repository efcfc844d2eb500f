"""The console of a cluster: beside the controllers of `plimsoll up`, or on any cluster by `plimsoll console`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from plimsoll.app.references import list_kinds, read_ref
from plimsoll.console.access.one_time_codes import Sessions
from plimsoll.console.application import build_application
from plimsoll.console.cluster_map.cluster_map import ClusterMap
from plimsoll.console.cluster_map.feed import ChangeFeed
from plimsoll.console.costs.history import CostHistory, NoPrices
from plimsoll.console.shared_answers import SharedAnswer
from plimsoll.console.views.costs import CostView
from plimsoll.console.views.decision_sources import LastPlanDecisions
from plimsoll.console.views.decisions import DecisionView
from plimsoll.console.views.fleet import FleetView
from plimsoll.console.views.objects import ObjectView
from plimsoll.console.views.overview import OverviewSources, OverviewView
from plimsoll.console.views.ports import ClusterInformers
from plimsoll.console.views.subsystems import SubsystemView
from plimsoll.console.views.waiting import WaitingView
from plimsoll.journal.entries import Query
from plimsoll.nodes.plan_runner import run_in_thread
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Collection, Mapping

    from starlette.types import ASGIApp

    from plimsoll.console.costs.history import PriceSource
    from plimsoll.console.views.ports import DecisionSource
    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.nodes.plan_runner import PlanRunner
    from plimsoll.operator.pages import Page

BESIDE: Final = ("/metrics", "/healthz", "/livez", "/readyz")
"""Pages of the process that the port of the console serves, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleDependencies:
    """What the console reads. `token`: what scripts send; empty: only browsers with a code are served."""

    client: Client
    informers: SharedInformerFactory
    decisions: DecisionSource
    clock: Clock
    entropy: Entropy
    token: str = ""
    running: Collection[str] = ()
    """The subsystems that run in this process."""
    fleet: FleetView = field(default_factory=FleetView)
    prices: PriceSource = field(default_factory=NoPrices)
    run_planner: PlanRunner = run_in_thread


class Console:
    """Made before the informers run, because it asks for two of them."""

    def __init__(self, dependencies: ConsoleDependencies) -> None:
        self._dependencies = dependencies
        self._informers = ClusterInformers(
            dependencies.informers.get_informer(Node), dependencies.informers.get_informer(Pod)
        )
        self._feed = ChangeFeed(
            ClusterMap(*self._informers, clock=dependencies.clock),
            self._find_newest_entry,
            clock=dependencies.clock,
        )
        self._costs = CostHistory(
            *self._informers, dependencies.prices, clock=dependencies.clock, run_planner=dependencies.run_planner
        )
        self._views = self._build_views()
        self.sessions = Sessions(clock=dependencies.clock, entropy=dependencies.entropy)

    @property
    def paths(self) -> tuple[str, ...]:
        """The JSON routes besides those of the map and of sessions."""
        return tuple(self._views)

    def subscribe(self) -> AsyncIterator[bytes]:
        """The stream of changes as a browser gets it."""
        return self._feed.subscribe()

    @property
    def is_map_kept(self) -> bool:
        """Whether the map has rows: only while a browser or script reads it."""
        return self._feed.is_map_kept

    def list_services(self) -> list[Service]:
        return [
            Service(name="console changes", run=self._feed.run),
            Service(name="console costs", run=self._costs.run),
        ]

    def build_application(self, *, port: int, beside: Mapping[str, ASGIApp] | None = None) -> ASGIApp:
        return build_application(
            {**self._views, **(beside or {})}, self._feed, self.sessions, token=self._dependencies.token, port=port
        )

    def _build_views(self) -> dict[str, object]:
        source, client, clock = self._dependencies.decisions, self._dependencies.client, self._dependencies.clock
        decisions, subsystems = DecisionView(source), SubsystemView(client)
        informers, fleet = self._informers, self._dependencies.fleet
        waiting = WaitingView(source, client, informers.pods)
        objects = ObjectView(source, client, informers=informers, read_ref=read_ref)
        running = self._dependencies.running
        overview = OverviewView(
            source,
            client,
            informers=informers,
            clock=clock,
            running=running,
            others=OverviewSources(fleet, self._costs),
        )
        costs = CostView(self._costs, source)

        def share(page: Page) -> Page:
            return SharedAnswer(page, clock=clock).show

        return {
            "/api/overview": share(overview.show_overview),
            "/api/costs": share(costs.show_costs),
            "/api/decisions": decisions.list_decisions,
            "/api/decisions/{number}": decisions.show_decision,
            "/api/things/{thing:path}": objects.show_object,
            "/api/waiting": share(waiting.list_waiting),
            "/api/kafka": share(subsystems.list_kafka),
            "/api/tidb": share(subsystems.list_tidb),
            "/api/fleet": share(fleet.list_fleet),
        }

    async def _find_newest_entry(self) -> int:
        entries = await self._dependencies.decisions.list_entries(Query(limit=1))
        return entries[0].number if entries else 0


def build_last_plan_decisions(client: Client, namespace: str) -> LastPlanDecisions:
    """The decisions that the controllers of a cluster keep in ConfigMaps."""
    names = [subsystem.last_plans for subsystem in list_kinds() if subsystem.last_plans]
    return LastPlanDecisions(client, list(dict.fromkeys(names)), namespace=namespace)


def format_address(port: int, code: str) -> str:
    """The address with a one-time code. Browsers send the part after # to no server."""
    return f"http://127.0.0.1:{port}/#code={code}"
