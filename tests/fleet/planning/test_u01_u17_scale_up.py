"""The unit table U of docs/design/fleet.md 6.1: scale-up and the summary of a locator."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.fleet.model.clusters import Cluster, Locator
from plimsoll.fleet.model.policy import CloudProvider, Region, RegionType
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType, ProviderType
from plimsoll.fleet.planning.capacity import Summary, build_capacity
from plimsoll.fleet.planning.scale_up import (
    LocatorEvaluation,
    ScaleUp,
    evaluate_scale_up,
    is_limit_reached,
    lacks_slack,
)
from tests.fleet.fleet_rows import (
    NOW,
    STANDARD,
    count_kafkas,
    make_cluster,
    make_instance_type,
    make_policy,
    offer,
)

if TYPE_CHECKING:
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.model.units import KafkaCount

A = make_cluster("a", 2)
B = make_cluster("b", 6)
CUSTOMERS = make_cluster("c", 6, cluster_type=ClusterType.ENTERPRISE)
BASE = (A, B, CUSTOMERS)
COUNTS = (count_kafkas(A, 1), count_kafkas(B, 4), count_kafkas(CUSTOMERS, 4))
BIGGEST_4 = (make_instance_type("standard", 1, 4),)
TERRAFORMING = (
    ClusterStatus.ACCEPTED,
    ClusterStatus.PROVISIONING,
    ClusterStatus.PROVISIONED,
    ClusterStatus.WAITING,
)


def scale_up(policy: FleetPolicy, clusters: tuple[Cluster, ...] = BASE, counts: tuple = COUNTS) -> ScaleUp:
    return evaluate_scale_up(build_capacity(clusters, counts, policy, NOW), policy, NOW)


def evaluate(policy: FleetPolicy, clusters: tuple[Cluster, ...] = BASE, counts: tuple = COUNTS) -> LocatorEvaluation:
    (evaluation,) = scale_up(policy, clusters, counts).evaluations
    return evaluation


def summarize(clusters: tuple[Cluster, ...], counts: tuple[KafkaCount, ...] = COUNTS) -> Summary:
    return build_capacity(clusters, counts, make_policy(), NOW).summarize(STANDARD)


def decide(evaluation: LocatorEvaluation) -> tuple[str, str]:
    return evaluation.decision, evaluation.reason


def test_base_numbers_leave_out_the_enterprise_cluster():
    assert evaluate(make_policy(offer(slack=1))).inputs == {
        "limit": None,
        "slack": 1,
        "consumed": 5,
        "max": 8,
        "free": 3,
        "biggest": 2,
        "biggest_fits": True,
        "ongoing": False,
    }


def test_u1_limit_reached():
    assert decide(evaluate(make_policy(offer(limit=5)))) == ("none", "limit_reached")


def test_u2_a_cluster_is_being_made():
    extra = make_cluster("d", 0, status=ClusterStatus.PROVISIONING)
    assert decide(evaluate(make_policy(offer(slack=5)), (*BASE, extra))) == ("none", "ongoing")


def test_u3_the_biggest_size_fits_nowhere():
    assert decide(evaluate(make_policy(offer(), types=BIGGEST_4))) == ("create", "biggest_does_not_fit")


def test_u4_less_is_free_than_the_slack():
    assert decide(evaluate(make_policy(offer(slack=5)))) == ("create", "below_slack")


def test_u5_a_single_cluster_with_room():
    cluster = make_cluster("a", 10)
    assert decide(evaluate(make_policy(offer()), (cluster,), (count_kafkas(cluster, 8),))) == ("none", "enough")


def test_u6_the_slack_is_free():
    assert decide(evaluate(make_policy(offer(slack=1)))) == ("none", "enough")


def test_u7_the_limit_comes_before_the_biggest_size():
    assert decide(evaluate(make_policy(offer(limit=5), types=BIGGEST_4))) == ("none", "limit_reached")


def test_u8_an_ongoing_creation_comes_before_the_biggest_size():
    extra = make_cluster("d", 0, status=ClusterStatus.ACCEPTED, cluster_id="")
    assert decide(evaluate(make_policy(offer(), types=BIGGEST_4), (*BASE, extra))) == ("none", "ongoing")


def test_u9_the_biggest_size_counts_although_the_slack_is_free():
    assert decide(evaluate(make_policy(offer(slack=1), types=BIGGEST_4))) == ("create", "biggest_does_not_fit")


def test_u10_an_instance_type_that_is_not_configured_is_an_error_of_its_locator():
    policy = make_policy(offer("developer"), offer("standard"), types=(make_instance_type("standard", 1, 2),))
    result = scale_up(policy, (), ())
    assert [decide(found) for found in result.evaluations] == [
        ("error", "unknown_instance_type"),
        ("create", "biggest_does_not_fit"),
    ]
    assert [found.supported_instance_type for found in result.register] == ["standard"]


@pytest.mark.parametrize(("free", "slack", "lacks"), [(5, 3, False), (5, 5, False), (0, 0, False), (3, 5, True)])
def test_u11_the_slack_predicate(free: int, slack: int, *, lacks: bool):
    assert lacks_slack(free, slack) is lacks


@pytest.mark.parametrize(
    ("consumed", "limit", "reached"), [(6, 6, True), (7, 6, True), (0, 0, True), (1000, None, False)]
)
def test_u12_the_limit_predicate(consumed: int, limit: int | None, *, reached: bool):
    assert is_limit_reached(consumed, limit) is reached


@pytest.mark.parametrize("status", TERRAFORMING)
def test_u13_a_cluster_that_is_being_made_adds_nothing_but_is_ongoing(status: ClusterStatus):
    summary = summarize((*BASE, make_cluster("d", 30, status=status)))
    assert (summary.max_units, summary.consumed, summary.free, summary.is_ongoing) == (8, 5, 3, True)


@pytest.mark.parametrize(
    "other",
    [
        make_cluster("d", 30, region="eu-west-1"),
        make_cluster("d", 30, cloud_provider="gcp"),
        make_cluster("d", {"developer": 30}),
        make_cluster("d", 30, cluster_type=ClusterType.ENTERPRISE),
    ],
    ids=["region", "provider", "type", "cluster type"],
)
def test_u14_clusters_elsewhere_are_ignored(other: Cluster):
    assert summarize((*BASE, other)) == summarize(BASE)


@pytest.mark.parametrize("status", [ClusterStatus.DEPROVISIONING, ClusterStatus.CLEANUP])
def test_u15_a_cluster_that_goes_away_changes_nothing(status: ClusterStatus):
    assert summarize((*BASE, make_cluster("d", 30, status=status))) == summarize(BASE)


def test_u16_only_clusters_that_go_away():
    summary = summarize(
        (
            make_cluster("d", 30, status=ClusterStatus.CLEANUP),
            make_cluster("e", 30, status=ClusterStatus.DEPROVISIONING),
        )
    )
    assert (summary.max_units, summary.consumed, summary.free, summary.biggest_fits) == (0, 0, 0, False)


def test_u17_zones_follow_from_the_type_and_a_dry_run_registers_nothing():
    offers = (offer("standard"), offer("developer"))
    registered = scale_up(make_policy(*offers), (), ()).register
    assert [(found.supported_instance_type, found.multi_az) for found in registered] == [
        ("standard", True),
        ("developer", False),
    ]
    dry = scale_up(make_policy(*offers, scale_up_enabled=False), (), ())
    assert not dry.enabled
    assert [found.decision for found in dry.evaluations] == ["create", "create"]
    assert dry.register == ()


def test_a_registered_cluster_is_a_row_without_a_provider_id():
    (registration,) = scale_up(make_policy(offer()), (), ()).register
    cluster = registration.build_cluster("new", NOW)
    assert cluster.locators == (Locator("aws", "us-east-1", "standard"),)
    assert (cluster.status, cluster.cluster_id, cluster.multi_az) == (ClusterStatus.ACCEPTED, "", True)
    assert [pool.id for pool in registration.machine_pools] == ["kafka-standard"]


def test_a_region_with_a_cluster_class_gets_clusters_of_cluster_api():
    region = Region(
        name="us-east-1", is_default=True, types=(RegionType(instance_type="standard"),), cluster_class="dp"
    )
    policy = make_policy(providers=(CloudProvider(name="aws", is_default=True, regions=(region,)),))
    [registration] = evaluate_scale_up(build_capacity((), (), policy, NOW), policy, NOW).register
    assert registration.provider_type == ProviderType.CLUSTER_API
    assert registration.build_cluster("row", NOW).provider_type == ProviderType.CLUSTER_API
