"""A server over a description, with an executor that tests steer, and a client that calls it without a socket."""

from __future__ import annotations

import asyncio
import json
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plimsoll.journal.memory import MemoryJournal
from plimsoll.kafka.brokers.ports import KafkaUnavailable
from plimsoll.kafka.cruise_control.server.application import CruiseControlServer
from plimsoll.kafka.cruise_control.server.authentication import Authentication, User
from plimsoll.kafka.cruise_control.server.context import Dependencies
from plimsoll.kafka.executor.journaling import conclude_entry
from plimsoll.kafka.model.description import (
    BrokerCapacity,
    BrokerDescription,
    ClusterDescription,
    LogDir,
    PartitionDescription,
    ReplicaDescription,
    TopicDescription,
)
from plimsoll.kafka.model.executions import (
    NO_REQUEST,
    ExecutionEnd,
    ExecutionOptions,
    ExecutionOutcome,
    ExecutionProgress,
    ExecutorState,
)
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.reporting.metrics import KafkaMetrics
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.web.asgi_client import call_application
from plimsoll.web.client import Response

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from plimsoll.core.clock import Clock
    from plimsoll.core.errors import PlimsollError
    from plimsoll.kafka.executor.record import RecordedPlan
    from plimsoll.kafka.model.executions import ExecutionRequest
    from plimsoll.kafka.model.proposals import Proposal

CRUISE_CONTROL_GOALS = (
    "RackAwareGoal",
    "ReplicaCapacityGoal",
    "DiskCapacityGoal",
    "NetworkInboundCapacityGoal",
    "NetworkOutboundCapacityGoal",
    "CpuCapacityGoal",
    "ReplicaDistributionGoal",
    "PotentialNwOutGoal",
    "DiskUsageDistributionGoal",
    "NetworkInboundUsageDistributionGoal",
    "NetworkOutboundUsageDistributionGoal",
    "CpuUsageDistributionGoal",
    "TopicReplicaDistributionGoal",
    "LeaderReplicaDistributionGoal",
    "LeaderBytesInDistributionGoal",
)
"""The default goals of Cruise Control itself, which the recorded server had."""


def describe_cluster(*, brokers: int = 3, hosting: int = 3, racks: int = 3, rates: bool = True) -> ClusterDescription:
    """Brokers in racks; replicas are on the first `hosting` ones. Topics t0 to t2 have three replicas, solo has one."""
    topics = []
    for number, name in enumerate(("t0", "t1", "t2")):
        topics.append(_describe_topic(name, partitions=10, factor=3, hosting=hosting, offset=number, rates=rates))
    topics.append(_describe_topic("solo", partitions=6, factor=1, hosting=hosting, offset=0, rates=rates))
    return ClusterDescription(
        cluster_id="abc",
        controller=0,
        brokers=tuple(
            BrokerDescription(
                id=broker,
                host="127.0.0.1",
                port=9092 + broker,
                rack=f"rack-{broker % racks}",
                log_dirs=(LogDir(path=f"/data/{broker}", total_bytes=100_000 << 20, usable_bytes=90_000 << 20),),
                capacity=BrokerCapacity(disk_mb=100_000.0, nw_in_kb_s=10_000.0, nw_out_kb_s=10_000.0),
                cpu_pct=3.0,
            )
            for broker in range(brokers)
        ),
        topics=tuple(topics),
        rate_source="prometheus" if rates else "",
    )


def _describe_topic(
    name: str, *, partitions: int, factor: int, hosting: int, offset: int, rates: bool
) -> TopicDescription:
    described = []
    for partition in range(partitions):
        replicas = tuple((partition + offset + index) % hosting for index in range(factor))
        described.append(
            PartitionDescription(
                partition=partition,
                replicas=replicas,
                leader=replicas[0],
                isr=replicas,
                logs=tuple(
                    ReplicaDescription(broker=broker, log_dir=f"/data/{broker}", size_bytes=(3 + partition) << 20)
                    for broker in replicas
                ),
                bytes_in_per_s=1024.0 * (partition + 1) if rates else None,
                bytes_out_per_s=2048.0 * (partition + 1) if rates else None,
            )
        )
    return TopicDescription(name=name, partitions=tuple(described))


@dataclass
class SteeredExecutor:
    """Executes nothing. An execution lasts until a test finishes it."""

    journal: MemoryJournal
    current: ExecutionProgress = field(default_factory=ExecutionProgress)
    executions: list[tuple[str, tuple[Proposal, ...], ExecutionOptions]] = field(default_factory=list)
    stops: list[bool] = field(default_factory=list)
    refusal: PlimsollError | None = None
    """What every execution is refused with."""
    failing_stops: int = 0
    failing_resumes: int = 0
    _end: asyncio.Event = field(default_factory=asyncio.Event)
    _outcome: ExecutionEnd = ExecutionEnd.COMPLETED

    async def execute(
        self,
        execution_id: str,
        proposals: tuple[Proposal, ...],
        options: ExecutionOptions,
        *,
        request: ExecutionRequest = NO_REQUEST,
    ) -> ExecutionOutcome:
        if self.refusal is not None:
            raise self.refusal
        self.executions.append((execution_id, proposals, options))
        self.current = ExecutionProgress(
            state=ExecutorState.INTER_BROKER_REPLICA_MOVEMENT, execution_id=execution_id, options=options
        )
        self._end.clear()
        await self._end.wait()
        self.current = ExecutionProgress()
        outcome = ExecutionOutcome(execution_id=execution_id, end=self._outcome, completed=len(proposals))
        await conclude_entry(self.journal, request, outcome)
        return outcome

    def finish(self, end: ExecutionEnd = ExecutionEnd.COMPLETED) -> None:
        self._outcome = end
        self._end.set()

    def get_progress(self) -> ExecutionProgress:
        return self.current

    async def find_unfinished(self) -> RecordedPlan | None:
        return None

    async def list_removed_brokers(self) -> list[int]:
        return []

    async def resume(self) -> ExecutionOutcome | None:
        self.failing_resumes -= 1
        if self.failing_resumes >= 0:
            raise KafkaUnavailable("no broker answers")
        return None

    async def stop(self, *, cancel_foreign: bool = False) -> None:
        self.stops.append(cancel_foreign)
        self.failing_stops -= 1
        if self.failing_stops >= 0:
            raise KafkaUnavailable("no broker answers")
        self.finish(ExecutionEnd.STOPPED)


@dataclass
class Reply:
    """A response."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass
class Client:
    """Calls an ASGI application."""

    server: CruiseControlServer
    cookie: str = ""

    async def call(
        self, method: str, endpoint: str, query: str = "", *, headers: dict[str, str] | None = None
    ) -> Reply:
        given = {"host": "localhost", **({"cookie": self.cookie} if self.cookie else {}), **(headers or {})}
        path = endpoint if endpoint.startswith("/") else f"/kafkacruisecontrol/{endpoint}"
        answer = await call_application(self.server, method, path, query=query, headers=given)
        assert isinstance(answer, Response)
        return Reply(answer.status, answer.headers, answer.body)


@dataclass
class Bench:
    """A server with its client, its executor and the cluster it reads."""

    client: Client
    executor: SteeredExecutor
    cluster: ClusterDescription
    clock: Clock
    journal: MemoryJournal
    describe_delay_s: float = 0.0

    async def describe(self) -> ClusterDescription:
        await self.clock.sleep(self.describe_delay_s)
        return self.cluster


@asynccontextmanager
async def start_server(
    clock: Clock,
    *,
    cluster: ClusterDescription | None = None,
    users: tuple[User, ...] = (),
    max_block_time_s: float = 10.0,
) -> AsyncIterator[Bench]:
    journal = MemoryJournal()
    executor = SteeredExecutor(journal)

    async def run_inline(work: Callable[[], Any]) -> Any:
        return work()

    async def describe() -> ClusterDescription:
        return await bench.describe()

    dependencies = Dependencies(
        describe=describe,
        executor=executor,
        settings=AnalyzerSettings(default_goals=CRUISE_CONTROL_GOALS),
        clock=clock,
        run_blocking=run_inline,
        journal=journal,
        metrics=KafkaMetrics(executor.get_progress),
    )
    server = CruiseControlServer(
        dependencies,
        entropy=SeededEntropy(7),
        authentication=Authentication(users),
        max_block_time_s=max_block_time_s,
    )
    bench = Bench(Client(server), executor, cluster or describe_cluster(), clock, journal)
    async with server:
        yield bench
