"""Two servers with two records on one cluster, as from two machines: each leaves the other alone and says so."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from plimsoll.core.plans import Ref
from plimsoll.journal.entries import Query
from plimsoll.journal.memory import MemoryJournal
from plimsoll.testing import run_virtual
from tests.kafka.cruise_control.server.simulated_brokers import build_cluster, open_server

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.core.clock import Clock
    from tests.kafka.cruise_control.server.server_bench import Client, Reply
    from tests.kafka.executor.simulated_clusters import Cluster

ADD = "json=true&brokerid=9&dryrun=false&replication_throttle=5000000&concurrent_partition_movements_per_broker=1"

REMOVE = "json=true&brokerid=9&dryrun=false"


def build_two(clock: Clock) -> tuple[Cluster, Cluster]:
    """The same brokers, with two records."""
    first, second = build_cluster(clock), build_cluster(clock)
    second.kafka = first.kafka
    return first, second


def check_end(clusters: Sequence[Cluster]) -> None:
    for cluster in clusters:
        cluster.check_nothing_left()
        cluster.check_in_sync()


async def read_status(client: Client, reply: Reply) -> str:
    listed = (await client.call("GET", "user_tasks", "json=true")).json["userTasks"]
    return str(next(entry["Status"] for entry in listed if entry["UserTaskId"] == reply.headers["user-task-id"]))


async def read_outcomes(journal: MemoryJournal, broker: int) -> list[str]:
    """The results of the last plan about a broker, with their reasons."""
    [*_, entry] = await journal.list_entries(Query(ref=Ref(kind="broker", name=str(broker))))
    return [f"{outcome.result}: {outcome.reason or ''}" for outcome in entry.outcomes]


def test_of_two_servers_with_two_plans_for_one_partition_one_executes():
    """Both plan at the same moment. The second finds replicas of its plan under way, and begins nothing."""

    async def story(clock: Clock) -> None:
        clusters = build_two(clock)
        journal = MemoryJournal()
        other_query = ADD.replace("brokerid=9", "brokerid=3")
        async with open_server(clusters[0], seed=1) as one, open_server(clusters[1], seed=2, journal=journal) as other:
            adding, refused = await asyncio.gather(
                one.call("POST", "add_broker", ADD), other.call("POST", "add_broker", other_query)
            )
            assert (adding.status, refused.status) == (200, 500)
            assert "replicas of the plan have moved since it was made" in refused.json["errorMessage"]
            assert "plan again" in str(await read_outcomes(journal, 3))
            await clock.sleep(600)
            assert await read_status(one, adding) == "Completed"
            assert await read_status(other, refused) == "CompletedWithError"
        assert all(9 in (target or ()) for (target,) in clusters[0].kafka.sent_targets.values())
        check_end(clusters)

    run_virtual(story)


def test_two_servers_with_the_same_request_send_each_movement_once():
    """Equal clusters have equal plans: what one has sent is what the other wants."""

    async def story(clock: Clock) -> None:
        clusters = build_two(clock)
        async with open_server(clusters[0], seed=1) as one, open_server(clusters[1], seed=2) as other:
            servers = (one, other)
            answers = await asyncio.gather(*(server.call("POST", "add_broker", ADD) for server in servers))
            await clock.sleep(600)
            assert [await read_status(*pair) for pair in zip(servers, answers, strict=True)] == ["Completed"] * 2
        assert {len(targets) for targets in clusters[0].kafka.sent_targets.values()} == {1}
        check_end(clusters)

    run_virtual(story)


@pytest.mark.parametrize("after_s", [1, 25])
def test_a_removal_of_a_broker_that_another_server_fills_is_not_complete_and_both_say_why(after_s: int):
    """The removal names the replicas that came, the addition those that another client took away."""

    async def story(clock: Clock) -> None:
        clusters = build_two(clock)
        journals = MemoryJournal(), MemoryJournal()
        async with (
            open_server(clusters[0], seed=1, journal=journals[0]) as one,
            open_server(clusters[1], seed=2, journal=journals[1]) as other,
        ):
            adding = await one.call("POST", "add_broker", ADD)
            await clock.sleep(after_s)
            removing = await other.call("POST", "remove_broker", REMOVE)
            assert (adding.status, removing.status) == (200, 200)
            await clock.sleep(900)
            assert await read_status(one, adding) == "CompletedWithError"
            assert await read_status(other, removing) == "CompletedWithError"
            task = removing.headers["user-task-id"]
            polled = await other.call("POST", "remove_broker", REMOVE, headers={"user-task-id": task})
            assert "broker 9 got 1 replica while it was emptied" in polled.json["errorMessage"]
        assert "1 movement was not completed, of a-0 (the replicas are on " in str(await read_outcomes(journals[0], 9))
        reported = str(await read_outcomes(journals[1], 9))
        assert "broker 9 got 1 replica while it was emptied" in reported
        assert "another client reassigned partitions meanwhile" in reported
        check_end(clusters)

    run_virtual(story)
