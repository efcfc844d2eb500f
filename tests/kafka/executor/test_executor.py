"""Executions: order, limits, log directories, leaders, progress, stop, brakes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import msgspec
import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.kafka.executor.errors import ExecutionRefused, RecordUnusable
from plimsoll.kafka.executor.record_stores import MemoryExecutionStore
from plimsoll.kafka.model.executions import ExecutionEnd, ExecutionOptions, ExecutorState, TaskState, TaskType
from plimsoll.kafka.model.proposals import LogDirMove, Proposal
from plimsoll.operator.pause import ActionGuard
from tests.kafka.executor.simulated_clusters import MB, NEW, THROTTLED, Running, run_cluster

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.kafka.executor.record import RecordedState
    from tests.golden.reviewed_sentences import ReviewedSentences

UNTHROTTLED = ExecutionOptions()


def list_moving(world: Running) -> set[tuple[str, int]]:
    return set(world.kafka.list_reassignments())


# ---- limits and order


def test_movements_stay_within_the_limits_per_broker_and_of_the_cluster():
    with run_cluster(partitions=40, size=10 * MB) as world:
        task = world.start(world.cluster.propose_add(), ExecutionOptions(concurrent_partition_movements_per_broker=2))
        while not task.done():
            assert len(list_moving(world)) <= 2, "every movement has the new broker as its destination"
            world.run.advance_by(0.5)
        assert world.finish(task).end is ExecutionEnd.COMPLETED
        task = world.start(world.cluster.propose_remove(), ExecutionOptions(max_partition_movements_in_cluster=3))
        while not task.done():
            assert len(list_moving(world)) <= 3
            world.run.advance_by(0.5)
        assert world.finish(task).end is ExecutionEnd.COMPLETED


@pytest.mark.parametrize(
    ("strategy", "order"),
    [
        ("BaseReplicaMovementStrategy", [0, 1, 2]),
        ("PrioritizeLargeReplicaMovementStrategy", [1, 2, 0]),
        ("com.linkedin.kafka.cruisecontrol.executor.strategy.PrioritizeSmallReplicaMovementStrategy", [0, 2, 1]),
    ],
)
def test_strategies_order_the_movements(strategy: str, order: list[int]):
    with run_cluster(partitions=2) as world:
        world.kafka.create_topic("s", [[0, 1]] * 3, size_bytes=[10 * MB, 30 * MB, 20 * MB])
        proposals = [world.cluster.propose("s", number, NEW, 1) for number in range(3)]
        one = ExecutionOptions(max_partition_movements_in_cluster=1, replica_movement_strategies=(strategy,))
        task = world.start(proposals, one)
        seen: list[int] = []
        while not task.done():
            seen += [number for _, number in list_moving(world) if number not in seen]
            world.run.advance_by(0.25)
        assert seen == order


def test_urgent_partitions_first_and_under_replicated_ones_last():
    with run_cluster(partitions=2) as world:
        world.kafka.create_topic(
            "s", [[0, 1], [0, 2], [0, 1]], size_bytes=100 * MB, settings={"min.insync.replicas": "1"}
        )
        world.kafka.kill_broker(2)
        world.run.advance_by(10)
        proposals = [world.cluster.propose("s", number, 0, NEW) for number in range(3)]
        for strategy, first in (
            ("PrioritizeMinIsrWithOfflineReplicasStrategy", 1),
            ("PrioritizeOneAboveMinIsrWithOfflineReplicasStrategy", 1),
            ("PostponeUrpReplicaMovementStrategy", 0),
        ):
            options = ExecutionOptions(max_partition_movements_in_cluster=1, replica_movement_strategies=(strategy,))
            task = world.start(proposals, options)
            assert list_moving(world) == {("s", first)}
            world.until(world.executor.stop())
            world.finish(task)


@pytest.mark.parametrize(
    ("options", "path"),
    [
        (ExecutionOptions(concurrent_partition_movements_per_broker=0), "concurrent_partition_movements_per_broker"),
        (ExecutionOptions(concurrent_leader_movements=-1), "concurrent_leader_movements"),
        (ExecutionOptions(replica_movement_strategies=("Fastest",)), "replica_movement_strategies"),
        (ExecutionOptions(progress_check_interval_s=math.nan), "progress_check_interval_s"),
        (ExecutionOptions(max_bytes_per_hour=0), "max_bytes_per_hour"),
    ],
)
def test_a_wrong_option_is_refused_by_name(options: ExecutionOptions, path: str):
    with run_cluster() as world:
        with pytest.raises(InvalidInput) as caught:
            world.until(world.executor.execute("e1", world.cluster.propose_add(), options))
        assert caught.value.path == path
        assert not world.kafka.sent_targets


@pytest.mark.parametrize("replicas", [(), (1, 1, 2)])
def test_a_broken_proposal_is_refused_before_anything_moves(replicas: tuple[int, ...]):
    with run_cluster() as world:
        bad = Proposal(topic="a", partition=1, old_leader=0, old_replicas=(0, 1, 2), new_replicas=replicas)
        with pytest.raises(InvalidInput, match=r"proposals\[4\]"):
            world.until(world.executor.execute("e1", (*world.cluster.propose_add(), bad), UNTHROTTLED))
        assert not world.kafka.sent_targets


def test_one_partition_cannot_have_two_proposals(reviewed: ReviewedSentences):
    with run_cluster() as world:
        proposals = world.cluster.propose_add()
        with pytest.raises(InvalidInput) as refused:
            world.until(world.executor.execute("e1", (*proposals, proposals[0]), UNTHROTTLED))
        reviewed(str(refused.value))


def test_names_may_be_long_and_have_dots():
    with run_cluster() as world:
        name = "a.b-c_" + "x" * 243
        assert len(name) == 249
        world.kafka.create_topic(name, [[0, 1, 2]], size_bytes=MB)
        world.kafka.create_topic("a.b", [[0, 1, 2]], size_bytes=MB)
        proposals = [world.cluster.propose(topic, 0, NEW, 1, 2) for topic in (name, "a.b")]
        assert world.finish(world.start(proposals, THROTTLED)).end is ExecutionEnd.COMPLETED
        assert world.cluster.assignment()[name, 0] == ([NEW, 1, 2], NEW)
        world.cluster.check_nothing_left()


# ---- leaders


def test_leaders_come_last_and_reordering_needs_no_data():
    with run_cluster() as world:
        swap = world.cluster.propose("b", 1, 2, 1, 0)
        elect = world.cluster.propose("b", 0, *world.cluster.partition("b", 0).replicas)
        moves = [move for move in world.cluster.propose_add() if move.topic == "a"]
        assert swap.old_replicas == (1, 2, 0)
        outcome = world.finish(world.start([swap, elect, *moves]))
        assert outcome.end is ExecutionEnd.COMPLETED
        assert world.cluster.assignment()["b", 1] == ([2, 1, 0], 2)
        assert all(world.cluster.partition(m.topic, m.partition).leader == m.new_replicas[0] for m in moves)
        assert outcome.moved_bytes == sum(move.bytes_to_move for move in moves)


def test_leadership_only_is_elected_in_batches():
    with run_cluster(partitions=30) as world:
        proposals = [world.cluster.propose(*part.key, *reversed(part.replicas)) for part in world.cluster.partitions()]
        options = ExecutionOptions(concurrent_leader_movements=4, broker_concurrent_leader_movements=2)
        assert world.finish(world.start(proposals, options)).end is ExecutionEnd.COMPLETED
        assert all(part.leader == part.replicas[0] for part in world.cluster.partitions())
        assert [world.cluster.partition(p.topic, p.partition).leader for p in proposals] == [
            p.new_replicas[0] for p in proposals
        ]
        assert world.kafka.requests["elect_preferred_leaders"] >= 8


def test_a_leader_that_is_not_in_sync_is_waited_for_and_then_named():
    with run_cluster() as world:
        swap = world.cluster.propose("a", 0, 2, 1, 0)
        world.kafka.kill_broker(2)
        world.run.advance_by(10)
        task = world.start([swap], UNTHROTTLED)
        world.run.advance_by(60)
        assert world.executor.get_progress().state is ExecutorState.LEADER_MOVEMENT
        outcome = world.finish(task)
        assert str(outcome.not_completed[0].reason) == "the replica on broker 2 is not in sync"
        world.kafka.start_broker(2)
        assert world.finish(world.start([swap], UNTHROTTLED)).end is ExecutionEnd.COMPLETED
        assert world.cluster.assignment()["a", 0] == ([2, 1, 0], 2)


# ---- log directories


def test_replicas_move_between_log_directories_two_at_a_time():
    with run_cluster() as world:
        world.kafka.add_broker(5, log_dirs={"/one": 1 << 40, "/two": 1 << 40}, bytes_per_s=10 * MB)
        world.kafka.create_topic("j", [[5]] * 6, size_bytes=20 * MB)
        on_one = [n for n in range(6) if world.cluster.partition("j", n).logs[5].path == "/one"]
        proposals = [
            Proposal(
                topic="j", partition=n, old_leader=5, old_replicas=(5,), new_replicas=(5,), size_bytes=20 * MB,
                log_dir_moves=(LogDirMove(broker=5, source="/one", destination="/two"),),
            )
            for n in on_one
        ]  # fmt: skip
        task = world.start(proposals, UNTHROTTLED)
        assert world.executor.get_progress().state is ExecutorState.INTRA_BROKER_REPLICA_MOVEMENT
        while not task.done():
            moving = [n for n in on_one if world.cluster.partition("j", n).logs[5].future_path]
            assert len(moving) <= 2
            world.run.advance_by(0.5)
        assert world.finish(task).end is ExecutionEnd.COMPLETED
        assert {world.cluster.partition("j", n).logs[5].path for n in range(6)} == {"/two"}


def test_a_stop_cancels_moves_between_log_directories():
    with run_cluster() as world:
        world.kafka.add_broker(5, log_dirs={"/one": 1 << 40, "/two": 1 << 40}, bytes_per_s=MB)
        world.kafka.create_topic("j", [[5]], size_bytes=100 * MB)
        move = LogDirMove(broker=5, source="/one", destination="/two")
        missing = LogDirMove(broker=5, source="/one", destination="/three")
        proposal = Proposal(
            topic="j", partition=0, old_leader=5, old_replicas=(5,), new_replicas=(5,), log_dir_moves=(move, missing)
        )
        task = world.start([proposal], UNTHROTTLED)
        world.run.advance_by(2)
        outcome = world.until(world.executor.stop())
        world.finish(task)
        log = world.cluster.partition("j", 0).logs[5]
        assert (log.path, log.future_path) == ("/one", "")
        cancelled, refused = outcome.not_completed
        assert (cancelled.state, str(cancelled.reason)) == (TaskState.ABORTED, "stopped; the replica is in /one")
        assert refused.state is TaskState.DEAD
        assert "LOG_DIR_NOT_FOUND" in str(refused.reason)


# ---- progress


def test_progress_has_bytes_a_rate_and_the_time_left():
    with run_cluster(size=100 * MB) as world:
        task = world.start(world.cluster.propose_add())
        assert world.executor.get_progress().seconds_left is None
        world.run.advance_by(25)
        progress = world.executor.get_progress()
        assert progress.state is ExecutorState.INTER_BROKER_REPLICA_MOVEMENT
        assert progress.execution_id == "e1"
        assert progress.total_bytes == 400 * MB
        assert 0 < progress.finished_bytes < progress.total_bytes
        assert progress.bytes_per_s == pytest.approx(5 * MB, rel=0.3)
        assert progress.seconds_left == pytest.approx((progress.total_bytes - progress.finished_bytes) / 5e6, rel=0.3)
        counts = progress.inter_broker
        assert counts.total == counts.finished + counts.in_progress + counts.pending
        assert counts.in_progress > 0
        outcome = world.finish(task)
        assert outcome.moved_bytes == progress.total_bytes
        assert world.executor.get_progress().state is ExecutorState.NO_TASK_IN_PROGRESS


def test_progress_does_not_fall_when_a_movement_is_rolled_back():
    with run_cluster(size=100 * MB) as world:
        options = ExecutionOptions(replication_throttle=5 * MB, dead_broker_grace_s=5.0)
        task = world.start(world.cluster.propose_add(), options)
        world.run.advance_by(25)
        seen = [world.executor.get_progress().finished_bytes]
        world.cluster.kafka.kill_broker(NEW)
        while not task.done():
            progress = world.executor.get_progress()
            if progress.state is not ExecutorState.NO_TASK_IN_PROGRESS:
                seen.append(progress.finished_bytes)
            world.run.advance_by(0.1)
        assert seen[0] > 0
        assert len(seen) > 10
        assert seen == sorted(seen)
        assert task.result().moved_bytes == 0


# ---- stop and one at a time


def test_one_execution_at_a_time(reviewed: ReviewedSentences):
    with run_cluster(size=100 * MB) as world:
        task = world.start(world.cluster.propose_add())
        with pytest.raises(ExecutionRefused) as raised:
            world.until(world.executor.execute("e2", world.cluster.propose_add(), UNTHROTTLED))
        reviewed(str(raised.value))
        assert world.finish(task).end is ExecutionEnd.COMPLETED


def test_a_stop_right_after_the_start_stops():
    with run_cluster(size=100 * MB) as world:
        task = world.run.spawn(world.executor.execute("e1", world.cluster.propose_add(), THROTTLED))
        outcome = world.until(world.executor.stop())
        assert outcome is not None
        assert outcome.end is ExecutionEnd.STOPPED
        world.finish(task)
        world.cluster.check_nothing_left()


def test_a_stop_keeps_what_is_done():
    with run_cluster(partitions=12, size=50 * MB) as world:
        before = world.cluster.assignment()
        proposals = world.cluster.propose_add()
        task = world.start(proposals, ExecutionOptions(concurrent_partition_movements_per_broker=1))
        world.run.advance_by(8)
        outcome = world.until(world.executor.stop())
        world.finish(task)
        moved = [p for p in proposals if NEW in world.cluster.partition(p.topic, p.partition).replicas]
        assert 0 < len(moved) < len(proposals)
        aborted = {
            (ended.proposal.topic, ended.proposal.partition)
            for ended in outcome.not_completed
            if ended.type is TaskType.INTER_BROKER_REPLICA_ACTION
        }
        for key, (replicas, _) in world.cluster.assignment().items():
            assert replicas == before[key][0] or key not in aborted
        world.cluster.check_nothing_left()


class SlowStore(MemoryExecutionStore):
    """A store whose server fails for a while: the write of a state takes seconds, and that of a stop only one."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self.begun: list[RecordedState] = []
        self.written: list[RecordedState] = []

    async def write_state(self, state: RecordedState) -> None:
        self.begun.append(state)
        await self._clock.sleep(1 if state.is_stopping else 3)
        self.written.append(state)
        await super().write_state(state)


def test_a_stop_that_comes_while_the_end_is_recorded_leaves_no_record():
    with run_cluster() as world:
        world.cluster.store = store = SlowStore(world.run.clock)
        world.executor = world.cluster.build_executor()
        task = world.start(world.cluster.propose_add(), UNTHROTTLED)
        while not store.begun or store.begun[-1].execution_id:
            world.run.advance_by(1)
        stopped = world.until(world.executor.stop())
        assert world.finish(task) == stopped
        assert stopped.end is ExecutionEnd.COMPLETED
        assert [state.execution_id for state in store.begun[-2:]] == ["e1", ""]
        assert store.is_settled


def test_records_are_written_one_after_the_other_and_the_stop_is_in_the_last():
    with run_cluster(partitions=12, size=20 * MB) as world:
        world.cluster.store = store = SlowStore(world.run.clock)
        world.executor = world.cluster.build_executor()
        task = world.start(world.cluster.propose_add())
        while world.executor.get_progress().state is ExecutorState.STARTING_EXECUTION or store.written == store.begun:
            world.run.advance_by(1)
        world.until(world.executor.stop())
        assert world.finish(task).end is ExecutionEnd.STOPPED
        assert store.written == store.begun
        stopping = [state.is_stopping for state in store.written]
        assert stopping == sorted(stopping)


def test_without_an_execution_there_is_nothing_to_stop_or_resume():
    with run_cluster() as world:
        assert world.until(world.executor.stop()) is None
        assert world.until(world.executor.resume()) is None
        assert world.until(world.executor.clean_up())


# ---- brakes


def test_a_pause_lets_movements_end_and_starts_no_new_ones():
    with run_cluster(partitions=12, size=20 * MB) as world:
        paused = [""]

        async def read_guard() -> ActionGuard:
            return ActionGuard(paused=paused[0])

        world.executor = world.cluster.build_executor(read_guard=read_guard)
        task = world.start(world.cluster.propose_add(), ExecutionOptions(max_partition_movements_in_cluster=1))
        paused[0] = "lunch"
        world.run.advance_by(60)
        assert list_moving(world) == set()
        assert [str(reason) for reason in world.executor.get_progress().held] == ["paused: lunch"]
        assert world.executor.get_progress().inter_broker.finished == 1
        paused[0] = ""
        assert world.finish(task).end is ExecutionEnd.COMPLETED


@pytest.mark.parametrize("guard", [ActionGuard(dry_run=True), ActionGuard(paused="true")])
def test_nothing_starts_in_a_dry_run_or_a_pause(guard: ActionGuard):
    with run_cluster() as world:

        async def read_guard() -> ActionGuard:
            return guard

        executor = world.cluster.build_executor(read_guard=read_guard)
        with pytest.raises(ExecutionRefused) as caught:
            world.until(executor.execute("e1", world.cluster.propose_add(), UNTHROTTLED))
        assert caught.value.reason == guard.reason
        assert world.cluster.store.is_settled
        assert not world.kafka.sent_targets


def test_bytes_per_hour_hold_across_executions_and_processes():
    with run_cluster(partitions=12, size=20 * MB) as world:
        options = ExecutionOptions(max_bytes_per_hour=50 * MB)
        proposals = world.cluster.propose_add()
        task = world.start(proposals[:2], options)
        assert world.finish(task).end is ExecutionEnd.COMPLETED
        world.executor = world.cluster.build_executor()
        task = world.start(proposals[2:], options)
        world.run.advance_by(600)
        assert {reason.code for reason in world.executor.get_progress().held} == {"BytesPerHour"}
        assert world.executor.get_progress().inter_broker.finished == 0
        world.run.advance_by(3010)
        assert world.executor.get_progress().inter_broker.finished == 2
        assert world.finish(task).end is ExecutionEnd.COMPLETED


def test_a_partition_above_the_hourly_limit_moves_alone():
    with run_cluster(partitions=4, size=200 * MB) as world:
        task = world.start(world.cluster.propose_add(), ExecutionOptions(max_bytes_per_hour=50 * MB))
        assert len(list_moving(world)) == 1
        assert world.finish(task).end is ExecutionEnd.COMPLETED


def propose_log_dir_moves(world: Running, *, size: int, count: int = 6) -> list[Proposal]:
    """Replicas of a topic of one broker, from its first log directory to its second."""
    world.kafka.add_broker(5, log_dirs={"/one": 1 << 40, "/two": 1 << 40}, bytes_per_s=10 * MB)
    world.kafka.create_topic("j", [[5]] * count, size_bytes=size)
    move = LogDirMove(broker=5, source="/one", destination="/two")
    return [
        Proposal(
            topic="j", partition=n, old_leader=5, old_replicas=(5,), new_replicas=(5,), size_bytes=size,
            log_dir_moves=(move,),
        )
        for n in range(count)
        if world.cluster.partition("j", n).logs[5].path == "/one"
    ]  # fmt: skip


def test_moves_between_log_directories_count_for_bytes_per_hour():
    with run_cluster() as world:
        proposals = propose_log_dir_moves(world, size=20 * MB)
        task = world.start(proposals, ExecutionOptions(max_bytes_per_hour=20 * MB))
        world.run.advance_by(1800)
        progress = world.executor.get_progress()
        assert (progress.intra_broker.finished, progress.intra_broker.pending) == (1, len(proposals) - 1)
        assert {reason.code for reason in progress.held} == {"BytesPerHour"}
        outcome = world.finish(task)
        assert outcome.end is ExecutionEnd.COMPLETED
        assert outcome.moved_bytes == 20 * MB * len(proposals)


def test_a_replica_above_the_hourly_limit_changes_its_log_directory_alone():
    with run_cluster() as world:
        proposals = propose_log_dir_moves(world, size=20 * MB)
        task = world.start(proposals, ExecutionOptions(max_bytes_per_hour=5 * MB))
        world.run.advance_by(60)
        assert world.executor.get_progress().intra_broker.finished == 1
        assert world.finish(task).end is ExecutionEnd.COMPLETED


def test_moves_between_log_directories_and_unknown_sizes_need_a_confirmation():
    with run_cluster() as world:
        proposals = propose_log_dir_moves(world, size=20 * MB)
        total = 20 * MB * len(proposals)
        with pytest.raises(ExecutionRefused) as refused:
            world.until(world.executor.execute("e1", proposals, ExecutionOptions(max_bytes_unconfirmed=total - 1)))
        assert refused.value.reason.facts == {"bytes": total, "limit": total - 1, "unknownSizes": 0}
        unknown = [msgspec.structs.replace(proposal, size_bytes=0, is_size_known=False) for proposal in proposals]
        with pytest.raises(ExecutionRefused) as refused:
            world.until(world.executor.execute("e1", unknown, ExecutionOptions(max_bytes_unconfirmed=total)))
        assert refused.value.reason.facts["unknownSizes"] == len(proposals)


def test_more_than_the_limit_needs_a_confirmation(reviewed: ReviewedSentences):
    with run_cluster(size=20 * MB) as world:
        proposals = world.cluster.propose_add()
        total = sum(proposal.bytes_to_move for proposal in proposals)
        options = ExecutionOptions(max_bytes_unconfirmed=total - 1)
        with pytest.raises(ExecutionRefused) as refused:
            world.until(world.executor.execute("e1", proposals, options))
        reviewed(str(refused.value))
        for allowed in (
            ExecutionOptions(max_bytes_unconfirmed=total),
            ExecutionOptions(max_bytes_unconfirmed=1, is_confirmed=True),
        ):
            assert world.finish(world.start(proposals, allowed)).end is ExecutionEnd.COMPLETED


# ---- the record


def test_the_record_of_another_cluster_is_not_resumed(reviewed: ReviewedSentences):
    with run_cluster(size=100 * MB) as world:
        task = world.start(world.cluster.propose_add())
        task.cancel()
        world.run.settle()
        world.kafka.cluster_id = "another"
        with pytest.raises(RecordUnusable) as refused:
            world.until(world.cluster.build_executor().resume())
        reviewed(str(refused.value))
