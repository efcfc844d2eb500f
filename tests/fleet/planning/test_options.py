"""The options of docs/design/fleet.md 15.1: back-off, backlog, parallel creations, waiting times, silent agents."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from plimsoll.fleet.model.policy import CreationPolicy, FleetPolicy, RemovalPolicy
from plimsoll.fleet.model.statuses import ClusterStatus
from plimsoll.fleet.planning.capacity import build_capacity
from plimsoll.fleet.planning.scale_down import evaluate_scale_down
from plimsoll.fleet.planning.scale_up import LocatorEvaluation, evaluate_scale_up
from tests.fleet.fleet_rows import NOW, STANDARD, count_kafkas, make_cluster, make_policy, offer

if TYPE_CHECKING:
    from plimsoll.fleet.model.clusters import Cluster


def scale_up(policy: FleetPolicy, *clusters: Cluster, counts: tuple = ()) -> LocatorEvaluation:
    (evaluation,) = evaluate_scale_up(build_capacity(clusters, counts, policy, NOW), policy, NOW).evaluations
    return evaluation


def scale_down(policy: FleetPolicy, *clusters: Cluster) -> dict[str, tuple[str, str]]:
    found = evaluate_scale_down(build_capacity(clusters, (), policy, NOW), policy, NOW).evaluations
    return {evaluation.id: (evaluation.decision, evaluation.reason) for evaluation in found}


def failed(number: int, *, minutes: float) -> Cluster:
    return make_cluster(f"f{number}", status=ClusterStatus.FAILED, updated_at=NOW - timedelta(minutes=minutes))


# ---- after failed creations


@pytest.mark.parametrize(
    ("failures", "reason"),
    [
        ([0.4], "create_backoff"),
        ([0.5], "biggest_does_not_fit"),
        ([10, 0.9], "create_backoff"),
        ([10, 1], "biggest_does_not_fit"),
        ([60 * 30, 60 * 25], "biggest_does_not_fit"),
    ],
)
def test_a_failed_creation_is_repeated_after_a_time_that_doubles(failures: list[float], reason: str):
    clusters = [failed(number, minutes=minutes) for number, minutes in enumerate(failures)]
    assert scale_up(make_policy(), *clusters).reason == reason


def test_the_waiting_time_is_bounded():
    clusters = [failed(number, minutes=31) for number in range(20)]
    policy = make_policy(creation=CreationPolicy(max_failed=0))
    assert scale_up(policy, *clusters).reason == "biggest_does_not_fit"
    assert scale_up(policy, *clusters, failed(99, minutes=29)).reason == "create_backoff"


@pytest.mark.parametrize("days", [0, 40])
def test_after_three_failures_in_a_day_none_is_made_until_one_is_retired(days: int):
    clusters = [failed(number, minutes=1440 * days + 300 * number) for number in range(3)]
    evaluation = scale_up(make_policy(), *clusters)
    assert (evaluation.decision, evaluation.reason) == ("none", "create_backoff")
    assert evaluation.inputs["retry_at"] is None
    assert scale_up(make_policy(), *clusters[1:], failed(9, minutes=9999)).reason != "create_backoff"


def test_failures_elsewhere_do_not_count():
    other = make_cluster("f", {"developer": 1}, status=ClusterStatus.FAILED, updated_at=NOW)
    assert scale_up(make_policy(), other).reason == "biggest_does_not_fit"


# ---- Kafkas without a place

BACKLOG = CreationPolicy(count_backlog=True)


@pytest.mark.parametrize(
    ("waiting", "slack", "expected"),
    [
        (0, 0, ("none", "enough")),
        (8, 0, ("none", "enough")),
        (9, 0, ("create", "backlog")),
        (8, 3, ("create", "backlog")),
        (0, 11, ("create", "below_slack")),
    ],
)
def test_the_backlog_counts_as_consumed(waiting: int, slack: int, expected: tuple[str, str]):
    policy = make_policy(offer(slack=slack), creation=BACKLOG)
    evaluation = scale_up(policy, make_cluster("a"), counts=(count_kafkas(None, waiting),))
    assert (evaluation.decision, evaluation.reason) == expected
    assert evaluation.inputs["consumed"] == 0


def test_the_backlog_does_not_count_unless_configured_nor_for_the_limit():
    counts = (count_kafkas(None, 50),)
    assert scale_up(make_policy(), make_cluster("a"), counts=counts).reason == "enough"
    limited = make_policy(offer(limit=50), creation=BACKLOG)
    assert scale_up(limited, make_cluster("a"), counts=counts).reason == "backlog"


@pytest.mark.parametrize(("creations", "waiting", "reason"), [(1, 6, "ongoing"), (1, 7, "create"), (2, 99, "ongoing")])
def test_creations_run_in_parallel_while_the_backlog_exceeds_what_they_bring(creations: int, waiting: int, reason: str):
    """A pool of 18 nodes brings 6 units."""
    making = [make_cluster(f"m{number}", 0, status=ClusterStatus.ACCEPTED) for number in range(creations)]
    policy = make_policy(creation=CreationPolicy(max_parallel=2))
    evaluation = scale_up(policy, *making, counts=(count_kafkas(None, waiting),))
    assert reason in {evaluation.reason, evaluation.decision}


# ---- waiting before removals


@pytest.mark.parametrize(
    ("since", "expected"),
    [
        (None, ("keep", "not_empty_long_enough")),
        (9, ("keep", "not_empty_long_enough")),
        (10, ("remove", "not_needed")),
    ],
)
def test_a_cluster_has_to_be_empty_for_some_time(since: float | None, expected: tuple[str, str]):
    policy = make_policy(removal=RemovalPolicy(minimum_empty_s=600))
    empty_since = None if since is None else NOW - timedelta(minutes=since)
    assert scale_down(policy, make_cluster("a", empty_since=empty_since), make_cluster("b"))["a"] == expected


@pytest.mark.parametrize(("minutes", "expected"), [(9, ("keep", "cooling_down")), (10, ("remove", "not_needed"))])
def test_nothing_is_removed_for_some_time_after_a_creation_of_the_same_locator(minutes: int, expected: tuple[str, str]):
    policy = make_policy(removal=RemovalPolicy(cool_down_s=600))
    new = make_cluster("b", ready_at=NOW - timedelta(minutes=minutes))
    elsewhere = make_cluster("c", {"developer": 1}, ready_at=NOW)
    assert scale_down(policy, make_cluster("a"), new, elsewhere)["a"] == expected


# ---- silent agents


def test_a_silent_cluster_stays_in_consumed_and_leaves_free():
    silent = make_cluster("a", last_report_at=NOW - timedelta(minutes=11))
    open_cluster = make_cluster("b", 4)
    counts = (count_kafkas(silent, 3), count_kafkas(open_cluster, 1))
    inputs = scale_up(make_policy(), silent, open_cluster, counts=counts).inputs
    assert (inputs["consumed"], inputs["free"], inputs["max"]) == (4, 3, 7)
    assert scale_up(make_policy(), silent).reason == "biggest_does_not_fit"
    longer = make_policy(agent_silence_s=3600)
    assert build_capacity([silent], counts[:1], longer, NOW).summarize(STANDARD).free == 7
