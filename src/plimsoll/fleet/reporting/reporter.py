"""Reports a pass of a worker: metrics, one sentence in the log, and its plan in the journal of the fleet.

Reporting never stops the work. An entry holds what changed since the worker's last one; the whole plan is written
again every six hours, because the journal forgets.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.plans import Result
from plimsoll.journal.dedupe import PlanDeduplicator
from plimsoll.journal.errors import JournalError
from plimsoll.operator.reporter import News

if TYPE_CHECKING:
    from plimsoll.core.plans import Plan
    from plimsoll.fleet.reporting.metrics import FleetMetrics
    from plimsoll.fleet.workers.passes import PassResult
    from plimsoll.journal.ports import Journal

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_OPERATIONS: Final = {
    "register": "create",
    "place": "create",
    "prepare": "create",
    "deprovision": "delete",
    "remove": "hard_delete",
}
"""Verbs of actions, and the operations that the original service counts."""
_ENDED: Final = frozenset({Result.DONE, Result.FAILED})


class FleetReporter:
    """`journal` None: plans are logged and counted, not recorded."""

    def __init__(self, metrics: FleetMetrics, *, journal: Journal | None = None) -> None:
        self._metrics = metrics
        self._journal = journal
        self._news = News()
        self._recorded: dict[str, PlanDeduplicator] = {}

    async def report_pass(self, result: PassResult) -> None:
        self._metrics.count_pass(result.worker, errors=len(result.errors), duration_s=result.duration_s)
        self._log(result)
        if result.plan is None:
            return
        self._count_decisions(result.worker, result.plan)
        self._count_operations(result)
        await self._record(result, result.plan)

    def _log(self, result: PassResult) -> None:
        sentence = format_pass(result)
        log_event = log.info if self._news.is_news(result.worker, sentence) else log.debug
        log_event("pass.done", worker=result.worker, summary=sentence)

    def _count_decisions(self, worker: str, plan: Plan) -> None:
        decisions = Counter((action.verb, action.reason.code) for action in plan.actions)
        for not_done in plan.not_done:
            decisions[not_done.what, not_done.reason.code] += not_done.count
        for (decision, reason), number in decisions.items():
            self._metrics.count_decision(worker, decision, reason, number)

    def _count_operations(self, result: PassResult) -> None:
        for outcome in result.outcomes:
            operation = _OPERATIONS.get(outcome.action.verb)
            if operation is None or outcome.result not in _ENDED:
                continue
            is_success = outcome.result is Result.DONE
            if outcome.action.target.kind == "kafka":
                self._metrics.count_kafka_operation(operation, is_success=is_success)
            else:
                self._metrics.count_cluster_operation(operation, is_success=is_success)

    async def _record(self, result: PassResult, plan: Plan) -> None:
        recorded = self._recorded.setdefault(result.worker, PlanDeduplicator(compares_facts=True))
        news = recorded.select_changes(plan, result.outcomes)
        if self._journal is None or news is None:
            return
        try:
            await self._journal.append(*news)
        except JournalError as error:
            log.warning("journal.not_written", problem=str(error))


def format_pass(result: PassResult) -> str:
    """One sentence about a pass."""
    errors = "; ".join(result.errors)
    if result.plan is None:
        return f"{result.ref}: failed: {errors}"
    sentence = result.plan.format_sentence(result.outcomes)
    return f"{sentence}; errors: {errors}" if errors else sentence
