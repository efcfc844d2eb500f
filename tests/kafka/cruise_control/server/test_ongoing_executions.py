"""Executions that go on while the server is asked or starts anew, over HTTP and on simulated brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.plans import Ref, Result
from plimsoll.journal.entries import Query
from plimsoll.journal.memory import MemoryJournal
from plimsoll.kafka.reporting.cluster_journal import ClusterJournal
from plimsoll.testing import run_virtual
from tests.kafka.cruise_control.server.simulated_brokers import build_cluster, open_server, run_story

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.core.plans import Outcome
    from plimsoll.journal.entries import Entry
    from plimsoll.journal.ports import Journal
    from tests.kafka.cruise_control.server.server_bench import Client
    from tests.kafka.executor.simulated_clusters import Cluster


class SlowJournal(MemoryJournal):
    """A journal whose writes take as long as those on a disk."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    async def conclude(self, number: int, outcomes: tuple[Outcome, ...]) -> None:
        await self._clock.sleep(0.01)
        await super().conclude(number, outcomes)


def test_stop_ongoing_execution_stops_the_old_execution_and_starts_the_new_one():
    async def story(client: Client, cluster: Cluster, clock: Clock) -> None:
        query = "json=true&brokerid=9&dryrun=false"
        first = await client.call("POST", "add_broker", query)
        assert first.status == 200
        await clock.sleep(2)
        assert cluster.kafka.sent_targets, "the first execution is under way"
        refused = await client.call("POST", "add_broker", f"{query}&verbose=true")
        assert "Cannot start a new execution while there is an ongoing execution" in refused.json["errorMessage"]
        second = await client.call("POST", "add_broker", f"{query}&stop_ongoing_execution=true")
        await clock.sleep(600)
        listed = (await client.call("GET", "user_tasks", "json=true")).json["userTasks"]
        status = {task["UserTaskId"]: task["Status"] for task in listed}
        assert status[first.headers["user-task-id"]] == "CompletedWithError"
        assert status[second.headers["user-task-id"]] == "Completed"
        assert any(9 in partition.replicas for partition in cluster.kafka.state.topics["a"].partitions.values())
        cluster.check_nothing_left()

    run_story(story, build_journal=SlowJournal)


async def find_entry(journal: Journal, broker: str = "broker/9") -> Entry:
    """The only entry about the broker."""
    (entry,) = await journal.list_entries(Query(ref=Ref.parse(broker)))
    return entry


async def get_state(client: Client) -> dict[str, Any]:
    state: dict[str, Any] = (await client.call("GET", "state", "json=true&substates=executor")).json["ExecutorState"]
    return state


@pytest.mark.parametrize("ends", ["resumed", "stopped"])
def test_a_server_that_starts_anew_knows_the_request_and_concludes_its_entry(ends: str):
    async def story(clock: Clock) -> None:
        cluster, journal = build_cluster(clock), MemoryJournal()
        query = "json=true&brokerid=9&dryrun=false&reason=more+room"
        async with open_server(cluster, journal=journal) as client:
            first = await client.call("POST", "add_broker", query)
            task = first.headers["user-task-id"]
            await clock.sleep(2)
            before = (await client.call("GET", "user_tasks", "json=true")).json["userTasks"]
            reason = (await get_state(client))["triggeredTaskReason"]
        entry = await find_entry(journal)
        assert (entry.done, entry.outcomes) == (0, ())
        assert entry.format_sentence().startswith("kafka: planned: reassign")
        await clock.sleep(5)
        async with open_server(cluster, journal=journal, seed=8) as client:
            assert (await client.call("GET", "user_tasks", "json=true")).json["userTasks"] == before
            await clock.sleep(1)
            state = await get_state(client)
            assert (state["triggeredUserTaskId"], state["triggeredTaskReason"]) == (task, reason)
            assert reason.startswith("more room (Client: 127.0.0.1, Date: ")
            polled = await client.call("POST", "add_broker", query, headers={"user-task-id": task})
            assert (polled.status, polled.headers["user-task-id"]) == (200, task)
            if ends == "stopped":
                await client.call("POST", "stop_proposal_execution", "json=true")
            await clock.sleep(600)
        results = {outcome.action.target.name: outcome.result for outcome in (await find_entry(journal)).outcomes}
        assert results["9"] is (Result.DONE if ends == "resumed" else Result.FAILED)
        assert len(results) == len(entry.plan.actions)
        cluster.check_nothing_left()

    run_virtual(story)


def test_an_entry_of_another_journal_is_not_concluded():
    """A journal that was begun anew has another entry with the same number."""

    async def story(clock: Clock) -> None:
        cluster, other = build_cluster(clock), MemoryJournal()
        async with open_server(cluster, journal=MemoryJournal()) as client:
            await client.call("POST", "add_broker", "json=true&brokerid=9&dryrun=false")
            await clock.sleep(2)
        async with open_server(cluster, journal=other, seed=8) as client:
            await client.call("POST", "demote_broker", "json=true&brokerid=0")
            (before,) = await other.list_entries(Query())
            await clock.sleep(600)
        assert await other.list_entries(Query()) == (before,)
        cluster.check_nothing_left()

    run_virtual(story)


def test_an_entry_of_one_of_several_clusters_is_concluded_under_its_names():
    async def story(clock: Clock) -> None:
        cluster, shared = build_cluster(clock), MemoryJournal()
        async with open_server(cluster, journal=ClusterJournal(shared, "ns", "c")) as client:
            await client.call("POST", "add_broker", "json=true&brokerid=9&dryrun=false")
            await clock.sleep(2)
            await client.call("POST", "stop_proposal_execution", "json=true")
            await clock.sleep(60)
        entry = await find_entry(shared, "broker/ns/c.9")
        assert [outcome.action for outcome in entry.outcomes] == list(entry.plan.actions)
        assert {outcome.action.target.name: outcome.result for outcome in entry.outcomes}["c.9"] is Result.FAILED
        assert entry.format_sentence().startswith("kafka/ns/c: ")

    run_virtual(story)


def test_brokers_that_were_removed_lately_are_known_after_a_new_start():
    async def story(clock: Clock) -> None:
        cluster = build_cluster(clock)
        async with open_server(cluster) as client:
            await client.call("POST", "add_broker", "json=true&brokerid=9&dryrun=false")
            await clock.sleep(600)
            await client.call("POST", "remove_broker", "json=true&brokerid=9&dryrun=false")
            await clock.sleep(600)
        for days, expected in ((13, [9]), (2, None)):
            await clock.sleep(86_400 * days)
            async with open_server(cluster, seed=8) as client:
                assert (await get_state(client)).get("recentlyRemovedBrokers") == expected

    run_virtual(story)


def test_dry_runs_and_refusals_are_in_the_journal_once():
    async def story(clock: Clock) -> None:
        cluster, journal = build_cluster(clock), MemoryJournal()
        async with open_server(cluster, journal=journal) as client:
            for query in ("json=true&brokerid=9", "json=true&brokerid=9&verbose=true"):
                assert (await client.call("POST", "add_broker", query)).status == 200
            entry = await find_entry(journal)
            assert {outcome.result for outcome in entry.outcomes} == {Result.PROPOSED}
            assert "waits for approval" in str(entry.outcomes[0].reason)
            for query in ("json=true&brokerid=1", "json=true&brokerid=1&verbose=true"):
                assert (await client.call("POST", "remove_broker", query)).status == 500
            (refused,) = await journal.list_entries(Query(ref=Ref.parse("goal/RackAwareGoal")))
            assert "racks left 2" in str(refused.plan.not_done[0].reason)
            await client.call("GET", "proposals", "json=true")
            assert len(await journal.list_entries(Query())) == 2

    run_virtual(story)
