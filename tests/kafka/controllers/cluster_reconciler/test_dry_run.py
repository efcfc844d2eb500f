"""A dry run and a pause report what would be done to pod sets and rebalances, and write nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import pytest

from plimsoll.core.plans import Ref, Result
from plimsoll.kafka.reporting.cluster_overview import describe_clusters
from plimsoll.kafka.reporting.cluster_reporter import build_journal_plan, build_sentence
from plimsoll.kafka.settings import KafkaSettings
from plimsoll.objects.api.kafka import Kafka
from tests.kafka.controllers.operator_bench import API, OperatorBench
from tests.kafka.controllers.pod_set_cluster import SETS

if TYPE_CHECKING:
    from collections.abc import Callable

PAUSED = {"Ready": [""], "ReconciliationPaused": ["Paused"]}
KAFKA = Ref(kind="kafka", namespace="kafka", name="c")


def start_dry_run(bench: OperatorBench) -> None:
    bench.settings = KafkaSettings(dry_run=True)
    bench.start_operator()


def pause(bench: OperatorBench) -> None:
    bench.patch(f"{API}/kafkas/c", {"metadata": {"annotations": {"plimsoll.io/paused": "maintenance"}}})


def read_specs(bench: OperatorBench) -> tuple[object, object]:
    """What a pause does not change: all of the Kafka except its conditions, and its pod sets."""
    kafka = bench.kafka
    status = {field: value for field, value in kafka["status"].items() if field != "conditions"}
    return (kafka["spec"], status), bench.ask("GET", SETS).body["items"]


@pytest.mark.parametrize("hold", [start_dry_run, pause])
def test_what_would_be_done_to_pod_sets_is_reported(hold: Callable[[OperatorBench], None]):
    with OperatorBench() as bench:
        bench.make_cluster(modes=[{"mode": "remove-brokers"}])
        bench.scale(5)
        bench.step()
        bench.make_ready(3, 4)
        bench.step()
        hold(bench)
        bench.scale(4)
        bench.make_pool("q", replicas=1)
        before = read_specs(bench)
        result = bench.step()
        assert result is not None
        assert read_specs(bench) == before
        assert bench.conditions == ({"Ready": [""]} if result.is_dry_run else PAUSED)
        plan, outcomes = build_journal_plan(result, number=0)
        assert [(action.verb, str(action.target)) for action in plan.filter_by_ref(KAFKA).actions] == [
            ("remove-pods", "strimzipodset/kafka/c-p"),
            ("add-pods", "strimzipodset/kafka/c-q"),
        ]
        assert {outcome.result for outcome in outcomes} == {Result.HELD_BACK}
        assert "c-p-4 leaves" in build_sentence(result)
        assert "c-q-5 is added: kafkanodepool/kafka/q asks for 1 node" in build_sentence(result)


def test_a_broker_with_replicas_is_not_reported_to_leave():
    with OperatorBench() as bench:
        bench.make_cluster()
        start_dry_run(bench)
        bench.scale(2)
        result = bench.step()
        assert result is not None
        plan, _ = build_journal_plan(result, number=0)
        assert [(action.verb, str(action.target)) for action in plan.actions] == [
            ("create", "kafkarebalance/kafka/c-auto-rebalancing-remove-brokers")
        ]
        assert bench.rebalances == {}


def test_what_was_done_to_pod_sets_is_in_the_journal():
    with OperatorBench() as bench:
        bench.make_cluster()
        bench.scale(4)
        result = bench.step()
        assert result is not None
        plan, outcomes = build_journal_plan(result, number=0)
        assert [action.verb for action in plan.actions] == ["add-pods"]
        assert [outcome.result for outcome in outcomes] == [Result.DONE]


def test_a_pause_is_a_condition_until_it_ends():
    with OperatorBench() as bench:
        bench.make_cluster()
        pause(bench)
        bench.step()
        assert bench.conditions == PAUSED
        (overview,) = describe_clusters([msgspec.convert(bench.kafka, Kafka, strict=False)], [])
        assert (overview.ready, overview.problem) == ("True", "Paused: paused: maintenance")
        before = bench.kafka
        bench.run.advance_by(60)
        bench.step()
        assert bench.kafka == before, "it is written once"
        bench.patch(f"{API}/kafkas/c", {"metadata": {"annotations": {"plimsoll.io/paused": None}}})
        bench.step()
        assert bench.conditions == {"Ready": [""]}


def test_a_dry_run_with_nothing_to_do_names_no_action():
    with OperatorBench() as bench:
        bench.make_cluster()
        start_dry_run(bench)
        result = bench.step()
        assert result is not None
        assert build_sentence(result) == "kafka/kafka/c: there is nothing to do"
