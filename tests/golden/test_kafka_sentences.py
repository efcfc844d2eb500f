"""The wording of Kafka's sentences. It needs no scenarios, so it is fast.

Every reason of the executor, and the refusals and held replicas of the analyzer, with numbers replaced by `#`. After a
deliberate rewording run the test with `PLIMSOLL_UPDATE_GOLDEN=1` and review the difference.
"""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from plimsoll.kafka.executor import reasons
from plimsoll.kafka.model.description import BrokerCapacity, LogDir, TopicDescription, TopicPartition
from plimsoll.kafka.model.proposals import Refusal
from plimsoll.kafka.model.requests import BrokerLogDir, Mode, RebalanceRequest
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.planning.optimizer import optimize
from plimsoll.kafka.reporting.journal_plans import build_plan
from tests.golden.reviewed_sentences import check_subsystem
from tests.kafka.planning.clusters import GB, build_cluster, describe_broker, describe_partition, describe_topic
from tests.nodes.planning.builders import NOON

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.core.plans import Reason
    from plimsoll.kafka.model.cluster import ClusterModel

KEYS = [TopicPartition("orders", 0), TopicPartition("orders", 1)]
ARGUMENTS: dict[str, list[tuple[tuple[Any, ...], dict[str, Any]]]] = {
    "explain_foreign": [((KEYS,), {})],
    "explain_under_replicated": [((KEYS, {1}), {}), ((KEYS, {1, 2}), {})],
    "explain_not_in_sync": [((KEYS,), {})],
    "explain_no_leader": [((KEYS,), {})],
    "explain_dead_destination": [(([3],), {}), (([3, 4],), {})],
    "explain_offline_destination": [((3,), {})],
    "explain_foreign_rates": [(({1},), {}), (({1, 2},), {})],
    "explain_left_rates": [(({3},), {}), (({3, 4},), {})],
    "explain_unavailable": [(("no broker answers",), {})],
    "explain_bytes_per_hour": [((100, 90), {})],
    "explain_unconfirmed": [((100, 90, 0), {}), ((0, 90, 1), {}), ((10, 90, 2), {})],
    "explain_unfinished": [(("e1",), {})],
    "explain_leader_kept": [((1, 2), {}), ((2, 2), {}), ((-1, 2), {})],
    "explain_stopped": [(((1, 2),), {"was_begun": True}), (((1, 2),), {"was_begun": False})],
    "explain_error": [(("X", "it says why"), {}), (("X", "it says why"), {"attempts": 3})],
    "explain_vanished": [((3,), {})],
    "explain_changed_factor": [((3, 2), {})],
    "explain_deleted": [((KEYS[0],), {"is_topic": True}), ((KEYS[0],), {"is_topic": False})],
    "explain_others": [((KEYS,), {})],
    "explain_outdated": [((KEYS,), {})],
    "explain_not_emptied": [
        (({3: [TopicPartition("orders", 7)]},), {}),
        (({3: [TopicPartition("orders", 7)], 4: [TopicPartition("orders", 7), TopicPartition("orders", 8)]},), {}),
    ],
}


def test_kafka_sentences_are_as_reviewed():
    reasons_by_place = [*_list_executor_reasons(), *_list_planning_reasons()]
    check_subsystem("kafka", ((place, reason.code, str(reason)) for place, reason in reasons_by_place))


def test_every_reason_of_the_executor_is_reviewed():
    names = {name for name, _ in inspect.getmembers(reasons, inspect.isfunction) if name.startswith("explain_")}
    assert set(ARGUMENTS) == names


def _list_executor_reasons() -> Iterator[tuple[str, Reason]]:
    for name, calls in ARGUMENTS.items():
        for positional, named in calls:
            yield "executor", getattr(reasons, name)(*positional, **named)


def _list_planning_reasons() -> Iterator[tuple[str, Reason]]:
    for model, request in _list_refused():
        refusal = optimize(model, request, AnalyzerSettings())
        assert isinstance(refusal, Refusal), request
        yield "refusals", refusal.reason
    for model, request in _list_planned():
        result = optimize(model, request, AnalyzerSettings())
        assert not isinstance(result, Refusal), result
        for reason in result.held:
            yield "held", reason
        for action in build_plan(result, at=NOON).actions:
            yield "journal", action.reason


def _list_refused() -> Iterator[tuple[ClusterModel, RebalanceRequest]]:
    brokers = [describe_broker(index, rack=f"r{index}") for index in range(3)]
    topics = [describe_topic("a", [(0, 1, 2)] * 4), describe_topic("b.c", [(0, 1)] * 3)]
    model = build_cluster(brokers, topics)
    two_dirs = describe_broker(0, rack="r0", log_dirs=(LogDir(path="/d0"), LogDir(path="/d1")))
    with_dirs = build_cluster([two_dirs, *brokers[1:]], topics)
    silent = [describe_broker(index, rack=f"r{index}", log_dirs=None, problem="timed out") for index in range(3)]
    fenced = describe_broker(2, rack="r2", is_fenced=True)
    small = [describe_broker(index, rack=f"r{index}", capacity=BrokerCapacity(disk_mb=100.0)) for index in range(2)]
    quiet = describe_broker(2, rack="r2", log_dirs=None, problem="timed out")
    full = build_cluster([*small, quiet], [describe_topic("t", [(0,), (1,)], size=90 << 20)])
    yield build_cluster([], []), RebalanceRequest()
    yield build_cluster(silent, topics), RebalanceRequest()
    yield build_cluster([*brokers[:2], fenced], topics), RebalanceRequest()
    yield full, RebalanceRequest()
    yield model, RebalanceRequest(mode=Mode.ADD_BROKERS)
    yield model, RebalanceRequest(mode=Mode.ADD_BROKERS, brokers=(7,))
    yield model, RebalanceRequest(destination_brokers=(7, 8))
    yield build_cluster([*brokers[:2], fenced], topics), RebalanceRequest(destination_brokers=(2,))
    yield model, RebalanceRequest(excluded_topics="(")
    yield model, RebalanceRequest(mode=Mode.REMOVE_BROKERS, brokers=(2,), excluded_topics="a")
    yield model, RebalanceRequest(mode=Mode.REMOVE_BROKERS, brokers=(2,))
    yield model, RebalanceRequest(goals=("NoSuchGoal",))
    yield model, RebalanceRequest(goals=("ReplicaDistributionGoal",))
    yield model, RebalanceRequest(goals=("RackAwareGoal",), rebalance_disk=True)
    yield model, RebalanceRequest(mode=Mode.REMOVE_DISKS)
    yield with_dirs, RebalanceRequest(mode=Mode.REMOVE_DISKS, log_dirs=(BrokerLogDir(broker=0, path="/d9"),))
    yield model, RebalanceRequest(mode=Mode.REMOVE_DISKS, log_dirs=(BrokerLogDir(broker=0, path="/data"),))


def _list_planned() -> Iterator[tuple[ClusterModel, RebalanceRequest]]:
    brokers = [describe_broker(index, rack=f"r{index}") for index in range(4)]
    quiet = describe_broker(4, rack="r4", log_dirs=None, problem="timed out")
    down = describe_broker(5, rack="r5", is_fenced=True)
    partitions = (
        describe_partition(0, (4,)),
        describe_partition(1, (0, 1, 2), adding=(0,), removing=(2,)),
        describe_partition(2, (0,), leader=-1, isr=()),
        describe_partition(3, (5, 0)),
        *(describe_partition(number, (0,), size=GB) for number in range(4, 16)),
    )
    yield (
        build_cluster([*brokers, quiet, down], [TopicDescription(name="t", partitions=partitions)]),
        RebalanceRequest(),
    )
