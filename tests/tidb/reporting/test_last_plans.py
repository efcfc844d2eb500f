"""The last report on each object, kept in the cluster: `plimsoll why ta/prod/as1` without a journal."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.core.plans import Ref, Result
from plimsoll.journal.last_plans import LastPlan, read_last_plans
from tests.tidb.autoscaled_clusters import AUTO, AutoscaledCluster, EmbeddedServer, RecordingTransport, group

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.tidb.builder import TidbAutoscalerParts

URL = "/api/v1/namespaces/kube-system/configmaps/plimsoll-tidb-last-plans"


class ReportingCluster(AutoscaledCluster):
    """Passes of one process, as the controller makes them."""

    server: EmbeddedServer

    def start(self) -> TidbAutoscalerParts:
        self.sent = RecordingTransport(self.server.transport())
        return self.parts(self.client(self.sent), keeps_last_plans=True)

    def passes(self, parts: TidbAutoscalerParts, *, after_s: float = 10) -> None:
        self.run.advance_by(after_s)
        self.operate()
        self.run.run_until(parts.reconciler.run_all())

    @property
    def stated(self) -> dict[Ref, LastPlan]:
        reply = self.server.world.ask("GET", URL)
        return read_last_plans(reply.body["data"]) if reply.status == 200 else {}

    @property
    def times_written(self) -> int:
        return sum("last-plans" in path or path.endswith("/configmaps") for _, path in self.sent.wrote)


@pytest.fixture
def world() -> Iterator[ReportingCluster]:
    with ReportingCluster(EmbeddedServer, drains_actively=True) as made:
        made.autoscaler().cluster()
        yield made


def test_what_was_done_and_what_was_held_is_found_there(world: ReportingCluster) -> None:
    parts = world.start()
    world.planner.says(group(1))
    world.passes(parts)
    made = world.stated[Ref(kind="tidbcluster", namespace="prod", name=AUTO)]
    assert [outcome.result for outcome in made.outcomes] == [Result.DONE]
    world.planner.says(group(2))
    world.passes(parts)
    held = world.stated[Ref(kind="tidbclusterautoscaler", namespace="prod", name="as1")]
    assert [not_done.reason.code for not_done in held.not_done] == ["CoolingDown"]


def test_the_same_again_is_not_written_again(world: ReportingCluster) -> None:
    parts = world.start()
    world.planner.says(group(1))
    world.passes(parts)
    world.planner.says(group(2))
    world.passes(parts)
    before = world.times_written
    for _ in range(5):
        world.passes(parts, after_s=30)
    assert world.times_written == before


def test_the_last_words_are_written_at_a_clean_end(world: ReportingCluster) -> None:
    parts = world.start()
    world.planner.says(group(1))
    world.passes(parts)
    world.planner.says(group(2))
    world.passes(parts, after_s=1)
    autoscaler = Ref(kind="tidbclusterautoscaler", namespace="prod", name="as1")
    assert world.stated[autoscaler].not_done == ()
    world.run.run_until(parts.reporter.close())
    assert [not_done.reason.code for not_done in world.stated[autoscaler].not_done] == ["CoolingDown"]


def test_a_dry_run_keeps_none(world: ReportingCluster) -> None:
    world.settings = type(world.settings)(planner=world.settings.planner, dry_run=True)
    parts = world.start()
    world.planner.says(group(1))
    world.passes(parts)
    assert world.sent.wrote == []


def test_a_single_pass_keeps_none(world: ReportingCluster) -> None:
    world.planner.says(group(1))
    world.once()
    assert world.stated == {}
