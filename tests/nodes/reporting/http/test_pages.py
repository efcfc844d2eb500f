"""The pages: metrics and health for everybody, what names the cluster's things for who may see them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.plans import Reason
from plimsoll.kube.errors import NotSent
from plimsoll.nodes.model.results import ScaleUpPart
from plimsoll.nodes.reporting.http.debug import DebugViews
from plimsoll.nodes.reporting.http.pages import build_pages
from plimsoll.nodes.reporting.metrics.metrics import Metrics
from plimsoll.nodes.requests.model import Phase, RequestsPart, StatusUpdate, UpdateKind
from plimsoll.nodes.requests.status import build_condition
from plimsoll.operator.debug_access import AccessReviewer
from plimsoll.operator.health import Health, HealthTimeouts
from plimsoll.operator.pages import check_health
from tests.kube.embedded_api import EmbeddedApi, ScriptedTransport
from tests.local.apiserver.builders import ADMIN, GUEST
from tests.nodes.planning.builders import NOON
from tests.nodes.reporting.loop_results import (
    filtered_pod,
    loop_result,
    node,
    option,
    placed,
    planned,
    scale_up,
    scaled_up_loop,
    waiting,
)
from tests.nodes.requests.request_views import pods_of, request_view

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator, MutableMapping

    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.operator.profiler import Profiler
    from tests.golden.reviewed_sentences import ReviewedSentences

HERE = "127.0.0.1"
THERE = "10.0.0.7"
EVERYTHING = {"debugging_snapshot_enabled": True}


class PagesHarness:
    """The pages over a turn, asked without a socket."""

    def __init__(
        self, world: EmbeddedApi, *, reviewer: AccessReviewer | None = None, profiler: Profiler | None = None
    ) -> None:
        self.world = world
        self.health = Health(HealthTimeouts(inactivity_s=600, failing_s=900, startup_s=1200))
        self.turn: LoopResult | None = None
        self.metrics = Metrics()
        self.pages = build_pages(
            DebugViews(lambda: self.turn, _inline),
            metrics=[self.metrics.render],
            health=check_health(self.health, world.clock, lambda: "leader"),
            reviewer=reviewer,
            profiler=profiler,
        )

    def get(self, url: str, *, peer: str = HERE, method: str = "GET", **headers: str) -> tuple[int, str, str]:
        """Status, body, content type."""
        return self.world.do(self.answer(url, peer=peer, method=method, **headers))

    async def answer(self, url: str, *, peer: str = HERE, method: str = "GET", **headers: str) -> tuple[int, str, str]:
        path, _, query = url.partition("?")
        given = {"host": "localhost:8085", **headers}
        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query.encode(),
            "client": (peer, 40_000),
            "headers": [(name.encode(), value.encode()) for name, value in given.items()],
        }
        sent: list[MutableMapping[str, Any]] = []

        async def send(message: MutableMapping[str, Any]) -> None:
            sent.append(message)

        async def receive() -> Any:
            raise AssertionError("nobody reads a body")

        await self.pages(scope, receive, send)
        kinds = dict(sent[0]["headers"])
        return sent[0]["status"], sent[1]["body"].decode(), kinds[b"content-type"].decode()

    def json(self, url: str) -> Any:
        status, body, kind = self.get(url)
        assert (status, kind) == (200, "application/json"), body
        return json.loads(body)


async def _inline(planner: Callable[[], Any]) -> Any:
    return planner()


@pytest.fixture
def world() -> Iterator[EmbeddedApi]:
    with EmbeddedApi() as world:
        yield world


@pytest.fixture
def site(world: EmbeddedApi) -> PagesHarness:
    return PagesHarness(world, reviewer=AccessReviewer(world.client))


# ---- for everybody


def test_metrics_need_no_authorization(site: PagesHarness):
    status, body, kind = site.get("/metrics", peer=THERE)

    assert status == 200
    assert kind.startswith("text/plain; version=0.0.4")
    assert "cluster_autoscaler_unneeded_nodes_count 0.0" in body


def test_health_needs_no_authorization(site: PagesHarness):
    assert site.get("/health-check", peer=THERE)[:2] == (200, "OK\nleader\n")
    site.health.begin(site.world.clock.monotonic_s() - 601)
    status, body, _ = site.get("/health-check", peer=THERE)
    assert (status, body.splitlines()[:2]) == (500, ["Error: last activity 10m1s ago, more than 10m0s", "leader"])


def test_health_shows_how_long_the_loop_iteration_has_been_under_way(site: PagesHarness):
    now_s = site.world.clock.monotonic_s()
    site.health.begin(now_s - 50)
    site.health.on_loop_started(now_s - 38)
    assert site.get("/health-check")[1] == "OK\nleader\na loop iteration is under way (38s)\n"
    site.health.on_loop_finished(now_s - 4, is_success=True)
    assert site.get("/health-check")[1] == "OK\nleader\nthe last loop iteration ended 4s ago\n"


def test_other_paths_and_other_methods(site: PagesHarness):
    assert site.get("/")[0] == 404
    assert site.get("/metrics", method="POST")[0] == 405
    assert site.get("/health-check", method="HEAD")[1] == ""


# ---- who may see the rest


GUARDED = ("/plan", "/snapshotz", "/explain?pod=default/p", "/explain?request=default/r")


@pytest.mark.parametrize("url", GUARDED)
def test_from_elsewhere_a_token_is_needed(site: PagesHarness, url: str):
    assert site.get(url, peer=THERE)[0] == 401
    assert site.get(url, peer=THERE, authorization="Basic x")[0] == 401
    assert site.get(url, peer=THERE, authorization="Bearer nobody-knows-it")[0] == 401


@pytest.mark.parametrize("url", GUARDED)
def test_a_token_whose_owner_may_not_is_refused(site: PagesHarness, url: str):
    assert site.get(url, peer=THERE, authorization=f"Bearer {GUEST}")[0] == 403


def test_a_token_whose_owner_may_is_let_in(site: PagesHarness):
    site.turn = loop_result()
    assert site.get("/plan", peer=THERE, authorization=f"Bearer {ADMIN}")[0] == 200


def test_without_an_authorizer_only_the_same_machine_sees_them(world: EmbeddedApi):
    site = PagesHarness(world)
    site.turn = loop_result()
    assert site.get("/plan", peer=THERE, authorization=f"Bearer {ADMIN}")[0] == 403
    assert site.get("/plan")[0] == 200


def test_when_the_server_cannot_be_asked_no_user_gets_in(world: EmbeddedApi):
    gone = ScriptedTransport(NotSent("refused"))
    site = PagesHarness(world, reviewer=AccessReviewer(world.new_client(through=lambda _: gone)))

    assert site.get("/plan", peer=THERE, authorization="Bearer x")[0] == 503


# ---- what they show


def test_before_the_first_turn_there_is_nothing_to_show(site: PagesHarness):
    assert [site.get(url)[0] for url in GUARDED] == [404] * len(GUARDED)


def test_the_plan_of_the_last_turn_and_its_reasons(site: PagesHarness):
    site.turn = scaled_up_loop(scale_up(option("g"), waiting("p")), pending=(waiting("p"),))
    shown = site.json("/plan")

    assert shown["scaleUp"]["plan"][0]["group"] == "g"
    assert any("pod/default/p waits for new nodes" in line for line in shown["lines"])


def test_a_snapshot_only_where_the_operator_wants_it(site: PagesHarness):
    nodes, pods = (node("n1"),), (placed("web-0", "n1"),)
    site.turn = loop_result(waiting("p"), nodes=nodes, pods=pods)
    assert site.get("/snapshotz")[0] == 404

    site.turn = loop_result(waiting("p"), nodes=nodes, pods=pods, options=EVERYTHING)
    shown = site.json("/snapshotz")
    assert shown["NodeList"][0]["Pods"] == [{"namespace": "default", "name": "web-0"}]
    assert shown["UnschedulablePods"] == ["default/p"]


def test_explaining_a_pod_that_waits(site: PagesHarness):
    site.turn = loop_result(waiting("p"), scale_up=ScaleUpPart(plan=planned()))
    shown = site.json("/explain?pod=default/p")

    assert shown["pod"] == "default/p"
    assert shown["outcome"]["remaining"] == 0


def test_explaining_pods_that_do_not_wait(site: PagesHarness):
    site.turn = loop_result(
        nodes=(node("n1"),),
        pods=(placed("web-0", "n1"),),
        filtered_pods=(filtered_pod("q", "Expendable", message="no"),),
    )

    assert site.json("/explain?pod=default/web-0") == {"pod": "default/web-0", "node": "n1"}
    assert site.json("/explain?pod=default/q") == {"pod": "default/q", "setAside": "no"}
    assert site.get("/explain?pod=default/unheard-of")[0] == 404


@pytest.mark.parametrize("query", ["", "?pod=", "?pod=web", "?pod=/web", "?pod=a/b&pod=c/d", "?pod=a/b&request=a/b"])
def test_a_question_that_does_not_name_one_thing_is_refused(site: PagesHarness, query: str):
    status, reported, _ = site.get(f"/explain{query}")
    assert status == 400
    assert "/explain?pod=NAMESPACE/NAME or /explain?request=NAMESPACE/NAME" in reported


def test_explaining_a_request_that_waits_for_its_next_attempt(site: PagesHarness):
    """Though this turn did not plan for it."""
    stuck = request_view("r", (pods_of(64), 2), (pods_of(1), 1), phase=Phase.WAITING)
    part = RequestsPart(known=frozenset({"default/r"}), views=(stuck,))
    site.turn = loop_result(nodes=(node("n1"),), requests=part)

    shown = site.json("/explain?request=default/r")
    assert (shown["request"], shown["phase"], shown["said"]) == ("default/r", "waiting", [])
    large, small = shown["podSets"]
    assert (large["pod"], large["pods"], large["nodes"]["fitting"]) == ("default/r/0", 2, 0)
    assert "Insufficient cpu" in large["nodes"]["message"]
    assert (small["pods"], small["nodes"]["fitting"]) == (1, 1)


def test_explaining_a_request_that_the_turn_answered(site: PagesHarness):
    asked = request_view("r", (pods_of(1), 2), phase=Phase.DUE)
    answered = asked.conditions.with_condition(build_condition("Provisioned", "True", "CapacityIsFound", "", at=NOON))
    verdict = StatusUpdate(
        view=asked,
        kind=UpdateKind.PROVISIONED,
        reason=Reason(code="CapacityIsFound", message="2 pods fit"),
        conditions=answered,
        details=asked.details,
    )
    site.turn = loop_result(requests=RequestsPart(known=frozenset({"default/r"}), views=(asked,), updates=(verdict,)))

    shown = site.json("/explain?request=default/r")
    assert shown["said"] == [{"saying": "Provisioned", "message": "2 pods fit", "written": True}]
    assert [condition["reason"] for condition in shown["conditions"]] == ["CapacityIsFound"]


def test_explaining_a_request_that_has_its_room(site: PagesHarness):
    held = request_view("r", (pods_of(1), 3))
    part = RequestsPart(
        known=frozenset({"default/r"}),
        views=(held,),
        booked={"default/r": {"n1": 2}},
        unbookable={"default/r": 1},
    )
    site.turn = loop_result(requests=part)

    shown = site.json("/explain?request=default/r")
    assert (shown["booked"], shown["unbookable"]) == ({"n1": 2}, 1)
    assert "podSets" not in shown


def test_explaining_requests_of_others_and_requests_that_are_not_there(site: PagesHarness, reviewed: ReviewedSentences):
    site.turn = loop_result(requests=RequestsPart(known=frozenset({"default/foreign"})))

    reviewed(site.json("/explain?request=default/foreign")["setAside"])
    assert site.get("/explain?request=default/unheard-of")[0] == 404


# ---- profiles


class FakeProfiler:
    """A profiler that remembers for how long it was asked to look, and may be asked something meanwhile."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self.meanwhile: Callable[[], Awaitable[None]] | None = None

    async def profile(self, seconds: float) -> str:
        self.seconds.append(seconds)
        if self.meanwhile is not None:
            await self.meanwhile()
        return "MainThread;loop.run;loop.turn 7\n"


def test_a_profile_only_where_the_operator_wants_it(world: EmbeddedApi):
    assert PagesHarness(world).get("/debug/pprof/profile")[0] == 404
    looking = FakeProfiler()
    site = PagesHarness(world, profiler=looking)

    assert site.get("/debug/pprof/profile")[:2] == (200, "MainThread;loop.run;loop.turn 7\n")
    assert site.get("/debug/pprof/profile?seconds=5")[0] == 200
    assert looking.seconds == [30.0, 5.0]


def test_a_profile_is_not_for_strangers(world: EmbeddedApi):
    looking = FakeProfiler()
    site = PagesHarness(world, reviewer=AccessReviewer(world.client), profiler=looking)

    assert site.get("/debug/pprof/profile", peer=THERE)[0] == 401
    assert site.get("/debug/pprof/profile", peer=THERE, authorization=f"Bearer {GUEST}")[0] == 403
    assert looking.seconds == []


@pytest.mark.parametrize("query", ["seconds=0", "seconds=61", "seconds=-1", "seconds=x", "seconds=1&seconds=2"])
def test_a_profile_of_odd_length_is_refused(world: EmbeddedApi, query: str):
    assert PagesHarness(world, profiler=FakeProfiler()).get(f"/debug/pprof/profile?{query}")[0] == 400


def test_one_profile_at_a_time(world: EmbeddedApi):
    looking = FakeProfiler()
    site = PagesHarness(world, profiler=looking)
    answers: list[int] = []

    async def again() -> None:
        answers.append((await site.answer("/debug/pprof/profile"))[0])

    looking.meanwhile = again
    assert site.get("/debug/pprof/profile")[0] == 200
    assert answers == [409]
