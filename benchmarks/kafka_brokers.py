"""A live Kafka cluster of 10,000 partitions: its model against the describe calls, and executions on it.

Real brokers on loopback (tests/e2e/kafka/real_kafka.py); without Java or Kafka's jars there are no rows. The describe
calls are those of kafka-python's own admin client: cluster, topics, log directories, reassignments. Times are on the
clock, the least of several; notes have the processor time of this process. `PLIMSOLL_BENCH_TOPICS` has the number of
topics, of 100 partitions each, for a machine that holds fewer.
"""

from __future__ import annotations

import asyncio
import os
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from kafka import KafkaAdminClient

from benchmarks.kafka_executions import build_row, measure_executions
from benchmarks.kafka_partitions import HEAP_MB, LOG_DIRS, PARTITIONS, SETTINGS, create_topics
from plimsoll.kafka.brokers.connection_settings import parse_connection_settings
from plimsoll.kafka.brokers.kafka_python import KafkaPythonAdmin
from plimsoll.kafka.brokers.source import describe_cluster
from plimsoll.kafka.model.cluster import build_model
from tests.e2e.kafka.kafka_distributions import need_distribution
from tests.e2e.kafka.real_kafka import RealKafka

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.kafka.model.cluster import ClusterModel

BROKERS = (0, 1, 2, 3)
TOPICS = 100
WITH_DATA = 24
"""Topics with data, from which a thousand partitions move."""
REPLICATION_FACTOR = 3
_TRIES = 5


def rows() -> Iterator[dict[str, Any]]:
    try:
        distribution = need_distribution()
    except pytest.skip.Exception as skipped:
        print(skipped)
        return
    wanted = int(os.environ.get("PLIMSOLL_BENCH_TOPICS", TOPICS))
    names = [f"{'data' if number < WITH_DATA else 'empty'}-{number:03}" for number in range(wanted)]
    # In memory where the system has it: brokers make 60,000 files, and a slow disk is not what is measured.
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as directory:
        kafka = RealKafka(distribution, Path(directory), heap_mb=HEAP_MB, settings=SETTINGS, log_dirs=LOG_DIRS)
        try:
            kafka.start(BROKERS)
            held = create_topics(kafka, names, replication_factor=REPLICATION_FACTOR)
            yield _build_size_row(len(held) * PARTITIONS)
            yield from _measure_description(kafka.bootstrap)
            yield from measure_executions(kafka, [name for name in held if name.startswith("data")], PARTITIONS)
        finally:
            kafka.close()


def _build_size_row(partitions: int) -> dict[str, Any]:
    least = TOPICS * PARTITIONS
    row = build_row("partitions on the brokers", partitions, "", note=f"{REPLICATION_FACTOR} replicas each")
    return {**row, "target": f">= {least:,}", "met": partitions >= least}


def _measure_description(bootstrap: str) -> Iterator[dict[str, Any]]:
    calls = measure_calls(bootstrap)
    whole, model = asyncio.run(measure_model(bootstrap))
    shape = f"{model.partition_count:,} partitions, {model.replica_count:,} replicas, {len(BROKERS)} brokers"
    yield build_row("describe calls of a live cluster", calls.elapsed_s, "s", note=f"{calls.cpu_s:.2f} s CPU; {shape}")
    yield build_row("... and its model", whole.elapsed_s, "s", note=f"{whole.cpu_s:.2f} s CPU")
    yield build_row("model / describe calls", whole.elapsed_s / calls.elapsed_s, "x", 2.0, note="elapsed time")


class Timing(NamedTuple):
    """The time of one run."""

    elapsed_s: float
    cpu_s: float


def measure_calls(bootstrap: str) -> Timing:
    """The describe calls of kafka-python's own client."""
    client = KafkaAdminClient(bootstrap_servers=bootstrap.split(","))
    try:
        runs = []
        for _ in range(_TRIES):
            began = _look()
            client.describe_cluster()
            client.describe_topics()
            client.describe_log_dirs()
            client.list_partition_reassignments()
            runs.append(_measure_since(began))
        return min(runs)
    finally:
        client.close()


async def measure_model(bootstrap: str) -> tuple[Timing, ClusterModel]:
    """From the first request to the model."""
    runs = []
    async with KafkaPythonAdmin(parse_connection_settings(bootstrap, {})) as admin:
        for _ in range(_TRIES):
            began = _look()
            model = build_model(await describe_cluster(admin))
            runs.append(_measure_since(began))
    return min(runs), model


def _look() -> Timing:
    return Timing(time.perf_counter(), time.process_time())


def _measure_since(began: Timing) -> Timing:
    now = _look()
    return Timing(now.elapsed_s - began.elapsed_s, now.cpu_s - began.cpu_s)
