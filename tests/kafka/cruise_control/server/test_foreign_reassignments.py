"""K34 over HTTP, on simulated brokers: a partition that another client reassigns is moved after that has ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.kafka.cruise_control.server.simulated_brokers import run_story

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from tests.kafka.cruise_control.server.server_bench import Client
    from tests.kafka.executor.simulated_clusters import Cluster

KEY = ("a", 0)


def test_k34_a_partition_is_planned_from_the_target_of_a_foreign_reassignment_and_moved_after_it():
    """Another client moves a-0 onto broker 9; the removal of broker 9 waits for that, then takes it off again."""

    async def story(client: Client, cluster: Cluster, clock: Clock) -> None:
        old = cluster.partition(*KEY).replicas
        foreign = (9, *old[1:])
        cluster.kafka.alter_reassignments({KEY: foreign})
        await clock.sleep(1)
        reply = await client.call("POST", "remove_broker", "json=true&brokerid=9&dryrun=false&verbose=true")
        assert reply.status == 200
        (proposal,) = reply.json["proposals"]
        assert (proposal["oldReplicas"], 9 in proposal["newReplicas"]) == (list(foreign), False)
        assert "a-0: a reassignment is under way" in reply.json["summary"]["held"][0]
        await clock.sleep(2)
        assert cluster.kafka.sent_targets[KEY] == [foreign], "it is left alone while it runs"
        await clock.sleep(120)
        assert cluster.kafka.sent_targets[KEY] == [foreign, tuple(proposal["newReplicas"])]
        assert cluster.partition(*KEY).replicas == proposal["newReplicas"]
        assert (await client.call("GET", "user_tasks", "json=true")).json["userTasks"][0]["Status"] == "Completed"
        cluster.check_nothing_left()

    run_story(story)


def test_a_broker_that_a_foreign_reassignment_still_empties_is_not_removed_yet():
    """Another client takes a-0 off broker 9. There is nothing left to plan, and broker 9 still holds it."""

    async def story(client: Client, cluster: Cluster, clock: Clock) -> None:
        old = cluster.partition(*KEY).replicas
        cluster.kafka.alter_reassignments({KEY: (9, *old[1:])})
        await clock.sleep(60)
        assert 9 in cluster.partition(*KEY).replicas
        cluster.kafka.alter_reassignments({KEY: old})
        await clock.sleep(1)
        query = "json=true&brokerid=9&dryrun=true&verbose=true"
        reply = await client.call("POST", "remove_broker", query)
        assert reply.json["proposals"] == []
        assert "a-0: a reassignment is under way" in reply.json["summary"]["held"][0]
        load = {row["Broker"]: row["Replicas"] for row in reply.json["loadAfterOptimization"]["brokers"]}
        assert load[9] == 0

    run_story(story)
