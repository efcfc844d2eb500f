"""The record of executions in ConfigMaps of an API server."""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kafka.engine import config_map_store
from plimsoll.kafka.engine.config_map_store import ConfigMapExecutionStore
from plimsoll.kafka.executor.errors import RecordUnusable
from plimsoll.kafka.executor.record import RecordedPlan, RecordedState, ThrottleRate
from plimsoll.kafka.model.description import TopicPartition
from plimsoll.kafka.model.executions import ExecutionOptions
from plimsoll.kafka.model.proposals import Proposal
from plimsoll.kafka.model.rebalances import Proposed, RebalanceSpec, RebalanceTask
from plimsoll.kafka.model.requests import Mode
from plimsoll.kube.errors import NotAllowed, ServerUnreachable
from plimsoll.objects.api.core import ConfigMap
from tests.kafka.engine.engine_bench import EngineBench, build_kafka
from tests.kube.embedded_api import EmbeddedApi

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.kube.transport import Request, Response, Transport
    from tests.golden.reviewed_sentences import ReviewedSentences

CONFIG_MAPS = "/api/v1/namespaces/ns/configmaps"
RATE = ThrottleRate(broker=3, key="leader.replication.throttled.rate", value="5")


def build_plan(count: int = 3, *, execution_id: str = "e1") -> RecordedPlan:
    proposals = tuple(
        Proposal(
            topic=f"topic-{number:08d}-{number * 7919 % 104729}",
            partition=number,
            old_leader=0,
            old_replicas=(0, 1),
            new_replicas=(3, 1),
            size_bytes=number * 1000,
        )
        for number in range(count)
    )
    return RecordedPlan(execution_id=execution_id, cluster_id="id", proposals=proposals, started_at="now")


def build_state(execution_id: str = "e1", **fields: Any) -> RecordedState:
    return RecordedState(
        execution_id=execution_id,
        options=ExecutionOptions(replication_throttle=5),
        active=(TopicPartition("a", 1),),
        rates=(RATE,),
        **fields,
    )


class World(EmbeddedApi):
    """A server with a Kafka's namespace; `fault` is raised by calls that write while it is set."""

    def __init__(self) -> None:
        self.fault: Exception | None = None
        self.writes: list[str] = []
        super().__init__(through=self._watch)

    def build_store(self) -> ConfigMapExecutionStore:
        return ConfigMapExecutionStore(self.client, build_kafka(), clock=self.clock)

    def list_names(self) -> list[str]:
        return sorted(
            item["metadata"]["name"]
            for item in self.ask("GET", CONFIG_MAPS)["items"]
            if item["metadata"]["name"].startswith("c-")
        )

    def _watch(self, transport: Transport) -> Transport:
        world = self

        class Watched:
            async def send(self, request: Request) -> Response:
                if not request.is_safe:
                    if world.fault is not None:
                        raise world.fault
                    world.writes.append(f"{request.method} {request.path.rpartition('/')[2]}")
                return await transport.send(request)

            async def aclose(self) -> None:
                await transport.aclose()

        return Watched()


@pytest.fixture
def world() -> Iterator[World]:
    with World() as world:
        world.namespace("ns")
        yield world


def test_what_is_written_is_read_by_another_process(world: World):
    plan, state = build_plan(), build_state()
    store = world.build_store()
    assert world.do(store.read()) is None
    world.do(store.write_plan(plan))
    assert world.do(world.build_store().read()) is None
    world.do(store.write_state(state))
    record = world.do(world.build_store().read())
    assert record is not None
    assert (record.plan, record.state) == (plan, state)


def test_the_record_belongs_to_its_kafka(world: World):
    store = world.build_store()
    world.do(store.write_plan(build_plan()))
    world.do(store.write_state(build_state()))
    assert world.list_names() == ["c-execution", "c-execution-plan-0"]
    for name in world.list_names():
        metadata = world.ask("GET", f"{CONFIG_MAPS}/{name}")["metadata"]
        assert metadata["labels"]["strimzi.io/cluster"] == "c"
        (owner,) = metadata["ownerReferences"]
        assert (owner["kind"], owner["name"], owner["uid"]) == ("Kafka", "c", "u1")
        assert not owner.get("controller")


def test_an_end_removes_the_plan_and_keeps_what_is_left(world: World):
    store = world.build_store()
    world.do(store.write_plan(build_plan()))
    world.do(store.write_state(build_state()))
    world.do(store.write_state(build_state("")))
    assert world.list_names() == ["c-execution"]
    record = world.do(world.build_store().read())
    assert record is not None
    assert record.plan is None
    assert record.state.rates == (RATE,)
    world.do(store.write_state(RecordedState()))
    assert world.list_names() == []
    assert world.do(world.build_store().read()) is None


def test_a_process_that_took_over_removes_the_plan_too(world: World):
    first = world.build_store()
    world.do(first.write_plan(build_plan()))
    world.do(first.write_state(build_state()))
    second = world.build_store()
    world.do(second.read())
    world.do(second.write_state(build_state(is_stopping=True)))
    record = world.do(world.build_store().read())
    assert record is not None
    assert record.plan is not None
    world.do(second.write_state(RecordedState()))
    assert world.list_names() == []


def test_a_large_plan_is_cut_into_parts(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(config_map_store, "PART_BYTES", 2_000)
    store = world.build_store()
    plan = build_plan(1_000)
    world.do(store.write_plan(plan))
    world.do(store.write_state(build_state()))
    assert len(world.list_names()) > 5
    record = world.do(world.build_store().read())
    assert record is not None
    assert record.plan == plan
    world.do(store.write_state(RecordedState()))
    assert world.list_names() == []


def test_a_plan_that_is_too_large_is_refused(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(config_map_store, "PART_BYTES", 100)
    with pytest.raises(RecordUnusable, match="1000 movements"):
        world.do(world.build_store().write_plan(build_plan(1_000)))
    assert world.list_names() == []


def test_a_shorter_plan_after_a_longer_one_is_read_as_it_is(world: World, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(config_map_store, "PART_BYTES", 2_000)
    world.do(world.build_store().write_plan(build_plan(1_000)))
    store = world.build_store()
    world.do(store.write_plan(build_plan(2, execution_id="e2")))
    world.do(store.write_state(build_state("e2")))
    record = world.do(world.build_store().read())
    assert record is not None
    assert record.plan == build_plan(2, execution_id="e2")
    assert world.list_names() == ["c-execution", "c-execution-plan-0"]


def test_the_same_state_is_written_once(world: World):
    store = world.build_store()
    world.do(store.write_plan(build_plan()))
    world.writes.clear()
    for _ in range(5):
        world.do(store.write_state(build_state()))
    assert world.writes == ["PATCH c-execution", "POST configmaps"]


@pytest.mark.parametrize("fault", [ServerUnreachable("away"), NotAllowed("paused")])
def test_a_state_that_cannot_be_written_is_written_later(world: World, fault: Exception):
    store = world.build_store()
    world.do(store.write_plan(build_plan()))
    world.fault = fault
    writing = world.run.spawn(store.write_state(build_state()))
    world.run.advance_by(120.0)
    assert not writing.done()
    world.fault = None
    world.run.run_until(writing)
    assert world.do(world.build_store().read()) is not None


def test_a_plan_that_cannot_be_written_starts_nothing(world: World):
    world.fault = ServerUnreachable("away")
    with pytest.raises(RecordUnusable, match="away"):
        world.do(world.build_store().write_plan(build_plan()))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("c-execution", {"binaryData": {"state": "eA=="}}),
        ("c-execution", {"binaryData": {"state": None}}),
        ("c-execution", {"data": {"planParts": "9999"}}),
        ("c-execution", {"data": {"planParts": "-1"}}),
        ("c-execution", {"data": {"planParts": "2"}}),
        ("c-execution-plan-0", {"binaryData": {"plan": "eA=="}}),
        ("c-execution-plan-0", None),
    ],
)
def test_a_damaged_record_is_named_and_never_ignored(world: World, name: str, change: dict[str, Any] | None):
    store = world.build_store()
    world.do(store.write_plan(build_plan()))
    world.do(store.write_state(build_state()))
    if change is None:
        world.ask("DELETE", f"{CONFIG_MAPS}/{name}")
    else:
        world.do(world.client.merge_patch(ConfigMap, name, change, namespace="ns"))
    with pytest.raises(RecordUnusable, match="c-execution"):
        world.do(world.build_store().read())


def test_a_bomb_is_not_unpacked(world: World, monkeypatch: pytest.MonkeyPatch, reviewed: ReviewedSentences):
    monkeypatch.setattr(config_map_store, "MAX_BYTES", 1_000)
    with pytest.raises(RecordUnusable) as raised:
        config_map_store._decompress(zlib.compress(b" " * 1_000_000), "x")
    reviewed(str(raised.value))
    assert world.list_names() == []


def test_an_execution_goes_on_after_a_restart_with_its_record_in_the_api_server(world: World):
    bench = EngineBench(world.clock)
    bench.open_store = lambda kafka: ConfigMapExecutionStore(world.client, kafka, clock=world.clock)

    async def run() -> None:
        spec = RebalanceSpec(mode=Mode.ADD_BROKERS, brokers=(3,), replication_throttle=20_000_000)
        proposed = await (await bench.find()).request_rebalance(spec, is_dry_run=False)
        assert isinstance(proposed, Proposed)
        for _ in range(5):
            await bench.clock.sleep(3.0)
            await bench.restart()
            task = await (await bench.find()).read_user_task(proposed.session_id)
            assert isinstance(task, RebalanceTask)
        await bench.clock.sleep(600.0)
        await bench.connections.close()

    world.do(run())
    assert bench.count_replicas(3) >= 20
    assert bench.list_throttles() == []
    assert world.list_names() == []


@pytest.mark.parametrize("name", ["c-execution", "c-execution-plan-0", "c-execution-plan-1"])
def test_a_config_map_of_a_user_is_neither_changed_nor_deleted(world: World, name: str):
    body = {"metadata": {"name": name, "namespace": "ns"}, "data": {"mine": "yes"}}
    world.do(world.client.create(ConfigMap, body, namespace="ns"))
    store = world.build_store()

    async def execute() -> None:
        await store.read()
        await store.write_plan(build_plan())
        await store.write_state(build_state())
        await store.write_state(RecordedState())

    with pytest.raises(RecordUnusable, match=f"ConfigMap ns/{name} is not ours"):
        world.do(execute())
    assert world.do(world.client.get(ConfigMap, name, namespace="ns")).data == {"mine": "yes"}
