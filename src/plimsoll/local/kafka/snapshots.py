"""The state of a simulated cluster as bytes, and back: brokers, topics with their replicas and sizes, settings. Pure.

Time does not pass between the two: replication goes on where it was. A broker that had stopped and was not fenced yet
is fenced after the session timeout, counted anew.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.local.kafka.brokers import SimulatedBroker  # noqa: TC001 - msgspec reads annotations at run time
from plimsoll.local.kafka.state import SimulatedTopic  # noqa: TC001 - msgspec reads annotations at run time

if TYPE_CHECKING:
    from plimsoll.local.kafka.state import KafkaState

LARGEST_BYTES: Final = 1 << 28
"""The most bytes of a decompressed snapshot."""


class Snapshot(msgspec.Struct):
    """What is stored of a cluster. `seeded`: the topics that were created once."""

    uid: str
    brokers: list[SimulatedBroker]
    topics: list[SimulatedTopic]
    settings: list[tuple[str, str, dict[str, str]]]
    seeded: list[str]
    is_complete: bool = False
    voters: frozenset[int] | None = None


def encode_snapshot(snapshot: Snapshot) -> bytes:
    return zlib.compress(msgspec.json.encode(snapshot))


def decode_snapshot(data: bytes) -> Snapshot:
    """Raises `InvalidInput` for bytes that are no snapshot."""
    try:
        unpacked = zlib.decompressobj().decompress(data, LARGEST_BYTES)
        return msgspec.json.decode(unpacked, type=Snapshot)
    except (zlib.error, msgspec.MsgspecError) as error:
        raise InvalidInput(f"is no state of a simulated cluster: {error}") from None


def restore_state(state: KafkaState, snapshot: Snapshot) -> None:
    """Fill an empty state. Raises `InvalidInput` if the snapshot contradicts itself."""
    brokers = {broker.id: broker for broker in snapshot.brokers}
    for topic in snapshot.topics:
        for partition in topic.partitions.values():
            for number, replica in partition.logs.items():
                if number not in brokers or replica.path not in brokers[number].log_dirs:
                    raise InvalidInput(f"a log of {topic.name}-{partition.partition} is on no known broker")
    state.brokers = brokers
    state.voters = snapshot.voters
    for broker in brokers.values():
        is_stopped = not broker.is_running and not broker.is_fenced
        broker.fenced_at_s = state.time_s + state.session_timeout_s if is_stopped else None
    for kind, name, values in snapshot.settings:
        state.settings.restore(kind, name, values)
    state.topics = {topic.name: topic for topic in snapshot.topics}
    state.settle_all()


def compute_signature(snapshot: Snapshot) -> Any:
    """What changes when requests or pods change something, and not by the time alone."""
    brokers = [
        (broker.id, broker.rack, broker.is_running, broker.is_registered, broker.is_fenced)
        for broker in snapshot.brokers
    ]
    partitions = [
        (topic.name, number, partition.replicas, partition.adding, partition.removing, partition.isr, partition.leader)
        for topic in snapshot.topics
        for number, partition in topic.partitions.items()
    ]
    voters = None if snapshot.voters is None else sorted(snapshot.voters)
    return hash(repr((brokers, partitions, snapshot.settings, snapshot.seeded, voters)))
