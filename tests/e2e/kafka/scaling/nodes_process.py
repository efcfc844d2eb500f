"""The nodes of a cluster as a process: scheduler, kubelets, and broker pods as real Kafka. No operator, no API server.

It creates the Kafka of `plimsoll kafka try`.

    python -m tests.e2e.kafka.scaling.nodes_process KUBECONFIG DIRECTORY
"""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from plimsoll.app.kafka.broker_probe import ConnectedBrokerProbe
from plimsoll.app.kafka.sample_cluster import SampleCluster, create_sample_cluster
from plimsoll.cli.shared.connection import Connection
from plimsoll.kafka.brokers.access import KubernetesBrokers
from plimsoll.kube.client import Client
from plimsoll.kube.http.transport import HttpTransport
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.kube.secret_tls import ClusterSecrets
from plimsoll.local.cluster import ClusterSettings, LocalCluster
from plimsoll.local.initial_cluster import InitialCluster, InitialGroup, prepare_cluster
from plimsoll.local.kafka.processes.distribution import find_distribution
from plimsoll.local.kafka.processes.kafka_processes import KafkaProcesses
from plimsoll.objects.api.nodes import Node, is_node_ready
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.entropy import SystemEntropy
from plimsoll.runtime.signals import run_until_signalled
from plimsoll.runtime.supervisor import OnEnd, RestartPolicy, Service, Supervisor

if TYPE_CHECKING:
    from plimsoll.kube.transport import Transport

NODES = 3


async def run(kubeconfig: Path, directory: Path) -> None:
    access = Connection(kubeconfig=str(kubeconfig), context="", server="").build_access(clock=RealClock())
    async with HttpTransport(access, user_agent="nodes") as transport:
        await _run(transport, directory)


async def _run(transport: Transport, directory: Path) -> None:
    clock, entropy = RealClock(), SystemEntropy()

    def connect(manager: str) -> Client:
        settings = ClientSettings(user_agent=manager, field_manager=manager, qps=0)
        return Client(transport, clock=clock, entropy=entropy, settings=settings, kinds=OUR_KINDS)

    client = connect("nodes")
    await prepare_cluster(client, InitialCluster(nodes=NODES, group=InitialGroup(boot_s=0.0)))
    cluster = LocalCluster(
        connect, clock=clock, entropy=entropy, settings=ClusterSettings(plays_tidb=False, plays_kafka=False)
    )

    def build_probe(processes: KafkaProcesses) -> ConnectedBrokerProbe:
        secrets = ClusterSecrets(client)
        return ConnectedBrokerProbe(KubernetesBrokers(secrets, list_addresses=processes.list_addresses))

    processes = KafkaProcesses(cluster.components, find_distribution(), directory, build_probe=build_probe)
    cluster.kubelet.pods.use_runtime(processes)

    async def create_objects() -> None:
        """Pods are spread over the nodes that exist."""
        while sum(is_node_ready(node) for node in (await client.list(Node)).items) < NODES:
            await clock.sleep(0.2)
        await create_sample_cluster(client, SampleCluster(), entropy=entropy)

    creating = Service(name="objects", run=create_objects, policy=RestartPolicy(on_end=OnEnd.EXPECTED))
    services = [*processes.list_services(), *cluster.list_services(), creating]
    await Supervisor(services, clock=clock, entropy=entropy).run()


if __name__ == "__main__":
    asyncio.run(run_until_signalled(run(Path(sys.argv[1]), Path(sys.argv[2]))))
