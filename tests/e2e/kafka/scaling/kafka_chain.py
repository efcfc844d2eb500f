"""Kafka on real brokers whose parts are processes of their own: API server, nodes with the brokers, operator.

Each part can be killed and started again while the others run.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any

import msgspec
from kafka import KafkaAdminClient, KafkaProducer, TopicPartition

from plimsoll.app.kafka.sample_cluster import PLAIN_LISTENER, fill_topics
from plimsoll.local.kafka.processes.cluster_directory import ClusterFile
from plimsoll.local.kafka.processes.configuration import HOST
from tests.e2e.kafka.test_scaling import TriedKafka, list_processes
from tests.e2e.ports import lasting_port
from tests.e2e.timeouts import PATIENCE_S
from tests.e2e.up.up_processes import REPOSITORY, UpProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from plimsoll.kafka.brokers.ports import ConfigChange

FIRST_BROKERS = 3
CONTROLLER_POD = "my-cluster-controllers-100"
MOVING = "Rebalancing"
_SHOWN = 3_000
_NODES = "tests.e2e.kafka.scaling.nodes_process"
_OPERATOR = "tests.e2e.kafka.scaling.operator_process"
_STRIMZI = "tests.e2e.kafka.scaling.strimzi_process"


class KafkaChain(TriedKafka):
    """The cluster of `plimsoll kafka try`, in parts. `close` ends all of them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.brokers_directory = directory / "brokers"
        self._port = lasting_port()
        self._processes: list[subprocess.Popen[Any]] = []
        self.operator: subprocess.Popen[Any] | None = None
        self.properties = {}

    def start(self) -> None:
        """Start all parts, and wait until there are brokers with topics."""
        self.directory.mkdir(exist_ok=True)
        self.start_server()
        self._launch("nodes", "-m", _NODES, str(self.kubeconfig), str(self.brokers_directory))
        # An operator does not start without the definitions.
        has_kafka = ("get", "kafka", "my-cluster", "-n", "kafka")
        self._wait_until(lambda: self.up.stated(*has_kafka).code == 0, "the objects are there")
        self.start_operator()
        self._wait_until(lambda: self.count_ready() == FIRST_BROKERS, "the brokers are ready")
        self.bootstrap = ",".join(self.list_addresses())
        asyncio.run(fill_topics(tuple(self.list_addresses()), None))

    def _wait_until(self, is_so: Callable[[], bool], what: str) -> None:
        """A part that has ended ends the waiting."""

        def look() -> bool:
            ended = [process.args for process in self._processes if process.poll() is not None]
            assert not ended, f"ended before {what}: {ended}"
            return is_so()

        self.up.until(look, what)

    def close(self) -> None:
        for process in reversed(self._processes):
            process.kill()
            process.wait()

    def describe_processes(self) -> str:
        """The end of what each part and each node wrote."""
        logs = [*self.directory.glob("*.log"), *self.brokers_directory.glob("*/*/*/log")]
        return "\n".join(f"--- {path}:\n{path.read_text(errors='replace')[-_SHOWN:]}" for path in sorted(logs))

    @property
    def kubeconfig(self) -> Path:
        return self.directory / "cluster" / "kubeconfig"

    # ---- parts

    def start_server(self) -> None:
        data = self.directory / "cluster"
        server = self._launch(
            "apiserver", "-m", "plimsoll", "apiserver", "--data", str(data), "--port", str(self._port)
        )
        self.up = UpProcess(server, data, "", 0.0, 0.0, self.directory / "apiserver.log")
        self.up.until(lambda: self.up.stated("get", "--raw", "/readyz").code == 0, "the API server answers")

    def kill_server(self) -> None:
        self.up.die()

    def start_operator(self, *, exit_after: int = 0) -> None:
        words = [str(self.kubeconfig), str(self.brokers_directory), f"--exit-after={exit_after}"]
        self.operator = self._launch("operator", "-m", _OPERATOR, *words)

    def kill_operator(self) -> None:
        assert self.operator is not None
        self.operator.kill()
        self.operator.wait()
        self.operator = None

    def start_companion(self, address: str) -> None:
        """It stands in the place of the operator, and serves its engines as Cruise Controls."""
        words = [str(self.kubeconfig), str(self.brokers_directory), f"--companion={address}"]
        self.operator = self._launch("companion", "-m", _OPERATOR, *words)

    @contextmanager
    def running_strimzi(self, cruise_control: str) -> Iterator[None]:
        """Pod sets and KafkaRebalances are Strimzi's; the Cruise Control of the cluster is at the address."""
        process = self._launch("strimzi", "-m", _STRIMZI, str(self.kubeconfig), cruise_control)
        try:
            yield
        finally:
            process.kill()
            process.wait()

    @contextmanager
    def without_operator(self) -> Iterator[None]:
        """Its place is free for another one."""
        self.kill_operator()
        try:
            yield
        finally:
            if self.operator is not None:
                self.kill_operator()
            self.start_operator()

    def _launch(self, name: str, *words: str) -> subprocess.Popen[Any]:
        with (self.directory / f"{name}.log").open("a") as log:
            # They end with this process, however it ends.
            process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", sys.executable, *words],
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=REPOSITORY,
            )
        self._processes.append(process)
        return process

    # ---- nodes

    def kill_node(self, pod: str) -> None:
        (pid,) = (pid for pid, words in list_processes(self.directory).items() if f"/{pod}/" in words)
        os.kill(pid, signal.SIGKILL)

    @contextmanager
    def keep_down(self, pod: str) -> Iterator[None]:
        """Kill a node; its kubelet cannot start it again: another program holds its directory."""
        with (self.find_node_directory(pod) / "lock").open("a") as lock:
            self.kill_node(pod)
            _take_lock(lock)
            yield

    def find_node_directory(self, pod: str) -> Path:
        (path,) = self.brokers_directory.glob("kafka/my-cluster-*")
        return path / pod

    def list_addresses(self) -> list[str]:
        """HOST:PORT for clients, of the first brokers."""
        (path,) = self.brokers_directory.glob("kafka/my-cluster-*/cluster.json")
        ports = msgspec.json.decode(path.read_bytes(), type=ClusterFile).ports
        brokers = [ports[pod] for pod in sorted(ports) if PLAIN_LISTENER in ports[pod]]
        return [f"{HOST}:{broker[PLAIN_LISTENER]}" for broker in brokers[:FIRST_BROKERS]]

    def count_ready(self) -> int:
        """Brokers whose pods are ready."""
        pods = self.up.objects("pods", "-n", "kafka", "-l", "strimzi.io/broker-role=true")
        conditions = [condition for pod in pods for condition in pod.get("status", {}).get("conditions", ())]
        return sum(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)

    def count_restarts_of(self, pod: str, *, is_ready: bool = True) -> int | None:
        """None: it is not ready, where that is asked for."""
        pods = self.up.objects("pods", "-n", "kafka", f"--field-selector=metadata.name={pod}")
        (container,) = pods[0]["status"]["containerStatuses"]
        return container["restartCount"] if container["ready"] or not is_ready else None

    # ---- scaling

    def wait_for_state(self, *states: str) -> None:
        self.up.until(lambda: self.read_state() in states, f"the state is one of {states}")

    def create_pool(self, name: str, replicas: int, *, node_ids: str) -> None:
        """A pool as that of the brokers, with ids of its own."""
        pools = self.up.objects("kafkanodepools", "-n", "kafka")
        like = next(pool for pool in pools if pool["metadata"]["name"] == "brokers")
        metadata = {
            "name": name,
            "namespace": "kafka",
            "labels": like["metadata"]["labels"],
            "annotations": {"strimzi.io/next-node-ids": node_ids},
        }
        spec = {**like["spec"], "replicas": replicas, "template": {}}
        body = {"apiVersion": like["apiVersion"], "kind": like["kind"], "metadata": metadata, "spec": spec}
        self.up.kubectl("create", "-f", "-", stdin=json.dumps(body))

    def delete_pool(self, name: str) -> None:
        """It is held until its brokers are empty."""
        self.up.kubectl("delete", "kafkanodepool", name, "-n", "kafka", "--wait=false")

    def limit_replication(self, bytes_per_s: int) -> None:
        """The throttle of the next rebalance."""
        patch = f'{{"spec": {{"replicationThrottle": {bytes_per_s}}}}}'
        self.up.kubectl("patch", "kafkarebalancesettings", "rebalancing", "-n", "kafka", "--type=merge", "-p", patch)

    def grow(self) -> None:
        self.scale(FIRST_BROKERS + 1)
        self.wait_until_grown(FIRST_BROKERS)

    def shrink(self) -> None:
        """To the first brokers. What earlier tests left is removed too."""
        self.scale(FIRST_BROKERS)
        self.wait_until_shrunk(FIRST_BROKERS)
        self.wait_until_done()

    def restore(self) -> None:
        """Three brokers, also after a test that failed."""
        if self.operator is None or self.operator.poll() is not None:
            self.start_operator()
        if self.list_registered() != list(range(FIRST_BROKERS)):
            self.up.kubectl("delete", "kafkarebalances", "--all", "-n", "kafka", "--wait=false")
            self.shrink()

    def wait_until_done(self) -> None:
        """Until the operation is over, with nothing left behind."""
        self.wait_for_state("Ready", "Idle", "")
        self.up.until(lambda: not self.up.objects("kafkarebalances", "-n", "kafka"), "no rebalance is left")
        self.up.until(lambda: not self.list_leftovers(), "throttles, cordons and reassignments are gone")

    # ---- topics

    @contextmanager
    def client(self) -> Iterator[KafkaAdminClient]:
        client = KafkaAdminClient(bootstrap_servers=self.bootstrap.split(","), request_timeout_ms=60_000)
        try:
            yield client
        finally:
            client.close()

    def create_topics(self, names: Sequence[str], *, partitions: int = 1) -> None:
        options = {"num_partitions": partitions, "replication_factor": 3}
        with self.client() as client:
            client.create_topics(dict.fromkeys(names, options))

    def create_assigned_topic(self, name: str, assignment: Mapping[int, Sequence[int]]) -> None:
        with self.client() as client:
            client.create_topics({name: {"assignments": {number: list(ids) for number, ids in assignment.items()}}})

    def enlarge_topic(self, name: str, count: int, *, assignment: Sequence[Sequence[int]] = ()) -> None:
        """To a number of partitions. Without an assignment Kafka chooses the brokers."""
        assigned = {"count": count, "assignments": [list(ids) for ids in assignment]}
        with self.client() as client:
            client.create_partitions({name: assigned if assignment else count})

    def delete_topics(self, names: Sequence[str]) -> None:
        with self.client() as client:
            client.delete_topics(list(names))

    def produce(self, topic: str, total_bytes: int, *, partitions: int = 1) -> None:
        producer = KafkaProducer(bootstrap_servers=self.bootstrap.split(","), acks="all", max_request_size=4 << 20)
        try:
            for number in range(total_bytes // 100_000):
                producer.send(topic, bytes(100_000), partition=number % partitions)
            producer.flush(timeout=PATIENCE_S)
        finally:
            producer.close()

    def change_settings(self, changes: Sequence[ConfigChange]) -> None:
        """As another client does."""
        answer = self.ask(lambda admin: admin.alter_configs(changes))
        assert set(answer.values()) == {None}, answer

    def reassign(self, targets: Mapping[tuple[str, int], Sequence[int]]) -> None:
        """As another client does. It is not waited for."""
        wanted = {TopicPartition(*place): list(replicas) for place, replicas in targets.items()}
        with self.client() as client:
            answer = client.alter_partition_reassignments(wanted)
        assert set(answer.values()) == {None}, answer

    def list_replicas(self, topic: str) -> dict[int, tuple[int, ...]]:
        """By partition; empty: there is no such topic."""
        for found in self.ask(lambda admin: admin.describe_topics()):
            if found.name == topic:
                return {partition.partition: tuple(partition.replicas) for partition in found.partitions}
        return {}

    def has_config_map(self, name: str) -> bool:
        return self.up.stated("get", "configmap", name, "-n", "kafka").code == 0

    def list_managers(self, kind: str, name: str) -> list[dict[str, Any]]:
        """The entries of `managedFields`."""
        shown = self.up.kubectl("get", kind, name, "-n", "kafka", "-o", "json", "--show-managed-fields")
        found: list[dict[str, Any]] = json.loads(shown)["metadata"]["managedFields"]
        return found

    def list_conditions(self, kind: str, name: str) -> dict[str, str]:
        """Messages by "TYPE REASON"."""
        found = next(item for item in self.up.objects(kind, "-n", "kafka") if item["metadata"]["name"] == name)
        conditions = found.get("status", {}).get("conditions", ())
        return {
            f"{condition['type']} {condition.get('reason', '')}".strip(): condition.get("message", "")
            for condition in conditions
        }


def _take_lock(lock: IO[str]) -> None:
    until_s = time.monotonic() + PATIENCE_S
    while True:
        with contextlib.suppress(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        assert time.monotonic() < until_s, "the directory is in use"
