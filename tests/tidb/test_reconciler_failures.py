"""Others write at the same time, servers fail, processes die: nothing is written over, and nothing is done twice."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.errors import PlimsollError
from plimsoll.kube.errors import AnswerLost, NotAllowed
from plimsoll.kube.transport import Response
from plimsoll.objects.api.tidb import TidbCluster, TidbClusterAutoScaler
from plimsoll.operator.reconcile_all import FailedReconcile
from tests.faults import CrashAfter, Crashed
from tests.tidb.autoscaled_clusters import (
    AUTO,
    GROUP,
    AutoscaledCluster,
    EmbeddedServer,
    FakeServer,
    group,
    homogeneous,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plimsoll.kube.transport import Request, Transport


@pytest.fixture
def world() -> Iterator[AutoscaledCluster]:
    with AutoscaledCluster(EmbeddedServer, drains_actively=True) as made:
        yield made.autoscaler().cluster()


class InterferingTransport:
    """Does something else just before a call that matches goes through, once; or answers in its place."""

    def __init__(self, inner: Transport, matches: Callable[[Request], bool], instead: Callable[[], Any]) -> None:
        self._inner, self._matches, self._instead = inner, matches, instead

    async def send(self, call: Request) -> Response:
        if self._matches(call):
            self._matches = lambda _: False
            done = self._instead()
            if asyncio.iscoroutine(done):
                done = await done
            if isinstance(done, Exception):
                raise done
            if isinstance(done, Response):
                return done
        return await self._inner.send(call)

    async def aclose(self) -> None:
        await self._inner.aclose()


def patches(name: str, sub: str = "") -> Callable[[Request], bool]:
    return lambda call: call.method == "PATCH" and call.path.endswith(f"/{name}{sub}")


class TestAnotherClientWrites:
    def test_the_cluster_is_read_and_decided_anew(self, world: AutoscaledCluster) -> None:
        """A person raised it by hand to 8 while we were about to raise it to 6: it does not fall."""
        world.planner.says(homogeneous(6))
        client = world.client(world.server.transport())

        async def by_hand() -> None:
            await client.merge_patch(TidbCluster, "db", {"spec": {"tikv": {"replicas": 8}}}, namespace="prod")

        world.once(transport=InterferingTransport(world.server.transport(), patches("db"), by_hand))
        assert world.tc("db")["spec"]["tikv"]["replicas"] == 8
        assert len(world.planner.asked) == 2

    def test_conditions_of_others_stay(self, world: AutoscaledCluster) -> None:
        theirs = {
            "type": "Billed",
            "status": "True",
            "reason": "Paid",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        client = world.client(world.server.transport())

        async def change() -> None:
            body = {"status": {"conditions": [theirs]}}
            await client.merge_patch(TidbClusterAutoScaler, "as1", body, namespace="prod", subresource="status")

        world.once(transport=InterferingTransport(world.server.transport(), patches("as1", "/status"), change))
        assert world.condition("Billed") == ("True", "Paid")
        assert world.condition("Ready") == ("True", "Scaling")

    def test_a_name_that_is_taken_leads_to_the_next(self, world: AutoscaledCluster) -> None:
        """32 bits collide; whoever has the name keeps it."""
        spec = {"version": "v8.5.0", "tikv": {"replicas": 1}}
        world.server.make("tidbclusters", {"metadata": {"name": AUTO, "labels": {"team": "other"}}, "spec": spec})
        world.planner.says(group(1))
        world.once()
        (made,) = set(world.clusters) - {AUTO, "db"}
        assert world.tc(made)["metadata"]["annotations"]["autoscaler.tidb.pingcap.com/collision"] == "1"
        assert world.tc(AUTO)["spec"]["tikv"]["replicas"] == 1
        world.once(30)
        assert world.sent.wrote == []


class TestServersThatFail:
    def test_a_status_that_is_not_written_starts_the_clock_all_the_same(self, world: AutoscaledCluster) -> None:
        world.planner.says(group(1))
        lost = Response(status=500, body=b'{"kind":"Status","code":500}')
        failing = InterferingTransport(world.server.transport(), patches("as1", "/status"), lambda: lost)
        with pytest.raises(AssertionError, match="Failed"):
            world.once(transport=failing)
        assert world.clusters == [AUTO, "db"]
        world.planner.says(group(2))
        world.once(299)
        assert world.tc()["spec"]["tikv"]["replicas"] == 1
        world.once(300)
        assert world.tc()["spec"]["tikv"]["replicas"] == 2

    def test_an_answer_that_is_lost_is_reported_and_not_repeated(self, world: AutoscaledCluster) -> None:
        world.planner.says(group(1))
        matches = lambda call: call.method == "POST" and call.path.endswith("/tidbclusters")  # noqa: E731 - as short
        (result,) = world.once(
            transport=InterferingTransport(world.server.transport(), matches, lambda: AnswerLost("gone"))
        )
        assert "gone" in result.components[0].problem
        assert world.condition("Ready") == ("False", "Failed")
        world.once(30)
        assert world.clusters == [AUTO, "db"]

    def test_one_autoscaler_in_trouble_does_not_stop_the_next(self, world: AutoscaledCluster) -> None:
        world.autoscaler("as2", cluster={"name": "other"})
        refusing = InterferingTransport(
            world.server.transport(), patches("as1", "/status"), lambda: Response(status=403, body=b"{}")
        )
        client = world.client(refusing)
        results = world.run.run_until(world.parts(client).reconciler.run_all())
        assert isinstance(results[0], FailedReconcile)
        assert world.condition("Ready", "as2") == ("False", "ClusterNotFound")


class NoStatusSubresource:
    """A server whose definition has no status subresource, as TiDB Operator's own up to 1.6.1."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def send(self, call: Request) -> Response:
        if call.path.endswith("/status"):
            return Response(status=404, body=b"404 page not found")
        return await self._inner.send(call)

    async def aclose(self) -> None:
        await self._inner.aclose()


def test_a_status_that_is_part_of_the_object_is_written_there() -> None:
    with AutoscaledCluster(FakeServer, drains_actively=True) as world:
        world.autoscaler().cluster()
        assert isinstance(world.server, FakeServer)
        world.server.played.keeps_status_apart = False
        world.planner.says(homogeneous(5))
        world.once(transport=NoStatusSubresource(world.server.transport()))
        assert world.entry("default_homogeneous_tikv")["lastAutoScalingTimestamp"] == "2026-01-01T00:00:00Z"
        world.once(30, transport=NoStatusSubresource(world.server.transport()))
        assert world.sent.wrote == []


class TestTwoControllers:
    def test_two_at_once_do_not_scale_twice(self, world: AutoscaledCluster) -> None:
        world.planner.says(group(2), homogeneous(5))
        world.operate()

        async def both() -> None:
            transport = world.server.transport()
            runs = [world.parts(world.client(transport)).reconciler.run_all() for _ in range(2)]
            await asyncio.gather(*runs)

        world.run.run_until(both())
        assert world.clusters == [AUTO, "db"]
        assert world.tc("db")["spec"]["tikv"]["replicas"] == 5
        assert world.tc()["spec"]["tikv"]["replicas"] == 2
        assert world.entry()["lastAutoScalingTimestamp"] == "2026-01-01T00:00:00Z"

    def test_a_process_that_does_not_lead_writes_nothing(self, world: AutoscaledCluster) -> None:
        class Follower:
            def limit_duration_s(self, wanted_s: float) -> float:
                raise NotAllowed(f"not leading, {wanted_s}")

            async def confirm(self) -> None:
                raise NotAllowed("not leading")

        world.planner.says(group(2))
        client = world.client(world.server.transport(), Follower())
        with pytest.raises(PlimsollError, match="not leading"):
            world.run.run_until(world.parts(client).reconciler.run("prod", "as1"))
        assert world.clusters == ["db"]


def test_a_crash_after_any_call_ends_in_the_same_state() -> None:
    """Group and cluster in one answer: whatever was written last, the next process finishes it, once."""
    for calls in range(1, 100):
        with AutoscaledCluster(FakeServer, drains_actively=True) as world:
            world.autoscaler().cluster()
            world.planner.says(group(2), homogeneous(5))
            crash = CrashAfter(calls)
            with suppress(Crashed):
                world.once(transport=crash.wrap(world.server.transport()))
            for number in range(1, 4):
                world.once(400 * number)
            assert world.clusters == [AUTO, "db"]
            assert world.tc()["spec"]["tikv"]["replicas"] == 2
            assert world.tc("db")["spec"]["tikv"]["replicas"] == 5
            assert world.tac()["metadata"]["finalizers"]
            assert world.entry(GROUP)["replicas"] == 2
        if crash.struck is None:
            break
    assert 8 < calls < 99
