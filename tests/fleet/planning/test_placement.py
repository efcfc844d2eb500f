"""Placement: docs/design/fleet.md 10, and the strategies and silent agents of 15.1."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.fleet.model.policy import FleetPolicy, PlacementStrategy
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType, ScalingType
from plimsoll.fleet.planning.placement import (
    PlacementDecision,
    build_cluster_room,
    build_placement_plan,
    check_enterprise_cluster,
    place_kafkas,
)
from plimsoll.fleet.ports import ClusterRoom
from tests.fleet.fleet_rows import (
    NOW,
    STANDARD,
    count_kafkas,
    make_cluster,
    make_kafka,
    make_manual,
    make_policy,
    offer,
)

if TYPE_CHECKING:
    from plimsoll.fleet.model.clusters import Cluster

X2 = make_kafka("k", size_id="x2")
SILENT_SINCE = NOW - timedelta(minutes=11)


def place(
    *clusters: Cluster, kafkas: tuple = (make_kafka("k"),), counts: tuple = (), policy: FleetPolicy | None = None
) -> list[PlacementDecision]:
    return list(place_kafkas(kafkas, clusters, counts, policy or make_policy(), NOW))


def decide(*clusters: Cluster, **given: Any) -> tuple[str, str | None]:
    (decision,) = place(*clusters, **given)
    return decision.reason, decision.cluster


@pytest.mark.parametrize(
    ("most", "count", "size_id", "expected"),
    [
        (1, 0, "x1", ("first_with_room", "a")),
        (1, 1, "x1", ("no_room", None)),
        (2, 1, "x2", ("no_room", None)),
    ],
)
def test_auto_takes_a_cluster_with_room(most: int, count: int, size_id: str, expected: tuple[str, str | None]):
    cluster = make_cluster("a", most)
    counts = (count_kafkas(cluster, count),)
    assert decide(cluster, kafkas=(make_kafka("k", size_id=size_id),), counts=counts) == expected


def test_the_room_of_a_cluster_is_what_the_decision_counted():
    cluster = make_cluster("a", {"standard": 7, "developer": 2})
    room = build_cluster_room(cluster, "standard", make_policy())
    assert room == ClusterRoom(
        most_units=7, locator=STANDARD, units={"standard": {"x1": 1, "x2": 2}}, unknown_size_units={"standard": 2}
    )
    other = build_cluster_room(cluster, "premium", make_policy())
    assert other is not None
    assert other.most_units == 0


@pytest.mark.parametrize(("limit", "most"), [(5, 5), (0, 0), (-1, None)])
def test_all_types_share_the_room_of_a_manual_cluster(limit: int, most: int | None):
    policy = make_policy(scaling_type=ScalingType.MANUAL, manual_clusters=(make_manual("a", limit),))
    room = build_cluster_room(make_cluster("a"), "standard", policy)
    assert (None if room is None else room.most_units) == most
    if room is not None:
        assert room.locator is None
        assert set(room.units) == {"standard", "developer"}
    assert build_cluster_room(make_cluster("b"), "standard", policy) is None
    assert build_cluster_room(make_cluster("a"), "standard", make_policy(scaling_type=ScalingType.NONE)) is None


def test_the_oldest_cluster_with_room_is_taken_and_all_candidates_are_listed():
    full, first, second = make_cluster("a", 1), make_cluster("b"), make_cluster("c")
    (decision,) = place(second, first, full, kafkas=(X2,))
    assert decision.cluster == "b"
    assert [(found.id, found.count, found.requested, found.max_units, found.fits) for found in decision.candidates] == [
        ("a", 0, 2, 1, False),
        ("b", 0, 2, 10, True),
        ("c", 0, 2, 10, True),
    ]


@pytest.mark.parametrize(
    "other",
    [
        make_cluster("a", status=ClusterStatus.WAITING),
        make_cluster("a", region="eu-west-1"),
        make_cluster("a", cloud_provider="gcp"),
        make_cluster("a", supported_instance_type="standardised"),
        make_cluster("a", multi_az=False),
        make_cluster("a", cluster_type=ClusterType.ENTERPRISE),
        make_cluster("a", deleted_at=NOW),
    ],
    ids=["status", "region", "provider", "type", "zones", "enterprise", "deleted"],
)
def test_other_clusters_are_no_candidates(other: Cluster):
    assert decide(other) == ("no_cluster", None)


def test_a_developer_kafka_may_run_in_several_zones():
    cluster = make_cluster("a", {"developer": 5})
    kafka = make_kafka("k", instance_type="developer", multi_az=False)
    assert decide(cluster, kafkas=(kafka,)) == ("first_with_room", "a")


def test_each_kafka_sees_those_placed_before_it():
    kafkas = tuple(make_kafka(f"k{minute}", created_at=NOW - timedelta(minutes=minute)) for minute in (1, 2, 3))
    decisions = place(make_cluster("a", 2), kafkas=kafkas)
    assert [(found.kafka_id, found.cluster) for found in decisions] == [("k3", "a"), ("k2", "a"), ("k1", None)]


def test_a_kafka_of_an_unknown_size_waits_alone():
    kafkas = (make_kafka("k1", size_id="x9"), make_kafka("k2"))
    assert [found.reason for found in place(make_cluster("a"), kafkas=kafkas)] == ["unknown_size", "first_with_room"]


def test_a_silent_agent_gets_no_kafka():
    assert decide(make_cluster("a", last_report_at=SILENT_SINCE)) == ("agent_silent", None)
    assert decide(make_cluster("a", last_report_at=SILENT_SINCE), make_cluster("b")) == ("first_with_room", "b")
    assert decide(make_cluster("a", last_report_at=NOW - timedelta(minutes=10))) == ("first_with_room", "a")


def test_a_cluster_that_is_closed_gets_no_kafka():
    assert decide(make_cluster("a", schedulable=False)) == ("unschedulable", None)


@pytest.mark.parametrize(
    ("strategy", "expected"),
    [
        (PlacementStrategy.FIRST, ("first_with_room", "a")),
        (PlacementStrategy.BEST_FIT, ("best_fit", "b")),
        (PlacementStrategy.SPREAD, ("spread", "c")),
    ],
)
def test_strategies_choose_among_those_with_room(strategy: PlacementStrategy, expected: tuple[str, str]):
    clusters = make_cluster("a", 5), make_cluster("b", 3), make_cluster("c", 9), make_cluster("d", 3)
    assert decide(*clusters, kafkas=(X2,), policy=make_policy(placement=strategy)) == expected


def test_manual_counts_all_types_and_keeps_the_limit_of_the_file():
    both = make_cluster("a", {"standard": 0, "developer": 0})
    developers = count_kafkas(both, 2, locator=both.locators[1])
    policy = make_policy(
        offer(), scaling_type=ScalingType.MANUAL, manual_clusters=(make_manual("a", 3), make_manual("b", -1))
    )
    clusters = both, make_cluster("b", 0)
    assert decide(*clusters, counts=(developers,), policy=policy) == ("first_with_room", "a")
    assert decide(*clusters, counts=(developers,), kafkas=(X2,), policy=policy) == ("first_with_room", "b")


def test_manual_leaves_out_clusters_that_are_not_schedulable_and_bounds_no_cluster_that_the_file_lacks():
    policy = make_policy(scaling_type=ScalingType.MANUAL, manual_clusters=(make_manual("a", -1, schedulable=False),))
    assert decide(make_cluster("a", 0), policy=policy) == ("unschedulable", None)
    assert decide(make_cluster("a", 0), make_cluster("b", 0), policy=policy) == ("first_with_room", "b")


def test_none_takes_the_first_ready_cluster_without_a_capacity_test():
    policy = make_policy(scaling_type=ScalingType.NONE)
    assert decide(make_cluster("a", 0), policy=policy) == ("first_with_room", "a")


def test_an_enterprise_cluster_takes_kafkas_of_its_organisation():
    cluster = make_cluster("a", 1, cluster_type=ClusterType.ENTERPRISE, organization_id="acme")
    own = make_kafka("k", organisation_id="acme")
    assert check_enterprise_cluster(own, cluster, (), make_policy()).cluster == "a"
    assert check_enterprise_cluster(own, cluster, (count_kafkas(cluster, 1),), make_policy()).reason == "no_room"
    assert check_enterprise_cluster(make_kafka("k"), cluster, (), make_policy()).reason == "no_cluster"
    assert check_enterprise_cluster(own, None, (), make_policy()).reason == "no_cluster"


def test_the_plan_names_the_kafka_and_its_cluster():
    plan = build_placement_plan(place(make_cluster("a", 1), kafkas=(make_kafka("k1"), make_kafka("k2"))), 7, NOW)
    assert [(action.verb, str(action.target)) for action in plan.actions] == [("place", "kafka/k1")]
    assert [str(ref) for ref in plan.actions[0].subjects] == ["kafka/k1", "cluster/a"]
    assert [(found.format_subjects(), found.reason.code) for found in plan.not_done] == [("kafka/k2", "NoRoom")]
