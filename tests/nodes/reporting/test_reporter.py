"""The reporter with all its outputs: every loop is reported exactly once to each, and no failure stops the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
import structlog

from plimsoll.core.plans import Ref
from plimsoll.journal.entries import Query
from plimsoll.journal.memory import MemoryJournal
from plimsoll.kube.recorder import EventRecorder
from plimsoll.nodes.reporting.events.emitter import EventEmitter
from plimsoll.nodes.reporting.reporter import Reporter
from plimsoll.nodes.reporting.status.configmap import StatusConfigMapWriter
from plimsoll.objects.api.events import EventSource
from tests.kube.embedded_api import EmbeddedApi
from tests.nodes.planning.builders import policy
from tests.nodes.reporting.loop_results import loop_result, option, scale_up, scaled_up_loop, waiting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.golden.reviewed_sentences import ReviewedSentences

URL = "/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status"
GREW = scaled_up_loop(scale_up(option("g"), waiting("p")), pending=(waiting("p"),))


class ReporterHarness:
    """A reporter with everything, on a server."""

    def __init__(self, world: EmbeddedApi) -> None:
        self.world = world
        self.journal = MemoryJournal()
        recorder = EventRecorder(
            world.client, EventSource(component="cluster-autoscaler"), clock=world.clock, entropy=world.entropy
        )
        world.run.spawn(recorder.run())
        self.reporter = Reporter(
            emitter=EventEmitter(recorder), status=StatusConfigMapWriter(world.client), journal=self.journal
        )

    def report(self, *turns: Any) -> None:
        for result in turns:
            self.world.do(self.reporter.report(result))
        self.world.run.settle()

    def events(self) -> list[dict[str, Any]]:
        return self.world.ask("GET", "/api/v1/events")["items"]


@pytest.fixture
def harness() -> Iterator[ReporterHarness]:
    with EmbeddedApi() as world:
        yield ReporterHarness(world)


def test_a_loop_is_reported_everywhere(harness: ReporterHarness, reviewed: ReviewedSentences):
    with structlog.testing.capture_logs() as logs:
        harness.report(GREW)

    assert [log_entry["summary"] for log_entry in logs if log_entry["event"] == "loop.done"] == [
        "scaled up g 0->1 for 1 pod"
    ]
    assert harness.reporter.metrics.collect_samples()["scaled_up_nodes_total"] == 1
    assert harness.reporter.last is GREW
    (entry,) = harness.world.do(harness.journal.list_entries(Query(ref=Ref.parse("pod/default/p"))))
    reviewed(entry.plan.format_lines()[1])
    uids = {event["involvedObject"].get("uid") for event in harness.events() if event["reason"] == "ScaledUpGroup"}
    assert uids == {harness.world.ask("GET", URL)["metadata"]["uid"]}


def test_a_dry_run_reports_nothing_inside_the_cluster(harness: ReporterHarness):
    harness.report(loop_result(waiting("p"), options={"dry_run": True}, scale_up=GREW.scale_up))
    harness.world.do(harness.reporter.close(policy(dry_run=True)))

    assert harness.events() == []
    assert harness.world.server.ask("GET", URL).status == 404
    assert len(harness.world.do(harness.journal.list_entries(Query()))) == 1


def test_the_same_sentence_is_no_news_in_the_log(harness: ReporterHarness):
    with structlog.testing.capture_logs() as logs:
        harness.report(loop_result(), loop_result(), GREW, loop_result())

    assert [log_entry["log_level"] for log_entry in logs if log_entry["event"] == "loop.done"] == [
        "info",
        "debug",
        "info",
        "info",
    ]


def test_a_journal_that_fails_stops_nothing(harness: ReporterHarness):
    harness.world.do(harness.journal.close())
    with structlog.testing.capture_logs() as logs:
        harness.report(GREW)

    assert [log_entry["log_level"] for log_entry in logs if log_entry["event"] == "journal.not_written"] == ["warning"]


def test_the_status_goes_with_the_program(harness: ReporterHarness):
    harness.report(loop_result())
    harness.world.do(harness.reporter.close(policy()))

    assert harness.world.server.ask("GET", URL).status == 404
