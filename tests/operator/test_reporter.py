"""Reports are made once per news, and a report that fails does not stop the work."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from structlog.testing import capture_logs

from plimsoll.core.plans import NotDone, Outcome, Plan, Reason, Ref
from plimsoll.journal.entries import Entry
from plimsoll.journal.errors import JournalError
from plimsoll.operator.reporter import News, PlanRecords, ReconcileReporter

NOW = datetime(2025, 1, 6, 12, tzinfo=UTC)
ENTRY = Entry(number=1, plan=Plan(subsystem="nodes", snapshot=1, at=NOW), outcomes=())


class RecordedCalls:
    """A journal and a writer of last plans that note their calls."""

    def __init__(self, *, fails: bool = False) -> None:
        self.made: list[str] = []
        self._fails = fails

    async def append(self, *_entry: object) -> None:
        self.made.append("append")
        if self._fails:
            raise JournalError("disk full")

    async def keep(self, *_arguments: object) -> None:
        self.made.append("keep")

    async def catch_up(self, *_arguments: object) -> None:
        self.made.append("catch_up")

    async def write(self, *_arguments: object) -> None:
        self.made.append("write")


def test_the_same_report_again_is_no_news():
    news = News()
    assert [news.is_news("a", report) for report in ("x", "x", "y", "x")] == [True, False, True, True]
    assert news.is_news("b", "x")


@pytest.mark.asyncio
async def test_a_journal_that_refuses_does_not_keep_the_last_plans_from_being_written():
    calls: Any = RecordedCalls(fails=True)
    await PlanRecords(calls, calls).write(ENTRY, namespace="kube-system", dry_run=False)
    assert calls.made == ["append", "keep"]


@pytest.mark.asyncio
async def test_a_dry_run_writes_nothing_into_the_cluster():
    calls: Any = RecordedCalls()
    records = PlanRecords(calls, calls)
    await records.write(ENTRY, namespace="kube-system", dry_run=True)
    await records.skip(namespace="kube-system", at=NOW, dry_run=True)
    await records.flush(namespace="kube-system", dry_run=True)
    assert calls.made == ["append"]


def test_plans_are_recorded_where_there_is_a_place_for_them():
    calls: Any = RecordedCalls()
    assert not PlanRecords(None, None).is_wanted()
    assert PlanRecords(None, calls).is_wanted()
    assert not PlanRecords(None, calls).is_wanted(dry_run=True)
    assert PlanRecords(calls, None).is_wanted(dry_run=True)


def build_plan(number: int, *, reason: str = "it is paused") -> tuple[Plan, tuple[Outcome, ...]]:
    waits = NotDone(
        what="waits",
        about=(Ref(kind="kafka", namespace="a", name="b"),),
        reason=Reason(code="Paused", message=reason),
    )
    return Plan(subsystem="kafka", snapshot=number, at=NOW + timedelta(minutes=number), not_done=(waits,)), ()


def build_empty_plan(number: int) -> tuple[Plan, tuple[Outcome, ...]]:
    return Plan(subsystem="kafka", snapshot=number, at=NOW), ()


@pytest.mark.asyncio
async def test_a_plan_is_recorded_again_when_more_than_number_and_time_changed():
    calls: Any = RecordedCalls()
    reporter = ReconcileReporter(journal=calls, last_plans=calls, namespace="kube-system")
    await reporter.record_plan("a", build_plan, at=NOW, dry_run=False)
    await reporter.record_plan("a", build_plan, at=NOW, dry_run=False)
    await reporter.record_plan("b", build_plan, at=NOW, dry_run=False)
    await reporter.record_plan("a", lambda number: build_plan(number, reason="other"), at=NOW, dry_run=False)
    await reporter.record_plan("c", build_empty_plan, at=NOW, dry_run=False)
    await reporter.close()
    assert calls.made == ["append", "keep", "catch_up", "append", "keep", "append", "keep", "catch_up", "write"]


def test_a_sentence_is_logged_for_debugging_only_when_it_repeats():
    reporter = ReconcileReporter()
    with capture_logs() as entries:
        for sentence in ("x", "x", "y"):
            reporter.log_once("reconcile.done", "a", (sentence,), controller="c")
        reporter.log_once("reconcile.done", "b", ("y",), controller="c")
    assert [entry["log_level"] for entry in entries] == ["info", "debug", "info", "info"]
    assert entries[0] == {"event": "reconcile.done", "controller": "c", "summary": "x", "log_level": "info"}
