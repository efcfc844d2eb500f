"""A Kafka cluster as its brokers describe it: the input of the model, and the format of a dump.

A description may be partial: a broker that does not answer has no log directories, and its replicas have no sizes.
Numbers are bounded here, in `bound_bytes` and `bound_rate`: a broker's answer may be negative or absurd.
"""

from __future__ import annotations

import math
from typing import Annotated, Final, NamedTuple

import msgspec

from plimsoll.core.values import Value

LARGEST_BYTES: Final = 1 << 60
"""An exbibyte. Sums over a million replicas of real sizes stay below 2^63."""
LARGEST_RATE: Final = 1e15
FORMAT: Final = "plimsoll.dev/kafka-dump/v1"

LARGEST_INT: Final = 2**31 - 1
"""Kafka's numbers of brokers, partitions and replicas have 32 bits."""

LARGEST_AMOUNT: Final = 1e12
"""The largest capacity of a broker, in MiB, KiB/s, percent or cores."""
Bytes = Annotated[int, msgspec.Meta(ge=-1, le=LARGEST_BYTES)]
"""The size of a volume in bytes; -1: not known."""
Amount = Annotated[float, msgspec.Meta(gt=0, le=LARGEST_AMOUNT)]
"""What a broker can carry."""
BrokerId = Annotated[int, msgspec.Meta(ge=0, le=LARGEST_INT)]
TopicName = Annotated[str, msgspec.Meta(min_length=1, max_length=249)]


class TopicPartition(NamedTuple):
    """A partition by topic and number, as Kafka's clients name it."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"


class LogDir(Value):
    """A log directory of a broker. `total_bytes` and `usable_bytes` are of its volume; -1: the broker did not say."""

    path: str
    total_bytes: Bytes = -1
    usable_bytes: Bytes = -1
    is_online: bool = True
    is_cordoned: bool = False


class BrokerCapacity(Value):
    """What a broker can carry, in Cruise Control's units: MiB, KiB/s and percent of all cores."""

    disk_mb: Amount | None = None
    """None: the volumes' total, as the broker reports it."""
    nw_in_kb_s: Amount | None = None
    nw_out_kb_s: Amount | None = None
    cpu_pct: Amount = 100.0
    num_cores: Amount = 1.0
    is_estimated: bool = False


class BrokerDescription(Value):
    """A broker that is registered, or that replicas name. `is_registered` False: only replicas name it."""

    id: BrokerId
    host: str = ""
    port: int = 0
    rack: str = ""
    is_registered: bool = True
    is_fenced: bool = False
    log_dirs: tuple[LogDir, ...] | None = None
    """None: the broker did not answer. Its replicas count as present and unmovable."""
    problem: str = ""
    """Why it did not answer."""
    capacity: BrokerCapacity = BrokerCapacity()
    cpu_pct: float | None = None
    """The processor use, from Prometheus."""


class ReplicaDescription(Value):
    """A replica on a broker, as that broker's log directories have it. A future replica is moving between them."""

    broker: BrokerId
    log_dir: str = ""
    size_bytes: int = 0
    offset_lag: int = 0
    is_future: bool = False


class PartitionDescription(Value):
    """A partition of a topic. The first of `replicas` is the preferred leader."""

    partition: Annotated[int, msgspec.Meta(ge=0, le=LARGEST_INT)]
    replicas: tuple[BrokerId, ...]
    leader: int = -1
    """-1: it has no leader."""
    isr: tuple[BrokerId, ...] = ()
    offline: tuple[BrokerId, ...] = ()
    adding: tuple[BrokerId, ...] = ()
    removing: tuple[BrokerId, ...] = ()
    logs: tuple[ReplicaDescription, ...] = ()
    bytes_in_per_s: float | None = None
    """The rate of produced bytes; None: not known."""
    bytes_out_per_s: float | None = None
    """The rate of bytes that consumers fetch, without replication; None: not known."""
    problem: str = ""
    """The error of this partition inside a good answer."""


class TopicDescription(Value):
    """A topic with its partitions."""

    name: TopicName
    partitions: tuple[PartitionDescription, ...]
    is_internal: bool = False
    min_isr: Annotated[int, msgspec.Meta(le=LARGEST_INT)] = 1
    problem: str = ""


class ClusterDescription(Value):
    """A cluster at one moment: what `plimsoll kafka dump` writes and every source returns."""

    cluster_id: str = ""
    controller: int = -1
    """The node that leads the metadata quorum; -1: not known."""
    brokers: tuple[BrokerDescription, ...] = ()
    topics: tuple[TopicDescription, ...] = ()
    taken_at: str = ""
    rate_source: str = ""
    """Where rates come from: "prometheus", "offsets", or empty if there are none."""
    problems: tuple[str, ...] = ()
    """What could not be read, a sentence each."""
    format: str = FORMAT


def is_size(number: int) -> bool:
    """Whether a number of bytes can be true."""
    return 0 <= number <= LARGEST_BYTES


def bound_bytes(number: object) -> int:
    """A size of an answer. Negative, absurd and non-numeric ones are 0: unknown sizes must not move other replicas."""
    if isinstance(number, bool) or not isinstance(number, (int, float)) or not math.isfinite(number):
        return 0
    return int(number) if 0 <= number <= LARGEST_BYTES else 0


def bound_rate(number: float | None) -> float | None:
    """A rate of an answer; None if it is not a finite number within bounds."""
    if number is None or not math.isfinite(number) or not 0 <= number <= LARGEST_RATE:
        return None
    return float(number)
