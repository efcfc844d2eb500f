"""Brokers that Kafka does not hear from while nothing else is to be done: a warning, and the Kafka stays ready."""

from __future__ import annotations

from plimsoll.kafka.controllers.silent_brokers import CHECK_EVERY_S
from tests.kafka.controllers.operator_bench import OperatorBench
from tests.kafka.controllers.test_bad_input import list_messages
from tests.objects.crds.kafka_definitions import list_strimzi_definitions

SILENT = {"Ready": [""], "Warning": ["BrokersSilent"]}


def test_a_broker_whose_pod_is_not_ready_is_a_warning_until_it_is_back():
    with OperatorBench() as bench:
        bench.make_cluster()
        bench.step()
        bench.report("c-p-1", is_ready=False)
        bench.run.advance_by(20)
        result = bench.step()
        assert bench.conditions == SILENT
        assert "Kafka does not hear from broker 1: fenced, or not registered any more" in list_messages(bench)
        assert result is not None
        assert result.retry_after_s is not None
        bench.make_ready(1)
        bench.step()
        assert bench.conditions == {"Ready": [""]}


def test_a_broker_that_hangs_while_its_pod_is_ready_is_found():
    with OperatorBench() as bench:
        bench.make_cluster()
        bench.step()
        bench.brokers.catch_up().brokers[2].is_fenced = True
        bench.run.advance_by(CHECK_EVERY_S / 2)
        bench.step()
        assert bench.conditions == {"Ready": [""]}, "a quiet reconcile asks no broker"
        bench.run.advance_by(CHECK_EVERY_S)
        bench.step()
        assert bench.conditions == SILENT
        bench.start_operator()
        bench.step()
        assert bench.conditions == SILENT, "a new process looks at once"
        bench.brokers.start_broker(2)
        bench.step()
        assert bench.conditions == {"Ready": [""]}


def test_no_warning_of_brokers_that_start_or_leave():
    with OperatorBench() as bench:
        bench.make_cluster(modes=[{"mode": "add-brokers"}, {"mode": "remove-brokers"}])
        bench.scale(5)
        for _ in range(3):
            bench.step()
            assert bench.conditions == {"Ready": [""]}
            bench.run.advance_by(CHECK_EVERY_S)
        bench.make_ready(3, 4)
        bench.run_to_the_end()
        bench.scale(3)
        bench.run_to_the_end()
        bench.run.advance_by(2 * CHECK_EVERY_S)
        bench.step()
        assert bench.conditions == {"Ready": [""]}


def test_a_silent_broker_is_found_where_strimzis_definitions_prune_the_registered_ones():
    with OperatorBench(definitions=list_strimzi_definitions()) as bench:
        bench.make_cluster()
        bench.step()
        bench.brokers.catch_up().brokers[2].is_fenced = True
        bench.run.advance_by(CHECK_EVERY_S)
        bench.step()
        assert bench.conditions == SILENT
        bench.start_operator()
        bench.step()
        assert bench.conditions == SILENT, "the warning that stands tells a new process"
        bench.brokers.start_broker(2)
        bench.step()
        assert bench.conditions == {"Ready": [""]}


def test_no_warning_of_brokers_that_start_or_leave_with_strimzis_definitions():
    with OperatorBench(definitions=list_strimzi_definitions()) as bench:
        bench.make_cluster()
        bench.scale(5)
        for _ in range(3):
            bench.step()
            assert bench.conditions == {"Ready": [""]}
            bench.run.advance_by(CHECK_EVERY_S)
        bench.make_ready(3, 4)
        bench.scale(3)
        for _ in range(60):
            bench.step()
            assert bench.conditions == {"Ready": [""]}
            bench.run_rebalances()
            bench.run.advance_by(5)
        assert bench.live == ["c-p-0", "c-p-1", "c-p-2"]
