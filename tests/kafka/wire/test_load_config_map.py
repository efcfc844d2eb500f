"""The ConfigMap of a rebalance: loads, progress by state, and numbers that are missing or lie."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from plimsoll.kafka.model.rebalances import ExecutorSubstate, RebalanceState
from plimsoll.kafka.wire.load_config_map import (
    BROKER_LOAD,
    COMPLETED_PERCENT,
    ESTIMATED_MINUTES,
    EXECUTOR_STATE,
    MAX_BYTES,
    build_broker_load,
    build_load_data,
)
from tests.kafka.cruise_control.client.recorded import read_recorded

State = RebalanceState
NOW = datetime(2026, 11, 16, 1, 28, 42, tzinfo=UTC)
STARTED = "No reason provided (Client: 127.0.0.1, Date: 2026-11-16T01:26:42Z)"
EXECUTOR = ExecutorSubstate(
    state="INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS",
    finished_data_mb=3,
    total_data_mb=18,
    triggered_task_reason=STARTED,
    body={"state": "INTER_BROKER_REPLICA_MOVEMENT_TASK_IN_PROGRESS"},
)
METRICS = {
    "leaders",
    "replicas",
    "cpuPercentage",
    "diskUsedPercentage",
    "diskUsedMB",
    "networkOutRateKB",
    "leaderNetworkInRateKB",
    "followerNetworkInRateKB",
    "potentialMaxNetworkOutRateKB",
}


def build(state: State, body: Any = None, executor: ExecutorSubstate | None = None) -> dict[str, str | None]:
    return build_load_data(state, body=body, executor=executor, now=NOW).data


def test_the_recorded_loads_have_before_after_and_difference():
    body = read_recorded("add-broker-dryrun-verbose")["response"]["json"]
    loads = build_broker_load(body)
    assert list(loads) == ["0", "1", "2", "3"]
    for metrics in loads.values():
        assert metrics.keys() == METRICS
        for value in metrics.values():
            assert value["diff"] == value["after"] - value["before"]
        assert isinstance(metrics["leaders"]["after"], int)
    assert loads["3"]["replicas"]["before"] == 0
    assert loads["3"]["replicas"]["diff"] > 0


def test_without_a_load_before_there_is_only_the_one_after():
    body = {"loadAfterOptimization": {"brokers": [{"Broker": 7, "Leaders": 2, "CpuPct": 1.5}]}}
    assert build_broker_load(body) == {"7": {"leaders": {"after": 2}, "cpuPercentage": {"after": 1.5}}}


@pytest.mark.parametrize(
    "load",
    [
        None,
        [],
        {"brokers": {}},
        {"brokers": [None, 7, {"Broker": "x"}]},
        {"brokers": [{"Broker": 1, "Leaders": "2", "CpuPct": float("nan"), "DiskMB": True, "Replicas": 10**400}]},
    ],
)
def test_loads_that_lie_are_left_out(load: Any):
    for metrics in build_broker_load({"loadAfterOptimization": load, "loadBeforeOptimization": load}).values():
        assert metrics == {}


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (State.NEW, {ESTIMATED_MINUTES: None, COMPLETED_PERCENT: None, EXECUTOR_STATE: None}),
        (State.PENDING_PROPOSAL, {ESTIMATED_MINUTES: None, COMPLETED_PERCENT: None, EXECUTOR_STATE: None}),
        (State.PROPOSAL_READY, {ESTIMATED_MINUTES: None, COMPLETED_PERCENT: "0", EXECUTOR_STATE: None}),
        (State.READY, {ESTIMATED_MINUTES: "0", COMPLETED_PERCENT: "100", EXECUTOR_STATE: None}),
        (State.STOPPED, {ESTIMATED_MINUTES: None}),
        (State.NOT_READY, {ESTIMATED_MINUTES: None}),
        (State.REBALANCING, {}),
    ],
)
def test_progress_by_state(state: State, expected: dict[str, Any]):
    assert build(state) == expected


def test_progress_of_an_execution():
    data = build(State.REBALANCING, executor=EXECUTOR)
    # 3 of 18 MB in two minutes: 15 MB at 1.5 MB per minute.
    assert (data[COMPLETED_PERCENT], data[ESTIMATED_MINUTES]) == ("16", "10")
    assert json.loads(data[EXECUTOR_STATE] or "") == EXECUTOR.body


@pytest.mark.parametrize(
    "changes",
    [
        {"finished_data_mb": None, "total_data_mb": None},
        {"finished_data_mb": None},
        {"total_data_mb": None},
        {"finished_data_mb": 0.0},
        {"finished_data_mb": float("inf")},
        {"total_data_mb": float("nan")},
    ],
)
def test_numbers_that_are_missing_keep_the_previous_ones(changes: dict[str, Any]):
    assert build(State.REBALANCING, executor=replace(EXECUTOR, **changes)).keys() == {EXECUTOR_STATE}


@pytest.mark.parametrize("reason", ["", "no date", "Date: 2026-99-99T01:26:42Z", "Date: 2999-01-01T00:00:00Z"])
def test_without_a_start_there_is_a_percentage_and_no_estimate(reason: str):
    data = build(State.REBALANCING, executor=replace(EXECUTOR, triggered_task_reason=reason))
    assert data[COMPLETED_PERCENT] == "16"
    assert ESTIMATED_MINUTES not in data


def test_nothing_to_move_is_all_of_it():
    data = build(State.REBALANCING, executor=replace(EXECUTOR, finished_data_mb=0.0, total_data_mb=0.0))
    assert (data[COMPLETED_PERCENT], data[ESTIMATED_MINUTES]) == ("100", "0")


def test_more_than_all_of_it_is_all_of_it():
    data = build(State.REBALANCING, executor=replace(EXECUTOR, finished_data_mb=20.0))
    assert (data[COMPLETED_PERCENT], data[ESTIMATED_MINUTES]) == ("100", "0")


def test_an_estimate_beyond_all_limits_is_none():
    data = build(State.REBALANCING, executor=replace(EXECUTOR, finished_data_mb=1e-12, total_data_mb=1e15))
    assert ESTIMATED_MINUTES not in data


def test_a_value_that_is_too_large_is_left_out_with_a_warning():
    brokers = [{"Broker": number, "Leaders": 1, "CpuPct": 0.123456789} for number in range(20_000)]
    load = build_load_data(
        State.PROPOSAL_READY, body={"loadAfterOptimization": {"brokers": brokers}}, executor=None, now=NOW
    )
    assert load.data[BROKER_LOAD] is None
    (warning,) = load.warnings
    assert (warning.code, warning.facts) == ("ConfigMapTooLarge", {"key": BROKER_LOAD})
    assert MAX_BYTES < 1024 * 1024
