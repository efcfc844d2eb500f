"""The engine of one Kafka cluster: source, analyzer, executor and the server that is asked for them.

The server is called in this process and without a socket, by the same client that calls a Cruise Control. An execution
that an earlier process has not finished goes on under the id of its task, so that its KafkaRebalance finds it again.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from plimsoll.kafka.brokers.capacities import apply_capacities
from plimsoll.kafka.brokers.rates import OffsetSampler
from plimsoll.kafka.brokers.source import LiveClusterSource
from plimsoll.kafka.cruise_control.server.application import CruiseControlServer
from plimsoll.kafka.cruise_control.server.context import Dependencies
from plimsoll.kafka.engine.engine_client import EngineClient
from plimsoll.kafka.executor.executor import Executor
from plimsoll.kafka.model.executions import ExecutionOptions
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.reporting.metrics import KafkaMetrics
from plimsoll.web.asgi_client import AsgiClient

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from starlette.types import ASGIApp

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.journal.ports import Journal
    from plimsoll.kafka.brokers.ports import KafkaAdmin
    from plimsoll.kafka.cruise_control.server.authentication import Authentication
    from plimsoll.kafka.executor.context import ReadGuard
    from plimsoll.kafka.executor.record import ExecutionStore
    from plimsoll.kafka.model.description import BrokerCapacity, ClusterDescription
    from plimsoll.kafka.model.executions import ExecutionProgress
    from plimsoll.web.client import HttpClient

BASE_URL: Final = "http://engine/kafkacruisecontrol"
"""The host is for messages: there is no socket."""


async def run_in_thread(work: Callable[[], Any]) -> Any:
    """A computation beside the loop, where time is real."""
    return await asyncio.to_thread(work)


async def run_inline(work: Callable[[], Any]) -> Any:
    """A computation in virtual time, which has no threads."""
    return work()


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineDependencies:
    """What the engines of all clusters share."""

    clock: Clock
    entropy: Entropy
    run_blocking: Callable[[Callable[[], Any]], Awaitable[Any]] = run_in_thread
    journal: Journal | None = None
    execution: ExecutionOptions = field(default_factory=ExecutionOptions)
    """Options of executions whose request does not set them."""
    wrap_web: Callable[[HttpClient], HttpClient] = lambda web: web
    """Put around the client of the server: the guard of the leader, or faults of a test."""


class Engine:
    """Plans and executes for one cluster, while it is open."""

    def __init__(
        self,
        dependencies: EngineDependencies,
        *,
        admin: KafkaAdmin,
        store: ExecutionStore,
        read_guard: ReadGuard,
        journal: Journal | None = None,
        on_execution_ended: Callable[[], None] = lambda: None,
    ) -> None:
        clock = dependencies.clock
        self._source = LiveClusterSource(admin, clock, sampler=OffsetSampler())
        self._capacities: dict[int, BrokerCapacity] = {}
        self._executor = Executor(admin, clock, store, read_guard=read_guard, journal=journal)
        self._server = CruiseControlServer(
            Dependencies(
                describe=self._describe,
                executor=self._executor,
                settings=AnalyzerSettings(),
                clock=clock,
                run_blocking=dependencies.run_blocking,
                execution=dependencies.execution,
                journal=journal,
                metrics=KafkaMetrics(self._executor.get_progress),
                on_execution_ended=on_execution_ended,
            ),
            entropy=dependencies.entropy,
        )
        self.client = EngineClient(BASE_URL, web=dependencies.wrap_web(AsgiClient(self._server)))
        """Reaches the engine as a Cruise Control is reached."""
        self._cleaning: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Begin to serve. Raises `RecordUnusable` if it is not known what an earlier process left."""
        self._server.resume_execution(await self._executor.find_unfinished())
        self._cleaning = asyncio.get_running_loop().create_task(self._executor.keep_clean())

    async def close(self) -> None:
        """End without a change at the brokers: what is under way there goes on, and the record names it."""
        if self._cleaning is not None:
            self._cleaning.cancel()
            await asyncio.wait((self._cleaning,))
        await self._server.close()

    def configure(self, capacities: dict[int, BrokerCapacity], settings: AnalyzerSettings) -> None:
        """Use these capacities and goals from the next request on."""
        self._capacities = capacities
        self._server.change_settings(settings)

    @property
    def application(self) -> ASGIApp:
        """The server, for callers behind a socket. It has no users of its own: guard it."""
        return self._server

    def guard_application(self, authentication: Authentication) -> ASGIApp:
        """The server for clients that must log in."""
        return self._server.guard(authentication)

    def get_progress(self) -> ExecutionProgress:
        return self._executor.get_progress()

    def list_throttled_brokers(self) -> frozenset[int]:
        return self._executor.list_throttled_brokers()

    async def _describe(self) -> ClusterDescription:
        return apply_capacities(await self._source.describe(), self._capacities)
