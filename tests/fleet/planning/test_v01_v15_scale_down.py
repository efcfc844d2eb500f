"""The unit table V of docs/design/fleet.md 7.1: scale-down. V12 and V13 are about the worker as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.fleet.model.clusters import Cluster, Locator
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType, ScalingType
from plimsoll.fleet.planning.capacity import build_capacity
from plimsoll.fleet.planning.scale_down import ScaleDown, evaluate_scale_down
from tests.fleet.fleet_rows import NOW, count_kafkas, make_cluster, make_instance_type, make_policy, offer

if TYPE_CHECKING:
    from plimsoll.fleet.model.policy import FleetPolicy, InstanceType

BIGGEST_1 = (make_instance_type("standard", 1),)
THREE_TYPES = tuple(make_instance_type(name, 1) for name in ("t1", "t2", "t3"))


def scale_down(policy: FleetPolicy, *clusters: Cluster, counts: tuple = ()) -> ScaleDown:
    return evaluate_scale_down(build_capacity(clusters, counts, policy, NOW), policy, NOW)


def decide(policy: FleetPolicy, *clusters: Cluster, counts: tuple = ()) -> dict[str, tuple[str, str]]:
    found = scale_down(policy, *clusters, counts=counts).evaluations
    return {evaluation.id: (evaluation.decision, evaluation.reason) for evaluation in found}


def test_v1_a_kafka_of_one_type_keeps_the_cluster():
    cluster = make_cluster("c", {"standard": 10, "developer": 10})
    counts = (count_kafkas(cluster, 3, locator=Locator("aws", "us-east-1", "developer")),)
    assert decide(make_policy(), cluster, counts=counts) == {"c": ("keep", "not_empty")}


def test_v1_a_kafka_of_a_type_that_the_cluster_does_not_list_keeps_it_too():
    cluster = make_cluster("c")
    counts = (count_kafkas(cluster, 1, locator=Locator("aws", "us-east-1", "developer")),)
    assert decide(make_policy(), cluster, make_cluster("d"), counts=counts)["c"] == ("keep", "not_empty")


def test_v2_an_abandoned_region_is_left():
    result = scale_down(make_policy(), make_cluster("c", region="eu-west-1"))
    assert result.deprovision == ("c",)
    assert [(found.reason, found.types) for found in result.evaluations] == [("region_abandoned", ())]


def test_v3_an_enterprise_cluster_is_kept():
    cluster = make_cluster("c", cluster_type=ClusterType.ENTERPRISE)
    assert decide(make_policy(), cluster) == {"c": ("keep", "enterprise")}


def test_v4_a_cluster_whose_types_are_not_offered_is_removed():
    result = scale_down(make_policy(), make_cluster("c", {"developer": 10}))
    assert result.deprovision == ("c",)
    assert result.evaluations[0].reason == "type_not_offered"
    assert [found.offered for found in result.evaluations[0].types] == [False]


def test_v5_an_offered_type_that_is_not_configured_is_an_error():
    policy = make_policy(offer("developer"), types=BIGGEST_1)
    result = scale_down(policy, make_cluster("c", {"developer": 10}))
    assert [(found.decision, found.reason) for found in result.evaluations] == [("error", "unknown_instance_type")]
    assert result.deprovision == ()


def test_v6_the_only_cluster_is_kept():
    policy = make_policy(offer(), types=(make_instance_type("standard", 1, 4),))
    assert decide(policy, make_cluster("c")) == {"c": ("keep", "scale_up_would_follow")}


def test_v7_less_than_the_slack_would_be_free():
    clusters = make_cluster("c", 30), make_cluster("d", 29)
    assert decide(make_policy(offer(slack=30)), *clusters)["c"] == ("keep", "scale_up_would_follow")


def test_v8_a_cluster_that_is_being_made_does_not_count():
    sibling = make_cluster("d", 10, status=ClusterStatus.PROVISIONED)
    result = scale_down(make_policy(offer(slack=1)), make_cluster("c"), sibling)
    assert [(found.decision, found.reason) for found in result.evaluations] == [("keep", "scale_up_would_follow")]
    assert result.evaluations[0].types[0].inputs["ongoing"] is False


def test_v9_a_sibling_with_room_lets_the_cluster_go():
    policy = make_policy(offer(slack=1), types=BIGGEST_1)
    result = scale_down(policy, make_cluster("c", 10), make_cluster("d", 2))
    assert result.deprovision == ("c",)
    assert result.evaluations[0].reason == "not_needed"


def test_v10_of_two_empty_siblings_only_the_first_is_removed():
    policy = make_policy(offer(slack=1))
    assert scale_down(policy, make_cluster("d"), make_cluster("c")).deprovision == ("c",)


def test_v11_each_type_of_a_cluster_counts_on_what_is_left():
    policy = make_policy(offer("t1"), types=THREE_TYPES)
    clusters = (
        make_cluster("c1", {"t1": 10, "t2": 10}),
        make_cluster("c2", {"t1": 10, "t3": 10}),
        make_cluster("c3", {"t3": 10}),
    )
    result = scale_down(policy, *clusters)
    assert result.deprovision == ("c1", "c3")
    assert [found.decision for found in result.evaluations] == ["remove", "keep", "remove"]
    assert [found.instance_type for found in result.evaluations[1].types] == ["t1", "t3"]


@pytest.mark.parametrize("scaling_type", [ScalingType.MANUAL, ScalingType.NONE])
def test_v12_other_scaling_types_evaluate_nothing(scaling_type: ScalingType):
    result = scale_down(make_policy(scaling_type=scaling_type), make_cluster("c", region="eu-west-1"))
    assert result == ScaleDown(enabled=False)


def test_v13_a_row_that_cannot_be_counted_is_an_error_of_its_locator_only():
    types: tuple[InstanceType, ...] = (make_instance_type("standard", 1, 2), make_instance_type("developer", 1))
    policy = make_policy(offer("standard"), offer("developer"), types=types)
    full, empty = make_cluster("a"), make_cluster("b")
    developers = (make_cluster("c", {"developer": 5}), make_cluster("d", {"developer": 5}))
    counts = (count_kafkas(full, 1, size_id="x9"),)
    result = scale_down(policy, full, empty, *developers, counts=counts)
    assert [(found.id, found.decision, found.reason) for found in result.evaluations] == [
        ("a", "keep", "not_empty"),
        ("b", "error", "unknown_size"),
        ("c", "remove", "not_needed"),
        ("d", "keep", "scale_up_would_follow"),
    ]


@pytest.mark.parametrize("status", [status for status in ClusterStatus if status is not ClusterStatus.READY])
def test_v14_only_ready_clusters_are_evaluated(status: ClusterStatus):
    assert decide(make_policy(), make_cluster("c", region="eu-west-1", status=status)) == {}


def test_v15_a_dry_run_removes_nothing_and_lists_all_siblings():
    policy = make_policy(offer(slack=1), scale_down_enabled=False)
    result = scale_down(policy, make_cluster("c"), make_cluster("d"))
    assert [found.decision for found in result.evaluations] == ["remove", "remove"]
    assert (result.enabled, result.deprovision) == (False, ())
