"""A simulated cluster on an API server of this process, with the controllers of Plimsoll that run in it.

`plimsoll up` has one with everything, a fleet has one per cluster that it makes. All parts use the API server through a
client, as they would any other, only without a socket in between. What a cluster is, is in its objects: another one on
the same API server continues where the first one ended.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from plimsoll.app.embedded_election import EmbeddedElection
from plimsoll.app.embedded_nodes import EmbeddedNodeAutoscaler
from plimsoll.app.embedded_tidb import TIDB_LEASE, EmbeddedTidb, EmbeddedTidbDependencies
from plimsoll.app.kafka.embedded_kafka import KAFKA_LEASE, EmbeddedKafka, EmbeddedKafkaDependencies
from plimsoll.app.kafka.simulated_connector import SimulatedBrokers
from plimsoll.kube.client import Client
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.local.cluster import ClusterSettings, LocalCluster
from plimsoll.local.fair_queue import FairQueue, FairQueueTransport
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.runtime.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.app.embedded_dependencies import EmbeddedDependencies
    from plimsoll.kube.controller.controller import Controller
    from plimsoll.kube.informer.events import Key
    from plimsoll.kube.leases import LeaseSettings
    from plimsoll.runtime.supervisor import Service

# Each call in flight delays the answers to the user by a step of the event loop.
_MAX_CONCURRENT_CALLS: Final = 4

AUTOSCALER_OPTIONS: Final = {
    "node-autoprovisioning": "true",
    "enable-provisioning-requests": "true",
    "max-nodes-total": "200",
    "max-cpu": "1000",
}
"""The options of the embedded autoscaler. They limit the simulated nodes to what a workstation has room for.
`plimsoll nodes configure` changes them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddedSettings:
    """What runs in a cluster besides what every cluster has."""

    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    autoscales: bool = True
    scales_tidb: bool = True
    has_kafka: bool = True
    """There are engines of Kafka clusters, and their API; otherwise the operator is an add-on."""
    operates_kafka: bool = True
    autoscaler_options: Mapping[str, str] = field(default_factory=lambda: AUTOSCALER_OPTIONS)


class EmbeddedCluster:
    """The simulated cluster and the controllers in it. Made before the informers run."""

    def __init__(self, dependencies: EmbeddedDependencies, settings: EmbeddedSettings) -> None:
        self._dependencies = dependencies
        self._settings = settings
        self._fair_queue = FairQueue(at_once=_MAX_CONCURRENT_CALLS)
        self.elections: dict[str, EmbeddedElection] = {}
        """By the names of the controllers that contend."""
        self.local = LocalCluster(
            self.connect, clock=dependencies.clock, entropy=dependencies.entropy, settings=settings.cluster
        )
        self.tidb = self._build_tidb()
        self.kafka = self._build_kafka()
        self.autoscaler = self._build_autoscaler()

    def connect(self, manager: str) -> Client:
        """A client without a rate limit, but with few calls in flight: the event loop is shared."""
        dependencies = self._dependencies
        settings = ClientSettings(user_agent=f"{manager}/v1.34", field_manager=manager, qps=0)
        transport = FairQueueTransport(dependencies.transport, self._fair_queue, part=manager)
        return Client(
            transport, clock=dependencies.clock, entropy=dependencies.entropy, settings=settings, kinds=OUR_KINDS
        )

    def list_services(self) -> list[Service]:
        """Everything, in the order in which it is to be started."""
        services = self.local.list_services()
        if self.autoscaler is not None:
            services += self.autoscaler.list_services()
        if self.tidb is not None and self._settings.scales_tidb:
            services += self.tidb.list_services()
        if self.kafka is not None and self._settings.operates_kafka:
            services += self.kafka.list_services()
        return services

    def list_controllers(self) -> list[Controller[Key]]:
        """Those of Plimsoll that reconcile objects."""
        parts = [part for part in (self.tidb, self.kafka) if part is not None]
        return [controller for part in parts for controller in part.list_controllers()]

    async def run(self) -> None:
        """Until cancelled; then everything is stopped in reverse order."""
        dependencies = self._dependencies
        supervisor = Supervisor(self.list_services(), clock=dependencies.clock, entropy=dependencies.entropy)
        await supervisor.run()

    # ---- parts

    def _build_autoscaler(self) -> EmbeddedNodeAutoscaler | None:
        """The node autoscaler on the same informers; it leads unless another autoscaler holds the lease."""
        if not self._settings.autoscales:
            return None
        return EmbeddedNodeAutoscaler(self.local.components, self._dependencies, self._settings.autoscaler_options)

    def _build_tidb(self) -> EmbeddedTidb | None:
        if self.local.tidb is None:
            return None
        tidb = EmbeddedTidbDependencies(
            tidb=self.local.tidb,
            clock=self._dependencies.clock,
            entropy=self._dependencies.entropy,
            journal=self._dependencies.journal,
            adds_nodes=self._settings.autoscales,
            election=self.build_election("TiDB autoscaler", TIDB_LEASE) if self._settings.scales_tidb else None,
        )
        return EmbeddedTidb(self.local.components, tidb)

    def _build_kafka(self) -> EmbeddedKafka | None:
        if self.local.kafka is None or not self._settings.has_kafka:
            return None
        kafka = EmbeddedKafkaDependencies(
            connector=SimulatedBrokers(self.local.kafka.clusters.find),
            clock=self._dependencies.clock,
            entropy=self._dependencies.entropy,
            journal=self._dependencies.journal,
            election=self.build_election("Kafka operator", KAFKA_LEASE) if self._settings.operates_kafka else None,
            run_blocking=self._dependencies.run_planner,
        )
        return EmbeddedKafka(self.local.components, kafka)

    def build_election(self, name: str, lease: LeaseSettings) -> EmbeddedElection:
        """The candidacies of a controller in this cluster."""
        dependencies = self._dependencies
        election = self.elections[name] = EmbeddedElection(
            lease,
            dependencies.transport,
            self.connect(lease.field_manager),
            clock=dependencies.clock,
            entropy=dependencies.entropy,
        )
        return election
