"""K34, K35, K37: other clients, brokers that die, and registrations that must not be removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.core.plans import Ref
from plimsoll.journal.entries import Query
from plimsoll.journal.memory import MemoryJournal
from plimsoll.kafka.executor.errors import ExecutionRefused
from plimsoll.kafka.executor.executor import Executor
from plimsoll.kafka.executor.unregistering import unregister_and_record, unregister_broker
from plimsoll.kafka.model.executions import ExecutionEnd, ExecutionOptions, TaskState, TaskType
from plimsoll.local.kafka.answers import ItemError, NoAnswer, RequestRefused
from tests.kafka.executor.simulated_clusters import (
    FOLLOWER_RATE,
    MB,
    NEW,
    THROTTLED,
    LaggingAdmin,
    Running,
    run_cluster,
)

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences


def held_codes(world: Running) -> set[str]:
    return {reason.code for reason in world.executor.get_progress().held}


# ---- other clients


def test_k34_a_foreign_reassignment_is_left_alone_and_its_partition_moves_after_it_ended():
    with run_cluster(size=100 * MB) as world:
        world.kafka.add_broker(9, bytes_per_s=10 * MB)
        (first, *others) = world.cluster.propose_add()
        key = (first.topic, first.partition)
        foreign = (9, *first.old_replicas[1:])
        world.kafka.alter_reassignments({key: foreign})
        task = world.start([first, *others])
        world.run.advance_by(2)
        assert "ForeignReassignment" in held_codes(world)
        assert world.kafka.list_reassignments()[key].adding == (9,)
        assert world.kafka.sent_targets[key] == [foreign]
        waiting = [waiting for waiting in world.executor.get_progress().tasks if waiting.state is TaskState.PENDING]
        assert f"{first.topic}-{first.partition}" in str(waiting[0].reason)
        assert world.finish(task).end is ExecutionEnd.COMPLETED
        assert world.kafka.sent_targets[key] == [foreign, first.new_replicas]
        assert world.cluster.partition(*key).replicas == list(first.new_replicas)
        world.cluster.check_nothing_left()


@pytest.mark.parametrize("lag_s", [1, 3, 8])
def test_k34_a_broker_that_still_shows_an_ended_reassignment_costs_no_movement(lag_s: int):
    with run_cluster(size=20 * MB) as world:
        proposals = world.cluster.propose_add()
        first = proposals[0]
        key = (first.topic, first.partition)
        world.kafka.add_broker(9, bytes_per_s=10 * MB)
        admin = LaggingAdmin(world.kafka, world.run.clock, lag_s=lag_s)
        world.executor = Executor(admin, world.run.clock, world.cluster.store)
        world.until(admin.describe_topics())
        world.kafka.alter_reassignments({key: (9, *first.old_replicas[1:])})
        outcome = world.finish(world.start(proposals))
        assert outcome.end is ExecutionEnd.COMPLETED, outcome.not_completed
        assert world.cluster.partition(*key).replicas == list(first.new_replicas)
        world.cluster.check_nothing_left()


def test_k34_a_foreign_client_that_replaces_our_reassignment_is_waited_for():
    with run_cluster(size=100 * MB) as world:
        world.kafka.add_broker(9, bytes_per_s=10 * MB)
        (first, *_) = world.cluster.propose_add()
        key = (first.topic, first.partition)
        task = world.start([first])
        world.run.advance_by(2)
        world.kafka.alter_reassignments({key: (9, *first.old_replicas[1:])})
        world.run.advance_by(2)
        assert world.kafka.list_reassignments()[key].adding == (9,)
        assert world.cluster.throttles() == {}, "it is not ours to throttle"
        assert world.finish(task).end is ExecutionEnd.COMPLETED
        assert world.cluster.partition(*key).replicas == list(first.new_replicas)
        world.cluster.check_nothing_left()


def test_foreign_reassignments_are_cancelled_only_when_the_stop_says_so():
    for cancel_foreign in (False, True):
        with run_cluster(size=100 * MB) as world:
            (first, *others) = world.cluster.propose_add()
            key = (first.topic, first.partition)
            world.kafka.alter_reassignments({key: first.new_replicas})
            task = world.start(others)
            world.run.advance_by(2)
            world.until(world.executor.stop(cancel_foreign=cancel_foreign))
            assert world.finish(task).end is ExecutionEnd.STOPPED
            assert (key in world.kafka.list_reassignments()) is not cancel_foreign
            assert world.until(world.executor.stop(cancel_foreign=True)) is None
            assert world.kafka.list_reassignments() == {}


def test_a_move_that_another_client_cancels_again_and_again_is_given_up():
    with run_cluster(size=1000 * MB) as world:
        (first, *_) = world.cluster.propose_add()
        key = (first.topic, first.partition)
        task = world.start([first])
        for _ in range(60):
            world.kafka.alter_reassignments({key: None})
            world.run.advance_by(1)
        outcome = world.finish(task)
        assert outcome.end is ExecutionEnd.FAILED
        reason = outcome.not_completed[0].reason
        assert reason is not None
        assert (reason.code, reason.facts["attempts"] >= 3) == ("CancelledByOther", True)
        world.cluster.check_nothing_left()


def test_two_executors_on_one_cluster_leave_each_other_alone_and_leave_nothing():
    """The second has another record: a server on another machine."""
    with run_cluster(partitions=12, size=100 * MB) as world:
        proposals = world.cluster.propose_add()
        other = Running(world.run)
        other.cluster.kafka = other.kafka = world.kafka
        other.executor = other.cluster.build_executor()
        first = world.start(proposals[:4], THROTTLED)
        one = ExecutionOptions(replication_throttle=2 * MB, max_partition_movements_in_cluster=1)
        second = other.start(proposals[2:], one)
        world.run.advance_by(5)
        assert world.cluster.rates() == {str(5 * MB)}, "the second leaves the rates of the first"
        assert world.finish(first).end is ExecutionEnd.COMPLETED
        world.run.advance_by(2)
        assert world.cluster.rates() == {str(2 * MB)}, "then it sets its own"
        assert world.finish(second).end is ExecutionEnd.COMPLETED
        assert all(len(targets) == 1 for targets in world.kafka.sent_targets.values())
        world.cluster.check_nothing_left()
        world.cluster.check_in_sync()


# ---- brokers that die


def test_k35_a_broker_with_our_rate_dies_in_mid_move_and_returns(reviewed: ReviewedSentences):
    with run_cluster(size=200 * MB) as world:
        proposals = world.cluster.propose_add()
        task = world.start(proposals)
        world.run.advance_by(2)
        assert FOLLOWER_RATE in world.cluster.throttles()["broker", str(NEW)]
        world.kafka.kill_broker(NEW)
        outcome = world.finish(task)
        assert outcome.end is ExecutionEnd.FAILED
        moves = [ended for ended in outcome.not_completed if ended.type is TaskType.INTER_BROKER_REPLICA_ACTION]
        assert {ended.state for ended in moves} == {TaskState.DEAD}
        assert {str(ended.reason) for ended in moves} == {"the destination is down: broker 3"}
        reviewed(str(outcome.reason))
        assert world.kafka.list_reassignments() == {}
        assert list(world.cluster.throttles()) == [("broker", str(NEW))]
        world.run.spawn(world.executor.keep_clean())
        world.run.advance_by(60)
        assert list(world.cluster.throttles()) == [("broker", str(NEW))]
        world.kafka.start_broker(NEW)
        world.run.advance_by(1)
        world.cluster.check_nothing_left()
        world.cluster.check_in_sync()


def test_k35_the_rate_goes_while_the_rest_of_the_execution_runs():
    with run_cluster(size=300 * MB) as world:
        world.kafka.add_broker(9, bytes_per_s=10 * MB)
        (first, second, *_) = world.cluster.propose_add()
        to_other = world.cluster.propose(second.topic, second.partition, 9, *second.old_replicas[1:])
        options = ExecutionOptions(replication_throttle=2 * MB, dead_broker_grace_s=0)
        task = world.start([first, to_other], options)
        world.run.advance_by(2)
        world.kafka.kill_broker(NEW)
        world.run.advance_by(12)
        assert world.kafka.list_reassignments().keys() == {(second.topic, second.partition)}
        assert "ThrottleRateLeft" in held_codes(world)
        world.kafka.start_broker(NEW)
        world.run.advance_by(1)
        assert ("broker", str(NEW)) not in world.cluster.throttles()
        assert ("broker", "9") in world.cluster.throttles(), "the rest goes on"
        outcome = world.finish(task)
        assert outcome.end is ExecutionEnd.FAILED
        assert world.cluster.partition(second.topic, second.partition).replicas[0] == 9
        assert world.cluster.partition(first.topic, first.partition).replicas == list(first.old_replicas)
        world.cluster.check_nothing_left()


def test_k35_the_rate_of_a_dead_broker_is_remembered_over_later_executions():
    with run_cluster(size=50 * MB) as world:
        task = world.start(world.cluster.propose_add())
        world.run.advance_by(2)
        world.kafka.kill_broker(NEW)
        world.finish(task)
        world.executor = world.cluster.build_executor()
        swap = world.cluster.propose("a", 1, *reversed(world.cluster.partition("a", 1).replicas))
        assert world.finish(world.start([swap])).end is ExecutionEnd.COMPLETED
        assert list(world.cluster.throttles()) == [("broker", str(NEW))]
        world.kafka.start_broker(NEW)
        assert world.until(world.cluster.build_executor().resume()) is None
        world.cluster.check_nothing_left()


def test_a_destination_that_restarts_within_the_grace_goes_on():
    with run_cluster(size=100 * MB) as world:
        proposals = world.cluster.propose_add()
        task = world.start(proposals)
        world.run.advance_by(3)
        world.kafka.kill_broker(NEW)
        world.run.advance_by(20)
        world.kafka.start_broker(NEW)
        assert world.finish(task).end is ExecutionEnd.COMPLETED
        assert all(len(targets) == 1 for targets in world.kafka.sent_targets.values())
        world.cluster.check_nothing_left()
        world.cluster.check_in_sync()


def test_a_source_that_dies_does_not_stop_its_moves():
    with run_cluster(on_new=True, size=100 * MB) as world:
        task = world.start(world.cluster.propose_remove())
        world.run.advance_by(3)
        world.kafka.kill_broker(NEW)
        assert world.finish(task).end is ExecutionEnd.COMPLETED
        assert not any(NEW in part.replicas for part in world.cluster.partitions())
        world.kafka.start_broker(NEW)
        assert world.until(world.executor.clean_up())
        world.cluster.check_nothing_left()


def test_a_destination_that_runs_full_ends_its_move_and_the_rest_goes_on():
    with run_cluster(size=100 * MB) as world:
        world.kafka.add_broker(8, log_dirs={"/small": 50 * MB}, bytes_per_s=10 * MB)
        (first, *others) = world.cluster.propose_add()
        full = world.cluster.propose(first.topic, first.partition, 8, *first.old_replicas[1:])
        outcome = world.finish(world.start([full, *others]))
        assert outcome.end is ExecutionEnd.FAILED
        dead = [ended for ended in outcome.not_completed if ended.state is TaskState.DEAD]
        assert str(dead[0].reason) == "the replica on broker 8 is offline: its log directory failed or is full"
        assert all(world.cluster.partition(o.topic, o.partition).replicas == list(o.new_replicas) for o in others)
        assert world.cluster.partition(full.topic, full.partition).replicas == list(full.old_replicas)
        world.cluster.check_nothing_left()


def test_a_plan_onto_a_broker_that_does_not_exist_moves_the_rest():
    with run_cluster() as world:
        (first, *others) = world.cluster.propose_add()
        lost = world.cluster.propose(first.topic, first.partition, 77, *first.old_replicas[1:])
        outcome = world.finish(world.start([lost, *others]))
        assert outcome.end is ExecutionEnd.FAILED
        assert {ended.proposal.partition for ended in outcome.not_completed} == {lost.partition}
        assert world.cluster.partition(lost.topic, lost.partition).replicas == list(lost.old_replicas)
        world.cluster.check_nothing_left()


# ---- under-replicated partitions


def test_under_replicated_partitions_slow_their_brokers_down_and_are_named():
    with run_cluster(size=100 * MB, partitions=12) as world:
        world.kafka.create_topic("behind", [[0, 1]], size_bytes=10**12)
        world.kafka.catch_up().topics["behind"].partitions[0].shrink_isr(1)
        world.kafka.catch_up().topics["behind"].partitions[0].logs[1].size = 0.0
        world.kafka.catch_up().settle_all()
        proposals = world.cluster.propose_add()
        task = world.start(proposals, ExecutionOptions())
        reason = next(reason for reason in world.executor.get_progress().held if reason.code == "UnderReplicated")
        assert reason.message == "under-replicated: behind-0; brokers 0, 1 get 1 movement at a time"
        moving = world.kafka.list_reassignments()
        sources = [next(p.old_replicas[0] for p in proposals if (p.topic, p.partition) == key) for key in moving]
        assert sorted(sources) == [0, 1, 2, 2]
        task.cancel()


def test_in_sync_replicas_can_be_required(reviewed: ReviewedSentences):
    with run_cluster() as world:
        world.kafka.close_log_dir(1, "/data")
        strict = ExecutionOptions(require_in_sync=True)
        with pytest.raises(ExecutionRefused) as raised:
            world.until(world.executor.execute("e1", world.cluster.propose_add(), strict))
        reviewed(str(raised.value))
        assert world.cluster.store.is_settled
        assert not world.kafka.sent_targets


def test_a_dead_broker_does_not_count_as_under_replicated():
    with run_cluster(on_new=True) as world:
        world.kafka.kill_broker(NEW)
        world.run.advance_by(10)
        strict = ExecutionOptions(require_in_sync=True)
        outcome = world.until(world.executor.execute("e1", world.cluster.propose_remove(), strict))
        assert outcome.end is ExecutionEnd.COMPLETED
        world.cluster.check_in_sync()


def test_a_partition_without_a_leader_is_not_touched():
    with run_cluster() as world:
        moves = [proposal for proposal in world.cluster.propose_add() if proposal.old_leader != 2]
        world.kafka.create_topic("lost", [[2]], size_bytes=MB)
        lost = world.cluster.propose("lost", 0, 1)
        world.kafka.kill_broker(2)
        world.run.advance_by(10)
        task = world.start([lost, *moves], ExecutionOptions())
        world.run.advance_by(5)
        assert "NoLeader" in held_codes(world)
        outcome = world.finish(task)
        assert str(outcome.not_completed[0].reason) == "partitions without a leader are not moved: lost-0"
        assert ("lost", 0) not in world.kafka.sent_targets


# ---- brokers that refuse


def test_brokers_that_do_not_answer_for_a_while_are_waited_for():
    with run_cluster(size=100 * MB) as world:
        task = world.start(world.cluster.propose_add())
        for method in ("describe_nodes", "list_reassignments", "alter_configs", "describe_configs"):
            world.kafka.reject(method, NoAnswer("gone"), times=20)
        world.run.advance_by(2)
        assert "BrokersUnavailable" in held_codes(world)
        assert world.finish(task).end is ExecutionEnd.COMPLETED
        world.cluster.check_nothing_left()


def test_a_refused_request_ends_the_execution_and_the_record_stays(reviewed: ReviewedSentences):
    with run_cluster(size=100 * MB) as world:
        world.kafka.reject("alter_reassignments", RequestRefused("CLUSTER_AUTHORIZATION_FAILED"))
        outcome = world.finish(world.start(world.cluster.propose_add()))
        assert outcome.end is ExecutionEnd.FAILED
        assert "CLUSTER_AUTHORIZATION_FAILED" in str(outcome.reason)
        assert not world.cluster.store.is_settled
        with pytest.raises(ExecutionRefused) as refused:
            world.until(world.executor.execute("e2", world.cluster.propose_add(), THROTTLED))
        reviewed(str(refused.value))
        resumed = world.until(world.executor.resume())
        assert resumed.end is ExecutionEnd.COMPLETED
        world.cluster.check_nothing_left()


@pytest.mark.parametrize("error", [NoAnswer("gone"), RequestRefused("CLUSTER_AUTHORIZATION_FAILED")])
def test_progress_that_cannot_be_read_stops_nothing(error: NoAnswer | RequestRefused):
    with run_cluster(size=100 * MB) as world:
        world.kafka.reject("describe_log_dirs", error, times=1000)
        assert world.finish(world.start(world.cluster.propose_add())).end is ExecutionEnd.COMPLETED
        world.cluster.check_nothing_left()


RETRIABLE = ItemError("REQUEST_TIMED_OUT", "The request timed out.")


@pytest.mark.parametrize("takes_effect", [False, True])
@pytest.mark.parametrize("method", ["alter_reassignments", "alter_configs", "elect_preferred_leaders"])
@pytest.mark.parametrize("times", [1, 2])
def test_an_error_of_single_items_is_got_over(method: str, takes_effect: bool, times: int):
    with run_cluster() as world:
        proposals = world.cluster.propose_add()
        world.kafka.fail_items(method, RETRIABLE, times=times, takes_effect=takes_effect)
        outcome = world.finish(world.start(proposals))
        assert outcome.end is ExecutionEnd.COMPLETED, outcome
        for moved in proposals:
            assert world.cluster.assignment()[moved.topic, moved.partition] == (
                list(moved.new_replicas),
                moved.new_replicas[0],
            )
        world.cluster.check_nothing_left()


def test_an_error_of_single_items_that_stays_costs_these_items_only():
    with run_cluster(partitions=12) as world:
        proposals = world.cluster.propose_add()
        world.kafka.fail_items("alter_reassignments", ItemError("POLICY_VIOLATION", "not on Mondays"))
        outcome = world.finish(world.start(proposals))
        assert outcome.end is ExecutionEnd.FAILED
        dead = next(ended for ended in outcome.not_completed if ended.type is TaskType.INTER_BROKER_REPLICA_ACTION)
        assert str(dead.reason) == "the brokers refused it: POLICY_VIOLATION: not on Mondays"
        assert sum(NEW in part.replicas for part in world.cluster.partitions()) == len(proposals) - 1
        world.cluster.check_nothing_left()


def test_a_throttle_that_may_not_be_set_moves_nothing():
    with run_cluster() as world:
        world.kafka.fail_items("alter_configs", ItemError("CLUSTER_AUTHORIZATION_FAILED", "no"), times=1)
        outcome = world.finish(world.start(world.cluster.propose_add()))
        assert outcome.end is ExecutionEnd.FAILED
        assert "the throttle of topic a: CLUSTER_AUTHORIZATION_FAILED: no" in str(outcome.reason)
        assert not world.kafka.sent_targets
        world.until(world.executor.stop())
        world.cluster.check_nothing_left()


@pytest.mark.parametrize("takes_effect", [False, True])
def test_a_cancel_that_fails_is_tried_again(takes_effect: bool):
    with run_cluster(size=200 * MB) as world:
        before = world.cluster.assignment()
        task = world.start(world.cluster.propose_add())
        world.run.advance_by(2)
        world.kafka.fail_items("alter_reassignments", RETRIABLE, times=5, takes_effect=takes_effect)
        assert world.until(world.executor.stop()).end is ExecutionEnd.STOPPED
        world.finish(task)
        assert world.cluster.assignment() == before
        world.cluster.check_nothing_left()


# ---- unregistering


@pytest.mark.parametrize(
    ("is_dead", "is_gone", "hosts", "code"),
    [
        (False, False, False, "BrokerRuns"),
        (False, True, False, "BrokerNotFenced"),
        (True, False, False, "BrokerRuns"),
        (True, True, True, "HostsReplicas"),
        (True, True, False, None),
    ],
)
def test_k37_a_broker_that_hosts_a_replica_or_runs_stays_registered(
    is_dead: bool, is_gone: bool, hosts: bool, code: str | None
):
    with run_cluster(on_new=hosts) as world:

        async def ask(broker: int) -> bool:
            assert broker == NEW
            return is_gone

        if is_dead:
            world.kafka.kill_broker(NEW)
            world.run.advance_by(10)
        journal = MemoryJournal()
        clock = world.run.clock
        reason = world.until(unregister_and_record(world.cluster.admin, NEW, ask, journal=journal, clock=clock))
        [entry] = world.until(journal.list_entries(Query(ref=Ref(kind="broker", name=str(NEW)))))
        assert [not_done.reason for not_done in entry.plan.not_done] == ([] if reason is None else [reason])
        assert (None if reason is None else reason.code) == code
        assert world.kafka.catch_up().brokers[NEW].is_registered is (code is not None)
        assert world.kafka.requests["unregister_broker"] == (0 if code else 1)


def test_k37_a_broker_that_a_reassignment_is_filling_stays_registered():
    with run_cluster(size=100 * MB) as world:
        (first, *_) = world.cluster.propose_add()
        world.kafka.alter_reassignments({(first.topic, first.partition): first.new_replicas})
        world.kafka.kill_broker(NEW)
        world.run.advance_by(10)

        async def gone(_: int) -> bool:
            return True

        reason = world.until(unregister_broker(world.cluster.admin, NEW, gone))
        assert str(reason) == f"broker 3 hosts 1 replica: {first.topic}-{first.partition}"
        assert world.until(unregister_broker(world.cluster.admin, 55, gone)) is None
