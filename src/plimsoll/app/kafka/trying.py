"""`plimsoll kafka try`: real brokers, the embedded API server and the operator with its engine, in one process.

The cluster has simulated nodes in three zones, as in `plimsoll up`; the pods of Kafka clusters are real processes.
"""

from __future__ import annotations

import asyncio
import shutil
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple

from plimsoll.app.embedded_election import EmbeddedElection
from plimsoll.app.kafka.broker_probe import ConnectedBrokerProbe
from plimsoll.app.kafka.embedded_kafka import KAFKA_LEASE, EmbeddedKafka, EmbeddedKafkaDependencies
from plimsoll.app.kafka.sample_cluster import (
    CLUSTER,
    NAMESPACE,
    PLAIN_LISTENER,
    SECURE_LISTENER,
    USER,
    ClientLogin,
    SampleCluster,
    create_sample_cluster,
    fill_topics,
)
from plimsoll.journal.journal_file import delete_journal
from plimsoll.journal.lazy import LazyJournal
from plimsoll.kafka.brokers.access import KubernetesBrokers
from plimsoll.kafka.settings import NAME
from plimsoll.kube.client import Client
from plimsoll.kube.errors import ApiCallFailed
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.kube.secret_tls import ClusterSecrets
from plimsoll.local import initial_cluster
from plimsoll.local.apiserver import run as apiserver
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.cluster import ClusterSettings, LocalCluster
from plimsoll.local.fair_queue import FairQueue, FairQueueTransport
from plimsoll.local.initial_cluster import InitialCluster, InitialGroup
from plimsoll.local.kafka.processes.kafka_processes import KafkaProcesses
from plimsoll.objects.api.core import Secret
from plimsoll.objects.api.kafka import Kafka
from plimsoll.objects.api.nodes import Node, is_node_ready
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.runtime.supervisor import OnEnd, RestartPolicy, Service

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.local.apiserver.run import Ready, Serving
    from plimsoll.local.kafka.processes.distribution import KafkaDistribution

_MANAGER: Final = "plimsoll"
_HOST: Final = "plimsoll-kafka-try"
"""The first part of its identity in the lease of the operator."""
_MAX_CONCURRENT_CALLS: Final = 4
_NODES: Final = 3
_LOOK_S: Final = 0.5
_PROCESSES: Final = "brokers"
_AUTHORITY: Final = "kafka-ca.pem"
_PROPERTIES: Final = "client.properties"


class TrySettings(NamedTuple):
    """What the user chose. `port` 0: any free port for the Kubernetes API."""

    data: Path
    cluster: SampleCluster = SampleCluster()
    port: int = 0
    fresh: bool = False


class TryStatus(NamedTuple):
    """What runs, and where."""

    url: str
    kubeconfig: Path
    bootstrap: tuple[str, ...]
    brokers: int
    client_properties: Path | None
    """What clients need to connect; None: nothing."""


async def run(
    settings: TrySettings,
    distribution: KafkaDistribution,
    *,
    clock: Clock,
    entropy: Entropy,
    on_ready: Callable[[TryStatus], None],
) -> None:
    """Run everything until cancelled. `on_ready` is called when the first brokers are ready and have topics."""

    async def build_services(serving: Serving) -> Sequence[Service]:
        # The server has locked the directory: no other process uses it.
        if settings.fresh:
            delete_journal(settings.data)
            shutil.rmtree(settings.data / _PROCESSES, ignore_errors=True)
        tried = TriedCluster(serving, settings, distribution, clock=clock, entropy=entropy)
        await tried.prepare()
        return tried.list_services(on_ready)

    server = apiserver.Settings(data=settings.data, port=settings.port, fresh=settings.fresh)
    await apiserver.run(server, clock=clock, entropy=entropy, on_ready=_ignore_ready, beside=build_services)


def _ignore_ready(_ready: Ready) -> None:
    """The server answers from now on; the status is shown once there are brokers too."""


class TriedCluster:
    """The simulated nodes, the operator and the broker processes of an API server."""

    def __init__(
        self,
        serving: Serving,
        settings: TrySettings,
        distribution: KafkaDistribution,
        *,
        clock: Clock,
        entropy: Entropy,
    ) -> None:
        self._serving = serving
        self._settings = settings
        self._clock = clock
        self._entropy = entropy
        self._transport = EmbeddedTransport(serving.application, token=serving.token)
        self._fair_queue = FairQueue(at_once=_MAX_CONCURRENT_CALLS)
        self._client = self.connect(_MANAGER)
        self._cluster = LocalCluster(
            self.connect,
            clock=clock,
            entropy=entropy,
            settings=ClusterSettings(plays_tidb=False, plays_kafka=False),
        )
        self._processes = KafkaProcesses(
            self._cluster.components, distribution, settings.data / _PROCESSES, build_probe=self._build_probe
        )
        self._cluster.kubelet.pods.use_runtime(self._processes)
        self._journal = LazyJournal(settings.data)
        dependencies = EmbeddedKafkaDependencies(
            connector=self._connector,
            clock=clock,
            entropy=entropy,
            journal=self._journal,
            election=EmbeddedElection(
                KAFKA_LEASE, self._transport, self.connect(NAME), clock=clock, entropy=entropy, host=_HOST
            ),
        )
        self._kafka = EmbeddedKafka(self._cluster.components, dependencies)

    def connect(self, manager: str) -> Client:
        settings = ClientSettings(user_agent=manager, field_manager=manager, qps=0)
        transport = FairQueueTransport(self._transport, self._fair_queue, part=manager)
        return Client(transport, clock=self._clock, entropy=self._entropy, settings=settings, kinds=OUR_KINDS)

    async def prepare(self) -> None:
        """Create the definitions and the nodes."""
        await initial_cluster.prepare_cluster(
            self._client, InitialCluster(group=InitialGroup(nodes=_NODES, boot_s=0.0))
        )

    def list_services(self, on_ready: Callable[[TryStatus], None]) -> list[Service]:
        async def create_and_report() -> None:
            await self._create_cluster()
            on_ready(await self._wait_until_ready())

        return [
            # Stopped last: everything that uses the brokers is stopped before them.
            *self._processes.list_services(),
            *self._cluster.list_services(),
            Service(name="connections to brokers", run=self._hold_connections),
            *self._kafka.list_services(),
            Service(name="greeting", run=create_and_report, policy=RestartPolicy(on_end=OnEnd.EXPECTED)),
        ]

    def _build_probe(self, processes: KafkaProcesses) -> ConnectedBrokerProbe:
        self._connector = KubernetesBrokers(ClusterSecrets(self._client), list_addresses=processes.list_addresses)
        return ConnectedBrokerProbe(self._connector)

    async def _hold_connections(self) -> None:
        """Close the connections of the operator when it has stopped."""
        try:
            await asyncio.get_running_loop().create_future()
        finally:
            await self._kafka.close()
            await self._journal.close()

    async def _create_cluster(self) -> None:
        """Create the Kafka cluster when there is a node in each zone: pods are spread over the nodes that exist."""
        while sum(is_node_ready(node) for node in (await self._client.list(Node)).items) < _NODES:
            await self._clock.sleep(_LOOK_S)
        await create_sample_cluster(self._client, self._settings.cluster, entropy=self._entropy)

    async def _wait_until_ready(self) -> TryStatus:
        while (kafka := await self._find_ready()) is None:
            await self._clock.sleep(_LOOK_S)
        plain = self._processes.list_listeners(kafka, PLAIN_LISTENER)
        bootstrap = plain or self._processes.list_listeners(kafka, SECURE_LISTENER)
        login = None if plain else await self._read_login()
        await fill_topics(bootstrap, login)
        ready = self._serving.ready
        return TryStatus(ready.url, ready.kubeconfig, bootstrap, len(bootstrap), self._write_properties(login))

    async def _read_login(self) -> ClientLogin:
        """The login of the sample user. The certificate of the authority is written for it."""
        authority = await self._client.get(Secret, f"{CLUSTER}-cluster-ca-cert", namespace=NAMESPACE)
        user = await self._client.get(Secret, USER, namespace=NAMESPACE)
        path = (self._settings.data / _AUTHORITY).absolute()
        path.write_bytes(authority.data["ca.crt"])
        return ClientLogin(ca_file=path, password=user.data["password"].decode())

    def _write_properties(self, login: ClientLogin | None) -> Path | None:
        if login is None:
            return None
        path = self._settings.data / _PROPERTIES
        path.touch(mode=0o600)
        path.write_text(login.format_properties())
        return path

    async def _find_ready(self) -> Kafka | None:
        """The Kafka, once all of its brokers are ready and the operator has seen them."""
        with suppress(ApiCallFailed):
            kafka = await self._client.get(Kafka, CLUSTER, namespace=NAMESPACE)
            if kafka.status.cluster_id and self._processes.are_all_ready(kafka):
                return kafka
        return None
