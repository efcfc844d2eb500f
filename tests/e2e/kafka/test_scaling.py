"""Real brokers from `kubectl scale` to the last byte: a pool of `plimsoll kafka try` grows and shrinks under load."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from base64 import b64decode, b64encode
from contextlib import contextmanager, suppress
from datetime import timedelta
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from kafka import KafkaAdminClient
from kafka.protocol.metadata import MetadataRequest

from plimsoll.kafka.brokers.answers import read_topics
from plimsoll.kafka.brokers.connection_settings import parse_connection_settings, parse_properties
from plimsoll.kafka.brokers.kafka_python import KafkaPythonAdmin
from plimsoll.kafka.brokers.ports import ConfigResource, KafkaError, KafkaRefused, KafkaUnavailable
from tests.e2e.kafka.admins import FOLLOWER_RATE, FOLLOWER_REPLICAS, LEADER_RATE, LEADER_REPLICAS
from tests.e2e.kafka.record_traffic import RecordTraffic
from tests.e2e.ports import lasting_port
from tests.e2e.timeouts import PATIENCE_S
from tests.e2e.up.up_processes import UpProcess, named, needs_kubectl, running_command
from tests.kube.http.authorities import CertificateAuthority

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from plimsoll.local.kafka.processes.distribution import KafkaDistribution

needs_kubectl()

TOPICS = [f"topic-{number:02}" for number in range(60)]
SEPARATE = "tests.e2e.kafka.scaling.separate_processes"
STATE = "{.status.cruiseControl.autoRebalance.state}"


class TriedKafka:
    """The cluster of a `plimsoll kafka try` that has shown its first screen."""

    def __init__(self, up: UpProcess) -> None:
        self.up = up
        self.bootstrap = named(up.screen, r"--bootstrap (\S+)")
        found = re.search(r"--command-config (\S+)", up.screen)
        self.properties = parse_properties(Path(found[1]).read_text()) if found else {}
        """What clients need to log in."""

    def scale(self, replicas: int) -> None:
        self.up.kubectl("scale", "kafkanodepool/brokers", "-n", "kafka", f"--replicas={replicas}")

    def find_pod(self, broker: int) -> dict[str, Any] | None:
        pods = self.up.objects("pods", "-n", "kafka", "-l", "strimzi.io/pool-name=brokers")
        name = f"my-cluster-brokers-{broker}"
        return next((pod for pod in pods if pod["metadata"]["name"] == name), None)

    def count_restarts(self, broker: int) -> int | None:
        """None: it is not ready."""
        pod = self.find_pod(broker)
        (container,) = pod["status"]["containerStatuses"] if pod is not None else ({"ready": False},)
        return container["restartCount"] if container["ready"] else None

    def read_state(self) -> str:
        return self.up.kubectl("get", "kafka", "my-cluster", "-n", "kafka", "-o", f"jsonpath={STATE}")

    def read_conditions(self) -> str:
        return self.up.kubectl("get", "kafka", "my-cluster", "-n", "kafka", "-o", "jsonpath={.status.conditions}")

    def reconcile_until(self, problem: str) -> None:
        """Change the Kafka, so that it is reconciled, until a condition names the problem."""
        changes = count()

        def is_named() -> bool:
            change = f"example.com/change={next(changes)}"
            self.up.kubectl("annotate", "kafka/my-cluster", "-n", "kafka", "--overwrite", change)
            return problem in self.read_conditions()

        self.up.until(is_named, problem)

    def read_secret(self, name: str) -> dict[str, bytes]:
        data = json.loads(self.up.kubectl("get", "secret", name, "-n", "kafka", "-o", "jsonpath={.data}"))
        return {key: b64decode(value) for key, value in data.items()}

    def write_secret(self, name: str, data: dict[str, bytes]) -> None:
        patch = json.dumps({"data": {key: b64encode(value).decode() for key, value in data.items()}})
        self.up.kubectl("patch", "secret", name, "-n", "kafka", "--type=merge", "-p", patch)

    def ask(self, question: Callable[[KafkaPythonAdmin], Awaitable[Any]]) -> Any:
        async def answer() -> Any:
            async with KafkaPythonAdmin(parse_connection_settings(self.bootstrap, self.properties)) as admin:
                return await question(admin)

        return asyncio.run(answer())

    def answers(self) -> bool:
        """Whether brokers that were killed are back."""
        try:
            self.list_registered()
        except KafkaUnavailable:
            return False
        return True

    def count_replicas(self) -> dict[int, int]:
        """By broker that holds any."""
        held: dict[int, int] = {}
        for topic in self.ask(lambda admin: admin.describe_topics()):
            for partition in topic.partitions:
                for broker in partition.replicas:
                    held[broker] = held.get(broker, 0) + 1
        return held

    def is_empty(self, broker: int) -> bool:
        """Whether a broker that leaves has no replica, as any of the others knows it: some may be behind."""
        return any(broker not in held for held in self.ask(_read_replicas_everywhere))

    def list_registered(self) -> list[int]:
        nodes = self.ask(lambda admin: admin.describe_nodes())
        return sorted(broker.id for broker in nodes.brokers)

    def wait_until_grown(self, broker: int) -> None:
        """Until replicas have moved onto a new broker and the operation is over."""
        self.up.until(lambda: self.count_replicas().get(broker), f"broker {broker} has replicas")
        self.up.until(lambda: self.read_state() == "Ready", "the operation is over")

    def wait_until_shrunk(self, broker: int) -> None:
        """Until a broker is unregistered. Its pod must not go while it holds a replica."""
        until_s = time.monotonic() + PATIENCE_S
        while broker in self.list_registered():
            pod = self.find_pod(broker)
            # Asked for after the pod: replicas do not come back to a broker that leaves.
            if pod is None or "deletionTimestamp" in pod["metadata"]:
                assert self.is_empty(broker)
            assert time.monotonic() < until_s, f"broker {broker} is still registered"
            time.sleep(0.2)
        assert self.find_pod(broker) is None

    def list_leftovers(self) -> list[str]:
        """Throttles, cordons and reassignments; also what could not be read."""
        found = self.ask(lambda admin: admin.describe_topics())
        topics = [ConfigResource("topic", topic.name) for topic in found]
        brokers = [ConfigResource("broker", str(broker)) for broker in self.list_registered()]
        keys = (LEADER_REPLICAS, FOLLOWER_REPLICAS, LEADER_RATE, FOLLOWER_RATE, "cordoned.log.dirs")
        settings = self.ask(lambda admin: admin.describe_configs([*topics, *brokers], keys))
        unread = {resource: error for resource, error in settings.items() if isinstance(error, KafkaError)}
        left = [
            f"{resource.name} {key}={entry.value}"
            for resource, entries in settings.items()
            if resource not in unread
            for key, entry in entries.items()
            if entry.is_dynamic and entry.value
        ]
        left += [f"{resource.name}: {error}" for resource, error in unread.items()]
        return [*left, *map(str, self.ask(lambda admin: admin.list_reassignments()))]


async def _read_replicas_everywhere(admin: KafkaPythonAdmin) -> list[set[int]]:
    """The brokers with replicas, as each broker that answers knows them."""
    found = []
    for node in (await admin.describe_nodes()).brokers:
        with suppress(KafkaUnavailable):
            topics = await admin._connection.send(lambda: MetadataRequest(topics=None), read_topics, broker=node.id)
            found.append({broker for topic in topics for entry in topic.partitions for broker in entry.replicas})
    return found


@pytest.fixture
def try_kafka(tmp_path: Path, kafka_distribution: KafkaDistribution) -> Iterator[Callable[..., Any]]:
    def run(*options: str, program: str = "plimsoll") -> Any:
        data = tmp_path / "data"
        words = [sys.executable, "-m", program, "kafka", "try", "--data", str(data), *options]
        return running_command(words, data)

    yield run
    _wait_until_ended(tmp_path)


def _wait_until_ended(directory: Path) -> None:
    """No node of the test may outlive the process that started it."""
    until_s = time.monotonic() + PATIENCE_S
    while running := list_processes(directory):
        assert time.monotonic() < until_s, running
        time.sleep(0.1)


def kill_node(directory: Path, pod: str) -> None:
    (pid,) = (pid for pid, words in list_processes(directory).items() if f"/{pod}/" in words)
    os.kill(pid, signal.SIGKILL)


def list_processes(directory: Path) -> dict[int, str]:
    """Command lines of nodes by process id."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if f"{directory}/" in words and "kafka.Kafka" in words:
            found[int(path.parent.name)] = words
    return found


def test_a_pool_grows_and_shrinks_under_load_and_no_acknowledged_record_is_lost(try_kafka: Callable[..., Any]):
    with try_kafka() as up:
        kafka = TriedKafka(up)
        create_topics(kafka)
        with RecordTraffic(kafka.bootstrap, TOPICS) as traffic:
            kafka.scale(4)
            kafka.wait_until_grown(3)
            assert kafka.list_registered() == [0, 1, 2, 3]
            kafka.scale(3)
            kafka.wait_until_shrunk(3)
            up.until(lambda: kafka.read_state() == "Ready", "the operation is over")
            traffic.finish()
        assert sum(map(len, traffic.acknowledged.values())) > len(TOPICS)
        assert not traffic.refused
        assert traffic.list_unread() == []
        assert traffic.list_disordered() == []
        assert set(kafka.count_replicas()) == {0, 1, 2}
        assert kafka.list_leftovers() == []
        assert _list_names(up, "kafkarebalances") == []
        up.die()


def test_combined_brokers_scale_over_tls_through_crashes_of_everything_and_of_one(try_kafka: Callable[..., Any]):
    with try_kafka("--brokers", "1", "--combined", "--tls") as up:
        kafka = TriedKafka(up)
        assert kafka.properties["security.protocol"] == "SASL_SSL"
        kafka.scale(2)
        up.until(lambda: kafka.read_state() in {"PendingProposal", "ProposalReady", "Rebalancing"}, "it has begun")
        up.die()
    with try_kafka() as up:
        kafka = TriedKafka(up)
        kafka.wait_until_grown(1)
        assert kafka.count_restarts(1) == 1
        _break_certificates_and_shrink(kafka)
        kafka.wait_until_shrunk(1)
        assert set(kafka.count_replicas()) == {0}
        assert kafka.list_leftovers() == []
        up.until(lambda: not any("execution" in name for name in _list_names(up, "configmaps")), "no record is left")

        login = kafka.properties
        kafka.properties = {**login, "sasl.jaas.config": 'Login required username="my-user" password="wrong";'}
        with pytest.raises(KafkaRefused, match="my-user"):
            kafka.list_registered()
        kafka.properties = {"default.api.timeout.ms": "1000"}
        with pytest.raises(KafkaUnavailable):
            kafka.list_registered()
        keys = [*up.data.rglob("client.properties"), *up.data.rglob("key-store.pem")]
        assert len(keys) >= 2
        assert {path.stat().st_mode & 0o077 for path in keys} == {0}
        assert up.stop() == 0


def _break_certificates_and_shrink(kafka: TriedKafka) -> None:
    """Ask for a removal while the operator's certificate has expired, and then while it trusts another authority."""
    operator, authority = "my-cluster-cluster-operator-certs", "my-cluster-cluster-ca-cert"
    before = {name: kafka.read_secret(name) for name in (operator, authority)}
    signer = CertificateAuthority.load(
        before[authority]["ca.crt"], kafka.read_secret("my-cluster-cluster-ca")["ca.key"]
    )
    expired = signer.issue(subject="cluster-operator", valid=(timedelta(days=-9), timedelta(days=-2)))
    kafka.write_secret(
        operator, {"cluster-operator.crt": expired.certificate_pem, "cluster-operator.key": expired.key_pem}
    )
    # An open connection stays good: the operator has to connect again, to each broker.
    for broker in (0, 1):
        kill_node(kafka.up.data, f"my-cluster-brokers-{broker}")
    # Until the operator has read the new certificate, the former one is good for a removal.
    kafka.reconcile_until("does not accept our certificate: it expired at 2")
    kafka.scale(1)
    for reason in ("does not accept our certificate: it expired at 2", "is not trusted: unknown authority"):
        kafka.reconcile_until(reason)
        kafka.up.until(lambda: kafka.answers() and kafka.list_registered() == [0, 1], "both brokers are registered")
        pod = kafka.find_pod(1)
        assert pod is not None
        assert pod["status"]["containerStatuses"][0]["restartCount"] == 2, "it was started again, with its data"
        assert kafka.ask(lambda admin: admin.describe_log_dirs(1)).log_dirs
        assert kafka.count_replicas()[1] > 0
        kafka.write_secret(authority, {"ca.crt": CertificateAuthority("other-ca").pem})
    for name, data in before.items():
        kafka.write_secret(name, data)


def test_the_operator_in_a_process_of_its_own_scales_brokers(try_kafka: Callable[..., Any], tmp_path: Path):
    with _running_operator(tmp_path / "data") as operator, try_kafka(program=SEPARATE) as up:
        kafka = TriedKafka(up)
        kafka.scale(4)
        kafka.wait_until_grown(3)
        assert kafka.list_registered() == [0, 1, 2, 3]
        assert kafka.list_leftovers() == []
        _check_that_a_voter_stays(kafka)
        held = up.kubectl(
            "get", "lease", "plimsoll-kafka", "-n", "kube-system", "-o", "jsonpath={.spec.holderIdentity}"
        )
        assert held.startswith(f"{socket.gethostname()}_"), held
        operator.send_signal(signal.SIGINT)
        assert operator.wait(timeout=PATIENCE_S) == 0
        assert up.stop() == 0


def _check_that_a_voter_stays(kafka: TriedKafka) -> None:
    """The second controller is an observer, which may leave. The first one is the only voter."""
    up, pool = kafka.up, ("kafkanodepool/controllers", "-n", "kafka")
    voter, observer = "my-cluster-controllers-100", "my-cluster-controllers-101"
    up.kubectl("scale", *pool, "--replicas=2")
    up.until(lambda: observer in _list_names(up, "pods"), "the observer exists")
    up.kubectl("annotate", *pool, "strimzi.io/remove-node-ids=[100]")
    up.kubectl("scale", *pool, "--replicas=1")
    refused = "keeps node 100: node 100 is a voter of the metadata quorum (100)"
    up.until(lambda: refused in kafka.read_conditions(), "the voter stays, and a condition says so")
    assert {voter, observer} <= set(_list_names(up, "pods"))
    up.kubectl("annotate", *pool, "strimzi.io/remove-node-ids-")
    up.until(lambda: observer not in _list_names(up, "pods"), "the observer leaves")
    up.until(lambda: "ControllerQuorumCheck" not in kafka.read_conditions(), "nothing is refused any more")
    assert voter in _list_names(up, "pods")


@contextmanager
def _running_operator(data: Path) -> Iterator[subprocess.Popen[bytes]]:
    """`plimsoll run kafka` as soon as the server of a `kafka try` knows Kafkas."""
    run = f"exec {sys.executable} -m {SEPARATE} run kafka --address 127.0.0.1:{lasting_port()}"
    errors = data.with_name("operator.stderr")
    with errors.open("w") as sink:
        process = subprocess.Popen(
            ["bash", "-c", f"until kubectl get kafkas -A; do sleep 0.2; done; {run}"],
            env={**os.environ, "KUBECONFIG": str(data / "kubeconfig"), "HOME": str(data.parent)},
            stdout=sink,
            stderr=sink,
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
    assert "Traceback" not in errors.read_text()


def _list_names(up: UpProcess, kind: str) -> list[str]:
    return [found["metadata"]["name"] for found in up.objects(kind, "-n", "kafka")]


def create_topics(kafka: TriedKafka) -> None:
    client = KafkaAdminClient(bootstrap_servers=kafka.bootstrap.split(","))
    try:
        for start in range(0, len(TOPICS), 20):
            options = {"num_partitions": 1, "replication_factor": 3}
            client.create_topics(dict.fromkeys(TOPICS[start : start + 20], options))
    finally:
        client.close()
