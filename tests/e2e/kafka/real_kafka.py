"""A real Kafka cluster on loopback: one controller (node 100) and brokers, each its own process, on free ports.

Tests ask for the fixture `kafka` (see `conftest.py`): a running cluster of brokers 0, 1 and 2 in racks `rack-0` to
`rack-2` that all tests of a worker share. Before each test it is as new: topics of other tests are deleted, further
brokers are stopped and unregistered, stopped brokers run again, reassignments and dynamic settings are gone.

    kafka.bootstrap                      "127.0.0.1:PORT,..." of the running brokers, without encryption
    kafka.secure_bootstrap               the same brokers with TLS and SASL, PLAIN or SCRAM-SHA-512 (`SECURE_USER`,
                                         `SECURE_PASSWORD`, `kafka.ca_file`)
    kafka.login_bootstrap                the same brokers with SASL and without TLS: PLAIN, SCRAM-SHA-256 and
                                         SCRAM-SHA-512, for the same user
    kafka.permit({"CLUSTER": ["ALTER"]})  the user may do only this; without a call, everything
    kafka.start_broker(3)                a further broker (rack `rack-0`, that is id modulo 3)
    kafka.stop_broker(1)                 a controlled shutdown; `kill_broker(1)` is kill -9, `pause_broker(1)` and
                                         `continue_broker(1)` are SIGSTOP and SIGCONT
    kafka.start_broker(1)                it runs again, with its data
    kafka.create_topic("a", {0: [0, 1, 2]}, {"min.insync.replicas": "2"})
    kafka.produce("a", partition=0, total_bytes=1 << 20)
    kafka.wait_until(lambda: ..., "what is awaited")
    kafka.client                         kafka-python's KafkaAdminClient, to look behind the code under test

Each broker has two log directories. Brokers start in about 4 s; start them from the main thread, because they end
with the thread that started them.
"""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import time
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from kafka import KafkaAdminClient, KafkaProducer, TopicPartition
from kafka.admin import (
    ACL,
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    AlterConfigOp,
    ConfigResource,
    ResourcePattern,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import KafkaConnectionError, KafkaError, NodeNotReadyError, TopicAlreadyExistsError
from kafka.protocol.metadata import MetadataRequest

from plimsoll.kafka.brokers.messages import UnregisterBrokerRequest
from plimsoll.local.kafka.kafka_ids import generate_kafka_id
from plimsoll.local.kafka.processes.node_process import NodeProcess
from plimsoll.runtime.entropy import SystemEntropy
from tests.e2e.ports import lasting_port
from tests.e2e.timeouts import PATIENCE_S
from tests.kube.http.authorities import CertificateAuthority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from plimsoll.local.kafka.processes.distribution import KafkaDistribution

T = TypeVar("T")

CONTROLLER: Final = 100
FIRST_BROKERS: Final = (0, 1, 2)
RACKS: Final = 3
LOG_DIRS: Final = ("data-0", "data-1")
SECURE_USER: Final = "plimsoll"
SECURE_PASSWORD: Final = "not-a-secret-in-tests"
SCRAM_MECHANISMS: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
_THROTTLED: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate", "cordoned.log.dirs")
_ENTROPY: Final = SystemEntropy()
_ANY_RESOURCE: Final = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
_ATTEMPTS: Final = 20

_CONTROLLER_PROPERTIES: Final = """\
process.roles=controller
node.id={node}
controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}
listeners=CONTROLLER://127.0.0.1:{controller_port}
controller.listener.names=CONTROLLER
listener.security.protocol.map=CONTROLLER:PLAINTEXT
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=true
log.dirs={directory}/data-0
"""
_BROKER_PROPERTIES: Final = """\
process.roles=broker
node.id={node}
broker.rack={rack}
controller.quorum.bootstrap.servers=127.0.0.1:{controller_port}
initial.broker.registration.timeout.ms=600000
listeners=PLAINTEXT://127.0.0.1:{port},SECURE://127.0.0.1:{secure_port},LOGIN://127.0.0.1:{login_port}
advertised.listeners=PLAINTEXT://127.0.0.1:{port},SECURE://127.0.0.1:{secure_port},LOGIN://127.0.0.1:{login_port}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PLAINTEXT
listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SECURE:SASL_SSL,LOGIN:SASL_PLAINTEXT
authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
super.users=User:ANONYMOUS
allow.everyone.if.no.acl.found=true
listener.name.secure.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-512
listener.name.secure.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{user}="{password}";
listener.name.login.sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256,SCRAM-SHA-512
listener.name.login.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required \
user_{user}="{password}";
listener.name.login.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.login.scram-sha-512.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;
listener.name.secure.ssl.keystore.type=PEM
listener.name.secure.ssl.keystore.location={key_store}
log.dirs={log_dirs}
broker.heartbeat.interval.ms=1000
broker.session.timeout.ms=6000
offsets.topic.replication.factor=3
offsets.topic.num.partitions=3
transaction.state.log.replication.factor=3
transaction.state.log.num.partitions=3
num.network.threads=2
num.io.threads=4
log.segment.bytes=16777216
log.index.size.max.bytes=1048576
log.cleaner.dedupe.buffer.size=4194304
replica.fetch.wait.max.ms=100
auto.create.topics.enable=false
auto.leader.rebalance.enable=false
group.initial.rebalance.delay.ms=0
"""


class RealKafka:
    """A cluster. See the module's documentation for its use."""

    def __init__(
        self,
        distribution: KafkaDistribution,
        directory: Path,
        *,
        heap_mb: int = 192,
        settings: Mapping[str, str] | None = None,
        log_dirs: Sequence[str] = LOG_DIRS,
    ) -> None:
        """`settings`: further properties of brokers, which replace those above."""
        self._distribution = distribution
        self._settings = dict(settings or {})
        self._log_dirs = log_dirs
        self._directory = directory
        self._heap_mb = heap_mb
        self._controller_port = lasting_port()
        self.cluster_id = generate_kafka_id(_ENTROPY)
        self._controller = NodeProcess(distribution, directory / "controller", heap_mb=heap_mb)
        self._brokers: dict[int, NodeProcess] = {}
        self._ports: dict[int, tuple[int, int, int]] = {}
        """Without encryption, with TLS and SASL, with SASL alone."""
        self._client: KafkaAdminClient | None = None
        self._producer: KafkaProducer | None = None
        self.ca_file = directory / "ca.pem"
        self._key_store = directory / "key-store.pem"

    def start(self, brokers: Sequence[int] = FIRST_BROKERS) -> None:
        """Start the controller and brokers, and wait until all brokers are registered and serve."""
        self._directory.mkdir(exist_ok=True)
        self._write_certificates()
        self._format_controller()
        self._controller.start()
        for broker in brokers:
            self._launch(broker)
        self._wait_for(brokers)

    def describe_processes(self) -> str:
        """Which processes run, and the end of what each one wrote."""
        described = []
        for node in (self._controller, *self._brokers.values()):
            state = "runs" if node.is_running else f"ended with {node.exit_code}"
            described.append(f"--- {node.directory.name} {state}:\n{node.read_log()}")
        return "\n".join(described)

    def close(self) -> None:
        """Stop all processes: brokers first, because they hang without a controller."""
        self._close_client()
        for node in self._brokers.values():
            node.stop(signal.SIGKILL)
        self._controller.stop(signal.SIGKILL)

    @property
    def bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{self._ports[broker][0]}" for broker in self.running)

    @property
    def secure_bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{self._ports[broker][1]}" for broker in self.running)

    @property
    def login_bootstrap(self) -> str:
        return ",".join(f"127.0.0.1:{self._ports[broker][2]}" for broker in self.running)

    @property
    def running(self) -> list[int]:
        """The brokers whose process runs, by id."""
        return [broker for broker, node in sorted(self._brokers.items()) if node.is_running]

    @property
    def client(self) -> KafkaAdminClient:
        if self._client is None:
            self._client = KafkaAdminClient(
                bootstrap_servers=self.bootstrap.split(","), request_timeout_ms=60_000, reconnect_backoff_max_ms=500
            )
        return self._client

    def find_log_dirs(self, broker: int) -> tuple[str, ...]:
        """The paths of a broker's log directories."""
        return tuple(str(self._brokers[broker].directory / name) for name in self._log_dirs)

    def start_broker(self, broker: int) -> None:
        """Start a broker and wait until it serves."""
        self._launch(broker)
        self._wait_for([broker])

    def stop_broker(self, broker: int) -> None:
        self._brokers[broker].stop()
        self._close_client()  # It may have chosen this broker for requests to the controller.

    def kill_broker(self, broker: int) -> None:
        self._brokers[broker].stop(signal.SIGKILL)
        self._close_client()

    def pause_broker(self, broker: int) -> None:
        """Leave the process without processor time: its connections stay open and nothing answers."""
        self._brokers[broker].send(signal.SIGSTOP)

    def continue_broker(self, broker: int) -> None:
        self._brokers[broker].send(signal.SIGCONT)

    def create_topic(
        self,
        name: str,
        assignment: Mapping[int, Sequence[int]] | None = None,
        settings: Mapping[str, str] | None = None,
        *,
        partitions: int = 1,
        replication_factor: int = 3,
    ) -> None:
        """Create a topic and wait until every running broker knows a leader of each partition."""
        options: dict[str, Any] = {"configs": dict(settings or {})}
        if assignment is None:
            options |= {"num_partitions": partitions, "replication_factor": replication_factor}
        else:
            options["assignments"] = {number: list(brokers) for number, brokers in assignment.items()}
        with contextlib.suppress(TopicAlreadyExistsError):  # A second attempt, after an answer that was lost.
            self._ask(lambda client: client.create_topics({name: options}))
        total = partitions if assignment is None else len(assignment)
        for broker in self.running:
            self.wait_until(partial(self._knows_topic, broker, name, total), f"broker {broker} knows topic {name}")

    def _describe_topic_at(self, broker: int, name: str) -> Any:
        """As one broker knows it."""

        def ask(client: KafkaAdminClient) -> Any:
            request = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)])
            return client._manager.run(partial(client._manager.send, request, node_id=broker))

        [topic] = self._ask(ask).topics
        return topic

    def _knows_topic(self, broker: int, name: str, partitions: int) -> bool:
        topic = self._describe_topic_at(broker, name)
        return len(topic.partitions) == partitions and all(entry.leader_id >= 0 for entry in topic.partitions)

    def _ask(self, call: Callable[[KafkaAdminClient], T]) -> T:
        """Call the client. It sends some requests to a broker of its choice, which may just have died."""
        for _ in range(_ATTEMPTS):
            with contextlib.suppress(KafkaConnectionError, NodeNotReadyError):
                return call(self.client)
            self._close_client()
            time.sleep(0.5)
        return call(self.client)

    def permit(self, operations: Mapping[str, Sequence[str]]) -> None:
        """Let the user do these operations only, on the cluster (`CLUSTER`) and on all topics (`TOPIC`)."""
        self._forbid()
        names = {"CLUSTER": "kafka-cluster", "TOPIC": "*"}
        allowed = [
            ACL(
                principal=f"User:{SECURE_USER}",
                host="*",
                operation=ACLOperation[operation],
                permission_type=ACLPermissionType.ALLOW,
                resource_pattern=ResourcePattern(ResourceType[kind], names[kind]),
            )
            for kind, granted in operations.items()
            for operation in granted
        ]
        self._ask(lambda client: client.create_acls(allowed))

    def _forbid(self) -> None:
        """Remove all permissions: without any, everything is permitted."""
        every = ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, _ANY_RESOURCE)
        self._ask(lambda client: client.delete_acls([every]))

    def produce(self, topic: str, *, partition: int = 0, total_bytes: int, record_bytes: int = 100_000) -> None:
        """Write records that do not compress, acknowledged by all in-sync replicas."""
        if self._producer is None:
            self._producer = KafkaProducer(
                bootstrap_servers=self.bootstrap.split(","), acks="all", max_request_size=4 << 20, batch_size=1 << 20
            )
        for _ in range(max(1, total_bytes // record_bytes)):
            self._producer.send(topic, bytes(record_bytes), partition=partition)
        self._producer.flush(timeout=PATIENCE_S)

    def list_replicas(self, topic: str) -> dict[int, list[int]]:
        """The replicas of each partition of a topic, as soon as all running brokers agree: some may be behind."""
        views: list[dict[int, list[int]]] = []

        def agree() -> bool:
            views[:] = [self._list_replicas_at(broker, topic) for broker in self.running]
            return all(view == views[0] for view in views)

        self.wait_until(agree, f"the brokers agree on topic {topic}")
        return views[0]

    def _list_replicas_at(self, broker: int, topic: str) -> dict[int, list[int]]:
        found = self._describe_topic_at(broker, topic)
        return {partition.partition_index: list(partition.replica_nodes) for partition in found.partitions}

    def wait_until(
        self, is_met: Callable[[], object], what: str, *, within_s: float = PATIENCE_S, every_s: float = 0.05
    ) -> None:
        """Wait for something that comes about in its own time. Looks that cost the brokers much must be rare."""
        until = time.monotonic() + within_s
        while (problem := _find_problem(is_met)) is not None:
            assert time.monotonic() < until, f"did not come about: {what} ({problem})"
            time.sleep(every_s)

    def make_as_new(self) -> None:
        """Undo what tests did: see the module's documentation."""
        self._close_producer()  # it remembers topics that the next test may make anew
        if stopped := [broker for broker in FIRST_BROKERS if broker not in self.running]:
            for broker in stopped:
                self._launch(broker)
            self._wait_for(stopped)
        self._forbid()
        self._delete_broker_settings()  # also of further brokers: settings outlive a registration
        if further := [broker for broker in self._brokers if broker not in FIRST_BROKERS]:
            for broker in further:
                self._forget(broker)
            self._close_client()
        if moving := self._ask(lambda client: client.list_partition_reassignments()):
            self._ask(lambda client: client.alter_partition_reassignments(dict.fromkeys(moving)))
        self._delete_topics()
        self._restore_internal_topics()

    def _delete_topics(self) -> None:
        names = [name for name in self._ask(lambda client: client.list_topics()) if not name.startswith("__")]
        if names:
            self._ask(lambda client: client.delete_topics(names))
            self.wait_until(lambda: not set(names) & set(self.client.list_topics()), "the topics are deleted")

    def _restore_internal_topics(self) -> None:
        """Internal topics stay, but a replica on a broker that is forgotten would keep it from being unregistered."""
        targets = {key: list(FIRST_BROKERS) for key in self._list_strayed()}
        if not targets:
            return
        self._ask(lambda client: client.alter_partition_reassignments(targets))
        self.wait_until(lambda: not self._list_strayed(), "internal topics are on the first brokers")

    def _list_strayed(self) -> list[TopicPartition]:
        """Partitions of internal topics with a replica, or a reassignment, on another broker than the first ones."""
        names = [name for name in self._ask(lambda client: client.list_topics()) if name.startswith("__")]
        found = self._ask(lambda client: client.describe_topics(names)) if names else []
        return [
            TopicPartition(topic["name"], partition["partition_index"])
            for topic in found
            for partition in topic["partitions"]
            if set(partition["replica_nodes"]) - set(FIRST_BROKERS)
        ]

    def _delete_broker_settings(self) -> None:
        for broker in self.running:
            changes = dict.fromkeys(_THROTTLED, (AlterConfigOp.DELETE, None))
            self.client.alter_configs([ConfigResource("broker", str(broker), changes)], raise_on_unknown=False)

    def _forget(self, broker: int) -> None:
        """Stop a broker, remove its registration, and its data."""
        node = self._brokers.pop(broker)
        node.stop(signal.SIGKILL)
        self._unregister(broker)
        shutil.rmtree(node.directory)
        del self._ports[broker]

    def _unregister(self, broker: int) -> None:
        request = UnregisterBrokerRequest(broker_id=broker)
        self._ask(lambda client: client._manager.run(client._manager.send, request))

    def _launch(self, broker: int) -> None:
        if broker not in self._brokers:
            self._prepare(broker)
        self._brokers[broker].start()

    def _prepare(self, broker: int) -> None:
        directory = self._directory / f"broker-{broker}"
        directory.mkdir()
        self._ports[broker] = (lasting_port(), lasting_port(), lasting_port())
        for name in self._log_dirs:
            (directory / name).mkdir()
            directory_id = generate_kafka_id(_ENTROPY)
            meta = f"version=1\ncluster.id={self.cluster_id}\nnode.id={broker}\ndirectory.id={directory_id}\n"
            (directory / name / "meta.properties").write_text(meta)
        text = _BROKER_PROPERTIES.format(
            node=broker,
            rack=f"rack-{broker % RACKS}",
            controller_port=self._controller_port,
            port=self._ports[broker][0],
            secure_port=self._ports[broker][1],
            login_port=self._ports[broker][2],
            user=SECURE_USER,
            password=SECURE_PASSWORD,
            key_store=self._key_store,
            log_dirs=",".join(str(directory / name) for name in self._log_dirs),
        )
        text += "".join(f"{key}={value}\n" for key, value in self._settings.items())  # of two lines the last one holds
        (directory / "server.properties").write_text(text)
        self._brokers[broker] = NodeProcess(self._distribution, directory, heap_mb=self._heap_mb)

    def _format_controller(self) -> None:
        directory = self._controller.directory
        directory.mkdir()
        properties = directory / "server.properties"
        properties.write_text(
            _CONTROLLER_PROPERTIES.format(node=CONTROLLER, controller_port=self._controller_port, directory=directory)
        )
        credentials = [
            part
            for mechanism in SCRAM_MECHANISMS
            for part in ("--add-scram", f"{mechanism}=[name={SECURE_USER},password={SECURE_PASSWORD}]")
        ]
        options = ["-t", self.cluster_id, "-c", str(properties), "--standalone", *credentials]
        tool = self._distribution.build_command("kafka.tools.StorageTool", "format", *options)
        done = subprocess.run(
            tool, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL, timeout=PATIENCE_S
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def _write_certificates(self) -> None:
        authority = CertificateAuthority()
        pair = authority.issue("127.0.0.1", "localhost")
        self.ca_file.write_bytes(authority.pem)
        self._key_store.write_bytes(pair.key_pem + pair.certificate_pem)

    def _wait_for(self, brokers: Iterable[int]) -> None:
        """Wait until the brokers serve, and make a client that knows them."""
        for broker in brokers:
            self.wait_until(partial(self._is_listening, broker), f"broker {broker} listens")
        self._close_client()
        for broker in brokers:
            self.wait_until(partial(self._is_registered, broker), f"broker {broker} is registered")
        self._close_client()

    def _check_processes(self, broker: int) -> None:
        for node in (self._controller, self._brokers[broker]):
            assert node.is_running, f"{node.directory.name} ended: {node.read_log()}"

    def _is_listening(self, broker: int) -> bool:
        self._check_processes(broker)
        with socket.socket() as trying:
            return trying.connect_ex(("127.0.0.1", self._ports[broker][0])) == 0

    def _is_registered(self, broker: int) -> bool:
        self._check_processes(broker)
        try:
            nodes = self.client.describe_cluster()["brokers"]
        except KafkaError:
            self._close_client()  # It may know only brokers that did not serve yet.
            raise
        return any(node["broker_id"] == broker and not node["is_fenced"] for node in nodes)

    def _close_producer(self) -> None:
        if self._producer is not None:
            self._producer.close()
            self._producer = None

    def _close_client(self) -> None:
        self._close_producer()
        if self._client is not None:
            self._client.close()
            self._client = None


def _find_problem(is_met: Callable[[], object]) -> str | None:
    """Why something did not come about yet; None: it did. A client that asks a broker which is down has no answer."""
    try:
        return None if is_met() else "it is not so"
    except KafkaError as error:
        return repr(error)
