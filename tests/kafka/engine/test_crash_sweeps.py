"""An operator that dies after every single call to the API server or to a broker: the same end as without a crash."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kafka.engine.config_map_store import ConfigMapExecutionStore
from plimsoll.kafka.model.rebalances import (
    ExecutorSubstate,
    NoSuchTask,
    Proposed,
    RebalanceRefused,
    RebalanceSpec,
    RebalanceTask,
    RebalanceTaskStatus,
)
from plimsoll.kafka.model.requests import Mode
from plimsoll.kube.errors import TimedOut
from tests.effort import share_of
from tests.kafka.engine.engine_bench import EngineBench
from tests.kube.embedded_api import EmbeddedApi

if TYPE_CHECKING:
    from plimsoll.kube.transport import Request, Response, Transport

ADD = RebalanceSpec(mode=Mode.ADD_BROKERS, brokers=(3,), replication_throttle=20_000_000)
LIMIT = 40
"""Crash points. An execution of the bench has fewer calls to the API server."""


class World(EmbeddedApi):
    """Counts calls, and dies or loses an answer after the call of a number."""

    def __init__(self, *, crash_after: int = -1, lose_answer_of: int = -1) -> None:
        self.calls = 0
        self.is_crashed = False
        self._crash_after = crash_after
        self._lose_answer_of = lose_answer_of
        super().__init__(through=self._watch)

    def _watch(self, transport: Transport) -> Transport:
        world = self

        class Watched:
            async def send(self, request: Request) -> Response:
                number, world.calls = world.calls, world.calls + 1
                answer = await transport.send(request)
                if number == world._crash_after:
                    world.is_crashed = True
                if number == world._lose_answer_of:
                    raise TimedOut("the answer is lost")
                return answer

            async def aclose(self) -> None:
                await transport.aclose()

        return Watched()

    def list_names(self) -> list[str]:
        items = self.ask("GET", "/api/v1/namespaces/ns/configmaps")["items"]
        return [item["metadata"]["name"] for item in items if item["metadata"]["name"].startswith("c-")]


async def run_rebalance(world: World, bench: EngineBench) -> list[str]:
    """What the rebalance reconciler does, in short, over crashes. Gives the sessions of accepted executions."""
    session, accepted = "", []
    for _ in range(2_000):
        if world.is_crashed:
            world.is_crashed = False
            await bench.restart()
        client = await bench.engines.find(bench.kafka)
        if isinstance(client, RebalanceRefused):
            assert client.is_transient
        elif not session:
            answer = await client.request_rebalance(ADD, is_dry_run=False)
            if isinstance(answer, Proposed):
                session = answer.session_id
                accepted += [session] * bool(answer.body["summary"]["numReplicaMovements"])
            else:
                assert isinstance(answer, RebalanceRefused)
                assert answer.is_transient
        else:
            task = await client.read_user_task(session)
            if isinstance(task, RebalanceTask) and task.status is RebalanceTaskStatus.COMPLETED:
                return accepted
            is_failed = isinstance(task, RebalanceTask) and task.status is RebalanceTaskStatus.COMPLETED_WITH_ERROR
            session = "" if isinstance(task, NoSuchTask) or is_failed else session
        await bench.clock.sleep(1.0)
    raise AssertionError("the rebalance does not end")


def run_world(**faults: Any) -> tuple[World, list[str]]:
    with World(**faults) as world:
        world.namespace("ns")
        bench = EngineBench(world.clock, partitions=12)
        bench.open_store = lambda kafka: ConfigMapExecutionStore(world.client, kafka, clock=world.clock)

        async def run() -> list[str]:
            accepted = await run_rebalance(world, bench)
            await bench.clock.sleep(60.0)
            state = await (await bench.find()).read_executor_state()
            assert isinstance(state, ExecutorSubstate)
            assert state.is_idle
            await bench.connections.close()
            return accepted

        accepted = world.do(run())
        assert bench.count_replicas(3) >= 8
        assert not bench.is_moving
        assert bench.list_throttles() == []
        assert world.list_names() == []
        assert all(len(set(targets)) == 1 for targets in bench.brokers.sent_targets.values())
        for partition in bench.brokers.catch_up().iterate_partitions():
            assert sorted(partition.isr) == sorted(partition.replicas)
        return world, accepted


def test_an_execution_has_fewer_calls_than_crash_points():
    world, accepted = run_world()
    assert 5 < world.calls <= LIMIT
    assert len(accepted) == 1


POINTS = list(range(0, LIMIT, LIMIT // share_of(LIMIT)))


@pytest.mark.parametrize("number", POINTS)
def test_a_crash_after_any_call_to_the_api_server_changes_nothing_in_the_end(number: int):
    _, accepted = run_world(crash_after=number)
    # A crash before the record was complete leaves nothing: the second request is then the first that counts.
    assert 1 <= len(accepted) <= 2


@pytest.mark.parametrize("number", POINTS)
def test_a_lost_answer_of_any_call_to_the_api_server_changes_nothing_in_the_end(number: int):
    run_world(lose_answer_of=number)
