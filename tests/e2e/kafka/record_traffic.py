"""A producer that waits for all in-sync replicas and a consumer group, while a cluster scales; nothing may be lost."""

from __future__ import annotations

import threading
import time
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from kafka import KafkaConsumer, KafkaProducer

from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

GROUP = "readers"
_PAUSE_S = 0.1


class Place(NamedTuple):
    """A record as a reader found it."""

    topic: str
    partition: int
    offset: int


class RecordTraffic:
    """Numbered records into every topic, and a group of two that reads them all."""

    def __init__(self, bootstrap: str, topics: Sequence[str]) -> None:
        self._servers = bootstrap.split(",")
        self._topics = topics
        self._stops_writing = threading.Event()
        self._stops_reading = threading.Event()
        self.acknowledged: dict[str, set[int]] = defaultdict(set)
        self.refused: list[BaseException] = []
        self.read: dict[Place, int] = {}
        self._threads = [threading.Thread(target=self._write), *(threading.Thread(target=self._read) for _ in range(2))]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stops_writing.set()
        self._stops_reading.set()
        for thread in self._threads:
            thread.join(PATIENCE_S)

    def finish(self) -> None:
        """Stop to write, and read what was acknowledged."""
        self._stops_writing.set()
        self._threads[0].join(PATIENCE_S)
        until_s = time.monotonic() + PATIENCE_S
        while self.list_unread() and time.monotonic() < until_s:
            time.sleep(0.1)

    def list_unread(self) -> list[tuple[str, int]]:
        found: dict[str, set[int]] = defaultdict(set)
        for place, number in list(self.read.items()):
            found[place.topic].add(number)
        return [(topic, number) for topic, numbers in self.acknowledged.items() for number in numbers - found[topic]]

    def list_disordered(self) -> list[Place]:
        """Records whose number is not above the one before them in their partition."""
        disordered: list[Place] = []
        last: dict[tuple[str, int], int] = {}
        for place in sorted(self.read):
            key = (place.topic, place.partition)
            if self.read[place] <= last.get(key, -1):
                disordered.append(place)
            last[key] = self.read[place]
        return disordered

    def _write(self) -> None:
        producer = KafkaProducer(bootstrap_servers=self._servers, acks="all", enable_idempotence=True, linger_ms=5)
        number = 0
        try:
            while not self._stops_writing.is_set():
                for topic in self._topics:
                    sent = producer.send(topic, str(number).encode(), partition=0)
                    sent.add_callback(lambda _, topic=topic, number=number: self.acknowledged[topic].add(number))
                    sent.add_errback(self.refused.append)
                number += 1
                time.sleep(_PAUSE_S)
            producer.flush(timeout=PATIENCE_S)
        finally:
            producer.close(timeout=10)

    def _read(self) -> None:
        consumer = KafkaConsumer(
            *self._topics,
            bootstrap_servers=self._servers,
            group_id=GROUP,
            auto_offset_reset="earliest",
            auto_commit_interval_ms=500,
        )
        try:
            while not self._stops_reading.is_set():
                for records in consumer.poll(timeout_ms=200).values():
                    for record in records:
                        self.read[Place(record.topic, record.partition, record.offset)] = int(record.value)
        finally:
            consumer.close()
