"""Prepares the files of a node: its configuration, and log directories with the first quorum."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput, PlimsollError
from plimsoll.kube.errors import ApiCallFailed
from plimsoll.local.kafka.broker_pods import BROKER_LABEL, CONTROLLER_LABEL, keeps_data, read_broker_pod
from plimsoll.local.kafka.kafka_ids import build_cluster_id
from plimsoll.local.kafka.processes.cluster_directory import ClusterDirectory
from plimsoll.local.kafka.processes.cluster_security import SCRAM
from plimsoll.local.kafka.processes.configuration import (
    BROKER,
    CONTROL_PLANE,
    CONTROLLER,
    HOST,
    REPLICATION,
    KafkaListener,
    NodeConfiguration,
    build_internal_listener,
    build_listener,
    build_properties,
    format_properties,
    read_listeners,
    read_settings,
)
from plimsoll.local.kafka.processes.node_process import PROPERTIES, build_format_command, is_in_use
from plimsoll.objects.kafka_security import read_internal_security

if TYPE_CHECKING:
    from pathlib import Path

    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.informer.events import Key
    from plimsoll.local.kafka.processes.cluster_security import ClusterSecurity
    from plimsoll.local.kafka.processes.distribution import KafkaDistribution
    from plimsoll.local.kafka.topology import KafkaTopology
    from plimsoll.objects.api.kafka import Kafka
    from plimsoll.objects.api.pods import Pod

_UID_LENGTH: Final = 8
_SHOWN: Final = 500


class NotPrepared(PlimsollError):
    """A node cannot start yet, or not as it is written. The message says what it waits for."""


class NodePreparation:
    """Prepares the nodes of all clusters."""

    def __init__(
        self,
        topology: KafkaTopology,
        distribution: KafkaDistribution,
        root: Path,
        *,
        security: ClusterSecurity,
        entropy: Entropy,
    ) -> None:
        self._topology = topology
        self._distribution = distribution
        self._root = root
        self._security = security
        self._entropy = entropy
        self._clusters: dict[str, ClusterDirectory] = {}

    def open_cluster(self, kafka: Kafka) -> ClusterDirectory:
        """The directory of a cluster. A Kafka made anew has a new one."""
        metadata = kafka.metadata
        if metadata.uid not in self._clusters:
            name = f"{metadata.name}-{metadata.uid[:_UID_LENGTH]}"
            self._clusters[metadata.uid] = ClusterDirectory(
                self._root / metadata.namespace / name, build_cluster_id(metadata.uid), entropy=self._entropy
            )
        return self._clusters[metadata.uid]

    async def prepare(self, key: Key, pod: Pod) -> Path:
        """The directory of a pod of a cluster, ready for its process. Raises `NotPrepared`."""
        kafka, node = self._topology.find_kafka(key), read_broker_pod(pod)
        if kafka is None or node is None:
            raise NotPrepared(f"there is no Kafka {key.namespace}/{key.name}" if node else "its name has no node id")
        cluster = self.open_cluster(kafka)
        if is_in_use(cluster.get_node(pod.metadata.name)):
            raise NotPrepared("an earlier process still runs on its directory")
        self._choose_quorum(key, cluster)
        roles = _read_roles(pod)
        name = pod.metadata.name
        storage = self._topology.find_storage(key, node)
        log_dirs = cluster.prepare_log_dirs(
            name, self._topology.find_log_dirs(key, node), uid=pod.metadata.uid, keeps_data=keeps_data(storage)
        )
        try:
            listeners = await self._build_listeners(kafka, cluster, pod, roles)
        except (InvalidInput, ApiCallFailed) as error:
            raise NotPrepared(str(error)) from None
        first = {controller.node_id: controller for controller in cluster.controllers}
        properties = build_properties(
            NodeConfiguration(
                node_id=node.id,
                roles=roles,
                controllers=tuple(f"{HOST}:{controller.port}" for controller in cluster.controllers),
                log_dirs=log_dirs,
                rack=self._topology.find_rack(key, node) if BROKER in roles else "",
                control_plane=listeners[CONTROL_PLANE],
                listeners=tuple(listener for listener in listeners.values() if listener.name != CONTROL_PLANE),
                settings=read_settings(kafka.spec.kafka.config),
            )
        )
        cluster.write_file(name, PROPERTIES, format_properties(properties).encode())
        if node.id not in first:
            cluster.write_meta(log_dirs, node.id)
        elif not cluster.is_formatted(log_dirs):
            await self._format(kafka, cluster, name)
        return cluster.get_node(name)

    def _choose_quorum(self, key: Key, cluster: ClusterDirectory) -> None:
        """All controllers of the first quorum are in its metadata log from the beginning."""
        if cluster.controllers:
            return
        found, desired = self._topology.list_controllers(key), self._topology.count_desired_controllers(key)
        if not desired:
            raise NotPrepared("no KafkaNodePool of the cluster has the role controller")
        if len(found) < desired:
            raise NotPrepared(f"{len(found)} of {desired} controllers have a pod")
        cluster.choose_controllers(found)

    async def _build_listeners(
        self, kafka: Kafka, cluster: ClusterDirectory, pod: Pod, roles: tuple[str, ...]
    ) -> dict[str, KafkaListener]:
        """By name. Raises `InvalidInput`."""
        node = read_broker_pod(pod)
        assert node is not None
        security = read_internal_security(kafka)
        specs = read_listeners(kafka.spec.kafka.listeners) if BROKER in roles else ()
        first = {controller.node_id: controller.port for controller in cluster.controllers}
        wanted = [] if node.id in first or CONTROLLER not in roles else [CONTROL_PLANE]
        if BROKER in roles:
            wanted += [REPLICATION, *(spec.full_name for spec in specs)]
        ports = {CONTROL_PLANE: first.get(node.id, 0), **cluster.choose_ports(pod.metadata.name, wanted)}
        stores: dict[str, str] = {}
        if security.is_encrypted or any(spec.is_encrypted for spec in specs):
            stores = await self._write_stores(kafka, cluster, pod.metadata.name)
        listeners: dict[str, KafkaListener] = {}
        for name in [CONTROL_PLANE, *([REPLICATION] if BROKER in roles else [])]:
            listeners[name] = build_internal_listener(name, ports[name], security, stores)
        for spec in specs:
            listeners[spec.full_name] = build_listener(spec, ports[spec.full_name], stores)
        return listeners

    async def _write_stores(self, kafka: Kafka, cluster: ClusterDirectory, pod: str) -> dict[str, str]:
        """The settings of a listener with a new certificate of the node."""
        key_store, trust_store = await self._security.issue_node_certificate(kafka, pod)
        return {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(cluster.write_file(pod, "key-store.pem", key_store)),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(cluster.write_file(pod, "trust-store.pem", trust_store)),
        }

    async def _format(self, kafka: Kafka, cluster: ClusterDirectory, pod: str) -> None:
        """Write the first quorum and the users into the log directories of a controller. Raises `NotPrepared`."""
        try:
            passwords = await self._security.list_passwords(kafka)
        except ApiCallFailed as error:
            raise NotPrepared(str(error)) from None
        users = [f"{SCRAM}=[name={user},password={password}]" for user, password in sorted(passwords.items())]
        voters = ",".join(controller.format_voter() for controller in cluster.controllers)
        command = build_format_command(
            self._distribution, cluster.get_node(pod), cluster.cluster_id, voters, users=users
        )
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        try:
            output, _ = await process.communicate()
        finally:
            if process.returncode is None:
                process.kill()
        if process.returncode != 0:
            raise NotPrepared(f"its log directories cannot be formatted: {output.decode(errors='replace')[-_SHOWN:]}")


def _read_roles(pod: Pod) -> tuple[str, ...]:
    labels = {BROKER: BROKER_LABEL, CONTROLLER: CONTROLLER_LABEL}
    return tuple(role for role, label in labels.items() if pod.metadata.labels.get(label) == "true")
