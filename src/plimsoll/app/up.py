"""Where concrete parts meet: the API server, the simulated cluster with its cloud and its TiDB, in one process.

`plimsoll up` calls `run`. The parts speak to the API server as they would to any other, through a client, only without
a socket in between. Nothing here decides about objects or requests, and nothing is printed.
"""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from plimsoll.app.embedded_tidb import EmbeddedTidb, TidbTools
from plimsoll.app.node_autoscaling import NAME as AUTOSCALER
from plimsoll.app.node_autoscaling import in_thread
from plimsoll.core.errors import PlimsollError
from plimsoll.journal.lazy import LazyJournal
from plimsoll.kube.client import Client
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.local import initial_cluster
from plimsoll.local.apiserver import run as apiserver
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.local.cluster import LocalCluster
from plimsoll.local.fair_queue import FairQueue, FairQueueTransport
from plimsoll.local.initial_cluster import InitialCluster
from plimsoll.local.kubelet.settings import SILENT
from plimsoll.nodes.builder import Dependencies as NodeSurroundings
from plimsoll.nodes.builder import NodeAutoscaler
from plimsoll.nodes.config.source import ConfigMapConfig
from plimsoll.nodes.providers.simulated.provider import SimulatedProvider
from plimsoll.objects.api.nodes import Node, is_node_ready
from plimsoll.objects.api.simulated_cloud import Machine, MachineState, NodeGroup
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.runtime.kernel_warming import warm_kernels
from plimsoll.runtime.services import OnEnd, RestartPolicy, Service
from plimsoll.web.serving import CannotListen, bind_socket, serve_on_socket

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path
    from socket import socket

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.informer import Informer
    from plimsoll.local.apiserver.run import Ready, Serving
    from plimsoll.local.components import Components

HOST: Final = "127.0.0.1"
DEFAULT_PORT_BASE: Final = apiserver.DEFAULT_PORT
HIGHEST_PORT_BASE: Final = 59_599
"""The highest port of all, that of the simulated PD, lies 5,936 above the base."""

_PORTS: Final = {"the Kubernetes API": 0, "the TiDB planner": 9092 - 6443, "the simulated PD": 12379 - 6443}
"""How far they lie above the base."""
# How long nodes may take before the first words are said without them.
_PATIENCE_S: Final = 8.0
_LOOK_EVERY_S: Final = 0.1
# Every call under way is a step of the loop between a person's question and its answer.
_CALLS_AT_ONCE: Final = 4
_ADMINISTRATION: Final = "plimsoll"
AUTOSCALER_OPTIONS: Final = {
    "node-autoprovisioning": "true",
    "enable-provisioning-requests": "true",
    "max-nodes-total": "200",
    "max-cpu": "1000",
}
"""Of the embedded autoscaler: a machine that people work on has no room for more simulated nodes than that.
`plimsoll nodes configure` changes them."""
_TO_COME: Final = {MachineState.CREATING, MachineState.FAILED}


class PortBusy(PlimsollError):
    """An address that is needed cannot be had."""

    exit_code: ClassVar[int] = 2


class Settings(NamedTuple):
    """What a person may choose. `port_base` 0: any ports that are free."""

    data: Path
    port_base: int = DEFAULT_PORT_BASE
    fresh: bool = False
    nodes: int | None = None
    autoscales: bool = True


class Up(NamedTuple):
    """What runs, for whoever tells people about it."""

    url: str
    kubeconfig: Path
    nodes_ready: int
    nodes_wanted: int
    waiting_for: tuple[str, ...] = ()
    """Those that are not ready, with what is known of the cause: `workers-2: still booting`."""
    planner: str = ""
    pd: str = ""
    """Where the TiDB planner and the simulated PDs answer, for who has the administrator's token."""


async def run(settings: Settings, *, clock: Clock, entropy: Entropy, on_up: Callable[[Up], None]) -> None:
    """Everything, until cancelled. Raises, before anything is changed, what keeps it from running."""
    check_ports(settings.port_base)

    with _doors(settings.port_base) as doors:

        async def beside(serving: Serving) -> Sequence[Service]:
            surroundings = Surroundings(serving, settings, clock=clock, entropy=entropy)
            await initial_cluster.prepare_cluster(
                surroundings.connect(_ADMINISTRATION), InitialCluster(nodes=settings.nodes)
            )
            services = surroundings.services(lambda up: on_up(up._replace(planner=doors.planner_url, pd=doors.pd_url)))
            return [*services, *surroundings.serving(doors)]

        server = apiserver.Settings(data=settings.data, host=HOST, port=settings.port_base, fresh=settings.fresh)
        await apiserver.run(server, clock=clock, entropy=entropy, on_ready=_not_yet, beside=beside)


def check_ports(port_base: int) -> None:
    """Raises `PortBusy`, with what to do about it, unless every port can be had."""
    for whose in _PORTS:
        _opened(port_base, whose).close()


def _opened(port_base: int, whose: str) -> socket:
    port = port_base + _PORTS[whose] if port_base else 0
    try:
        return bind_socket(HOST, port)
    except CannotListen as error:
        raise PortBusy(
            f"port {port}, for {whose}, cannot be had: another program uses it, perhaps another "
            f"plimsoll up; stop that one, or move all ports, e.g. by --port-base {_another(port_base)}"
        ) from error


class Doors(NamedTuple):
    """Sockets that listen, besides that of the API server."""

    planner: socket
    pd: socket

    @property
    def planner_url(self) -> str:
        return f"http://{HOST}:{self.planner.getsockname()[1]}"

    @property
    def pd_url(self) -> str:
        return f"http://{HOST}:{self.pd.getsockname()[1]}"


@contextmanager
def _doors(port_base: int) -> Iterator[Doors]:
    """Held from the beginning, so that nobody else takes them."""
    with ExitStack() as open_ones:
        planner = open_ones.enter_context(_opened(port_base, "the TiDB planner"))
        yield Doors(planner=planner, pd=open_ones.enter_context(_opened(port_base, "the simulated PD")))


def _another(port_base: int) -> int:
    return port_base + 1_000 if port_base + 1_000 <= HIGHEST_PORT_BASE else DEFAULT_PORT_BASE


def _not_yet(_ready: Ready) -> None:
    """The server answers from now on; people hear of it when there is a cluster too."""


class Surroundings:
    """The cluster beside one server."""

    def __init__(self, serving: Serving, settings: Settings, *, clock: Clock, entropy: Entropy) -> None:
        self._ready = serving.ready
        self._token = serving.token
        self._journal = LazyJournal(settings.data)
        self._autoscales = settings.autoscales
        self._transport = EmbeddedTransport(serving.application, token=serving.token)
        self._clock = clock
        self._entropy = entropy
        self._door = FairQueue(at_once=_CALLS_AT_ONCE)
        self._cluster = LocalCluster(self.connect, clock=clock, entropy=entropy)
        self._tidb = self._embedded_tidb()

    def connect(self, manager: str) -> Client:
        """Without a rate limit, but not too many calls at once: others want their turn on the loop too."""
        settings = ClientSettings(user_agent=f"{manager}/v1.34", field_manager=manager, qps=0)
        transport = FairQueueTransport(self._transport, self._door, part=manager)
        return Client(transport, clock=self._clock, entropy=self._entropy, settings=settings, kinds=OUR_KINDS)

    def services(self, on_up: Callable[[Up], None]) -> list[Service]:
        cluster = self._cluster
        informers = cluster.components.informers
        autoscaling = self._autoscaling(cluster.components) if self._autoscales else []
        autoscaling += self._tidb.services()
        seen = Seen(informers.of(Node), informers.of(NodeGroup), informers.of(Machine))
        greeting = Greeting(seen, clock=self._clock)

        async def greet() -> None:
            ready, wanted = await greeting.nodes_when_ready()
            missing = greeting.waiting_for()
            on_up(Up(self._ready.url, self._ready.kubeconfig, ready, wanted, waiting_for=missing))
            await warm_kernels()

        once = RestartPolicy(on_end=OnEnd.EXPECTED)
        return [*cluster.services(), *autoscaling, Service(name="greeting", run=greet, policy=once)]

    def serving(self, doors: Doors) -> list[Service]:
        """What others may ask over sockets."""
        planner, servers = self._tidb.planner(token=self._token), self._tidb.servers(token=self._token)
        return [
            Service(name="TiDB planner", run=partial(serve_on_socket, planner, doors.planner)),
            Service(name="simulated PD", run=partial(serve_on_socket, servers, doors.pd)),
        ]

    def _embedded_tidb(self) -> EmbeddedTidb:
        assert self._cluster.tidb is not None
        tools = TidbTools(
            tidb=self._cluster.tidb,
            clock=self._clock,
            entropy=self._entropy,
            journal=self._journal,
            adds_nodes=self._autoscales,
        )
        return EmbeddedTidb(self._cluster.components, tools)

    def _autoscaling(self, components: Components) -> list[Service]:
        """The node autoscaler on the same informers. It has the cluster to itself, so it asks for no lease."""
        component = components.component(AUTOSCALER, manager=AUTOSCALER)
        cloud = SimulatedCloud(component.client, clock=self._clock)
        provider = SimulatedProvider(cloud)
        parts = NodeAutoscaler(
            NodeSurroundings(
                client=component.client,
                informers=component.informers,
                recorder=component.recorder,
                provider=provider,
                configuration=ConfigMapConfig(AUTOSCALER_OPTIONS, component.informers, naming=provider.naming),
                clock=self._clock,
                run_planner=in_thread,
                journal=self._journal,
            )
        )
        return parts.services()


class Seen(NamedTuple):
    """What the greeting looks at."""

    nodes: Informer[Node]
    groups: Informer[NodeGroup]
    machines: Informer[Machine]


class Greeting:
    """Waits until there is a cluster to show: as many nodes ready as there are to be, or patience is at its end."""

    def __init__(self, seen: Seen, *, clock: Clock) -> None:
        self._nodes, self._groups, self._machines = seen
        self._clock = clock

    async def nodes_when_ready(self) -> tuple[int, int]:
        """How many nodes are ready, and how many there are to be."""
        await self._nodes.synced()
        await self._groups.synced()
        await self._machines.synced()
        until_s = self._clock.monotonic_s() + _PATIENCE_S
        while self._ready() < self._wanted() and self._clock.monotonic_s() < until_s:
            await self._clock.sleep(_LOOK_EVERY_S)
        return self._ready(), self._wanted()

    def waiting_for(self) -> tuple[str, ...]:
        """Nodes that are not ready, and machines that have none yet, by name, each with its cause."""
        nodes = {node.metadata.name: node for node in self._nodes.cache}
        waiting = {name: _why_not_ready(node) for name, node in nodes.items() if not is_node_ready(node)}
        machines = [machine for machine in self._machines.cache if machine.metadata.name not in nodes]
        waiting |= {
            machine.metadata.name: _why_no_node(machine) for machine in machines if machine.status.state in _TO_COME
        }
        return tuple(f"{name}: {why}" for name, why in sorted(waiting.items()))

    def _ready(self) -> int:
        return sum(is_node_ready(node) for node in self._nodes.cache)

    def _wanted(self) -> int:
        return max(sum(group.spec.target for group in self._groups.cache), len(self._nodes.cache))


def _why_not_ready(node: Node) -> str:
    if node.metadata.annotations.get(SILENT) == "true":
        return f"cut off by its annotation {SILENT}"
    told = [
        condition.message for condition in node.status.conditions if condition.type == "Ready" and condition.message
    ]
    return told[0] if told else "not ready yet"


def _why_no_node(machine: Machine) -> str:
    if machine.status.error is not None:
        return machine.status.error.message
    return "boots never" if machine.spec.never_boots else "still booting"
