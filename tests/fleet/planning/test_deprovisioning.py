"""The second look before a deletion: docs/design/fleet.md 9 with D-6."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType, ScalingType
from plimsoll.fleet.planning.capacity import build_capacity
from plimsoll.fleet.planning.deprovisioning import build_deprovisioning_plan, evaluate_deprovisioning
from tests.fleet.fleet_rows import NOW, count_kafkas, make_cluster, make_policy, offer

if TYPE_CHECKING:
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.policy import FleetPolicy


def marked(row_id: str, **changes: Any) -> Cluster:
    return make_cluster(row_id, status=ClusterStatus.DEPROVISIONING, **changes)


def decide(*clusters: Cluster, counts: tuple = (), policy: FleetPolicy | None = None) -> list[tuple[str, str, str]]:
    policy = policy or make_policy()
    capacity = build_capacity(clusters, counts, policy, NOW)
    found = evaluate_deprovisioning(clusters, capacity, policy, NOW)
    return [(decision.id, decision.decision, decision.reason) for decision in found]


def test_an_empty_cluster_that_is_not_needed_is_deleted():
    assert decide(marked("a"), make_cluster("b")) == [("a", "delete", "empty")]


def test_a_kafka_that_came_meanwhile_brings_the_cluster_back():
    cluster = marked("a")
    assert decide(cluster, make_cluster("b"), counts=(count_kafkas(cluster, 1),)) == [("a", "restore", "not_empty")]


def test_a_need_that_arose_meanwhile_brings_the_cluster_back():
    sibling = make_cluster("b")
    assert decide(marked("a"), sibling, counts=(count_kafkas(sibling, 9),)) == [("a", "restore", "capacity_needed")]


def test_after_a_delete_call_nothing_brings_the_cluster_back():
    cluster = marked("a", delete_requested_at=NOW)
    assert decide(cluster, counts=(count_kafkas(cluster, 1),)) == [("a", "delete", "delete_requested")]


def test_a_sibling_that_is_being_made_does_not_replace_the_cluster():
    sibling = make_cluster("b", status=ClusterStatus.WAITING)
    assert decide(marked("a"), sibling) == [("a", "restore", "capacity_needed")]


def test_a_waiting_time_after_failures_does_not_look_like_no_need():
    failed = [make_cluster(f"f{number}", status=ClusterStatus.FAILED, created_at=NOW) for number in range(3)]
    assert decide(marked("a"), *failed) == [("a", "restore", "capacity_needed")]


def test_what_cannot_be_evaluated_is_not_deleted():
    sibling = make_cluster("b")
    counts = (count_kafkas(sibling, 1, size_id="x9"),)
    assert decide(marked("a"), sibling, counts=counts) == [("a", "restore", "unknown_size")]


def test_a_region_that_is_not_offered_any_more_needs_nothing():
    assert decide(marked("a", region="eu-west-1")) == [("a", "delete", "empty")]


def test_a_cluster_that_an_operator_retired_is_deleted_when_it_is_empty():
    assert decide(marked("a", schedulable=False)) == [("a", "delete", "empty")]


@pytest.mark.parametrize("scaling_type", [ScalingType.MANUAL, ScalingType.NONE])
def test_without_scaling_rules_only_emptiness_counts(scaling_type: ScalingType):
    cluster = marked("a")
    policy = make_policy(offer(), scaling_type=scaling_type)
    assert decide(cluster, policy=policy) == [("a", "delete", "empty")]
    assert decide(cluster, policy=policy, counts=(count_kafkas(cluster, 1),)) == [("a", "restore", "not_empty")]


def test_only_managed_clusters_in_that_status_are_looked_at():
    assert (
        decide(make_cluster("a"), marked("b", cluster_type=ClusterType.ENTERPRISE), marked("c", deleted_at=NOW)) == []
    )


def test_the_plan_has_an_action_per_cluster():
    clusters = marked("a"), make_cluster("b")
    policy = make_policy()
    decisions = evaluate_deprovisioning(clusters, build_capacity(clusters, (), policy, NOW), policy, NOW)
    plan = build_deprovisioning_plan(decisions, 3, NOW)
    assert [(action.verb, str(action.target), action.reason.code) for action in plan.actions] == [
        ("delete", "cluster/a", "Empty")
    ]
