"""Pods of Kafka clusters as real processes: the `ContainerRuntime` of the virtual kubelet for brokers and controllers.

A pod becomes a directory, a configuration and a JVM. A controller is ready when it listens, a broker when the cluster
also says that it is not fenced. Whatever happens to this process, the nodes end with it (`distribution`).
"""

from __future__ import annotations

import asyncio
import signal
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Protocol

import structlog

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.informer.events import Key
from plimsoll.local.kafka.broker_pods import BROKER_LABEL, keeps_data, read_broker_pod, read_node_cluster
from plimsoll.local.kafka.processes.cluster_security import ClusterSecurity
from plimsoll.local.kafka.processes.configuration import CONTROL_PLANE, HOST, REPLICATION
from plimsoll.local.kafka.processes.node_preparation import NodePreparation, NotPrepared
from plimsoll.local.kafka.processes.node_process import DirectoryInUse, NodeProcess
from plimsoll.local.kafka.topology import KafkaTopology
from plimsoll.local.kubelet.process_status import ContainerProcess
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from plimsoll.local.components import Components
    from plimsoll.local.kafka.processes.distribution import KafkaDistribution
    from plimsoll.objects.api.kafka import Kafka
    from plimsoll.objects.api.pods import Pod

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

NAME: Final = "kafka-processes"
_LOOK_S: Final = 0.2
_PROBE_S: Final = 0.5
"""How often a broker that is not ready is asked for."""
_PROBE_READY_S: Final = 5.0
_PROBE_FAILURES: Final = 3
"""As many answers without a ready broker in a row make it unready."""
_DEFAULT_GRACE_S: Final = 30.0
_STOP_ALL_S: Final = 3.0
"""When everything stops: brokers that end together have no other broker to hand their partitions to."""
_CONNECT_S: Final = 1.0


class BrokerProbe(Protocol):
    """Asks brokers of a cluster which of them are not fenced."""

    async def list_unfenced(self, kafka: Kafka) -> frozenset[int]:
        """Their ids; none while no broker answers."""
        ...

    async def close(self) -> None: ...


@dataclass(slots=True)
class _Node:
    """A pod that was started."""

    key: Key
    pod: Pod
    cluster: Key
    node_id: int
    is_broker: bool
    process: NodeProcess | None = None
    starting: asyncio.Task[None] | None = None
    message: str = ""
    is_ready: bool = False
    failures: int = 0
    kill_at_s: float | None = None
    """It was asked to stop, and is killed then."""
    is_reported: bool = False
    """Its end was reported."""

    @property
    def is_running(self) -> bool:
        return self.process is not None and self.process.is_running

    @property
    def has_ended(self) -> bool:
        return self.process is not None and self.process.exit_code is not None


class KafkaProcesses:
    """Runs the pods of Kafka clusters. Made before the informers run; `list_services` must run before the kubelet."""

    address = HOST

    def __init__(
        self,
        components: Components,
        distribution: KafkaDistribution,
        root: Path,
        *,
        build_probe: Callable[[KafkaProcesses], BrokerProbe],
    ) -> None:
        component = components.build_component(NAME)
        self._clock = component.clock
        self._topology = KafkaTopology(component.informers)
        self._distribution = distribution
        security = ClusterSecurity(component.client, clock=component.clock)
        self._preparation = NodePreparation(
            self._topology, distribution, root, security=security, entropy=component.entropy
        )
        self._nodes: dict[str, _Node] = {}
        self._removed: list[_Node] = []
        """Nodes whose pods are gone and whose processes are still ending."""
        self._bootstrap: dict[Key, tuple[str, ...]] = {}
        self._report: Callable[[Key], None] = lambda _key: None
        self._probe = build_probe(self)
        self._probed_at_s: dict[Key, float] = {}
        self._is_closed = False

    def list_services(self) -> list[Service]:
        return [Service(name=NAME, run=self.run), Service(name=f"{NAME}: readiness", run=self.run_probes)]

    # ---- the runtime of the kubelet

    def can_run(self, pod: Pod) -> bool:
        return read_node_cluster(pod) is not None and read_broker_pod(pod) is not None

    def subscribe(self, on_change: Callable[[Key], None]) -> None:
        self._report = on_change

    def find_process(self, pod: Pod) -> ContainerProcess | None:
        node = self._nodes.get(pod.metadata.uid)
        if node is None:
            return None
        exit_code = node.process.exit_code if node.process is not None else None
        return ContainerProcess(
            is_running=node.is_running, is_ready=node.is_ready, exit_code=exit_code, message=node.message
        )

    def start(self, pod: Pod) -> None:
        uid, cluster, found = pod.metadata.uid, read_node_cluster(pod), read_broker_pod(pod)
        known = self._nodes.get(uid)
        if self._is_closed or cluster is None or found is None or (known is not None and not known.has_ended):
            return
        node = _Node(
            key=Key(pod.metadata.namespace, pod.metadata.name),
            pod=pod,
            cluster=cluster,
            node_id=found.id,
            is_broker=pod.metadata.labels.get(BROKER_LABEL) == "true",
        )
        self._nodes[uid] = node
        node.starting = asyncio.get_running_loop().create_task(self._start(node))

    def stop(self, pod: Pod) -> None:
        node = self._nodes.get(pod.metadata.uid)
        if node is None or node.kill_at_s is not None:
            return
        if node.starting is not None:
            node.starting.cancel()
        if node.process is None:
            del self._nodes[pod.metadata.uid]
            return
        grace_s = pod.metadata.deletion_grace_period_seconds
        node.kill_at_s = self._clock.monotonic_s() + (_DEFAULT_GRACE_S if grace_s is None else grace_s)
        node.process.send(signal.SIGTERM)

    def remove(self, pod: Pod) -> None:
        node = self._nodes.pop(pod.metadata.uid, None)
        if node is None:
            return
        if node.starting is not None:
            node.starting.cancel()
        if node.process is not None:
            node.process.send(signal.SIGKILL)
        self._removed.append(node)

    # ---- addresses

    def list_addresses(self, kafka: Kafka) -> tuple[str, ...]:
        """HOST:PORT of brokers of a cluster, between brokers. The list stays the same while one of them runs."""
        key = Key(kafka.metadata.namespace, kafka.metadata.name)
        running = self.list_listeners(kafka, REPLICATION)
        if not set(self._bootstrap.get(key, ())) & set(running):
            self._bootstrap[key] = running
        return self._bootstrap[key]

    def list_listeners(self, kafka: Kafka, listener: str) -> tuple[str, ...]:
        """HOST:PORT of a listener of every broker that runs, in the order of their ids."""
        key = Key(kafka.metadata.namespace, kafka.metadata.name)
        cluster = self._preparation.open_cluster(kafka)
        brokers = [node for node in self._nodes.values() if node.cluster == key and node.is_broker and node.is_running]
        ports = [cluster.get_port(node.key.name, listener) for node in sorted(brokers, key=lambda node: node.node_id)]
        return tuple(f"{HOST}:{port}" for port in ports if port is not None)

    def are_all_ready(self, kafka: Kafka) -> bool:
        """Whether all brokers that the specs ask for are ready."""
        key = Key(kafka.metadata.namespace, kafka.metadata.name)
        ready = [node for node in self._nodes.values() if node.cluster == key and node.is_broker and node.is_ready]
        return len(ready) >= self._topology.count_desired_brokers(key) > 0

    # ---- the service

    async def run(self) -> None:
        """Follow the processes until cancelled; then end them all."""
        self._is_closed = False
        try:
            while True:
                self._look()
                await self._clock.sleep(_LOOK_S)
        finally:
            self._is_closed = True
            await self._stop_all()

    async def run_probes(self) -> None:
        """Ask for the readiness of all nodes until cancelled."""
        try:
            while True:
                await self._probe_all()
                await self._clock.sleep(_LOOK_S)
        finally:
            await self._probe.close()

    async def _start(self, node: _Node) -> None:
        """Start the process as soon as it can start."""
        while True:
            try:
                directory = await self._preparation.prepare(node.cluster, node.pod)
                process = NodeProcess(self._distribution, directory)
                process.start()
            except (NotPrepared, InvalidInput, DirectoryInUse, OSError) as error:
                self._set_message(node, str(error))
                await self._clock.sleep(_PROBE_S)
                continue
            node.process, node.message = process, ""
            log.info("kafka.started", pod=node.key.name, pid=process.pid)
            self._report(node.key)
            return

    def _set_message(self, node: _Node, message: str) -> None:
        if message != node.message:
            node.message = message
            log.info("kafka.waiting", pod=node.key.name, problem=message)
            self._report(node.key)

    def _look(self) -> None:
        now_s = self._clock.monotonic_s()
        for node in self._nodes.values():
            if node.starting is not None and node.starting.done() and not node.starting.cancelled():
                node.starting.result()  # an error here is a bug, and the supervisor reports it
            if node.has_ended and not node.is_reported:
                assert node.process is not None
                node.is_reported, node.is_ready = True, False
                if node.kill_at_s is None:
                    log.warning("kafka.ended", pod=node.key.name, exit_code=node.process.exit_code)
                self._report(node.key)
            elif node.kill_at_s is not None and now_s >= node.kill_at_s and node.process is not None:
                node.process.send(signal.SIGKILL)
        for node in [node for node in self._removed if not node.is_running]:
            self._removed.remove(node)
            self._remove_data(node)

    def _remove_data(self, node: _Node) -> None:
        """Delete ephemeral volumes, which end with their pod."""
        kafka, found = self._topology.find_kafka(node.cluster), read_broker_pod(node.pod)
        if kafka is None or found is None or keeps_data(self._topology.find_storage(node.cluster, found)):
            return
        self._preparation.open_cluster(kafka).remove_data(node.key.name, uid=node.pod.metadata.uid)

    # ---- readiness

    async def _probe_all(self) -> None:
        clusters: dict[Key, list[_Node]] = {}
        for node in self._nodes.values():
            if node.is_running and node.kill_at_s is None:
                clusters.setdefault(node.cluster, []).append(node)
        now_s = self._clock.monotonic_s()
        for key, nodes in clusters.items():
            every_s = _PROBE_READY_S if all(node.is_ready for node in nodes) else _PROBE_S
            if now_s - self._probed_at_s.get(key, -every_s) >= every_s:
                self._probed_at_s[key] = now_s
                await self._probe_cluster(key, nodes)

    async def _probe_cluster(self, key: Key, nodes: list[_Node]) -> None:
        kafka = self._topology.find_kafka(key)
        if kafka is None:
            return
        listening = {node.node_id for node in nodes if await self._is_listening(kafka, node)}
        # A client waits long for brokers that do not listen yet.
        has_brokers = any(node.is_broker and node.node_id in listening for node in nodes)
        unfenced = await self._probe.list_unfenced(kafka) if has_brokers else frozenset()
        for node in nodes:
            # A broker that was killed and starts again is not fenced until the controller misses it.
            is_ready = node.node_id in listening and (node.node_id in unfenced or not node.is_broker)
            self._set_ready(node, is_ready=is_ready)

    def _set_ready(self, node: _Node, *, is_ready: bool) -> None:
        node.failures = 0 if is_ready else node.failures + 1
        if node.is_ready != is_ready and (is_ready or node.failures >= _PROBE_FAILURES):
            node.is_ready = is_ready
            log.info("kafka.ready" if is_ready else "kafka.unready", pod=node.key.name)
            self._report(node.key)

    async def _is_listening(self, kafka: Kafka, node: _Node) -> bool:
        cluster = self._preparation.open_cluster(kafka)
        first = {controller.node_id: controller.port for controller in cluster.controllers}
        port = cluster.get_port(node.key.name, REPLICATION if node.is_broker else CONTROL_PLANE)
        port = port or first.get(node.node_id)
        if port is None:
            return False
        try:
            async with asyncio.timeout(_CONNECT_S):
                _, writer = await asyncio.open_connection(HOST, port)
        except (OSError, TimeoutError):
            return False
        writer.close()
        return True

    # ---- the end

    async def _stop_all(self) -> None:
        """Brokers first: without a controller they hang."""
        nodes = [*self._nodes.values(), *self._removed]
        for node in nodes:
            if node.starting is not None:
                node.starting.cancel()
        brokers = [node.process for node in nodes if node.is_broker and node.process is not None]
        controllers = [node.process for node in nodes if not node.is_broker and node.process is not None]
        try:
            for processes in (brokers, controllers):
                await self._end(processes)
        finally:
            for process in (*brokers, *controllers):
                process.stop(signal.SIGKILL)

    async def _end(self, processes: list[NodeProcess]) -> None:
        for process in processes:
            process.send(signal.SIGTERM)
        until_s = self._clock.monotonic_s() + _STOP_ALL_S
        while any(process.is_running for process in processes) and self._clock.monotonic_s() < until_s:
            await self._clock.sleep(_LOOK_S)
        for process in processes:
            process.stop(signal.SIGKILL)
