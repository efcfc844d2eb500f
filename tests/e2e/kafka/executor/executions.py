"""Executions on real brokers: plans that fill and empty a fourth broker, and what is left behind afterwards."""

from __future__ import annotations

import asyncio
import threading
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Final

from kafka import KafkaConsumer, KafkaProducer

from plimsoll.kafka.brokers.connection_settings import ConnectionSettings
from plimsoll.kafka.brokers.kafka_python import KafkaPythonAdmin
from plimsoll.kafka.brokers.ports import ConfigResource, KafkaError
from plimsoll.kafka.executor.executor import Executor
from plimsoll.kafka.executor.observing import METADATA_LAG_S
from plimsoll.kafka.executor.record_stores import FileExecutionStore, read_record
from plimsoll.kafka.model.executions import ExecutionOptions
from plimsoll.kafka.model.proposals import Proposal
from plimsoll.runtime.clocks import RealClock

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Sequence
    from pathlib import Path

    from plimsoll.kafka.model.executions import ExecutionOutcome
    from tests.e2e.kafka.real_kafka import RealKafka

MB: Final = 1 << 20
NEW: Final = 3
LISTS: Final = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
RATES: Final = ("leader.replication.throttled.rate", "follower.replication.throttled.rate")
FAST: Final = ExecutionOptions(replication_throttle=100 * MB, progress_check_interval_s=0.2)


class RealExecutions:
    """A cluster with the record of its executions."""

    def __init__(self, kafka: RealKafka, directory: Path) -> None:
        self.kafka = kafka
        self.directory = directory

    # ---- data

    def fill(self, *, topics: Sequence[str] = ("a", "b"), partitions: int = 3, size: int = 2 * MB) -> None:
        for topic in topics:
            replicas = {n: [n % 3, (n + 1) % 3, (n + 2) % 3] for n in range(partitions)}
            self.kafka.create_topic(topic, replicas)
            for number in range(partitions):
                self.kafka.produce(topic, partition=number, total_bytes=size)

    def read_assignment(self, *topics: str) -> dict[tuple[str, int], list[int]]:
        return {(t, n): replicas for t in topics for n, replicas in self.kafka.list_replicas(t).items()}

    def propose(self, topics: Sequence[str], size: int, choose: Callable[[list[int]], list[int]]) -> list[Proposal]:
        """A proposal for each partition whose replicas `choose` changes."""
        found = []
        for topic in topics:
            [described] = self.kafka.client.describe_topics([topic])
            for partition in described["partitions"]:
                old = list(partition["replica_nodes"])
                new = choose(old)
                if new != old:
                    found.append(
                        Proposal(
                            topic=topic,
                            partition=partition["partition_index"],
                            old_leader=partition["leader_id"],
                            old_replicas=tuple(old),
                            new_replicas=tuple(new),
                            size_bytes=size,
                        )
                    )
        return found

    def propose_add(self, *topics: str, size: int = 2 * MB) -> list[Proposal]:
        """The first replica of each partition goes to the new broker."""
        return self.propose(topics, size, lambda old: old if NEW in old else [NEW, *old[1:]])

    def propose_remove(self, *topics: str, size: int = 2 * MB) -> list[Proposal]:
        return self.propose(
            topics, size, lambda old: [next(b for b in range(3) if b not in old) if b == NEW else b for b in old]
        )

    # ---- running

    @asynccontextmanager
    async def open_executor(self, through: Callable[[Any], Any] = lambda port: port) -> AsyncIterator[Executor]:
        settings = ConnectionSettings(bootstrap=tuple(self.kafka.bootstrap.split(",")), request_timeout_s=10.0)
        store = FileExecutionStore(self.directory)
        try:
            async with KafkaPythonAdmin(settings) as admin:
                yield Executor(through(admin), RealClock(), through(store))
        finally:
            store.close()

    def execute(self, proposals: Sequence[Proposal], options: ExecutionOptions = FAST) -> ExecutionOutcome:
        async def work(executor: Executor) -> ExecutionOutcome:
            return await executor.execute("e1", proposals, options)

        return self.run(work)

    def run(self, work: Callable[[Executor], Coroutine[Any, Any, Any]]) -> Any:
        async def main() -> Any:
            async with self.open_executor() as executor:
                return await work(executor)

        return asyncio.run(main())

    # ---- what is left

    def read_throttles(self, *topics: str) -> dict[tuple[str, str], dict[str, str]]:
        """The throttle settings on the brokers, also empty ones."""

        async def read() -> Any:
            settings = ConnectionSettings(bootstrap=tuple(self.kafka.bootstrap.split(",")))
            async with KafkaPythonAdmin(settings) as admin:
                names = [ConfigResource("topic", topic) for topic in topics]
                found = dict(await admin.describe_configs(names, LISTS)) if names else {}
                brokers = [ConfigResource("broker", str(broker)) for broker in self.kafka.running]
                return found | dict(await admin.describe_configs(brokers, RATES))

        left = {}
        for resource, entries in asyncio.run(read()).items():
            assert not isinstance(entries, KafkaError), (resource, entries)
            values = {key: entry.value for key, entry in entries.items() if entry.is_dynamic}
            if values:
                left[resource.type, resource.name] = values
        return left

    def wait_for_throttles(self, *topics: str) -> dict[tuple[str, str], dict[str, str]]:
        """As soon as the broker that is asked knows those of all topics: it may be behind."""
        found: dict[tuple[str, str], dict[str, str]] = {}

        def is_set() -> bool:
            found.update(self.read_throttles(*topics))
            return all(len(found.get(("topic", topic), ())) == len(LISTS) for topic in topics)

        self.kafka.wait_until(is_set, "the throttles are set")
        return found

    def check_nothing_left(self, *topics: str, starred: Sequence[str] = ()) -> None:
        """No reassignment, no throttle of ours and no record, as the brokers and the disk have it.

        The broker that is asked for throttles may be behind the one that the executor has asked.
        """
        assert self.kafka.client.list_partition_reassignments() == {}
        kept = {("topic", topic): dict.fromkeys(LISTS, "*") for topic in starred}
        self.kafka.wait_until(
            lambda: self.read_throttles(*topics) == kept, "no throttle is left", within_s=METADATA_LAG_S
        )
        assert read_record(self.directory) is None

    def wait_in_sync(self, *topics: str) -> None:
        def is_in_sync() -> bool:
            found = self.kafka.client.describe_topics(list(topics))
            return all(
                sorted(p["isr_nodes"]) == sorted(p["replica_nodes"]) and p["leader_id"] >= 0
                for topic in found
                for p in topic["partitions"]
            )

        self.kafka.wait_until(is_in_sync, "all replicas are in sync")


async def wait_moving(executor: Executor, at_least: int = 1) -> None:
    """Wait until the brokers list this many reassignments."""
    while len(await executor._admin.list_reassignments()) < at_least:  # noqa: ASYNC110 - brokers have no event
        await asyncio.sleep(0.05)


class Traffic:
    """A producer that waits for all in-sync replicas, and a consumer of a group, while a cluster changes."""

    def __init__(self, kafka: RealKafka, topic: str, partitions: int) -> None:
        self._bootstrap = kafka.bootstrap.split(",")
        self._topic = topic
        self._partitions = partitions
        self._is_producing = threading.Event()
        self._is_consuming = threading.Event()
        self._producer = threading.Thread(target=self._produce)
        self._consumer = threading.Thread(target=self._consume)
        self.acknowledged: dict[int, int] = {}
        """Number of the record → partition."""
        self.read: list[tuple[int, int, int]] = []
        """(partition, offset, number of the record)."""
        self.errors: list[BaseException] = []

    def start(self) -> None:
        self._is_producing.set()
        self._is_consuming.set()
        self._producer.start()
        self._consumer.start()

    def finish(self) -> None:
        """Stop the producer, let the consumer read the rest."""
        self._is_producing.clear()
        self._producer.join()
        last = -1
        while last != len(self.read):
            last = len(self.read)
            threading.Event().wait(2)
        self._is_consuming.clear()
        self._consumer.join()

    def check(self) -> None:
        assert not self.errors, self.errors
        assert self.acknowledged
        numbers = {number for _, _, number in self.read}
        assert set(self.acknowledged) <= numbers, f"lost: {sorted(set(self.acknowledged) - numbers)[:10]}"
        offsets = [(partition, offset) for partition, offset, _ in self.read]
        assert len(set(offsets)) == len(offsets), "a record was read twice without a reason"

    def _produce(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self._bootstrap, acks="all", retries=50, linger_ms=5)
        pending = {}
        number = 0
        try:
            while self._is_producing.is_set():
                partition = number % self._partitions
                pending[number] = producer.send(self._topic, str(number).encode(), partition=partition)
                number += 1
                if number % 20 == 0:
                    self._collect(pending)
                    threading.Event().wait(0.05)
            producer.flush(timeout=60)
            self._collect(pending)
        except BaseException as error:  # noqa: BLE001 - of a thread: the test reads it
            self.errors.append(error)
        finally:
            producer.close()

    def _collect(self, pending: dict[int, Any]) -> None:
        for number, future in list(pending.items()):
            if future.is_done:
                del pending[number]
                if future.succeeded():
                    self.acknowledged[number] = future.value.partition

    def _consume(self) -> None:
        consumer = KafkaConsumer(
            self._topic,
            bootstrap_servers=self._bootstrap,
            group_id="traffic",
            auto_offset_reset="earliest",
            enable_auto_commit=True,
        )
        try:
            while self._is_consuming.is_set():
                for records in consumer.poll(timeout_ms=200).values():
                    self.read += [(record.partition, record.offset, int(record.value)) for record in records]
        except BaseException as error:  # noqa: BLE001 - of a thread: the test reads it
            self.errors.append(error)
        finally:
            consumer.close()
