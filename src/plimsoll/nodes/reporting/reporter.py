"""Tells of a turn in every way there is: log, metrics, Events, status ConfigMap, journal. The last step of the loop.

Telling never stops doing: an API server or a journal that refuses is logged, and the next turn comes. A dry run tells
nothing inside the cluster: another autoscaler may be at work there, and ours would contradict it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from msgspec import structs

from plimsoll.journal.dedupe import JournalNews
from plimsoll.journal.entries import Entry
from plimsoll.nodes.reporting.journal.group_notes import GroupNotes, find_settled_pods
from plimsoll.nodes.reporting.journal.plan_entries import build_plan_and_outcomes
from plimsoll.nodes.reporting.log_line import build_log_line
from plimsoll.nodes.reporting.metrics.metrics import Metrics
from plimsoll.operator.reporter import News, PlanRecords

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.journal.last_plans_map import LastPlansWriter
    from plimsoll.journal.ports import Journal
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.reporting.events.emitter import EventEmitter
    from plimsoll.nodes.reporting.status.configmap import StatusConfigMapWriter

log = structlog.get_logger(__name__)


class Reporter:
    """What is None is not told. `metrics` counts in any case; `last` is the turn that was told last."""

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
        """Whoever else wants to hear of every turn: a scenario's outcome."""
        self._emitter = emitter
        self._status = status
        self._records = PlanRecords(journal, last_plans)
        self._journal_news = JournalNews()
        self._groups = GroupNotes()
        self._log_news = News()

    async def report(self, result: LoopResult) -> None:
        self.last = result
        self.metrics.observe(result)
        self._log(result)
        if self.on_result is not None:
            self.on_result(result)
        if not result.policy.operation.dry_run:
            await self._tell_cluster(result)
        await self._keep(result)

    async def close(self, policy: Policy) -> None:
        """A clean exit: the last words are written; nobody keeps the status up to date from now on."""
        await self._records.flush(namespace=policy.operation.namespace, dry_run=policy.operation.dry_run)
        if self._status is not None and not policy.operation.dry_run:
            await self._status.delete(policy.operation)

    def _log(self, turn: LoopResult) -> None:
        """The same sentence again says nothing new to people."""
        sentence = build_log_line(turn)
        tell = log.info if self._log_news.is_news("", sentence) else log.debug
        tell("turn.done", number=turn.number, told=sentence)

    async def _tell_cluster(self, turn: LoopResult) -> None:
        if self._status is not None:
            await self._status.write(turn)
        if self._emitter is not None:
            if self._status is not None:
                self._emitter.status_uid = self._status.uid
            self._emitter.emit(turn)

    async def _keep(self, turn: LoopResult) -> None:
        """The journal and, for whoever cannot reach it, the last plans: both only of what is news."""
        if not self._records.is_wanted():
            return
        namespace, dry_run = turn.policy.operation.namespace, turn.policy.operation.dry_run
        plan, outcomes = build_plan_and_outcomes(turn)
        plan = structs.replace(plan, not_done=(*plan.not_done, *self._groups.build(turn)))
        news = self._journal_news.of(plan, outcomes, lambda refs: find_settled_pods(refs, turn))
        if news is None:
            await self._records.skip(namespace=namespace, at=turn.at, dry_run=dry_run)
            return
        entry = Entry(number=turn.number, plan=news[0], outcomes=news[1])
        await self._records.write(entry, namespace=namespace, dry_run=dry_run)
