"""The shared part of every reporter: which reports are new, and where plans are recorded.

Reporting never stops the work: a failed write to the journal is logged, and the next loop iteration runs. A dry run
writes nothing into the cluster, where another controller may act, but it writes its journal.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Protocol

import structlog
from msgspec.structs import replace

from plimsoll.core.plans import encode
from plimsoll.journal.entries import Entry
from plimsoll.journal.errors import JournalError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plimsoll.core.plans import Outcome, Plan, Ref
    from plimsoll.journal.last_plans_config_map import LastPlansWriter
    from plimsoll.journal.ports import Journal
    from plimsoll.kube.recorder import EventRecorder

    BuildPlan = Callable[[int], tuple[Plan, tuple[Outcome, ...]]]
    """Builds a plan and its outcomes; the parameter is the number of the entry."""

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_MAX_SUBJECTS: Final = 10_000
_NO_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)


class News:
    """Remembers the last report about each subject: a repeated report is not new."""

    def __init__(self) -> None:
        self._last: dict[str, object] = {}

    def is_news(self, subject: str, report: object) -> bool:
        """Whether a report differs from the last one about its subject; it is the last one from now on."""
        is_known = self._last.get(subject) == report
        if len(self._last) >= _MAX_SUBJECTS:
            # Subjects that are gone must not fill the memory; the others are reported once more.
            self._last.clear()
        self._last[subject] = report
        return not is_known


class PlanRecords:
    """Records plans in the journal and, for readers that cannot reach it, as the last plans in the cluster.

    `journal` or `last_plans` None: plans are not recorded there.
    """

    def __init__(self, journal: Journal | None, last_plans: LastPlansWriter | None) -> None:
        self._journal = journal
        self._last_plans = last_plans

    def is_wanted(self, *, dry_run: bool = False) -> bool:
        """Whether a plan would be recorded anywhere."""
        return self._journal is not None or (self._last_plans is not None and not dry_run)

    async def write(self, entry: Entry, *, namespace: str, dry_run: bool) -> None:
        """Records a plan that is news. `namespace` holds the last plans."""
        if self._journal is not None:
            try:
                await self._journal.append(entry.plan, entry.outcomes)
            except JournalError as error:
                log.warning("journal.not_written", problem=str(error))
        if self._last_plans is not None and not dry_run:
            await self._last_plans.keep(entry, namespace)

    async def skip(self, *, namespace: str, at: datetime, dry_run: bool) -> None:
        """There is nothing new: writes last plans that could not be written before."""
        if self._last_plans is not None and not dry_run:
            await self._last_plans.catch_up(namespace, at)

    async def flush(self, *, namespace: str, dry_run: bool = False) -> None:
        """A clean exit: writes the last plans that wait."""
        if self._last_plans is not None and not dry_run:
            await self._last_plans.write(namespace)


class ReportedReconcile(Protocol):
    """The properties of a reconcile that every reporter needs."""

    @property
    def ref(self) -> Ref: ...

    @property
    def at(self) -> datetime: ...

    @property
    def is_dry_run(self) -> bool: ...


class ReconcileReporter:
    """The base of reporters of reconciles. A part that is None is not reported. `namespace` holds the last plans."""

    def __init__(
        self,
        *,
        recorder: EventRecorder | None = None,
        journal: Journal | None = None,
        last_plans: LastPlansWriter | None = None,
        namespace: str = "",
    ) -> None:
        self._recorder = recorder
        self._records = PlanRecords(journal, last_plans)
        self._namespace = namespace
        self._log_news = News()
        self._plan_news = News()
        self._number = 0

    async def close(self) -> None:
        """A clean exit: writes the last plans that wait."""
        await self._records.flush(namespace=self._namespace)

    def log_once(self, event: str, subject: str, sentences: Sequence[str], **facts: Any) -> None:
        """Logs sentences about a subject; repeated ones are logged for debugging only."""
        log_event = log.info if self._log_news.is_news(subject, tuple(sentences)) else log.debug
        for sentence in sentences:
            log_event(event, **facts, summary=sentence)

    async def report_reconcile(
        self, event: str, result: ReportedReconcile, *, sentence: str, build: BuildPlan
    ) -> EventRecorder | None:
        """Logs a reconcile and records its plan. Returns the recorder of its Events; None: it has no Events."""
        subject = str(result.ref)
        self.log_once(event, subject, (sentence,))
        await self.record_plan(subject, build, at=result.at, dry_run=result.is_dry_run)
        return None if result.is_dry_run else self._recorder

    async def record_plan(self, subject: str, build: BuildPlan, *, at: datetime, dry_run: bool) -> None:
        """Writes the plan to the journal and keeps it as the last plan, unless it equals the subject's previous one."""
        if not self._records.is_wanted(dry_run=dry_run):
            return
        self._number += 1
        plan, outcomes = build(self._number)
        news = encode(replace(plan, snapshot=0, at=_NO_TIME)) + b"".join(map(encode, outcomes))
        if not (plan.actions or plan.not_done) or not self._plan_news.is_news(subject, news):
            await self._records.skip(namespace=self._namespace, at=at, dry_run=dry_run)
            return
        entry = Entry(number=self._number, plan=plan, outcomes=outcomes)
        await self._records.write(entry, namespace=self._namespace, dry_run=dry_run)
