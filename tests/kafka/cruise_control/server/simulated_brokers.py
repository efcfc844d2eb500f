"""A server with the real executor over simulated brokers, called without a socket."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from plimsoll.kafka.brokers.source import describe_cluster
from plimsoll.kafka.cruise_control.server.application import CruiseControlServer
from plimsoll.kafka.cruise_control.server.authentication import Authentication
from plimsoll.kafka.cruise_control.server.context import Dependencies
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.testing import run_virtual
from tests.kafka.cruise_control.server.server_bench import Client
from tests.kafka.executor.simulated_clusters import MB, Cluster

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from plimsoll.core.clock import Clock
    from plimsoll.journal.ports import Journal
    from plimsoll.kafka.model.description import ClusterDescription


def build_cluster(clock: Clock) -> Cluster:
    """Simulated brokers, of which broker 9 is new."""
    cluster = Cluster(clock, size=100 * MB)
    cluster.kafka.add_broker(9, rack="r0", bytes_per_s=10 * MB)
    return cluster


@asynccontextmanager
async def open_server(cluster: Cluster, *, journal: Journal | None = None, seed: int = 7) -> AsyncIterator[Client]:
    """A process that serves the cluster. It goes on with what an earlier one has not finished."""

    async def describe() -> ClusterDescription:
        return await describe_cluster(cluster.admin)

    async def run_inline(work: Callable[[], Any]) -> Any:
        return work()

    executor = cluster.build_executor(journal=journal)
    dependencies = Dependencies(
        describe=describe,
        executor=executor,
        settings=AnalyzerSettings(),
        clock=cluster.clock,
        run_blocking=run_inline,
        journal=journal,
    )
    server = CruiseControlServer(dependencies, entropy=SeededEntropy(seed), authentication=Authentication(()))
    async with server:
        server.resume_execution(await executor.find_unfinished())
        yield Client(server)


def run_story(
    story: Callable[[Client, Cluster, Clock], Awaitable[None]],
    *,
    build_journal: Callable[[Clock], Journal] | None = None,
) -> None:
    """Run a story against a server over simulated brokers, of which broker 9 is new."""

    async def main(clock: Clock) -> None:
        cluster = build_cluster(clock)
        async with open_server(cluster, journal=None if build_journal is None else build_journal(clock)) as client:
            await story(client, cluster, clock)

    run_virtual(main)
