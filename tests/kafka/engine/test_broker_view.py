"""What the cluster reconciler sees of brokers: never "nothing" because something could not be seen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.kafka.brokers.ports import KafkaUnavailable
from plimsoll.kafka.controllers.ports import KnownBrokers
from plimsoll.kafka.cruise_control.client.access import CruiseControlAccess
from plimsoll.kafka.engine.broker_view import ConnectedBrokerView
from plimsoll.kafka.model.rebalances import ExecutorSubstate, Proposed, RebalanceRefused, RebalanceSpec
from plimsoll.kafka.model.requests import Mode
from plimsoll.local.kafka.answers import ItemError, NoAnswer
from plimsoll.local.kafka.settings import SettingChange
from plimsoll.testing import run_virtual
from tests.kafka.cruise_control.client.recorded import ScriptedClient, build_response
from tests.kafka.engine.engine_bench import MB, EngineBench, build_kafka

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.runtime.clocks import VirtualClock
    from plimsoll.web.client import Response


def run_bench(test: Callable[[EngineBench], Awaitable[None]]) -> None:
    async def run(clock: VirtualClock) -> None:
        bench = EngineBench(clock)
        await test(bench)
        await bench.connections.close()

    run_virtual(run)


async def is_gone(_broker: int) -> bool:
    return True


def is_idle(state: ExecutorSubstate | RebalanceRefused) -> bool:
    assert isinstance(state, ExecutorSubstate), state
    return state.is_idle


# ---- observing


def test_brokers_that_hold_a_replica_of_any_topic_are_in_use():
    async def test(bench: EngineBench) -> None:
        seen = await bench.view.observe(bench.kafka)
        assert (seen.cluster_id, seen.registered) == ("simulated", frozenset({0, 1, 2, 3}))
        assert seen.in_use == frozenset({0, 1, 2})
        bench.brokers.create_topic("__consumer_offsets", [[3]], is_internal=True)
        assert (await bench.view.observe(bench.kafka)).in_use == frozenset({0, 1, 2, 3})

    run_bench(test)


def test_a_broker_that_a_reassignment_moves_to_is_in_use():
    async def test(bench: EngineBench) -> None:
        bench.brokers.alter_reassignments({("orders", 0): (3, 1, 2)})
        assert 3 in (await bench.view.observe(bench.kafka)).in_use

    run_bench(test)


def test_a_broker_that_is_down_is_fenced_and_still_in_use():
    async def test(bench: EngineBench) -> None:
        bench.brokers.kill_broker(2)
        await bench.clock.sleep(30.0)
        seen = await bench.view.observe(bench.kafka)
        assert (seen.registered, seen.fenced) == (frozenset({0, 1, 3}), frozenset({2}))
        assert 2 in seen.in_use

    run_bench(test)


def test_an_emptied_broker_is_in_use_until_its_rate_is_removed():
    async def test(bench: EngineBench) -> None:
        bench.brokers.alter_reassignments({("orders", number): (0, 1, 3) for number in range(30)})
        await bench.clock.sleep(600.0)
        client = await bench.find()
        spec = RebalanceSpec(
            mode=Mode.REMOVE_BROKERS,
            brokers=(3,),
            goals=("DiskCapacityGoal",),
            skip_hard_goal_check=True,
            replication_throttle=20 * MB,
        )
        assert isinstance(await client.request_rebalance(spec, is_dry_run=False), Proposed)
        held_by_rate = False
        while not is_idle(await client.read_executor_state()):
            seen = await bench.view.observe(bench.kafka, leaving=(3,))
            if bench.list_rates(3):
                assert 3 in seen.in_use
                held_by_rate |= bench.count_replicas(3) == 0
            await bench.clock.sleep(0.02)
        assert held_by_rate
        assert 3 not in (await bench.view.observe(bench.kafka, leaving=(3,))).in_use

    run_bench(test)


@pytest.mark.parametrize("method", ["describe_nodes", "describe_topics", "list_reassignments"])
def test_an_answer_that_does_not_come_is_never_an_empty_cluster(method: str):
    async def test(bench: EngineBench) -> None:
        bench.brokers.reject(method, NoAnswer("no broker answers"))
        with pytest.raises(KafkaUnavailable):
            await bench.view.observe(bench.kafka)
        assert (await bench.view.observe(bench.kafka)).in_use == frozenset({0, 1, 2})

    run_bench(test)


def test_a_topic_that_cannot_be_described_is_never_an_empty_broker():
    async def test(bench: EngineBench) -> None:
        bench.brokers.create_topic("hidden", [[3]])
        bench.brokers.catch_up().topics["hidden"].partitions[0].replicas.clear()
        with pytest.raises(KafkaUnavailable, match="hidden"):
            await bench.view.observe(bench.kafka)

    run_bench(test)


def test_a_leaving_broker_that_has_logs_is_in_use_although_the_metadata_does_not_show_it_yet():
    async def test(bench: EngineBench) -> None:
        admin = await bench.connections.get_admin(bench.kafka)
        before = await admin.describe_topics()
        bench.brokers.create_topic("just-now", [[3]])

        async def describe_topics(_names: object = None, **_options: bool) -> object:
            return before

        admin.describe_topics = describe_topics  # type: ignore[method-assign,assignment]
        assert 3 not in (await bench.view.observe(bench.kafka)).in_use
        assert 3 in (await bench.view.observe(bench.kafka, leaving=(3,))).in_use

    run_bench(test)


def test_a_leaving_broker_that_is_silent_is_not_taken_for_empty():
    async def test(bench: EngineBench) -> None:
        bench.brokers.kill_broker(3)
        with pytest.raises(KafkaUnavailable):
            await bench.view.observe(bench.kafka, leaving=(3,))
        await bench.clock.sleep(30.0)
        seen = await bench.view.observe(bench.kafka, leaving=(3,))
        assert 3 in seen.fenced - seen.in_use

    run_bench(test)


def test_a_leaving_broker_that_is_empty_is_not_in_use():
    async def test(bench: EngineBench) -> None:
        assert (await bench.view.observe(bench.kafka, leaving=(2, 3))).in_use == frozenset({0, 1, 2})

    run_bench(test)


def test_a_cluster_that_cannot_be_connected_to_is_unavailable():
    async def test(bench: EngineBench) -> None:
        with pytest.raises(KafkaUnavailable):
            await bench.view.observe(build_kafka("other"))

    run_bench(test)


# ---- what the engine knows


def test_our_engine_knows_brokers_that_report_their_volumes():
    async def test(bench: EngineBench) -> None:
        bench.brokers.kill_broker(2)
        assert await bench.view.list_known(bench.kafka, (0, 2, 3, 9)) == KnownBrokers(brokers=frozenset({0, 3}))

    run_bench(test)


@pytest.mark.parametrize(
    ("response", "known"),
    [
        (build_response("load-with-new-broker"), {0, 3}),
        (build_response("load"), {0}),
        (build_response("early-load"), {0, 3, 12}),
        (build_response("error-servlet-capacity"), set()),
        (build_response("auth-none"), set()),
    ],
    ids=["new broker", "old brokers", "too few windows", "busy", "not allowed"],
)
def test_a_cruise_control_knows_brokers_whose_capacity_it_has(response: Response, known: set[int]):
    async def test(bench: EngineBench) -> None:
        kafka = build_kafka(config={"webserver.security.enable": False, "webserver.ssl.enable": False})

        class NoSecrets:
            async def read(self, _namespace: str, _name: str) -> None:
                return None

        access = CruiseControlAccess(ScriptedClient(response), NoSecrets())
        view = ConnectedBrokerView(bench.connections, clock=bench.clock, cruise_controls=access)
        found = await view.list_known(kafka, (0, 3, 12))
        assert found.brokers == known
        assert (found.problem is None) == bool(known)

    run_bench(test)


# ---- cordons


def list_cordoned(bench: EngineBench) -> set[int]:
    state = bench.brokers.catch_up()
    return {broker.id for broker in state.brokers.values() if state.list_cordoned(broker) == set(broker.log_dirs)}


def test_brokers_that_leave_are_cordoned_and_uncordoned_when_they_stay():
    async def test(bench: EngineBench) -> None:
        for _ in range(2):
            assert await bench.view.change_cordons(bench.kafka, leaving=(2, 3), staying=()) == ()
        assert list_cordoned(bench) == {2, 3}
        assert bench.brokers.requests["alter_configs"] == 1
        bench.brokers.place_topic("new", partitions=6, replication_factor=2)
        assert bench.count_replicas(3) == 0
        for _ in range(2):
            assert await bench.view.change_cordons(bench.kafka, leaving=(2,), staying=(3,)) == ()
        assert list_cordoned(bench) == {2}
        assert bench.brokers.requests["alter_configs"] == 2

    run_bench(test)


def test_cordons_of_users_are_left_alone():
    async def test(bench: EngineBench) -> None:
        bench.brokers.add_broker(4, log_dirs={"/a": 1 << 40, "/b": 1 << 40})
        for broker, value in ((1, "*"), (4, "/a")):
            change = SettingChange("cordoned.log.dirs", "SET", value)
            assert bench.brokers.catch_up().settings.change("broker", str(broker), [change]) is None
        assert await bench.view.change_cordons(bench.kafka, leaving=(3,), staying=(0, 4)) == ()
        assert list_cordoned(bench) == {1, 3}
        assert bench.brokers.catch_up().settings.get("broker", "4", "cordoned.log.dirs") == "/a"

    run_bench(test)


def test_a_silent_broker_is_named_and_the_others_are_cordoned():
    async def test(bench: EngineBench) -> None:
        bench.brokers.kill_broker(2)
        (problem,) = await bench.view.change_cordons(bench.kafka, leaving=(2, 3), staying=())
        assert (problem.code, problem.facts) == ("CordonNotChanged", {"broker": 2})
        assert list_cordoned(bench) == {3}
        bench.brokers.start_broker(2)
        assert await bench.view.change_cordons(bench.kafka, leaving=(2, 3), staying=()) == ()
        assert list_cordoned(bench) == {2, 3}

    run_bench(test)


def test_a_cordon_that_is_refused_is_named():
    async def test(bench: EngineBench) -> None:
        bench.brokers.fail_items("alter_configs", ItemError("CLUSTER_AUTHORIZATION_FAILED"))
        (problem,) = await bench.view.change_cordons(bench.kafka, leaving=(3,), staying=())
        assert "CLUSTER_AUTHORIZATION_FAILED" in problem.message
        bench.brokers.reject("describe_configs", NoAnswer("no broker answers"))
        assert len(await bench.view.change_cordons(bench.kafka, leaving=(2, 3), staying=())) == 2

    run_bench(test)


def test_kafka_without_cordons_is_not_asked_for_them():
    async def test(bench: EngineBench) -> None:
        bench.brokers.has_cordons = False
        assert await bench.view.change_cordons(bench.kafka, leaving=(3,), staying=(0,)) == ()
        assert bench.brokers.requests["alter_configs"] == 0

    run_bench(test)


def test_a_removal_onto_cordoned_brokers_is_planned_around_them():
    async def test(bench: EngineBench) -> None:
        bench.brokers.add_broker(4)
        assert await bench.view.change_cordons(bench.kafka, leaving=(2,), staying=()) == ()
        client = await bench.find()
        spec = RebalanceSpec(mode=Mode.REMOVE_BROKERS, brokers=(2,))
        proposed = await client.request_rebalance(spec, is_dry_run=False)
        assert isinstance(proposed, Proposed), proposed
        await bench.clock.sleep(900.0)
        assert bench.count_replicas(2) == 0
        assert 2 not in (await bench.view.observe(bench.kafka)).in_use

    run_bench(test)


# ---- unregistering


def test_a_broker_that_is_empty_and_gone_is_unregistered():
    async def test(bench: EngineBench) -> None:
        bench.brokers.kill_broker(3)
        early = await bench.view.unregister(bench.kafka, 3, is_gone)
        assert early is not None
        assert early.code == "BrokerNotFenced"
        await bench.clock.sleep(30.0)
        for _ in range(2):
            assert await bench.view.unregister(bench.kafka, 3, is_gone) is None
        seen = await bench.view.observe(bench.kafka)
        assert 3 not in seen.registered | seen.fenced
        assert bench.brokers.requests["unregister_broker"] == 1

    run_bench(test)


def test_a_broker_that_hosts_or_runs_stays_registered():
    async def test(bench: EngineBench) -> None:
        async def is_running(_broker: int) -> bool:
            return False

        runs = await bench.view.unregister(bench.kafka, 3, is_running)
        assert runs is not None
        assert runs.code == "BrokerRuns"
        bench.brokers.kill_broker(2)
        await bench.clock.sleep(30.0)
        hosts = await bench.view.unregister(bench.kafka, 2, is_gone)
        assert hosts is not None
        assert hosts.code == "HostsReplicas"
        bench.brokers.reject("describe_topics", NoAnswer("no broker answers"))
        with pytest.raises(KafkaUnavailable):
            await bench.view.unregister(bench.kafka, 2, is_gone)
        assert bench.brokers.requests["unregister_broker"] == 0

    run_bench(test)
