"""When a look at brokers and topics is due, between lists of reassignments, which cost the brokers little."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.kafka.executor.phases.judging import is_ours
from plimsoll.kafka.model.executions import TaskState

if TYPE_CHECKING:
    from plimsoll.kafka.executor.context import ExecutionContext
    from plimsoll.kafka.executor.observing import ClusterView
    from plimsoll.kafka.model.description import TopicPartition
    from plimsoll.kafka.model.executions import ExecutionOptions

QUIET_INTERVALS: Final = 5.0
"""Intervals between two looks while all movements are under way."""
TOLERANCE: Final = 0.05
"""As a share of the interval: a wait of a whole interval always leads to a look."""
ENDED_INTERVALS: Final = 2.0
"""Intervals between two looks while movements end and no other waits for their place."""


class LookTimes:
    """The looks of one execution. Without one, movements go on as they are."""

    def __init__(self, context: ExecutionContext) -> None:
        self._context = context
        self._tasks = context.tasks.inter_broker
        self._ended_s: float | None = None
        self._took_s = 0.0
        self._others: set[TopicPartition] = set()
        self._options: ExecutionOptions | None = None

    def note(self, began_s: float, view: ClusterView) -> None:
        """A look has ended."""
        self._ended_s = self._context.now_s
        self._took_s = self._ended_s - began_s
        self._others = self._list_others(view)
        self._options = self._context.options

    def is_due(self, view: ClusterView) -> bool:
        """Whether the list of reassignments, or the time since the last look, asks for another one."""
        context = self._context
        if self._ended_s is None or context.is_stopping or context.options != self._options:
            return True
        interval_s = context.options.progress_check_interval_s
        since_s = context.now_s - self._ended_s + TOLERANCE * interval_s
        under_way = self._tasks.under_way
        listed = [
            task
            for task in under_way
            if (found := view.reassignments.get(task.key)) is not None and is_ours(task, found)
        ]
        if any(task.state is TaskState.ABORTING for task in under_way) or (under_way and not listed):
            return True
        has_pending = any(task.state is TaskState.PENDING for task in self._tasks.tasks)
        if has_pending or not context.throttles.is_clear:
            has_changed = len(listed) < len(under_way) or self._list_others(view) != self._others
            return since_s >= (min(self._took_s, interval_s) if has_changed else interval_s)
        return since_s >= interval_s * (ENDED_INTERVALS if len(listed) < len(under_way) else QUIET_INTERVALS)

    def _list_others(self, view: ClusterView) -> set[TopicPartition]:
        """Reassignments of other clients. A movement may wait for one of them."""
        return set(view.reassignments) - {task.key for task in self._tasks.under_way}
