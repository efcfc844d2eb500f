"""Add-ons of clusters in this process: what the simulated OCM installs is services that run beside the cluster.

An add-on is a program of its own: it has its own informers, and it ends and begins again while its cluster goes on.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

from plimsoll.app.fleet.operator_deployment import build_deployment_service
from plimsoll.app.kafka.embedded_kafka import KAFKA_LEASE, EmbeddedKafka, EmbeddedKafkaDependencies
from plimsoll.app.kafka.simulated_connector import SimulatedBrokers
from plimsoll.kafka.settings import NAME
from plimsoll.local.components import Components

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.app.embedded_cluster import EmbeddedCluster
    from plimsoll.app.embedded_dependencies import EmbeddedDependencies
    from plimsoll.kafka.brokers.ports import BrokerConnector
    from plimsoll.local.kafka.simulated import SimulatedClusters
    from plimsoll.local.ocm.ports import ClusterSpec
    from plimsoll.runtime.supervisor import Service

KAFKA_OPERATOR_ADDON: Final = "managed-kafka"
"""The id of the Kafka operator at OCM."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AddonHost:
    """The cluster that an add-on is installed in."""

    spec: ClusterSpec
    cluster: EmbeddedCluster
    dependencies: EmbeddedDependencies

    def build_components(self) -> Components:
        """Clients, informers and recorders of one program. Its services are to be started before those that use it."""
        dependencies = self.dependencies
        return Components(self.cluster.connect, clock=dependencies.clock, entropy=dependencies.entropy)


class Addon(Protocol):
    """Builds the services of an add-on. They end before others are built for changed parameters."""

    def build_services(self, host: AddonHost, parameters: Mapping[str, str]) -> Sequence[Service]:
        """In the order in which they are started. Raises `DataPlaneFailed` for parameters that cannot be used."""
        ...


class KafkaOperatorAddon:
    """The Kafka operator, on the simulated brokers of the cluster. It takes the lease that `run kafka` takes."""

    def build_connector(self, clusters: SimulatedClusters) -> BrokerConnector:
        """The way to the brokers."""
        return SimulatedBrokers(clusters.find)

    def build_services(self, host: AddonHost, parameters: Mapping[str, str]) -> Sequence[Service]:  # noqa: ARG002 -- it has none
        brokers = host.cluster.local.kafka
        assert brokers is not None, "clusters of a fleet have brokers"
        components = host.build_components()
        operator = EmbeddedKafka(
            components,
            EmbeddedKafkaDependencies(
                connector=self.build_connector(brokers.clusters),
                clock=host.dependencies.clock,
                entropy=host.dependencies.entropy,
                journal=host.dependencies.journal,
                election=host.cluster.build_election("Kafka operator", KAFKA_LEASE),
                run_blocking=host.dependencies.run_planner,
            ),
        )
        return [
            *components.list_services(whose="Kafka operator"),
            *operator.list_services(),
            build_deployment_service(host.cluster.connect(NAME)),
        ]
