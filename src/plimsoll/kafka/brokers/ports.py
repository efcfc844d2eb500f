"""The port to a Kafka cluster. Its users are sources of descriptions and the executor.

Each method is one admin request (or one per broker or topic). Errors of a whole request raise `KafkaUnavailable` or
`KafkaRefused`; errors of single partitions, brokers or settings inside a good answer are values, per item. Every write
is safe to send again.

Topics and settings are read from one broker's copy of the metadata, which follows the controller within moments: a
read right after a write may still show the state before it. Reassignments are read from the controller.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, Protocol

from plimsoll.core.errors import PlimsollError, Unreachable
from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from plimsoll.kafka.model.description import (
        BrokerDescription,
        LogDir,
        ReplicaDescription,
        TopicDescription,
        TopicPartition,
    )
    from plimsoll.objects.api.kafka import Kafka


WRONG_PASSWORD: Final = "SASL_AUTHENTICATION_FAILED"  # noqa: S105 - the name of an error
UNTRUSTED_CERTIFICATE: Final = "CERTIFICATE_VERIFY_FAILED"
REFUSED_CERTIFICATE: Final = "CERTIFICATE_REFUSED"
"""We do not trust the broker's; the broker does not accept ours."""
CREDENTIALS_REFUSED: Final = frozenset({WRONG_PASSWORD, UNTRUSTED_CERTIFICATE, REFUSED_CERTIFICATE})
"""Codes of refusals that new credentials may end."""


class KafkaUnavailable(Unreachable):
    """No broker, or not the broker that had to answer, answered in time."""


class KafkaNotSent(KafkaUnavailable):
    """Nothing was sent: this process may not change anything now."""


class KafkaRefused(PlimsollError):
    """The cluster refused a whole request: no permission, not supported, wrong credentials."""

    exit_code: ClassVar[int] = 1

    def __init__(self, problem: str, *, code: str = "") -> None:
        super().__init__(problem)
        self.code = code


class KafkaError(Value):
    """An error of one item inside a good answer. `code` is Kafka's own name, such as NO_REASSIGNMENT_IN_PROGRESS."""

    code: str
    message: str = ""

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.message else self.code


class ClusterNodes(Value):
    """The registered brokers, without log directories, and the metadata quorum: its leader and its voters."""

    cluster_id: str
    controller: int
    """The leader; -1: not known."""
    brokers: tuple[BrokerDescription, ...]
    voters: frozenset[int] | None = None
    """None: they could not be seen."""


class MetadataQuorum(Value):
    """The metadata quorum, as DescribeQuorum has it."""

    leader: int
    voters: frozenset[int]


class BrokerLogs(Value):
    """The log directories of one broker, and the replicas in them."""

    log_dirs: tuple[LogDir, ...]
    replicas: tuple[tuple[TopicPartition, ReplicaDescription], ...]


class Reassignment(Value):
    """A reassignment under way."""

    replicas: tuple[int, ...]
    """All replicas while it runs: old and new ones."""
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        return tuple(broker for broker in self.replicas if broker not in self.removing)


class ConfigResource(NamedTuple):
    """The holder of dynamic settings: ("topic", name) or ("broker", id)."""

    type: str
    name: str


class ConfigOperation(StrEnum):
    """An operation of IncrementalAlterConfigs. APPEND and SUBTRACT work on lists, atomically."""

    SET = "SET"
    DELETE = "DELETE"
    APPEND = "APPEND"
    SUBTRACT = "SUBTRACT"


class ConfigChange(Value):
    """A change of one setting of one resource."""

    resource: ConfigResource
    key: str
    operation: ConfigOperation
    value: str = ""


class ConfigEntry(Value):
    """A setting. `is_dynamic`: set on the resource itself, not in a broker's file or by default."""

    value: str
    is_dynamic: bool


class ReplicaLogDir(NamedTuple):
    """A replica and the log directory it is to move to."""

    partition: TopicPartition
    broker: int
    path: str


class KafkaAdmin(Protocol):
    """A Kafka cluster."""

    async def describe_nodes(self) -> ClusterNodes: ...

    async def describe_topics(
        self, names: Collection[str] | None = None, *, with_min_isr: bool = False
    ) -> tuple[TopicDescription, ...]:
        """All topics, or those named. A topic or partition with an error carries it in `problem`.

        Without `with_min_isr` every `min_isr` is 1: a broker takes far longer to read it than all the rest.
        """
        ...

    async def describe_log_dirs(self, broker: int) -> BrokerLogs: ...

    async def list_reassignments(self) -> Mapping[TopicPartition, Reassignment]: ...

    async def alter_reassignments(
        self, targets: Mapping[TopicPartition, tuple[int, ...] | None]
    ) -> Mapping[TopicPartition, KafkaError | None]:
        """Start reassignments; None cancels. The answer has every partition."""
        ...

    async def elect_preferred_leaders(
        self, partitions: Collection[TopicPartition]
    ) -> Mapping[TopicPartition, KafkaError | None]: ...

    async def describe_configs(
        self, resources: Collection[ConfigResource], keys: Collection[str]
    ) -> Mapping[ConfigResource, Mapping[str, ConfigEntry] | KafkaError]: ...

    async def alter_configs(self, changes: Sequence[ConfigChange]) -> Mapping[ConfigResource, KafkaError | None]:
        """Change settings. Settings of a broker go to that broker only; if it is down, its result is an error."""
        ...

    async def alter_replica_log_dirs(
        self, moves: Collection[ReplicaLogDir]
    ) -> Mapping[ReplicaLogDir, KafkaError | None]: ...

    async def read_end_offsets(self, partitions: Collection[TopicPartition]) -> Mapping[TopicPartition, int]:
        """The end offsets of the partitions that have a leader."""
        ...

    async def unregister_broker(self, broker: int) -> KafkaError | None:
        """Remove the registration. Kafka does not check that the broker is gone: the caller does."""
        ...


class ClusterConnection(Protocol):
    """The connection to the brokers of one cluster. `admin` stays the same object for as long as it is open."""

    @property
    def admin(self) -> KafkaAdmin: ...

    async def refresh(self, kafka: Kafka) -> None:
        """Use certificates that have changed. Raises `KafkaUnavailable`."""
        ...

    async def close(self) -> None: ...


class BrokerConnector(Protocol):
    """Connects to the brokers of a Kafka cluster: real ones, or simulated ones."""

    async def connect(self, kafka: Kafka) -> ClusterConnection:
        """Raises `KafkaUnavailable`: what the connection needs is missing."""
        ...
