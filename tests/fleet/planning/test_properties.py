"""Properties of fleet decisions, over random rows."""

from __future__ import annotations

import random
from collections import Counter
from datetime import timedelta
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.core.plans import encode
from plimsoll.fleet.model.clusters import Cluster, DynamicCapacity, Locator
from plimsoll.fleet.model.policy import CreationPolicy, FleetPolicy, PlacementStrategy, RemovalPolicy
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType
from plimsoll.fleet.model.units import KafkaCount
from plimsoll.fleet.planning.capacity import build_capacity
from plimsoll.fleet.planning.deprovisioning import evaluate_deprovisioning
from plimsoll.fleet.planning.placement import place_kafkas
from plimsoll.fleet.planning.scale_down import evaluate_scale_down
from plimsoll.fleet.planning.scale_up import evaluate_scale_up
from tests.fleet.fleet_rows import NOW, make_cluster, make_kafka, make_policy, offer

REGIONS = ("us-east-1", "eu-west-1")
TYPES = ("standard", "developer")


@st.composite
def clusters(draw: st.DrawFn) -> tuple[Cluster, ...]:
    """Up to eight clusters in two regions, one of which is not offered."""
    found = []
    for number in range(draw(st.integers(0, 8))):
        types = draw(st.sampled_from([("standard",), ("developer",), TYPES]))
        units = {name: draw(st.integers(0, 6)) for name in types}
        found.append(
            make_cluster(
                f"c{number}",
                units,
                region=draw(st.sampled_from((*REGIONS[:1], *REGIONS))),
                status=draw(st.sampled_from([ClusterStatus.READY, ClusterStatus.READY, *ClusterStatus])),
                cluster_type=draw(st.sampled_from([ClusterType.MANAGED, ClusterType.MANAGED, *ClusterType])),
                schedulable=draw(st.sampled_from([True, True, False])),
                created_at=NOW - timedelta(hours=draw(st.integers(0, 40))),
                last_report_at=draw(st.sampled_from([None, NOW, NOW - timedelta(hours=1)])),
                empty_since=draw(st.sampled_from([None, NOW - timedelta(hours=1)])),
                ready_at=draw(st.sampled_from([None, NOW - timedelta(hours=1)])),
            )
        )
    return tuple(found)


@st.composite
def counts(draw: st.DrawFn, rows: tuple[Cluster, ...]) -> tuple[KafkaCount, ...]:
    found = []
    for cluster in (*rows, None):
        for name in TYPES:
            number = draw(st.sampled_from([0, 0, 1, 3]))
            size_id = draw(st.sampled_from(["x1", "x1", "x2", "x9"] if name == "standard" else ["x1"]))
            region = "us-east-1" if cluster is None else cluster.region
            found.append(
                KafkaCount(
                    locator=Locator("aws", region, name),
                    cluster_id="" if cluster is None else cluster.cluster_id,
                    size_id=size_id,
                    consuming=number,
                    accepted=number if cluster is None else 0,
                    example_id=f"{cluster and cluster.id}-{name}",
                )
            )
    return tuple(found)


@st.composite
def policies(draw: st.DrawFn) -> FleetPolicy:
    offers = [
        offer(name, limit=draw(st.sampled_from([None, None, 0, 2, 6])), slack=draw(st.integers(0, 4)))
        for name in draw(st.sampled_from([("standard",), ("developer",), TYPES]))
    ]
    return make_policy(
        *offers,
        creation=CreationPolicy(
            count_backlog=draw(st.booleans()),
            max_parallel=draw(st.integers(1, 3)),
            max_failed=draw(st.integers(0, 2)),
        ),
        removal=RemovalPolicy(
            minimum_empty_s=draw(st.sampled_from([0, 60])), cool_down_s=draw(st.sampled_from([0, 60]))
        ),
        placement=draw(st.sampled_from(list(PlacementStrategy))),
    )


@st.composite
def fleets(draw: st.DrawFn) -> tuple[tuple[Cluster, ...], tuple[KafkaCount, ...], FleetPolicy]:
    rows = draw(clusters())
    return rows, draw(counts(rows)), draw(policies())


Fleet = tuple[tuple[Cluster, ...], tuple[KafkaCount, ...], FleetPolicy]


@given(fleets())
def test_removing_what_scale_down_removes_never_makes_scale_up_want_a_cluster(fleet: Fleet):
    rows, counted, policy = fleet
    removed = evaluate_scale_down(build_capacity(rows, counted, policy, NOW), policy, NOW).deprovision
    left = tuple(cluster for cluster in rows if cluster.id not in removed)
    touched = {locator for cluster in rows if cluster.id in removed for locator in cluster.locators}
    after = evaluate_scale_up(build_capacity(left, counted, policy, NOW), policy, NOW)
    assert [found for found in after.evaluations if found.locator in touched and found.decision == "create"] == []


@given(fleets())
def test_a_removed_cluster_is_not_restored_if_nothing_has_changed(fleet: Fleet):
    rows, counted, policy = fleet
    removed = evaluate_scale_down(build_capacity(rows, counted, policy, NOW), policy, NOW).deprovision
    marked = tuple(
        msgspec.structs.replace(cluster, status=ClusterStatus.DEPROVISIONING) if cluster.id in removed else cluster
        for cluster in rows
    )
    second = evaluate_deprovisioning(marked, build_capacity(marked, counted, policy, NOW), policy, NOW)
    assert {found.decision for found in second if found.id in removed} <= {"delete"}


@given(fleets())
def test_no_plan_exceeds_a_limit(fleet: Fleet):
    """No cluster for a locator whose limit is consumed; no cluster removed that holds a Kafka."""
    rows, counted, policy = fleet
    capacity = build_capacity(rows, counted, policy, NOW)
    for registration in evaluate_scale_up(capacity, policy, NOW).register:
        limit = policy.providers[0].regions[0].find_type(registration.supported_instance_type)
        assert limit is not None
        assert limit.limit is None or capacity.summarize(registration.locator).consumed < limit.limit
    used = Counter(count.cluster_id for count in counted for _ in range(count.consuming))
    removed = evaluate_scale_down(capacity, policy, NOW).deprovision
    assert [cluster.id for cluster in rows if cluster.id in removed and used[cluster.cluster_id]] == []


@given(fleets(), st.lists(st.sampled_from(["x1", "x2", "x9"]), max_size=12))
def test_placement_never_fills_a_cluster_beyond_what_it_can_hold(fleet: Fleet, sizes: list[str]):
    rows, counted, policy = fleet
    kafkas = [make_kafka(f"k{number:02}", size_id=size_id) for number, size_id in enumerate(sizes)]
    by_id = {cluster.id: cluster for cluster in rows}
    capacity = build_capacity(rows, counted, policy, NOW)
    free = {row.id: row.free for row in capacity.rows if row.locator == Locator("aws", "us-east-1", "standard")}
    for decision, kafka in zip(place_kafkas(kafkas, rows, counted, policy, NOW), kafkas, strict=True):
        assert decision.kafka_id == kafka.id
        if decision.cluster is not None:
            free[decision.cluster] -= int(kafka.size_id[1:])
            assert free[decision.cluster] >= 0
            assert by_id[decision.cluster].status is ClusterStatus.READY
            assert by_id[decision.cluster].cluster_type is ClusterType.MANAGED


@given(fleets(), st.integers(0, 2**32), st.integers(0, 9))
def test_decisions_do_not_depend_on_rows_of_other_locators_or_on_the_order(fleet: Fleet, seed: int, more: int):
    rows, counted, policy = fleet
    others = tuple(
        make_cluster(
            f"o{number}", region="ap-south-1", dynamic_capacity_info={"standard": DynamicCapacity(max_units=9)}
        )
        for number in range(more)
    )
    strange = KafkaCount(
        locator=Locator("aws", "ap-south-1", "standard"), cluster_id="cid-o0", size_id="x9", consuming=5, example_id="s"
    )
    shuffled = [*rows, *others]
    shuffled_counts = [*counted, strange]
    random.Random(seed).shuffle(shuffled)
    random.Random(seed).shuffle(shuffled_counts)
    assert decide(shuffled, shuffled_counts, policy, ignore="o") == decide(rows, counted, policy)


@given(fleets())
def test_equal_rows_give_equal_bytes(fleet: Fleet):
    rows, counted, policy = fleet
    copies = msgspec.json.decode(msgspec.json.encode(rows), type=tuple[Cluster, ...])
    assert decide(copies, counted, policy) == decide(rows, counted, policy)


def decide(rows: Any, counted: Any, policy: FleetPolicy, *, ignore: str = "-") -> list[bytes]:
    """Every decision and plan as bytes, without those about clusters whose ids begin so."""
    capacity = build_capacity(rows, counted, policy, NOW)
    up = evaluate_scale_up(capacity, policy, NOW)
    down = evaluate_scale_down(capacity, policy, NOW)
    marked = evaluate_deprovisioning(rows, capacity, policy, NOW)
    placed = place_kafkas([make_kafka(f"k{number}") for number in range(3)], rows, counted, policy, NOW)
    about: list[Any] = [*down.evaluations, *marked]
    return [
        encode(up),
        encode(up.build_plan(1, NOW)),
        *(encode(found) for found in about if not found.id.startswith(ignore)),
        *(encode(found) for found in placed),
    ]
