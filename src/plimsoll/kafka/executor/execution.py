"""An execution, from its first check to its end."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

import structlog
from msgspec.structs import replace

from plimsoll.core.formatting import format_count
from plimsoll.core.plans import Reason
from plimsoll.kafka.brokers.ports import KafkaRefused, KafkaUnavailable
from plimsoll.kafka.executor import reasons
from plimsoll.kafka.executor.journaling import conclude_entry
from plimsoll.kafka.executor.observing import METADATA_LAG_S
from plimsoll.kafka.executor.phases.leader_moves import LeaderMoves
from plimsoll.kafka.executor.phases.log_dir_moves import LogDirMoves
from plimsoll.kafka.executor.phases.replica_moves import ReplicaMoves
from plimsoll.kafka.executor.throttles import NO_THROTTLES
from plimsoll.kafka.model.description import TopicPartition
from plimsoll.kafka.model.executions import (
    ExecutionEnd,
    ExecutionOutcome,
    ExecutionProgress,
    ExecutorState,
    TaskState,
)

if TYPE_CHECKING:
    from collections.abc import Collection

    from plimsoll.journal.ports import Journal
    from plimsoll.kafka.executor.context import ExecutionContext
    from plimsoll.kafka.model.description import TopicDescription

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

RATE_WINDOW_S: Final = 60.0
LISTED_TASKS: Final = 1_000
"""Tasks in an answer about progress."""


class Execution:
    """Runs the phases, one check after the other. Errors of brokers are waited out; a refusal ends it."""

    def __init__(self, context: ExecutionContext, journal: Journal | None = None) -> None:
        self.context = context
        self._journal = journal
        self.state = ExecutorState.STARTING_EXECUTION
        self._phases = (
            (ExecutorState.INTER_BROKER_REPLICA_MOVEMENT, ReplicaMoves(context)),
            (ExecutorState.INTRA_BROKER_REPLICA_MOVEMENT, LogDirMoves(context)),
            (ExecutorState.LEADER_MOVEMENT, LeaderMoves(context)),
        )
        self._samples: deque[tuple[float, int]] = deque()
        self._left_on_emptied: dict[int, list[TopicPartition]] = {}
        self._highest_bytes = 0
        """Progress never falls, also when the copy of a movement that is rolled back is deleted."""

    async def run(self) -> ExecutionOutcome:
        context = self.context
        log.info("execution.started", id=context.plan.execution_id, proposals=len(context.plan.proposals))
        try:
            for state, phase in self._phases:
                if phase.has_unfinished:
                    self.state = state
                    await self._run_phase(phase)
            await self._clear_throttles()
            await self._look_at_emptied()
        except KafkaRefused as error:
            reason = Reason(
                code="Refused", message=f"the brokers refused a request: {error}", facts={"error": error.code}
            )
            outcome = self._build_outcome(ExecutionEnd.FAILED, reason)
            await conclude_entry(self._journal, context.plan.request, outcome)
            return outcome
        outcome = self._conclude()
        # The journal first: a process that ends in between leaves the record, and the next one concludes the entry.
        await conclude_entry(self._journal, context.plan.request, outcome)
        await context.finish_record(is_completed=outcome.end is ExecutionEnd.COMPLETED)
        return outcome

    async def _run_phase(self, phase: ReplicaMoves | LogDirMoves | LeaderMoves) -> None:
        counts = None
        while True:
            try:
                await phase.check()
            except KafkaUnavailable as error:
                log.warning("execution.brokers_unavailable", problem=str(error))
                self.context.hold(reasons.explain_unavailable(str(error)))
            self._hold_throttles()
            self.context.end_check()
            self._sample()
            if not phase.has_unfinished:
                return
            before, counts = counts, phase.count_movements()
            if counts != before:
                self.context.pace.reset()
            await self.context.wait()

    async def _clear_throttles(self) -> None:
        """Until nothing of ours is left but the rates of brokers that are down, which the record keeps."""
        context = self.context
        while not context.throttles.is_clear:
            try:
                view = await context.observer.observe(())
                await context.throttles.release(NO_THROTTLES, view.alive)
            except KafkaUnavailable as error:
                context.hold(reasons.explain_unavailable(str(error)))
            else:
                left = context.throttles.list_left_brokers(view.alive)
                if not context.throttles.replicas and {rate.broker for rate in context.throttles.rates} == left:
                    return
            await context.wait()

    async def _look_at_emptied(self) -> None:
        """Look whether the brokers that were to be emptied are empty: partitions may have been created on them.

        An answer about replicas may be old, so those that are there must be there for a while.
        """
        context = self.context
        emptied = context.plan.request.removed_brokers
        if not emptied or any(task.state is TaskState.DEAD for task in context.tasks):
            return
        since = context.now_s
        while context.now_s - since < METADATA_LAG_S and not context.is_stopping:
            try:
                self._left_on_emptied = _list_replicas(await context.admin.describe_topics(), emptied)
            except KafkaUnavailable as error:
                context.hold(reasons.explain_unavailable(str(error)))
                since = context.now_s
            else:
                if not self._left_on_emptied:
                    return
            context.end_check()
            await context.wait()

    def _hold_throttles(self) -> None:
        context = self.context
        foreign = context.throttles.foreign_rate_brokers
        if foreign:
            context.hold(reasons.explain_foreign_rates(foreign))
        left = context.throttles.list_left_brokers(context.observer.view.alive)
        if left:
            context.hold(reasons.explain_left_rates(left))

    # ---- end

    def _conclude(self) -> ExecutionOutcome:
        dead = sum(task.state is TaskState.DEAD for task in self.context.tasks)
        left = self.context.throttles.list_left_brokers(self.context.observer.view.alive)
        because: tuple[Reason, ...] = (reasons.explain_left_rates(left),) if left else ()
        if self.context.foreign:
            because += (reasons.explain_others(self.context.foreign),)
        if self.context.is_stopping:
            aborted = sum(task.state is TaskState.ABORTED for task in self.context.tasks)
            message = f"stopped: {format_count(aborted, 'movement was', 'movements were')} not completed"
            return self._build_outcome(ExecutionEnd.STOPPED, Reason(code="Stopped", message=message, because=because))
        if dead:
            message = f"{format_count(dead, 'movement')} could not be completed"
            return self._build_outcome(
                ExecutionEnd.FAILED, Reason(code="MovementsDead", message=message, because=because)
            )
        if self._left_on_emptied:
            reason = reasons.explain_not_emptied(self._left_on_emptied)
            return self._build_outcome(ExecutionEnd.FAILED, replace(reason, because=because))
        first = replace(because[0], because=because[1:]) if because else None
        return self._build_outcome(ExecutionEnd.COMPLETED, first)

    def _build_outcome(self, end: ExecutionEnd, reason: Reason | None) -> ExecutionOutcome:
        tasks = self.context.tasks
        outcome = ExecutionOutcome(
            execution_id=self.context.plan.execution_id,
            end=end,
            completed=sum(task.state is TaskState.COMPLETED for task in tasks),
            not_completed=tuple(task.describe() for task in tasks if task.state is not TaskState.COMPLETED),
            moved_bytes=self._count_bytes() + self._count_log_dir_bytes(),
            reason=reason,
            not_emptied=tuple(sorted(self._left_on_emptied)),
        )
        log.info("execution.ended", id=outcome.execution_id, end=end.value, completed=outcome.completed)
        return outcome

    # ---- progress

    def _count_bytes(self) -> int:
        """Bytes of completed movements, and what those under way have copied."""
        return sum(
            task.proposal.bytes_to_move if task.state is TaskState.COMPLETED else task.moved_bytes
            for task in self.context.tasks.inter_broker.tasks
        )

    def _count_log_dir_bytes(self) -> int:
        """Bytes of completed movements between log directories. Cruise Control's progress does not count them."""
        completed = self.context.tasks.intra_broker.iterate(TaskState.COMPLETED)
        return sum(task.proposal.size_bytes for task in completed)

    def _sample(self) -> None:
        now, finished = self.context.now_s, self._count_bytes()
        self._highest_bytes = max(self._highest_bytes, finished)
        self._samples.append((now, finished))
        while len(self._samples) > 2 and now - self._samples[0][0] > RATE_WINDOW_S:
            self._samples.popleft()

    def _measure_rate(self) -> float | None:
        """Bytes per second over the last minute; None: nothing has moved in it."""
        if len(self._samples) < 2:
            return None
        (begin, before), (end, after) = self._samples[0], self._samples[-1]
        return (after - before) / (end - begin) if end > begin and after > before else None

    def describe_progress(self) -> ExecutionProgress:
        context = self.context
        tasks = context.tasks
        finished = max(self._highest_bytes, self._count_bytes())
        total = sum(task.proposal.bytes_to_move for task in tasks.inter_broker.tasks)
        rate = self._measure_rate()
        unfinished = [task for task in tasks if not task.is_finished]
        unfinished.sort(key=lambda task: task.state is TaskState.PENDING)
        return ExecutionProgress(
            state=ExecutorState.STOPPING_EXECUTION if context.is_stopping else self.state,
            execution_id=context.plan.execution_id,
            inter_broker=tasks.inter_broker.count(),
            intra_broker=tasks.intra_broker.count(),
            leaders=tasks.leaders.count(),
            finished_bytes=finished,
            total_bytes=total,
            bytes_per_s=rate,
            seconds_left=None if rate is None else max(total - finished, 0) / rate,
            tasks=tuple(task.describe() for task in unfinished[:LISTED_TASKS]),
            held=context.held,
            options=context.options,
        )


def _list_replicas(topics: Collection[TopicDescription], brokers: Collection[int]) -> dict[int, list[TopicPartition]]:
    """The partitions with a replica on one of the brokers, by broker."""
    found: dict[int, list[TopicPartition]] = {}
    for topic in topics:
        for partition in topic.partitions:
            for broker in set(partition.replicas).intersection(brokers):
                found.setdefault(broker, []).append(TopicPartition(topic.name, partition.partition))
    return found
