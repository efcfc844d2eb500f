"""The bytes that movements under way have copied, as their destinations report them."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.kafka.brokers.ports import KafkaRefused, KafkaUnavailable
from plimsoll.kafka.model.executions import TaskState

if TYPE_CHECKING:
    from plimsoll.kafka.executor.context import ExecutionContext
    from plimsoll.kafka.model.description import TopicPartition

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

SAMPLE_S: Final = 10.0


class CopiedBytes:
    """Reads the sizes of new replicas now and then."""

    def __init__(self, context: ExecutionContext) -> None:
        self._context = context
        self._tasks = context.tasks.inter_broker
        # What an earlier process began has copied something already; what is sent now has not.
        self._sampled_at = None if context.recorded_active else context.now_s

    async def sample(self) -> None:
        """The bytes that movements under way have copied. A broker that does not answer keeps its last figures."""
        now = self._context.now_s
        running = {task.key: task for task in self._tasks.iterate(TaskState.IN_PROGRESS)}
        if not running or (self._sampled_at is not None and now - self._sampled_at < SAMPLE_S):
            return
        self._sampled_at = now
        copied: Counter[TopicPartition] = Counter()
        alive = self._context.observer.view.alive
        for broker in sorted({broker for task in running.values() for broker in task.proposal.added} & alive):
            try:
                logs = await self._context.admin.describe_log_dirs(broker)
            except (KafkaUnavailable, KafkaRefused) as error:  # figures only: nothing depends on them
                log.info("progress.unknown", broker=broker, problem=str(error))
                return
            for key, replica in logs.replicas:
                if key in running and broker in running[key].proposal.added and not replica.is_future:
                    copied[key] += min(replica.size_bytes, running[key].proposal.size_bytes)
        for key, task in running.items():
            task.moved_bytes = copied[key]
