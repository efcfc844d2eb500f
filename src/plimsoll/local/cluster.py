"""A whole simulated cluster on any API server: controllers, scheduler, virtual kubelet, cloud, TiDB, Kafka brokers.

The only place where the parts of `local` are combined. `plimsoll up` runs one with its API server, scenarios run one in
virtual time; both pass `list_services()` to a supervisor. Nothing here decides about an object, and nothing is kept: a
second cluster built from the same settings continues where the first one was.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.kube.informer.informer import DEFAULT_SETTINGS
from plimsoll.kube.informer.settings import InformerSettings  # noqa: TC001 -- msgspec resolves it at run time
from plimsoll.local.cloud.controller import CloudSettings
from plimsoll.local.cloud.controller import build_controllers as cloud_controllers
from plimsoll.local.components import KUBELET, SCHEDULER, Components
from plimsoll.local.controller_manager.pod_gc import PodGcSettings
from plimsoll.local.controller_manager.services import (
    build_disruption_services,
    build_garbage_collector_services,
    build_namespace_services,
    build_node_lifecycle_services,
    build_pod_gc_services,
)
from plimsoll.local.controller_manager.workloads.daemon_sets.controller import build_daemon_set_services
from plimsoll.local.controller_manager.workloads.deployments.controller import build_deployment_services
from plimsoll.local.controller_manager.workloads.jobs.controller import build_job_services
from plimsoll.local.controller_manager.workloads.replica_sets.controller import build_replica_set_services
from plimsoll.local.controller_manager.workloads.stateful_sets.controller import build_stateful_set_services
from plimsoll.local.endpoints.services import build_endpoint_services
from plimsoll.local.kafka.simulated import SimulatedBrokerPods, SimulatedClusters
from plimsoll.local.kubelet import Kubelet, KubeletSettings
from plimsoll.local.liveness import CombinedLiveness, LeaseLiveness, ReportedLiveness
from plimsoll.local.scheduler import Scheduler, SchedulerSettings
from plimsoll.local.tidb.simulated import SimulatedTidb
from plimsoll.local.volumes.services import build_volume_services
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from collections.abc import Container

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.local.components import Connect
    from plimsoll.local.liveness import Liveness

CLOUD: Final = "plimsoll-cloud"
"""Whom the cloud writes as."""

_WORKLOADS: Final = (
    build_deployment_services,
    build_stateful_set_services,
    build_daemon_set_services,
    build_job_services,
)
_CLUSTER_CONTROLLERS: Final = (
    build_disruption_services,
    build_namespace_services,
    build_volume_services,
    build_endpoint_services,
)


class ClusterSettings(Value, frozen=True):
    """What kind of cluster it is. The defaults are those of one that people look at."""

    schedules: bool = True
    """The scheduler runs by itself; otherwise only when `scheduler.schedule_once` is called."""
    plays_nodes: bool = True
    """Kubelets report their nodes, and silent nodes are noticed; otherwise nodes are and stay what objects say."""
    writes_heartbeats: bool = True
    """Whether node Leases are renewed, for their observers. The kubelet reports its nodes directly in any case."""
    kubelet: KubeletSettings = KubeletSettings()
    scheduler: SchedulerSettings = SchedulerSettings()
    cloud: CloudSettings = CloudSettings()
    informers: InformerSettings = DEFAULT_SETTINGS
    patience_s: float = 0.0
    """How long the status of a replica set may wait for what else happens: one write covers many pods."""
    pod_collection: PodGcSettings = PodGcSettings()
    plays_tidb: bool = True
    """TidbClusters are made of pods, and have a PD and a Prometheus."""
    plays_kafka: bool = True
    """Pods of Kafka clusters are brokers."""


class LocalCluster:
    """Made before its informers run. `scheduler` is there in any case, `tidb` if TiDB is simulated, `kafka` with Kafka.

    `kafka_clusters` live longer than the process, as brokers do. Without them clusters are stored in ConfigMaps.

    What is owned by an object of `spared_owners` (uids) is not collected though that owner is not there: scenarios have
    pods of controllers that are not in the scenario.
    """

    def __init__(
        self,
        connect: Connect,
        *,
        clock: Clock,
        entropy: Entropy,
        settings: ClusterSettings | None = None,
        spared_owners: Container[str] = frozenset(),
        kafka_clusters: SimulatedClusters | None = None,
    ) -> None:
        self._settings = settings = settings or ClusterSettings()
        self._spared_owners = spared_owners
        self.components = parts = Components(connect, clock=clock, entropy=entropy, informers=settings.informers)
        reported = ReportedLiveness(clock=clock)
        self._liveness: Liveness = reported
        if settings.writes_heartbeats:
            self._liveness = CombinedLiveness(reported, LeaseLiveness.from_informers(parts.informers, clock=clock))
        self.scheduler = Scheduler(
            parts.build_component(settings.scheduler.name, manager=SCHEDULER), settings.scheduler
        )
        self.kubelet = Kubelet(
            parts.build_component("kubelet", manager=KUBELET),
            settings=settings.kubelet,
            liveness=reported,
            writes=settings.writes_heartbeats,
        )
        self.tidb = SimulatedTidb(parts) if settings.plays_tidb else None
        self.kafka = self._build_broker_pods(kafka_clusters, clock) if settings.plays_kafka else None
        self._parts = [*self._build_controller_services(), *self._build_node_services(), *self._build_cloud_services()]
        if self.tidb is not None:
            self._parts += self.tidb.build_services()
        if self.kafka is not None:
            self._parts += self.kafka.list_services()
        if settings.schedules:
            self._parts.append(self.scheduler.build_service())

    def list_services(self) -> list[Service]:
        """Everything, in the order in which it is to be started."""
        return [*self.components.list_services(), *self._parts]

    def _build_controller_services(self) -> list[Service]:
        made = [
            service for services_of in (*_WORKLOADS, *_CLUSTER_CONTROLLERS) for service in services_of(self.components)
        ]
        garbage = build_garbage_collector_services(self.components, spared_owners=self._spared_owners)
        sets = build_replica_set_services(self.components, patience_s=self._settings.patience_s)
        return [*made, *sets, *garbage, *build_pod_gc_services(self.components, self._settings.pod_collection)]

    def _build_broker_pods(self, clusters: SimulatedClusters | None, clock: Clock) -> SimulatedBrokerPods:
        return SimulatedBrokerPods(self.components, clusters or SimulatedClusters(clock), keeps_state=clusters is None)

    def _build_node_services(self) -> list[Service]:
        if self._settings.plays_nodes:
            return [*self.kubelet.list_services(), *build_node_lifecycle_services(self.components, self._liveness)]
        pods = self.kubelet.pods.controller
        return [Service(name=pods.name, run=pods.run)]

    def _build_cloud_services(self) -> list[Service]:
        made = cloud_controllers(self.components.build_component("cloud", manager=CLOUD), self._settings.cloud)
        return [Service(name=controller.name, run=controller.run) for controller in made]
