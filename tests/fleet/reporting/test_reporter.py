"""Reports of passes: what the journal, the log and the metrics get."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from prometheus_client.parser import text_string_to_metric_families
from structlog.testing import capture_logs

from plimsoll.core.plans import Action, NotDone, Outcome, Reason, Ref, Result
from plimsoll.fleet.model.policy import FleetPolicy
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.planning.capacity import build_capacity
from plimsoll.fleet.reporting.metrics import PREFIX, FleetMetrics
from plimsoll.fleet.reporting.reporter import FleetReporter, format_pass
from plimsoll.fleet.workers.general import ObservedRows
from plimsoll.fleet.workers.passes import PassResult, Step, build_work
from plimsoll.journal.entries import Query
from plimsoll.journal.memory import MemoryJournal
from plimsoll.runtime.virtual_run import DEFAULT_START as NOW
from plimsoll.testing import run_virtual
from tests.fleet.fleet_rows import make_cluster, make_policy, offer

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.clock import Clock
    from tests.golden.reviewed_sentences import ReviewedSentences

CAPACITY = Ref(kind="capacity", name="aws.us-east-1.standard")


def build_pass(free: int, *, registers: bool = False, after_s: float = 0.0) -> PassResult:
    reason = Reason(code="Enough", message=f"{free} streaming units are free", facts={"free": free})
    action = Action(verb="register", target=CAPACITY, reason=reason)

    async def run() -> bool:
        return True

    part = Step(action=action, run=run) if registers else NotDone(what="not extended", about=(CAPACITY,), reason=reason)
    now = NOW + timedelta(seconds=after_s)
    plan = build_work(Worker.DYNAMIC_SCALE_UP, (part,), number=1, now=now).plan
    outcomes = (Outcome(action=action, result=Result.DONE),) if registers else ()
    return PassResult(worker=Worker.DYNAMIC_SCALE_UP, at=now, plan=plan, outcomes=outcomes, duration_s=0.25)


def read_samples(metrics: FleetMetrics) -> dict[tuple[str, frozenset[tuple[str, str]]], float]:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(metrics.expose().decode())
        for sample in family.samples
    }


def find_value(metrics: FleetMetrics, name: str, labels: Mapping[str, str]) -> float:
    return read_samples(metrics)[name, frozenset(labels.items())]


def test_an_unchanged_pass_is_recorded_once_and_other_numbers_again():
    async def story(_clock: Clock) -> None:
        journal = MemoryJournal()
        reporter = FleetReporter(FleetMetrics(FleetPolicy()), journal=journal)
        for free in (5, 5, 5, 4, 4):
            await reporter.report_pass(build_pass(free))
        entries = await journal.list_entries(Query(ref=CAPACITY))
        assert [entry.plan.not_done[0].reason.facts["free"] for entry in entries] == [4, 5]
        assert {str(entry.plan.subject) for entry in entries} == {"worker/dynamic_scale_up"}
        assert {entry.subsystem for entry in entries} == {"fleet"}

    run_virtual(story)


def test_the_journal_forgets_so_a_plan_is_written_again_after_six_hours():
    async def story(_clock: Clock) -> None:
        journal = MemoryJournal()
        reporter = FleetReporter(FleetMetrics(FleetPolicy()), journal=journal)
        for hour in range(13):
            await reporter.report_pass(build_pass(5, after_s=hour * 3600.0))
        assert len(await journal.list_entries(Query())) == 3

    run_virtual(story)


def test_a_pass_is_one_sentence_and_repeats_are_not_logged():
    async def story(_clock: Clock) -> None:
        reporter = FleetReporter(FleetMetrics(FleetPolicy()))
        with capture_logs() as logged:
            await reporter.report_pass(build_pass(5))
            await reporter.report_pass(build_pass(5))
            await reporter.report_pass(build_pass(5, registers=True))
        assert [(event["log_level"], event["event"]) for event in logged] == [
            ("info", "pass.done"),
            ("debug", "pass.done"),
            ("info", "pass.done"),
        ]

    run_virtual(story)


def test_sentences_of_passes(reviewed: ReviewedSentences):
    reviewed(format_pass(build_pass(5)))
    reviewed(format_pass(build_pass(5, registers=True)))
    reviewed(format_pass(PassResult(worker=Worker.CLUSTER, at=NOW, errors=("the database is down",))))


def test_passes_and_decisions_are_counted():
    async def story(_clock: Clock) -> None:
        metrics = FleetMetrics(FleetPolicy())
        metrics.show_leaders(Worker, lambda: (Worker.CLUSTER,))
        reporter = FleetReporter(metrics)
        await reporter.report_pass(build_pass(5))
        await reporter.report_pass(build_pass(5))
        await reporter.report_pass(PassResult(worker=Worker.CLUSTER, at=NOW, errors=("one", "two")))
        worker = {"worker_type": "dynamic_scale_up"}
        assert find_value(metrics, f"{PREFIX}reconciler_success_count", worker) == 2
        assert find_value(metrics, f"{PREFIX}reconciler_duration_in_seconds", worker) == 0.25
        assert find_value(metrics, f"{PREFIX}reconciler_failure_count", {"worker_type": "cluster"}) == 1
        assert find_value(metrics, f"{PREFIX}reconciler_errors_count", {"worker_type": "cluster"}) == 2
        assert find_value(metrics, f"{PREFIX}leader_worker", {"worker_type": "cluster"}) == 1
        assert find_value(metrics, f"{PREFIX}leader_worker", worker) == 0
        decision = {"worker": "dynamic_scale_up", "decision": "not extended", "reason": "Enough"}
        assert find_value(metrics, "plimsoll_fleet_decisions_total", decision) == 2

    run_virtual(story)


def test_operations_that_ended_are_counted():
    async def story(_clock: Clock) -> None:
        metrics = FleetMetrics(FleetPolicy())
        await FleetReporter(metrics).report_pass(build_pass(5, registers=True))
        for name in ("total", "success"):
            counter = f"{PREFIX}cluster_operations_{name}_count"
            assert find_value(metrics, counter, {"operation": "create"}) == 1

    run_virtual(story)


def test_reserved_instances_of_a_cluster_are_replaced():
    metrics = FleetMetrics(FleetPolicy())
    metrics.set_reserved("c1", {("standard", "ready"): 2, ("standard", "error"): 1})
    metrics.set_reserved("c1", {("standard", "ready"): 0, ("standard", "error"): 0})
    labels = {"cluster_id": "c1", "instance_type": "standard", "status": "ready"}
    assert find_value(metrics, f"{PREFIX}prewarmed_kafka_instances", labels) == 0


def test_reserved_instances_of_a_cluster_that_is_gone_are_forgotten():
    policy = make_policy(offer("standard"))
    metrics = FleetMetrics(policy)
    for name in ("a", "b"):
        metrics.set_reserved(f"cid-{name}", {("standard", "ready"): 2})
    capacity = build_capacity((make_cluster("a"),), (), policy, NOW)
    metrics.observe_rows(ObservedRows(at=NOW, capacity=capacity, statuses={}, unsettled=()))
    page = metrics.expose().decode()
    assert 'prewarmed_kafka_instances{cluster_id="cid-a"' in page
    assert 'prewarmed_kafka_instances{cluster_id="cid-b"' not in page
