"""`plimsoll up`: the API server, the simulated cluster with its cloud, its TiDB and its Kafka, and all controllers.

All parts use the API server through a client, as they would any other, only without a socket in between.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from plimsoll.app.console import BESIDE as PAGES_BESIDE_CONSOLE
from plimsoll.app.console import Console, ConsoleDependencies, format_address
from plimsoll.app.embedded_cluster import EmbeddedCluster, EmbeddedSettings
from plimsoll.app.embedded_dependencies import EmbeddedDependencies
from plimsoll.app.fleet.up_fleet import DEFAULT_MAX_CLUSTERS, UpFleetSettings, delete_fleet, open_fleet
from plimsoll.app.ports import (
    CONSOLE,
    CRUISE_CONTROL,
    DEFAULT_PORT_BASE,
    FLEET,
    HOST,
    OCM,
    OFFSETS,
    PAGES,
    PD,
    PLANNER,
    describe_busy_ports,
    describe_running,
    find_busy_ports,
    find_free_base,
    write_port_base,
)
from plimsoll.app.readiness import ReadinessInformers, ReadinessWait
from plimsoll.app.up_pages import UpHealth, add_controllers, build_up_pages
from plimsoll.console.costs.cloud_prices import CloudPrices
from plimsoll.console.views.decision_sources import CombinedDecisions, JournalDecisions
from plimsoll.console.views.fleet import FleetView
from plimsoll.core.errors import PlimsollError
from plimsoll.journal.journal_file import delete_journal
from plimsoll.journal.lazy import LazyJournal
from plimsoll.local import initial_cluster
from plimsoll.local.apiserver import run as apiserver
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.local.initial_cluster import InitialCluster
from plimsoll.nodes.plan_runner import run_in_thread
from plimsoll.nodes.reporting.http.debug import DebugViews
from plimsoll.operator.debug_access import AccessReviewer
from plimsoll.operator.metrics import ControllerMetrics
from plimsoll.runtime.kernel_warmup import warm_kernels
from plimsoll.runtime.supervisor import OnEnd, RestartPolicy, Service
from plimsoll.web.serving import CannotListen, bind_socket, serve_on_socket

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from pathlib import Path
    from socket import socket

    from plimsoll.app.fleet.up_fleet import UpFleet
    from plimsoll.console.views.ports import DecisionSource
    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.local.apiserver.run import Ready, Serving
    from plimsoll.operator.pages import OperatorPages

_FIELD_MANAGER: Final = "plimsoll"


class PortBusy(PlimsollError):
    """Ports that are needed are in use."""

    exit_code: ClassVar[int] = 2


class DataInUse(PlimsollError):
    """The cluster of the data directory runs already."""

    exit_code: ClassVar[int] = 2


class UpSettings(NamedTuple):
    """What the user chose. `port_base` 0: any free ports."""

    data: Path
    port_base: int = DEFAULT_PORT_BASE
    fresh: bool = False
    nodes: int | None = None
    autoscales: bool = True
    scales_tidb: bool = True
    operates_kafka: bool = True
    runs_fleet: bool = True
    most_clusters: int = DEFAULT_MAX_CLUSTERS
    """The limit of clusters that the fleet makes; the cluster of the API server does not count."""
    words: tuple[str, ...] = ()
    """The options as given, for messages."""

    def build_embedded_settings(self) -> EmbeddedSettings:
        return EmbeddedSettings(
            autoscales=self.autoscales, scales_tidb=self.scales_tidb, operates_kafka=self.operates_kafka
        )

    def list_running(self) -> tuple[str, ...]:
        """The subsystems that run, by their names in the journal."""
        nodes = ("nodes", "requests") if self.autoscales else ()
        others = {"tidb": self.scales_tidb, "kafka": self.operates_kafka, "fleet": self.runs_fleet}
        return (*nodes, *(name for name, runs in others.items() if runs))


class UpStatus(NamedTuple):
    """What runs, and where."""

    url: str
    kubeconfig: Path
    nodes_ready: int
    nodes_expected: int
    waiting_for: tuple[str, ...] = ()
    """Nodes that are not ready, each with its cause: `workers-2: still booting`."""
    planner: str = ""
    pd: str = ""
    """The URLs of the TiDB planner and the simulated PDs. Both need the administrator's token."""
    cruise_control: str = ""
    """The URL of Cruise Control's API of all Kafka clusters. It needs the token, too."""
    pages: str = ""
    """The URL of metrics, health and plan."""
    console: str = ""
    """The address of the console, with a code that works once."""
    fleet: str = ""
    ocm: str = ""
    """The URLs of the fleet API and of the simulated OCM. Empty: they do not run."""


async def run(settings: UpSettings, *, clock: Clock, entropy: Entropy, on_up: Callable[[UpStatus], None]) -> None:
    """Runs everything until cancelled. What keeps it from running is raised before anything is changed."""
    check_data(settings.data, settings.port_base, settings.words)
    check_ports(settings.port_base, settings.words)
    health = UpHealth(clock)

    with _open_sockets(settings.port_base) as sockets:

        async def build_services(serving: Serving) -> Sequence[Service]:
            # The server has locked the directory: no other process uses it.
            write_port_base(settings.data, settings.port_base)
            if settings.fresh:
                delete_journal(settings.data)
                delete_fleet(settings.data)
            fleet = await _open_fleet(settings, sockets, serving, clock=clock, entropy=entropy)
            cluster = UpCluster(serving, settings, clock=clock, entropy=entropy, health=health, fleet=fleet)
            await initial_cluster.prepare_cluster(cluster.connect(_FIELD_MANAGER), InitialCluster(nodes=settings.nodes))
            services = cluster.list_services(
                lambda up: on_up(cluster.add_console(sockets.add_urls(up, has_fleet=settings.runs_fleet), sockets))
            )
            return [*services, *cluster.list_socket_services(sockets)]

        server = apiserver.Settings(data=settings.data, host=HOST, port=settings.port_base, fresh=settings.fresh)
        await apiserver.run(
            server,
            clock=clock,
            entropy=entropy,
            on_ready=_ignore_ready,
            beside=build_services,
            on_supervised=health.watch,
        )


async def _open_fleet(
    settings: UpSettings, sockets: ListeningSockets, serving: Serving, *, clock: Clock, entropy: Entropy
) -> UpFleet | None:
    if not settings.runs_fleet:
        return None
    wanted = UpFleetSettings(
        data=settings.data, public_url=_format_url(sockets.fleet), most_clusters=settings.most_clusters
    )
    return await open_fleet(wanted, serving, clock=clock, entropy=entropy)


def check_data(data: Path, port_base: int, words: Sequence[str] = ()) -> None:
    """Raises `DataInUse` if another process uses the data directory. Its ports are busy, too: others would not help."""
    if running := describe_running(data, list(words), port_base):
        raise DataInUse(running)


def check_ports(port_base: int, words: Sequence[str] = ()) -> None:
    """Raises `PortBusy`, which names all busy ports and the command that uses others, unless every port is free."""
    busy = find_busy_ports(port_base)
    if busy:
        raise PortBusy(describe_busy_ports(busy, list(words), find_free_base(port_base)))


def _bind_port(port_base: int, purpose: str) -> socket:
    port = port_base + OFFSETS[purpose] if port_base else 0
    try:
        return bind_socket(HOST, port)
    except CannotListen as error:
        raise PortBusy(describe_busy_ports({port: purpose}, [], find_free_base(port_base))) from error


class ListeningSockets(NamedTuple):
    """The listening sockets besides that of the API server."""

    cruise_control: socket
    planner: socket
    pd: socket
    pages: socket
    console: socket
    fleet: socket
    ocm: socket

    def add_urls(self, up: UpStatus, *, has_fleet: bool) -> UpStatus:
        return up._replace(
            fleet=_format_url(self.fleet) if has_fleet else "",
            ocm=_format_url(self.ocm) if has_fleet else "",
            cruise_control=_format_url(self.cruise_control),
            planner=_format_url(self.planner),
            pd=_format_url(self.pd),
            pages=_format_url(self.pages),
        )


@contextmanager
def _open_sockets(port_base: int) -> Iterator[ListeningSockets]:
    """Opens the sockets before anything starts, so that no other program takes the ports."""
    with ExitStack() as stack:
        opened = [
            stack.enter_context(_bind_port(port_base, purpose))
            for purpose in (CRUISE_CONTROL, PLANNER, PD, PAGES, CONSOLE, FLEET, OCM)
        ]
        yield ListeningSockets(*opened)


def _format_url(listening: socket) -> str:
    return f"http://{HOST}:{_get_port(listening)}"


def _get_port(listening: socket) -> int:
    port: int = listening.getsockname()[1]
    return port


def _ignore_ready(_ready: Ready) -> None:
    """The server answers from now on; the status is shown once there is a cluster too."""


class UpCluster:
    """The cluster of an API server, with its servers for other processes and its pages."""

    def __init__(
        self,
        serving: Serving,
        settings: UpSettings,
        *,
        clock: Clock,
        entropy: Entropy,
        health: UpHealth | None = None,
        fleet: UpFleet | None = None,
    ) -> None:
        self._fleet = fleet
        self._health = health or UpHealth(clock)
        self._metrics = ControllerMetrics()
        self._ready = serving.ready
        self._token = serving.token
        self._clock = clock
        journal = LazyJournal(settings.data)
        self._metrics.add_journal(journal)
        dependencies = EmbeddedDependencies(
            transport=EmbeddedTransport(serving.application, token=serving.token),
            clock=clock,
            entropy=entropy,
            journal=journal,
            run_planner=run_in_thread,
        )
        self._cluster = EmbeddedCluster(dependencies, settings.build_embedded_settings())
        self.connect = self._cluster.connect
        self.console = self._build_console(dependencies, settings.list_running())
        self._tidb, self._kafka = self._cluster.tidb, self._cluster.kafka

    def list_services(self, on_up: Callable[[UpStatus], None]) -> list[Service]:
        cluster = self._cluster
        informers = cluster.local.components.informers
        readiness = ReadinessWait(ReadinessInformers.find(informers), clock=self._clock)

        async def report_status() -> None:
            ready, expected = await readiness.wait_for_nodes()
            missing = readiness.find_missing()
            on_up(UpStatus(self._ready.url, self._ready.kubeconfig, ready, expected, waiting_for=missing))
            await warm_kernels()

        once = RestartPolicy(on_end=OnEnd.EXPECTED)
        services = cluster.list_services()
        self._observe(services)
        services += self.console.list_services()
        if self._fleet is not None:
            services += self._fleet.list_services()
        return [*services, Service(name="greeting", run=report_status, policy=once)]

    def _observe(self, services: Sequence[Service]) -> None:
        """Health and metrics of everything that runs."""
        cluster = self._cluster
        add_controllers(self._metrics, services, cluster.local.components)
        for controller in cluster.list_controllers():
            self._metrics.add_controller(controller)
        for name, election in cluster.elections.items():
            self._health.elections[name] = election
            election.add_metrics(self._metrics)
        self._health.autoscaler = cluster.autoscaler
        if cluster.autoscaler is not None:
            cluster.autoscaler.add_metrics(self._metrics)

    def list_socket_services(self, sockets: ListeningSockets) -> list[Service]:
        """The servers that other processes may call."""
        assert self._tidb is not None
        assert self._kafka is not None
        planner, servers = (
            self._tidb.build_planner_app(token=self._token),
            self._tidb.build_servers_app(token=self._token),
        )
        cruise_control = self._kafka.build_cruise_control_app(token=self._token)
        pages = self.build_pages()
        console = self.console.build_application(
            port=_get_port(sockets.console), beside=dict.fromkeys(PAGES_BESIDE_CONSOLE, pages)
        )
        fleet = [] if self._fleet is None else self._fleet.list_socket_services(sockets.fleet, sockets.ocm)
        return [
            *fleet,
            Service(name="Cruise Control API", run=partial(serve_on_socket, cruise_control, sockets.cruise_control)),
            Service(name="TiDB planner", run=partial(serve_on_socket, planner, sockets.planner)),
            Service(name="simulated PD", run=partial(serve_on_socket, servers, sockets.pd)),
            Service(name="pages", run=partial(serve_on_socket, pages, sockets.pages)),
            Service(name="console", run=partial(serve_on_socket, console, sockets.console)),
        ]

    def add_console(self, up: UpStatus, sockets: ListeningSockets) -> UpStatus:
        """The status with the address of the console."""
        return up._replace(console=format_address(_get_port(sockets.console), self.console.sessions.issue_code()))

    def _build_console(self, dependencies: EmbeddedDependencies, running: Collection[str]) -> Console:
        return Console(
            ConsoleDependencies(
                client=self.connect(_FIELD_MANAGER),
                informers=self._cluster.local.components.informers,
                decisions=self._build_decisions(dependencies),
                clock=dependencies.clock,
                entropy=dependencies.entropy,
                token=self._token,
                running=running,
                fleet=FleetView() if self._fleet is None else self._fleet.build_view(),
                prices=CloudPrices(SimulatedCloud(self.connect(_FIELD_MANAGER), clock=dependencies.clock)),
                run_planner=dependencies.run_planner,
            )
        )

    def _build_decisions(self, dependencies: EmbeddedDependencies) -> DecisionSource:
        """Those of the cluster, and those of the fleet, which keeps its own journal."""
        journals = [dependencies.journal, *([] if self._fleet is None else [self._fleet.journal])]
        return CombinedDecisions([JournalDecisions(journal) for journal in journals])

    def build_pages(self) -> OperatorPages:
        """Metrics, health and the last plan of everything that runs here."""
        assert self._tidb is not None
        assert self._kafka is not None
        autoscaler = self._health.autoscaler
        metrics = [self._metrics.expose, self._tidb.metrics.format_exposition, self._kafka.expose_metrics]
        if autoscaler is not None:
            metrics.insert(0, autoscaler.parts.reporter.metrics.render)
        if self._fleet is not None:
            metrics.append(self._fleet.expose_metrics)
        return build_up_pages(
            DebugViews(lambda: None if autoscaler is None else autoscaler.parts.reporter.last, run_in_thread),
            metrics=metrics,
            health=self._health,
            reviewer=AccessReviewer(self.connect(_FIELD_MANAGER)),
        )
