"""Reports the result of a loop: log line, metrics, Events, status ConfigMap and journal. The last step of the loop.

Reporting never stops the autoscaler: a failed write to the API server or the journal is logged, and the next loop runs.
A dry run writes nothing to the cluster: another autoscaler may be active there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from msgspec import structs

from plimsoll.journal.dedupe import PlanDeduplicator
from plimsoll.journal.entries import Entry
from plimsoll.nodes.reporting.journal.group_notes import GroupNotes, find_settled_pods
from plimsoll.nodes.reporting.journal.plan_entries import build_plan_and_outcomes
from plimsoll.nodes.reporting.log_line import build_log_line
from plimsoll.nodes.reporting.metrics.metrics import Metrics
from plimsoll.operator.reporter import News, PlanRecords

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from plimsoll.journal.last_plans_config_map import LastPlansWriter
    from plimsoll.journal.ports import Journal
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.reporting.events.emitter import EventEmitter
    from plimsoll.nodes.reporting.status.configmap import StatusConfigMapWriter

log = structlog.get_logger(__name__)


class Reporter:
    """Reports to all given sinks; None: not reported there. `last` is the last reported result."""

    def __init__(
        self,
        *,
        emitter: EventEmitter | None = None,
        status: StatusConfigMapWriter | None = None,
        journal: Journal | None = None,
        last_plans: LastPlansWriter | None = None,
        metrics: Metrics | None = None,
    ) -> None:
        self.metrics = metrics or Metrics()
        self.last: LoopResult | None = None
        self.on_result: Callable[[LoopResult], None] | None = None
        """An additional receiver of every result."""
        self._emitter = emitter
        self._status = status
        self._records = PlanRecords(journal, last_plans)
        self._journal_news = PlanDeduplicator()
        self._groups = GroupNotes()
        self._log_news = News()

    async def report(self, result: LoopResult) -> None:
        self.last = result
        self.metrics.observe(result)
        self._log(result)
        if self.on_result is not None:
            self.on_result(result)
        if not result.policy.operation.dry_run:
            await self._report_to_cluster(result)
        await self._write_journal(result)

    async def report_progress(self, policy: Policy, started_at: datetime, now: datetime) -> None:
        """Report in the status that a loop iteration has been under way since `started_at`."""
        if self._status is not None and not policy.operation.dry_run:
            await self._status.write_progress(policy.operation, started_at, now)

    async def close(self, policy: Policy) -> None:
        """On a clean exit: write the last plans and delete the status ConfigMap, which would become stale."""
        await self._records.flush(namespace=policy.operation.namespace, dry_run=policy.operation.dry_run)
        if self._status is not None and not policy.operation.dry_run:
            await self._status.delete(policy.operation)

    def _log(self, loop: LoopResult) -> None:
        """Log the sentence; a repeated one at debug level."""
        sentence = build_log_line(loop)
        write = log.info if self._log_news.is_news("", sentence) else log.debug
        write("loop.done", number=loop.number, summary=sentence)

    async def _report_to_cluster(self, loop: LoopResult) -> None:
        if self._status is not None:
            await self._status.write(loop)
        if self._emitter is not None:
            if self._status is not None:
                self._emitter.status_uid = self._status.uid
            self._emitter.emit(loop)

    async def _write_journal(self, loop: LoopResult) -> None:
        """Write changes to the journal, and to the last plans for readers without access to the journal."""
        if not self._records.is_wanted():
            return
        namespace, dry_run = loop.policy.operation.namespace, loop.policy.operation.dry_run
        plan, outcomes = build_plan_and_outcomes(loop)
        plan = structs.replace(plan, not_done=(*plan.not_done, *self._groups.build(loop)))
        news = self._journal_news.select_changes(plan, outcomes, lambda refs: find_settled_pods(refs, loop))
        if news is None:
            await self._records.skip(namespace=namespace, at=loop.at, dry_run=dry_run)
            return
        entry = Entry(number=loop.number, plan=news[0], outcomes=news[1])
        await self._records.write(entry, namespace=namespace, dry_run=dry_run)
