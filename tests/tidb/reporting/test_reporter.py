"""What conditions, events, the log and the journal say of a pass is so in that very pass, and is reported once."""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest
import structlog
from msgspec.structs import replace

from plimsoll.core.plans import Ref
from plimsoll.journal.entries import Query
from plimsoll.kube.informer.factory import SharedInformerFactory
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.supervisor import Supervisor
from plimsoll.simulation.tidb.simulator import SimulatedDecision
from plimsoll.simulation.tidb.tables import format_decision
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.model.planner_answer import NoAnswer
from plimsoll.tidb.planner.client import InProcessResponse, read_answer
from plimsoll.tidb.reporting.messages import build_sentences
from plimsoll.web.client import Response
from tests.narrowing import instance_of
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
    from collections.abc import Iterator

RULES = {"cpu": {"max_threshold": 0.8, "min_threshold": 0.2}}
BLIND = b'{"error":"insufficient_metrics","detail":"1 of 3"}'
NO_PD = b'{"error":"pd_unreachable","detail":"cannot reach http://db-pd.prod:2379"}'


@pytest.fixture
def world() -> Iterator[AutoscaledCluster]:
    with AutoscaledCluster(FakeServer, drains_actively=True) as made:
        yield made


class TestLimits:
    def test_a_group_is_limited_in_the_pass_that_makes_it(self, world: AutoscaledCluster) -> None:
        world.autoscaler().cluster().planner.says(group(9))
        world.once()
        assert world.tc()["spec"]["tikv"]["replicas"] == 3
        assert world.condition("ScalingLimited") == ("True", "CountReached")
        message = world.message("ScalingLimited")
        assert message.startswith(f"{GROUP}: storage_small ")
        assert re.findall(r"\b\d+\b", message.removeprefix(GROUP)) == ["3"]
        world.once(30)
        assert world.message("ScalingLimited") == message

    def test_so_is_the_cluster_itself(self, world: AutoscaledCluster) -> None:
        resources = {"default_homogeneous_tikv": {"cpu": "4", "memory": "16Gi", "storage": "100Gi", "count": 4}}
        world.autoscaler(tikv={"rules": RULES, "resources": resources}).cluster().planner.says(homogeneous(6))
        world.once()
        assert world.tc("db")["spec"]["tikv"]["replicas"] == 4
        assert world.condition("ScalingLimited") == ("True", "CountReached")

    def test_within_them_nothing_is_reported(self, world: AutoscaledCluster) -> None:
        world.autoscaler().cluster().planner.says(group(3))
        world.once()
        assert world.condition("ScalingLimited") == ("False", "WithinLimits")


@pytest.mark.parametrize("why", ["RegionsNotHealthy", "AnotherLeaves"])
def test_whatever_blocks_a_removal_both_numbers_are_reported(world: AutoscaledCluster, why: str) -> None:
    world.autoscaler().cluster().planner.says(group(1))
    world.once()
    world.planner.says()
    world.once(700)
    if why == "AnotherLeaves":
        world.pd.evicting.add(1)
    else:
        world.pd.wrong["miss-peer"] = 2
    world.once(730)
    assert world.condition("ScaleInBlocked") == ("True", why)
    assert "(3 normal stores stay Up, 3 are needed)" in world.message("ScaleInBlocked")


class TestTooLittleKnown:
    def test_our_own_planner_was_reached_all_the_same(self) -> None:
        found = instance_of(NoAnswer, read_answer(InProcessResponse(status=500, body=BLIND), Component.TIKV))
        assert (found.code, found.is_from_planner) == ("InsufficientMetrics", True)

    @pytest.mark.parametrize("body", [BLIND, b"boom"], ids=["too little", "boom"])
    def test_of_another_nothing_but_a_plan_counts_as_reached(self, body: bytes) -> None:
        found = instance_of(NoAnswer, read_answer(Response(status=500, body=body), Component.TIKV))
        assert not found.is_from_planner

    def test_the_conditions_say_so(self, world: AutoscaledCluster) -> None:
        world.settings = replace(world.settings, planner="", prometheus="http://prometheus.test")
        world.autoscaler().cluster().once()
        assert world.condition("MetricsAvailable") == ("False", "InsufficientMetrics")
        assert world.condition("PlannerReachable") == ("True", "Answered")
        assert world.condition("Ready") == ("False", "InsufficientMetrics")
        assert [event["reason"] for event in world.sent.events] == ["InsufficientMetrics"]

    def test_two_conditions_make_one_event(self, world: AutoscaledCluster) -> None:
        world.autoscaler().cluster().planner.says_body(BLIND, 500)
        world.once()
        assert world.condition("PlannerReachable")[0] == world.condition("MetricsAvailable")[0] == "False"
        assert [event["reason"] for event in world.sent.events] == ["InsufficientMetrics"]


class TestNewClusters:
    @pytest.fixture(autouse=True)
    def _not_up_yet(self, world: AutoscaledCluster) -> None:
        world.operates = False
        world.autoscaler().cluster().planner.says_body(NO_PD, 500)

    def test_what_is_to_be_expected_is_no_warning(self, world: AutoscaledCluster) -> None:
        world.once()
        assert world.condition("PlannerReachable") == ("False", "ClusterStarting")
        assert world.sent.events == []

    def test_but_it_is_if_it_stays_so(self, world: AutoscaledCluster) -> None:
        world.once()
        world.once(700)
        assert world.condition("PlannerReachable") == ("False", "PlannerRefused")
        assert [(event["type"], event["reason"]) for event in world.sent.events] == [("Warning", "PlannerRefused")]

    def test_and_if_the_cluster_was_up_before(self, world: AutoscaledCluster) -> None:
        world.operate()
        world.once()
        assert world.condition("PlannerReachable") == ("False", "PlannerRefused")

    def test_a_planner_that_is_not_there_is_trouble_at_once(self, world: AutoscaledCluster) -> None:
        world.planner.says_body(None)
        world.once()
        assert [event["reason"] for event in world.sent.events] == ["PlannerUnreachable"]


@contextmanager
def logged(body: bytes, *, is_up: bool) -> Iterator[list[Any]]:
    """What is logged, but for passes, while a controller runs for a minute against a planner that says this."""
    with AutoscaledCluster(EmbeddedServer) as world, structlog.testing.capture_logs() as logs:
        entropy = SeededEntropy("controller")
        client = world.client(world.server.transport())
        informers = SharedInformerFactory(client, clock=world.run.clock, entropy=entropy)
        parts = world.parts(client, informers=informers)
        services = [*parts.build_controller(entropy).list_services(), *informers.list_services()]
        world.run.spawn(Supervisor(services, clock=world.run.clock, entropy=entropy).run())
        world.cluster().planner.says_body(body, 500)
        if is_up:
            world.operate()
        world.autoscaler()
        world.run.advance_by(60)
        assert len(world.planner.asked) > 3
        yield [
            (log_entry["log_level"], log_entry["event"])
            for log_entry in logs
            if log_entry["event"] in {"advice.missing", "reconcile.failed"}
        ]


class TestTheLog:
    def test_the_same_trouble_is_warned_of_once(self) -> None:
        with logged(b"boom", is_up=True) as reported:
            assert [entry for entry in reported if entry[0] != "debug"] == [("warning", "advice.missing")]

    def test_of_a_cluster_that_starts_there_is_no_warning(self) -> None:
        with logged(NO_PD, is_up=False) as reported:
            assert [entry for entry in reported if entry[0] != "debug"] == [("info", "advice.missing")]


@pytest.mark.parametrize(
    ("kind", "name"),
    [("tidbclusterautoscaler", "as1"), ("tidbcluster", "db"), ("tidbcluster", AUTO)],
    ids=["autoscaler", "base", "group"],
)
def test_an_act_is_found_under_whoever_it_concerns(world: AutoscaledCluster, kind: str, name: str) -> None:
    world.autoscaler().cluster().planner.says(group(1))
    world.once()
    ref = Ref(kind=kind, namespace="prod", name=name)
    (entry,) = world.run.run_until(world.journal.list_entries(Query(ref=ref)))
    assert [action.verb for action in entry.filter_by_ref(ref).plan.actions] == ["create"]
    assert [outcome.action.verb for outcome in entry.filter_by_ref(ref).outcomes] == ["create"]
    assert entry.format_sentence().startswith("tidbclusterautoscaler/prod/as1: create x1")


def test_one_is_one_instance(world: AutoscaledCluster) -> None:
    world.autoscaler().cluster().planner.says(group(1))
    (result,) = world.once()
    assert build_sentences(result) == [f"prod/as1 tikv: {AUTO} created with 1: 1 instance in a new group"]


def test_what_two_reasons_share_is_reported_once() -> None:
    why = ("3 instances of the cluster instead of 2",) * 2
    reported = SimulatedDecision(
        at_s=0, component=Component.TIKV, kind="", what="raise", added=1, is_held=False, why=why
    )
    assert format_decision(reported)[-1] == why[0]
