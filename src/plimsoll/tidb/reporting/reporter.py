"""Tells of a pass in every way there is: status, events, metrics, log, journal. The last step of every pass.

The status is part of the work: cool-downs are counted from it, so trouble in writing it is raised. All else never stops
doing. A dry run tells nothing inside the cluster.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

import structlog
from msgspec.structs import replace

from plimsoll.core.plans import encode
from plimsoll.journal.entries import Entry
from plimsoll.journal.errors import JournalError
from plimsoll.operator.pause import DRY_RUN
from plimsoll.tidb.model.reconcile_types import CreateGroup
from plimsoll.tidb.reporting.conditions import conditions_of
from plimsoll.tidb.reporting.messages import events_of, plan_of, sentences_of
from plimsoll.tidb.reporting.metrics import PassMetrics
from plimsoll.tidb.reporting.status import Wanted, write_status

if TYPE_CHECKING:
    from plimsoll.journal.last_plans_map import LastPlansWriter
    from plimsoll.journal.ports import Journal
    from plimsoll.kube.client import Client
    from plimsoll.kube.recorder import EventRecorder
    from plimsoll.tidb.model.reconcile_result import ReconcileResult
    from plimsoll.tidb.observing.observer import Observed

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_REMEMBERED: Final = 10_000
_NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class LastPlans:
    """Where the last plan of each object is kept."""

    writer: LastPlansWriter
    namespace: str


class Teller:
    """What is None is not told."""

    def __init__(
        self,
        client: Client,
        *,
        recorder: EventRecorder | None = None,
        journal: Journal | None = None,
        metrics: PassMetrics | None = None,
        last_plans: LastPlans | None = None,
    ) -> None:
        self.metrics = metrics or PassMetrics()
        self._last_plans = last_plans
        self._client = client
        self._recorder = recorder
        self._journal = journal
        self._said: dict[str, list[str]] = {}
        self._journalled: dict[str, bytes] = {}
        self._number = 0

    async def tell(self, observed: Observed, result: ReconcileResult) -> None:
        self.metrics.observe(result)
        self._log(result)
        await self._keep(result)
        if not _is_dry_run(result):
            await self._tell_cluster(observed, result)

    async def leave(self) -> None:
        """A clean exit: the last words are written."""
        if self._last_plans is not None:
            await self._last_plans.writer.write(self._last_plans.namespace)

    def _log(self, result: ReconcileResult) -> None:
        """The same sentence again says nothing new to people."""
        whose, said = f"{result.about.namespace}/{result.about.name}", sentences_of(result)
        tell = log.debug if self._said.get(whose) == said else log.info
        if len(self._said) >= _REMEMBERED:
            self._said.clear()
        self._said[whose] = said
        for one in said:
            tell("pass.done", told=one)

    async def _tell_cluster(self, observed: Observed, result: ReconcileResult) -> None:
        conditions = conditions_of(result)
        if self._recorder is not None:
            for message in events_of(result, conditions, before=observed.autoscaler.status):
                self._recorder.record(result.about, message.type, reason=message.reason, message=message.message)
        if result.is_released:
            return
        wanted = Wanted(
            conditions=conditions,
            generation=result.generation,
            components={component_result.component: component_result.status for component_result in result.components},
            at=result.at,
        )
        # Before a first group is made the autoscaler gets its finalizer.
        is_outdated = any(isinstance(act_done.act, CreateGroup) for act_done in result.done)
        await write_status(self._client, observed.scaler, wanted, is_outdated=is_outdated)

    async def _keep(self, result: ReconcileResult) -> None:
        """In the journal and, for whoever cannot reach it, as the last plan; unless the pass before said the same."""
        last_plans = None if _is_dry_run(result) else self._last_plans
        if self._journal is None and last_plans is None:
            return
        self._number += 1
        plan, outcomes = plan_of(result, number=self._number)
        whose = f"{result.about.namespace}/{result.about.name}"
        said = encode(replace(plan, snapshot=0, at=_NO_TIME)) + b"".join(map(encode, outcomes))
        if self._journalled.get(whose) == said or not (plan.actions or plan.not_done):
            if last_plans is not None:
                await last_plans.writer.catch_up(last_plans.namespace, result.at)
            return
        if len(self._journalled) >= _REMEMBERED:
            self._journalled.clear()
        self._journalled[whose] = said
        if self._journal is not None:
            try:
                await self._journal.append(plan, outcomes)
            except JournalError as error:
                log.warning("journal.not_written", problem=str(error))
        if last_plans is not None:
            entry = Entry(number=self._number, plan=plan, outcomes=outcomes)
            await last_plans.writer.keep(entry, last_plans.namespace)


def _is_dry_run(result: ReconcileResult) -> bool:
    return result.brake is not None and result.brake.code == DRY_RUN
