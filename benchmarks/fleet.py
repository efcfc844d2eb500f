"""The fleet manager: counting Kafkas by the database, planning with the counts, and requests.

500 clusters and 100,000 Kafkas. The query that counts them stands beside the same query without its covering index,
on SQLite and, where there is one, on PostgreSQL. Planning gets counts and no rows, so that ten times the Kafkas should
not matter to it.
"""

from __future__ import annotations

import asyncio
import gc
import statistics
import tempfile
import time
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
from sqlalchemy import insert, text

from benchmarks.fleet_requests import measure_requests
from plimsoll.fleet.model.clusters import Cluster, DynamicCapacity
from plimsoll.fleet.model.kafkas import KafkaRequest
from plimsoll.fleet.model.policy import CloudProvider, FleetPolicy, InstanceType, Region, RegionType, Size
from plimsoll.fleet.model.statuses import ClusterStatus, KafkaStatus, ScalingType
from plimsoll.fleet.planning.capacity import build_capacity
from plimsoll.fleet.planning.scale_down import evaluate_scale_down
from plimsoll.fleet.planning.scale_up import evaluate_scale_up
from plimsoll.fleet.store.database import open_database
from plimsoll.fleet.store.kafkas import count_kafkas
from plimsoll.fleet.store.rows import RowCodec
from plimsoll.fleet.store.schema import KAFKAS
from plimsoll.fleet.store.secrets import SecretKeys
from plimsoll.runtime.clocks import RealClock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plimsoll.fleet.model.units import KafkaCount
    from plimsoll.fleet.store.database import FleetDatabase

CLUSTERS = 500
KAFKAS_IN_FLEET = 100_000
KAFKAS_SERVED = 10_000
"""In the database that requests go to."""
REGIONS = 25
TYPES = ("standard", "developer")
INDEX = "kafka_requests_counted"
NOW = datetime(2026, 1, 1, tzinfo=UTC)
ROUNDS = 5


def rows() -> Iterator[dict[str, Any]]:
    counts: dict[int, tuple[KafkaCount, ...]] = {}
    with ExitStack() as stack:
        for name, url, other in list_databases(stack):
            database = stack.enter_context(opened(url))
            fill(database, KAFKAS_IN_FLEET)
            yield from queries(database, name)
            counts[KAFKAS_IN_FLEET] = read_counts(database)
            with opened(other) as served:
                fill(served, KAFKAS_SERVED)
                yield from measure_requests(served, build_policy(), name, clusters=CLUSTERS)
        small = stack.enter_context(opened("sqlite://"))
        fill(small, KAFKAS_IN_FLEET // 10)
        counts[KAFKAS_IN_FLEET // 10] = read_counts(small)
    yield from planning(counts)


def row(name: str, value: float, unit: str, *, target: str = "", met: bool | None = None, note: str = "") -> Any:
    return {"name": name, "value": value, "unit": unit, "target": target, "met": met, "note": note}


def list_databases(stack: ExitStack) -> Iterator[tuple[str, str, str]]:
    """The name of a kind of database, and the URLs of two of them."""
    folder = stack.enter_context(tempfile.TemporaryDirectory())
    yield "SQLite", f"sqlite:///{folder}/fleet.sqlite3", f"sqlite:///{folder}/served.sqlite3"
    from tests.e2e.fleet.postgresql_servers import PostgresqlServer  # noqa: PLC0415 - only where there is a server

    try:
        server = PostgresqlServer()
    except pytest.skip.Exception as error:
        print(f"   {error}")
        return
    stack.callback(server.close)
    server.start()
    yield "PostgreSQL", server.create_database("fleet"), server.create_database("served")


@contextmanager
def opened(url: str) -> Iterator[FleetDatabase]:
    database = open_database(url, clock=RealClock(), keys=SecretKeys({}))
    try:
        yield database
    finally:
        database.close()


def build_cluster(number: int) -> Cluster:
    instance_type = TYPES[number % 2]
    return Cluster(
        id=f"cluster-{number:04}",
        created_at=NOW,
        updated_at=NOW,
        cluster_id=f"cid-{number:04}",
        cloud_provider="aws",
        region=f"region-{number // 2 % REGIONS:02}",
        multi_az=instance_type == "standard",
        status=ClusterStatus.READY,
        supported_instance_type=instance_type,
        dynamic_capacity_info={instance_type: DynamicCapacity(max_nodes=900, max_units=400)},
        client_id=f"agent-{number:04}",
        cluster_dns="apps.example.com",
        last_report_at=NOW,
        ready_at=NOW,
    )


def build_kafka(number: int) -> KafkaRequest:
    """A row of about the size of real ones. Every hundredth Kafka has no place."""
    cluster = number % CLUSTERS
    waits = number % 100 == 99
    return KafkaRequest(
        id=f"kafka-{number:08}",
        created_at=NOW,
        updated_at=NOW,
        name=f"name-{number}",
        owner=f"owner-{number % 997}",
        organisation_id=f"organisation-{number % 499}",
        cloud_provider="aws",
        region=f"region-{cluster // 2 % REGIONS:02}",
        cluster_id="" if waits else f"cid-{cluster:04}",
        status=KafkaStatus.ACCEPTED if waits else KafkaStatus.READY,
        instance_type=TYPES[cluster % 2],
        size_id="x2" if number % 10 == 0 else "x1",
        namespace=f"kafka-{number:08}",
        placement_id=f"placement-{number:08}-0123456789abcdef",
        bootstrap_server_host=f"name-{number}-kafka-{number:08}.kafka.example.com",
        admin_api_server_url=f"https://admin-server-name-{number}-kafka-{number:08}.kafka.example.com",
        desired_strimzi_version="strimzi-cluster-operator.v0.45.0-0",
        actual_strimzi_version="strimzi-cluster-operator.v0.45.0-0",
        desired_kafka_version="3.9.0",
        actual_kafka_version="3.9.0",
    )


def fill(database: FleetDatabase, kafkas: int) -> None:
    codec = RowCodec(SecretKeys({}))
    clusters = [build_cluster(number) for number in range(CLUSTERS)]
    asyncio.run(database.transfer.import_rows(clusters, ()))
    for start in range(0, kafkas, 10_000):
        values = [codec.encode_kafka(build_kafka(number)) for number in range(start, min(kafkas, start + 10_000))]
        insert_values(database, values)
    analyze(database)


def insert_values(database: FleetDatabase, values: list[dict[str, Any]]) -> None:
    database.transactions.run_writing(lambda connection: connection.execute(insert(KAFKAS), values))


def analyze(database: FleetDatabase) -> None:
    """What a database does by itself in time: without it PostgreSQL reads rows to learn whether they are visible."""
    engine = database.transactions._engine  # noqa: SLF001 - VACUUM runs outside of every transaction
    with engine.connect() as connection:
        if database.address.is_postgresql:
            connection.execution_options(isolation_level="AUTOCOMMIT").execute(text("VACUUM ANALYZE"))
        else:
            connection.execute(text("ANALYZE"))
            connection.commit()


def queries(database: FleetDatabase, name: str) -> Iterator[dict[str, Any]]:
    def count() -> object:
        return read_counts(database)

    with_index = best(count)
    definition = read_definition(database)
    execute(database, f"DROP INDEX {INDEX}")
    analyze(database)
    without = best(count)
    execute(database, definition)
    analyze(database)
    ratio = without / with_index
    note = f"{CLUSTERS} clusters, {KAFKAS_IN_FLEET:,} Kafkas; without its index {without * 1_000:,.0f} ms"
    yield row(f"count Kafkas, {name}", with_index * 1_000, "ms", note=note)
    yield row(f"count Kafkas against no covering index, {name}", ratio, "times", target=">= 3", met=ratio >= 3)
    seconds = best(lambda: asyncio.run(database.store.list_clusters()))
    yield row(f"list clusters, {name}", seconds * 1_000, "ms")


def read_counts(database: FleetDatabase) -> tuple[KafkaCount, ...]:
    policy = build_policy()
    return database.transactions.run_reading(lambda connection: count_kafkas(connection, policy))


def read_definition(database: FleetDatabase) -> str:
    statement = (
        f"SELECT indexdef FROM pg_indexes WHERE indexname = '{INDEX}'"
        if database.address.is_postgresql
        else f"SELECT sql FROM sqlite_master WHERE name = '{INDEX}'"
    )
    return database.transactions.run_reading(lambda connection: connection.execute(text(statement)).scalar_one())


def execute(database: FleetDatabase, statement: str) -> None:
    database.transactions.run_writing(lambda connection: connection.exec_driver_sql(statement))


def best(action: Callable[[], object]) -> float:
    def once() -> float:
        start = time.perf_counter()
        action()
        return time.perf_counter() - start

    return min(once() for _ in range(ROUNDS))


def build_size(size_id: str, units: int) -> Size:
    return Size(
        id=size_id,
        display_name=size_id,
        ingress_throughput_per_sec="50Mi",
        egress_throughput_per_sec="100Mi",
        total_max_connections=9000,
        max_connection_attempts_per_sec=100,
        max_data_retention_size="1000Gi",
        max_data_retention_size_bytes=1000 * 2**30,
        max_data_retention_period="P14D",
        max_partitions=1500,
        max_message_size="1Mi",
        min_in_sync_replicas=2,
        replication_factor=3,
        quota_consumed=units,
        quota_type="RHOSAK",
        capacity_consumed=units,
        supported_az_modes=("multi",),
        maturity_status="stable",
    )


def build_policy() -> FleetPolicy:
    sizes = (build_size("x1", 1), build_size("x2", 2))
    offers = tuple(RegionType(instance_type=name, slack=5) for name in TYPES)
    regions = tuple(
        Region(name=f"region-{number:02}", is_default=number == 0, types=offers) for number in range(REGIONS)
    )
    return FleetPolicy(
        scaling_type=ScalingType.AUTO,
        providers=(CloudProvider(name="aws", is_default=True, regions=regions),),
        instance_types={name: InstanceType(id=name, display_name=name, sizes=sizes) for name in TYPES},
        scale_up_enabled=True,
        scale_down_enabled=True,
    )


def planning(counts: dict[int, tuple[KafkaCount, ...]]) -> Iterator[dict[str, Any]]:
    """In turns, so that what else the machine does hits both alike."""
    clusters = tuple(build_cluster(number) for number in range(CLUSTERS))
    policy = build_policy()

    def plan(counted: tuple[KafkaCount, ...]) -> None:
        capacity = build_capacity(clusters, counted, policy, NOW)
        evaluate_scale_up(capacity, policy, NOW)
        evaluate_scale_down(capacity, policy, NOW)

    gc.collect()
    seconds: dict[int, list[float]] = {size: [] for size in counts}
    for _ in range(3 * ROUNDS):
        for size, counted in counts.items():
            start = time.process_time()
            plan(counted)
            seconds[size].append(time.process_time() - start)
    figures = {size: statistics.median(found) for size, found in seconds.items()}
    most, least = max(figures), min(figures)
    yield row("evaluate scale-up and scale-down", figures[most] * 1_000, "ms", note=f"{most:,} Kafkas, counted")
    ratio = figures[most] / figures[least]
    name = "planning with ten times the Kafkas"
    yield row(name, ratio, "times", target="<= 1.5", met=ratio <= 1.5, note=f"{least:,} and {most:,}")
