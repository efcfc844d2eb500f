"""Requests that meet an execution under way, over HTTP and on simulated brokers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.journal.memory import MemoryJournal
from tests.kafka.cruise_control.server.simulated_brokers import run_story

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.core.plans import Outcome
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
