"""Reports the result of a reconcile: status, Events, metrics, log and journal. The last step of every reconcile.

The status is part of the work: cooldowns are counted from it, so a failed write is raised. No other failed report stops
the controller. A dry run reports nothing inside the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import structlog
from msgspec.structs import replace

from plimsoll.kube.errors import ApiCallFailed
from plimsoll.kube.recorder.event_objects import EventType
from plimsoll.operator.pause import DRY_RUN
from plimsoll.operator.reporter import ReconcileReporter
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


@dataclass(frozen=True, slots=True)
class LastPlansStore:
    """Where the last plan of each object is kept."""

    writer: LastPlansWriter
    namespace: str


class Reporter(ReconcileReporter):
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
        super().__init__(
            recorder=recorder,
            journal=journal,
            last_plans=None if last_plans is None else last_plans.writer,
            namespace="" if last_plans is None else last_plans.namespace,
        )
        self.metrics = metrics or ReconcileMetrics()
        self._client = client

    async def report(self, observed: Observed, result: ReconcileResult) -> None:
        await self._report_outside_cluster(result)
        if not _is_dry_run(result):
            await self._report_to_cluster(observed, result)

    async def report_unreadable(self, result: ReconcileResult) -> None:
        """The result for an autoscaler that cannot be decoded. Its status is written if the API server accepts that."""
        await self._report_outside_cluster(result)
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

    async def _report_outside_cluster(self, result: ReconcileResult) -> None:
        """Metrics, log and journal."""
        autoscaler = f"{result.autoscaler.namespace}/{result.autoscaler.name}"
        self.metrics.observe(result)
        self.log_once("reconcile.done", autoscaler, build_sentences(result), controller=NAME)
        await self.record_plan(
            autoscaler,
            lambda number: build_journal_plan(result, number=number),
            at=result.at,
            dry_run=_is_dry_run(result),
        )

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


def _is_dry_run(result: ReconcileResult) -> bool:
    return result.pause is not None and result.pause.code == DRY_RUN
