"""The second phase: replicas move between the log directories of their broker."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.kafka.brokers.ports import KafkaUnavailable, ReplicaLogDir
from plimsoll.kafka.executor import reasons
from plimsoll.kafka.model.executions import TaskState

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kafka.executor.context import ExecutionContext
    from plimsoll.kafka.executor.tasks import MovementTask
    from plimsoll.kafka.model.description import TopicPartition
    from plimsoll.kafka.model.executions import MovementCounts
    from plimsoll.kafka.model.proposals import LogDirMove

ATTEMPTS: Final = 3
_FATAL_CODES: Final = ("LOG_DIR_NOT_FOUND", "KAFKA_STORAGE_ERROR", "INVALID_REQUEST")


@dataclass(slots=True)
class _ReplicaPlace:
    """Where a replica is, and where it is moving."""

    path: str = ""
    future_path: str = ""


class LogDirMoves:
    """The movements within brokers of one execution."""

    def __init__(self, context: ExecutionContext) -> None:
        self._context = context
        self._tasks = context.tasks.intra_broker

    @property
    def has_unfinished(self) -> bool:
        return self._tasks.has_unfinished

    def count_movements(self) -> MovementCounts:
        return self._tasks.count()

    async def check(self) -> None:
        context = self._context
        batch = self._choose()
        wanted = [*self._tasks.under_way, *batch]
        view = await context.observer.observe({task.key.topic for task in wanted})
        places = await self._read_places({_move(task).broker for task in wanted} & view.alive)
        for task in wanted:
            broker = _move(task).broker
            if view.is_deleted(task.key):
                task.finish_deleted(is_topic=task.key.topic in view.deleted)
            elif broker in places:
                self._judge(task, places[broker].get(task.key))
            elif broker not in view.alive:
                self._wait_for_broker(task, view.down_since_s.setdefault(broker, context.now_s))
        if context.is_stopping:
            await self._abort(places)
        else:
            await self._start([task for task in batch if task.state is TaskState.PENDING], set(places))

    async def _read_places(self, brokers: Iterable[int]) -> dict[int, dict[TopicPartition, _ReplicaPlace]]:
        """The replicas of the brokers that answer."""
        found: dict[int, dict[TopicPartition, _ReplicaPlace]] = {}
        for broker in sorted(brokers):
            try:
                logs = await self._context.admin.describe_log_dirs(broker)
            except KafkaUnavailable as error:
                self._context.hold(reasons.explain_unavailable(str(error)))
                continue
            places = found[broker] = {}
            for key, replica in logs.replicas:
                place = places.setdefault(key, _ReplicaPlace())
                if replica.is_future:
                    place.future_path = replica.log_dir
                else:
                    place.path = replica.log_dir
        return found

    def _judge(self, task: MovementTask, place: _ReplicaPlace | None) -> None:
        move = _move(task)
        if place is None or not place.path:
            message = f"broker {move.broker} has no replica of it"
            task.finish(TaskState.DEAD, Reason(code="ReplicaGone", message=message))
        elif place.path == move.destination and not place.future_path:
            task.finish(TaskState.COMPLETED)
        elif place.future_path == move.destination:
            task.unseen_since_s = None
            if task.state is TaskState.PENDING:  # an earlier process has sent it
                task.state = TaskState.IN_PROGRESS
        elif task.state is TaskState.ABORTING:
            task.finish(TaskState.ABORTED, _explain_place(place.path))
        elif task.state is TaskState.IN_PROGRESS and task.is_unseen_for_long(self._context.now_s):
            task.state = TaskState.PENDING
            if task.attempts >= ATTEMPTS:
                task.finish(TaskState.DEAD, reasons.explain_vanished(task.attempts))

    def _wait_for_broker(self, task: MovementTask, down_since_s: float) -> None:
        task.reason = reasons.explain_dead_destination([_move(task).broker])
        if self._context.now_s - down_since_s >= self._context.options.dead_broker_grace_s:
            task.finish(TaskState.DEAD, task.reason)

    def _choose(self) -> list[MovementTask]:
        per_broker = Counter(_move(task).broker for task in self._tasks.under_way)
        batch = []
        for task in self._tasks.iterate(TaskState.PENDING):
            broker = _move(task).broker
            if per_broker[broker] < self._context.options.concurrent_intra_broker_partition_movements:
                per_broker[broker] += 1
                batch.append(task)
        return batch

    async def _start(self, batch: list[MovementTask], answering: set[int]) -> None:
        batch = [task for task in batch if _move(task).broker in answering]
        guard_reason = await self._context.read_guard_reason() if batch else None
        if guard_reason is not None:
            self._context.hold(guard_reason)
            return
        batch = await self._limit_bytes(batch)
        if not batch:
            return
        for task in batch:
            task.state = TaskState.IN_PROGRESS
            task.attempts += 1
        moves = {task: ReplicaLogDir(task.key, _move(task).broker, _move(task).destination) for task in batch}
        answer = await self._context.admin.alter_replica_log_dirs(list(moves.values()))
        for task, sent in moves.items():
            error = answer.get(sent)
            if error is not None and (error.code in _FATAL_CODES or task.attempts >= ATTEMPTS):
                task.finish(TaskState.DEAD, reasons.explain_error(error.code, str(error), attempts=task.attempts))

    async def _limit_bytes(self, batch: list[MovementTask]) -> list[MovementTask]:
        """The movements that may begin within this hour. Their bytes are recorded before they are sent."""
        context = self._context
        free_bytes = context.count_free_bytes()
        if free_bytes is None:
            return batch
        fitting: list[MovementTask] = []
        for task in batch:
            if not context.fits_bytes(task.proposal.size_bytes, free_bytes, is_first=not fitting):
                context.hold_bytes()
                break
            free_bytes -= task.proposal.size_bytes
            fitting.append(task)
        if fitting:
            started = sum(task.proposal.size_bytes for task in fitting)
            context.started_bytes = context.started_bytes.with_actions(started, context.clock.now())
            await context.save()
        return fitting

    async def _abort(self, places: dict[int, dict[TopicPartition, _ReplicaPlace]]) -> None:
        """A move back to the directory in which the replica is cancels the move under way."""
        for task in self._tasks.iterate(TaskState.PENDING):
            task.finish(TaskState.ABORTED, _explain_place(_move(task).source))
        for task in self._tasks.iterate(TaskState.IN_PROGRESS):
            task.state = TaskState.ABORTING
        cancels = []
        for task in self._tasks.iterate(TaskState.ABORTING):
            place = places.get(_move(task).broker, {}).get(task.key)
            if place is not None and place.future_path:
                cancels.append(ReplicaLogDir(task.key, _move(task).broker, place.path))
        if cancels:
            await self._context.admin.alter_replica_log_dirs(cancels)


def _move(task: MovementTask) -> LogDirMove:
    move = task.log_dir_move
    if move is None:
        raise AssertionError(f"task {task.id} moves nothing within a broker")
    return move


def _explain_place(path: str) -> Reason:
    return Reason(code="Stopped", message=f"stopped; the replica is in {path}", facts={"logDir": path})
