"""What is missing has a name: in the condition, in an Event, and in what `plimsoll why` shows."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.plans import Ref
from plimsoll.journal.entries import Query
from plimsoll.kube.recorder import EventRecorder
from plimsoll.objects.api.events import EventSource
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.nodes import Node
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.testing import run_virtual
from plimsoll.tidb.observing.observer import InformerNodeLister
from plimsoll.tidb.settings import NAME
from tests.faults.lies import Lie
from tests.tidb.autoscaled_clusters import RecordingTransport
from tests.tidb.lying_world import SETTLED_S, Cell, LyingCluster

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences


class ReportingCluster(LyingCluster):
    """With an Event recorder; only the first instance lies."""

    async def _passed(self) -> Any:
        self.sent = RecordingTransport(self.server.transport())
        client = self.client(self.sent)
        source = EventSource(component=NAME)
        recorder = EventRecorder(client, source, clock=self.run.clock, entropy=SeededEntropy("events"))
        task = self.run.spawn(recorder.run())
        results = await self.parts(client, recorder=recorder, journal=self.journal).reconciler.run_all()
        await self.run.clock.sleep(1)
        task.cancel()
        return results


def why(world: LyingCluster) -> str:
    """The reasons that the journal has for the autoscaler, newest first."""
    ref = Ref(kind="tidbclusterautoscaler", namespace="prod", name="as1")
    entries = world.run.run_until(world.journal.list_entries(Query(ref=ref)))
    return "\n".join(str(not_done.reason) for entry in entries for not_done in entry.plan.not_done)


@pytest.mark.parametrize(
    ("cell", "reported"),
    [
        (Cell("steady", "prometheus used", Lie.WARNED), "incompletely: partial response: a store did not answer"),
        (Cell("steady", "prometheus quota", Lie.DUPLICATED), "Prometheus has two series for it"),
        (Cell("steady", "prometheus measured", Lie.FUTURE), "measured more than 10 s after the present time"),
        (Cell("steady", "prometheus used", Lie.STALE), "for another time than the one asked for"),
    ],
    ids=lambda value: str(value) if isinstance(value, Cell) else "",
)
def test_missing_data_is_named(cell: Cell, reported: str) -> None:
    with ReportingCluster(cell) as world:
        world.settle()
        world.is_lying = True
        world.once(SETTLED_S)
        assert world.condition("Ready")[0] == "False"
        assert reported in world.message("MetricsAvailable")
        assert any(reported in event["message"] for event in world.sent.events)
        assert reported in why(world)


def test_data_that_is_missing_about_one_instance_is_named_too(reviewed: ReviewedSentences) -> None:
    with ReportingCluster(Cell("steady", "pd stores", Lie.HALF)) as world:
        world.settle()
        world.pd.hidden = {5}
        world.once(SETTLED_S)
        assert world.condition("Ready") == ("True", "ScaleHeld")
        reviewed(world.message("Ready"))
        assert any(
            event["reason"] == "ScaleHeld" and "nothing is scaled in" in event["message"] for event in world.sent.events
        )
        reviewed(why(world))


def test_a_cluster_that_cannot_be_read_is_named() -> None:
    with ReportingCluster(Cell("steady", "list tidbclusters", Lie.STALE)) as world:
        world.settle()
        name = world.servers
        found = world.server.get("tidbclusters", name)
        assert found is not None
        spec = {**found["spec"], "tidb": {**found["spec"]["tidb"], "replicas": "many"}}
        world.operates = False
        world.server.played.put("tidbclusters", {**found, "spec": spec})  # type: ignore[union-attr] # the fake one
        world.once(SETTLED_S)
        assert world.condition("Ready") == ("False", "Unreadable")
        assert "spec.tidb.replicas" in world.message("Ready")
        assert "spec.tidb.replicas" in why(world)


def test_an_autoscaler_that_cannot_be_read_is_named() -> None:
    with ReportingCluster(Cell("steady", "list tidbclusters", Lie.STALE)) as world:
        world.settle()
        before = world.sizes()
        found = world.server.get("tidbclusterautoscalers", "as1")
        assert found is not None
        spec = {**found["spec"], "tidb": {**found["spec"]["tidb"], "rules": "none"}}
        world.server.played.put("tidbclusterautoscalers", {**found, "spec": spec})  # type: ignore[union-attr] # the fake one
        for at_s in (SETTLED_S, SETTLED_S + 30):
            world.once(at_s)
            assert world.condition("Ready") == ("False", "Unreadable")
            assert "spec.tidb.rules" in world.message("Ready")
            events = [event for event in world.sent.events if event["reason"] == "Unreadable"]
            assert len(events) == (1 if at_s == SETTLED_S else 0), "only what changes is an Event"
        assert "spec.tidb.rules" in why(world)
        assert world.sizes() == before


# ---- nodes


def node(name: str) -> Node:
    return Node(metadata=ObjectMeta(name=name))


def test_nodes_that_vanish_from_the_cache_are_asked_for_again() -> None:
    """The cache misses six of ten nodes; the API server still has five of those."""
    listed, again = [node(f"n{number}") for number in range(10)], [node(f"n{number}") for number in range(9)]
    cache = SimpleNamespace(list=lambda: tuple(listed), bad={})
    asked: list[Any] = []

    async def wait() -> None:
        """It is synced."""

    async def list_nodes(kind: Any) -> Any:
        asked.append(kind)
        return SimpleNamespace(items=again, bad=())

    informer = SimpleNamespace(cache=cache, wait_until_synced=wait)
    lister = InformerNodeLister(
        SimpleNamespace(get_informer=lambda _: informer),  # type: ignore[arg-type] # played
        SimpleNamespace(list=list_nodes),  # type: ignore[arg-type] # played
    )

    def count() -> int:
        found = run_virtual(lister.list_nodes())
        assert found is not None
        return len(found)

    assert (count(), asked) == (10, [])
    del listed[4:]
    assert (count(), len(asked)) == (9, 1)
    again[:] = listed
    assert count() == 4
