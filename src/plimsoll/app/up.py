"""`plimsoll up`: the API server, the simulated cluster with its cloud, its TiDB and its Kafka, and all controllers.

All parts use the API server through a client, as they would any other, only without a socket in between.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from plimsoll.app.embedded_election import EmbeddedElection
from plimsoll.app.embedded_nodes import EmbeddedNodeAutoscaler
from plimsoll.app.embedded_tidb import TIDB_LEASE, EmbeddedTidb, EmbeddedTidbDependencies
from plimsoll.app.kafka.embedded_kafka import KAFKA_LEASE, EmbeddedKafka, EmbeddedKafkaDependencies
from plimsoll.app.kafka.simulated_connector import SimulatedBrokers
from plimsoll.app.node_autoscaling import run_in_thread
from plimsoll.app.ports import (
    CRUISE_CONTROL,
    DEFAULT_PORT_BASE,
    HOST,
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
from plimsoll.app.up_pages import UpHealth, add_controllers, build_up_pages
from plimsoll.core.errors import PlimsollError
from plimsoll.journal.journal_file import delete_journal
from plimsoll.journal.lazy import LazyJournal
from plimsoll.kube.client import Client
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.local import initial_cluster
from plimsoll.local.apiserver import run as apiserver
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.cluster import LocalCluster
from plimsoll.local.fair_queue import FairQueue, FairQueueTransport
from plimsoll.local.initial_cluster import InitialCluster
from plimsoll.local.kubelet.settings import SILENT
from plimsoll.nodes.reporting.http.debug import DebugViews
from plimsoll.objects.api.nodes import Node, is_node_ready
from plimsoll.objects.api.simulated_cloud import Machine, MachineState, NodeGroup
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.operator.debug_access import AccessReviewer
from plimsoll.operator.metrics import ControllerMetrics
from plimsoll.runtime.kernel_warmup import warm_kernels
from plimsoll.runtime.supervisor import OnEnd, RestartPolicy, Service
from plimsoll.web.serving import CannotListen, bind_socket, serve_on_socket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from socket import socket

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.informer import Informer
    from plimsoll.kube.leases import LeaseSettings
    from plimsoll.local.apiserver.run import Ready, Serving
    from plimsoll.local.components import Components
    from plimsoll.operator.pages import OperatorPages

# How long the status waits for nodes.
_NODES_TIMEOUT_S: Final = 8.0
_POLL_S: Final = 0.1
# Each call in flight delays the answers to the user by a step of the event loop.
_MAX_CONCURRENT_CALLS: Final = 4
_FIELD_MANAGER: Final = "plimsoll"
AUTOSCALER_OPTIONS: Final = {
    "node-autoprovisioning": "true",
    "enable-provisioning-requests": "true",
    "max-nodes-total": "200",
    "max-cpu": "1000",
}
"""The options of the embedded autoscaler. They limit the simulated nodes to what a workstation has room for.
`plimsoll nodes configure` changes them."""
_PENDING: Final = {MachineState.CREATING, MachineState.FAILED}


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
    words: tuple[str, ...] = ()
    """The options as given, for messages."""


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
            cluster = EmbeddedCluster(serving, settings, clock=clock, entropy=entropy, health=health)
            await initial_cluster.prepare_cluster(cluster.connect(_FIELD_MANAGER), InitialCluster(nodes=settings.nodes))
            services = cluster.list_services(lambda up: on_up(sockets.add_urls(up)))
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

    def add_urls(self, up: UpStatus) -> UpStatus:
        return up._replace(
            cruise_control=_format_url(self.cruise_control),
            planner=_format_url(self.planner),
            pd=_format_url(self.pd),
            pages=_format_url(self.pages),
        )


@contextmanager
def _open_sockets(port_base: int) -> Iterator[ListeningSockets]:
    """Opens the sockets before anything starts, so that no other program takes the ports."""
    with ExitStack() as stack:
        cruise_control, planner, pd, pages = (
            stack.enter_context(_bind_port(port_base, purpose)) for purpose in (CRUISE_CONTROL, PLANNER, PD, PAGES)
        )
        yield ListeningSockets(cruise_control=cruise_control, planner=planner, pd=pd, pages=pages)


def _format_url(listening: socket) -> str:
    return f"http://{HOST}:{listening.getsockname()[1]}"


def _ignore_ready(_ready: Ready) -> None:
    """The server answers from now on; the status is shown once there is a cluster too."""


class EmbeddedCluster:
    """The simulated cluster and the autoscalers of an API server."""

    def __init__(
        self,
        serving: Serving,
        settings: UpSettings,
        *,
        clock: Clock,
        entropy: Entropy,
        health: UpHealth | None = None,
    ) -> None:
        self._health = health or UpHealth(clock)
        self._metrics = ControllerMetrics()
        self._ready = serving.ready
        self._token = serving.token
        self._journal = LazyJournal(settings.data)
        self._settings = settings
        self._transport = EmbeddedTransport(serving.application, token=serving.token)
        self._clock = clock
        self._entropy = entropy
        self._fair_queue = FairQueue(at_once=_MAX_CONCURRENT_CALLS)
        self._cluster = LocalCluster(self.connect, clock=clock, entropy=entropy)
        self._tidb = self._build_embedded_tidb()
        self._kafka = self._build_embedded_kafka()

    def connect(self, manager: str) -> Client:
        """A client without a rate limit, but with few calls in flight: the event loop is shared."""
        settings = ClientSettings(user_agent=f"{manager}/v1.34", field_manager=manager, qps=0)
        transport = FairQueueTransport(self._transport, self._fair_queue, part=manager)
        return Client(transport, clock=self._clock, entropy=self._entropy, settings=settings, kinds=OUR_KINDS)

    def list_services(self, on_up: Callable[[UpStatus], None]) -> list[Service]:
        cluster = self._cluster
        informers = cluster.components.informers
        autoscaling = self._build_autoscaling(cluster.components) if self._settings.autoscales else []
        autoscaling += self._tidb.list_services() if self._settings.scales_tidb else []
        autoscaling += self._kafka.list_services() if self._settings.operates_kafka else []
        watched = ReadinessInformers(
            informers.get_informer(Node), informers.get_informer(NodeGroup), informers.get_informer(Machine)
        )
        readiness = ReadinessWait(watched, clock=self._clock)

        async def report_status() -> None:
            ready, expected = await readiness.wait_for_nodes()
            missing = readiness.find_missing()
            on_up(UpStatus(self._ready.url, self._ready.kubeconfig, ready, expected, waiting_for=missing))
            await warm_kernels()

        once = RestartPolicy(on_end=OnEnd.EXPECTED)
        services = [*cluster.list_services(), *autoscaling]
        add_controllers(self._metrics, services, cluster.components)
        for controller in (*self._tidb.list_controllers(), *self._kafka.list_controllers()):
            self._metrics.add_controller(controller)
        return [*services, Service(name="greeting", run=report_status, policy=once)]

    def list_socket_services(self, sockets: ListeningSockets) -> list[Service]:
        """The servers that other processes may call."""
        planner, servers = (
            self._tidb.build_planner_app(token=self._token),
            self._tidb.build_servers_app(token=self._token),
        )
        cruise_control = self._kafka.build_cruise_control_app(token=self._token)
        return [
            Service(name="Cruise Control API", run=partial(serve_on_socket, cruise_control, sockets.cruise_control)),
            Service(name="TiDB planner", run=partial(serve_on_socket, planner, sockets.planner)),
            Service(name="simulated PD", run=partial(serve_on_socket, servers, sockets.pd)),
            Service(name="pages", run=partial(serve_on_socket, self.build_pages(), sockets.pages)),
        ]

    def build_pages(self) -> OperatorPages:
        """Metrics, health and the last plan of everything that runs here."""
        autoscaler = self._health.autoscaler
        metrics = [self._metrics.expose, self._tidb.metrics.format_exposition, self._kafka.expose_metrics]
        if autoscaler is not None:
            metrics.insert(0, autoscaler.parts.reporter.metrics.render)
        return build_up_pages(
            DebugViews(lambda: None if autoscaler is None else autoscaler.parts.reporter.last, run_in_thread),
            metrics=metrics,
            health=self._health,
            reviewer=AccessReviewer(self.connect(_FIELD_MANAGER)),
        )

    def _build_embedded_tidb(self) -> EmbeddedTidb:
        assert self._cluster.tidb is not None
        dependencies = EmbeddedTidbDependencies(
            tidb=self._cluster.tidb,
            clock=self._clock,
            entropy=self._entropy,
            journal=self._journal,
            adds_nodes=self._settings.autoscales,
            election=self._build_election("TiDB autoscaler", TIDB_LEASE) if self._settings.scales_tidb else None,
        )
        return EmbeddedTidb(self._cluster.components, dependencies)

    def _build_embedded_kafka(self) -> EmbeddedKafka:
        assert self._cluster.kafka is not None
        dependencies = EmbeddedKafkaDependencies(
            connector=SimulatedBrokers(self._cluster.kafka.clusters.find),
            clock=self._clock,
            entropy=self._entropy,
            journal=self._journal,
            election=self._build_election("Kafka operator", KAFKA_LEASE) if self._settings.operates_kafka else None,
        )
        return EmbeddedKafka(self._cluster.components, dependencies)

    def _build_election(self, name: str, lease: LeaseSettings) -> EmbeddedElection:
        client = self.connect(lease.field_manager)
        election = EmbeddedElection(lease, self._transport, client, clock=self._clock, entropy=self._entropy)
        self._health.elections[name] = election
        election.add_metrics(self._metrics)
        return election

    def _build_autoscaling(self, components: Components) -> list[Service]:
        """The node autoscaler on the same informers; it leads unless another autoscaler holds the lease."""
        embedded = EmbeddedNodeAutoscaler(
            components,
            self._transport,
            options=AUTOSCALER_OPTIONS,
            journal=self._journal,
            clock=self._clock,
            entropy=self._entropy,
        )
        self._health.autoscaler = embedded
        embedded.add_metrics(self._metrics)
        return embedded.list_services()


class ReadinessInformers(NamedTuple):
    """The informers that show whether the cluster is ready."""

    nodes: Informer[Node]
    groups: Informer[NodeGroup]
    machines: Informer[Machine]


class ReadinessWait:
    """Waits until as many nodes are ready as there are to be, for a limited time."""

    def __init__(self, informers: ReadinessInformers, *, clock: Clock) -> None:
        self._nodes, self._groups, self._machines = informers
        self._clock = clock

    async def wait_for_nodes(self) -> tuple[int, int]:
        """The number of ready nodes, and the number that there are to be."""
        await self._nodes.wait_until_synced()
        await self._groups.wait_until_synced()
        await self._machines.wait_until_synced()
        until_s = self._clock.monotonic_s() + _NODES_TIMEOUT_S
        while self._count_ready() < self._count_expected() and self._clock.monotonic_s() < until_s:
            await self._clock.sleep(_POLL_S)
        return self._count_ready(), self._count_expected()

    def find_missing(self) -> tuple[str, ...]:
        """The names of nodes that are not ready and of machines without a node, each with its cause."""
        nodes = {node.metadata.name: node for node in self._nodes.cache}
        waiting = {name: _explain_not_ready(node) for name, node in nodes.items() if not is_node_ready(node)}
        machines = [machine for machine in self._machines.cache if machine.metadata.name not in nodes]
        waiting |= {
            machine.metadata.name: _explain_no_node(machine) for machine in machines if machine.status.state in _PENDING
        }
        return tuple(f"{name}: {why}" for name, why in sorted(waiting.items()))

    def _count_ready(self) -> int:
        return sum(is_node_ready(node) for node in self._nodes.cache)

    def _count_expected(self) -> int:
        return max(sum(group.spec.target for group in self._groups.cache), len(self._nodes.cache))


def _explain_not_ready(node: Node) -> str:
    if node.metadata.annotations.get(SILENT) == "true":
        return f"cut off by its annotation {SILENT}"
    messages = [
        condition.message for condition in node.status.conditions if condition.type == "Ready" and condition.message
    ]
    return messages[0] if messages else "not ready yet"


def _explain_no_node(machine: Machine) -> str:
    if machine.status.error is not None:
        return machine.status.error.message
    return "boots never" if machine.spec.never_boots else "still booting"
