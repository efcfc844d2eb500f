"""Reports the result of a reconcile: status, Events, metrics, log and journal. The last step of every reconcile.

The status is part of the work: cooldowns are counted from it, so a failed write is raised. No other failed report stops
the controller. A dry run reports nothing inside the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import structlog
from msgspec.structs import replace

from plimsoll.core.plans import encode
from plimsoll.journal.entries import Entry
from plimsoll.kube.errors import ApiCallFailed
from plimsoll.kube.recorder.event_objects import EventType
from plimsoll.operator.pause import DRY_RUN
from plimsoll.operator.reporter import News, PlanRecords
from plimsoll.tidb.model.reconcile_types import CreateGroup
from plimsoll.tidb.reporting.conditions import build_conditions
from plimsoll.tidb.reporting.messages import build_events, build_journal_plan, build_sentences
from plimsoll.tidb.reporting.metrics import ReconcileMetrics
from plimsoll.tidb.reporting.status import DesiredStatus, write_status, write_status_of_unreadable
from plimsoll.tidb.settings import NAME

if TYPE_CHECKING:
    from plimsoll.journal.last_plans_config_map import LastPlansWriter
    from plimsoll.journal.ports import Journal
    from plimsoll.kube.client import Client
    from plimsoll.kube.recorder import EventRecorder
    from plimsoll.tidb.model.reconcile_result import ReconcileResult
    from plimsoll.tidb.observing.observer import Observed

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LastPlansStore:
    """Where the last plan of each object is kept."""

    writer: LastPlansWriter
    namespace: str


class Reporter:
    """A part that is None is not reported."""

    def __init__(
        self,
        client: Client,
        *,
        recorder: EventRecorder | None = None,
        journal: Journal | None = None,
        metrics: ReconcileMetrics | None = None,
        last_plans: LastPlansStore | None = None,
    ) -> None:
        self.metrics = metrics or ReconcileMetrics()
        self._records = PlanRecords(journal, None if last_plans is None else last_plans.writer)
        self._namespace = "" if last_plans is None else last_plans.namespace
        self._client = client
        self._recorder = recorder
        self._log_news = News()
        self._plan_news = News()
        self._number = 0

    async def report(self, observed: Observed, result: ReconcileResult) -> None:
        self.metrics.observe(result)
        self._log(result)
        await self._journal_plan(result)
        if not _is_dry_run(result):
            await self._report_to_cluster(observed, result)

    async def report_unreadable(self, result: ReconcileResult) -> None:
        """The result for an autoscaler that cannot be decoded. Its status is written if the API server accepts that."""
        self.metrics.observe(result)
        self._log(result)
        await self._journal_plan(result)
        if _is_dry_run(result):
            return
        conditions = build_conditions(result)
        desired = DesiredStatus(conditions=conditions, generation=0, components={}, at=result.at)
        autoscaler = result.autoscaler
        try:
            uid = await write_status_of_unreadable(self._client, autoscaler.namespace, autoscaler.name, desired)
        except ApiCallFailed as error:
            log.warning("status.not_written", controller=NAME, autoscaler=autoscaler.name, problem=str(error))
            return
        if uid and self._recorder is not None:
            (ready,) = conditions
            about = replace(autoscaler, uid=uid)
            self._recorder.record(about, EventType.WARNING, reason=ready.reason, message=ready.message)

    async def close(self) -> None:
        """A clean exit: writes the last plans that wait."""
        await self._records.flush(namespace=self._namespace)

    def _log(self, result: ReconcileResult) -> None:
        """Log the sentences; repeated ones are logged for debugging only."""
        autoscaler, sentences = f"{result.autoscaler.namespace}/{result.autoscaler.name}", build_sentences(result)
        log_event = log.info if self._log_news.is_news(autoscaler, sentences) else log.debug
        for sentence in sentences:
            log_event("reconcile.done", controller=NAME, summary=sentence)

    async def _report_to_cluster(self, observed: Observed, result: ReconcileResult) -> None:
        conditions = build_conditions(result)
        if self._recorder is not None:
            for message in build_events(result, conditions, before=observed.autoscaler.status):
                self._recorder.record(result.autoscaler, message.type, reason=message.reason, message=message.message)
        if result.is_released:
            return
        desired = DesiredStatus(
            conditions=conditions,
            generation=result.generation,
            components={component_result.component: component_result.status for component_result in result.components},
            at=result.at,
        )
        # Before a first group is made the autoscaler gets its finalizer.
        is_outdated = any(isinstance(act_result.act, CreateGroup) for act_result in result.done)
        await write_status(self._client, observed.scaler, desired, is_outdated=is_outdated)

    async def _journal_plan(self, result: ReconcileResult) -> None:
        """Write the plan to the journal and keep it as the last plan, unless it equals the previous one."""
        dry_run = _is_dry_run(result)
        if not self._records.is_wanted(dry_run=dry_run):
            return
        self._number += 1
        plan, outcomes = build_journal_plan(result, number=self._number)
        autoscaler = f"{result.autoscaler.namespace}/{result.autoscaler.name}"
        sentences = encode(replace(plan, snapshot=0, at=_NO_TIME)) + b"".join(map(encode, outcomes))
        if not (plan.actions or plan.not_done) or not self._plan_news.is_news(autoscaler, sentences):
            await self._records.skip(namespace=self._namespace, at=result.at, dry_run=dry_run)
            return
        entry = Entry(number=self._number, plan=plan, outcomes=outcomes)
        await self._records.write(entry, namespace=self._namespace, dry_run=dry_run)


def _is_dry_run(result: ReconcileResult) -> bool:
    return result.pause is not None and result.pause.code == DRY_RUN
