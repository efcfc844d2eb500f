"""What the replica set planner decides: how many pods, and which go first."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.kube.controlled_objects.pod_control import BURST
from plimsoll.kube.controlled_objects.pod_readiness import is_active
from plimsoll.local.controller_manager.workloads.controlled_objects.deletion_order import (
    DELETION_COST,
    choose_pods_to_delete,
    read_deletion_cost,
)
from plimsoll.local.controller_manager.workloads.replica_sets.plan import (
    Failure,
    compute_next_look_s,
    compute_replica_set_status,
    plan_replica_set,
)
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.pods import ContainerStatus, Pod, PodCondition, PodSpec, PodStatus
from plimsoll.objects.api.workloads import ReplicaSet, ReplicaSetSpec

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def pod(name: str = "p", *, node: str = "n1", phase: str = "Running", ready_s: float | None = 60, **more: Any) -> Pod:
    """A pod that has been ready for `ready_s` seconds; None: it is not."""
    conditions: tuple[PodCondition, ...] = ()
    if ready_s is not None:
        conditions = (PodCondition(type="Ready", status="True", last_transition_time=NOW - timedelta(seconds=ready_s)),)
    restarts = ContainerStatus(name="c", restart_count=more.get("restarts", 0))
    metadata = ObjectMeta(
        name=name,
        uid=more.get("uid", name),
        labels=more.get("labels", {"app": "a"}),
        creation_timestamp=NOW - timedelta(seconds=more.get("age_s", 3_600)),
        deletion_timestamp=NOW if more.get("is_ending") else None,
        annotations={DELETION_COST: more["cost"]} if "cost" in more else {},
    )
    status = PodStatus(phase=phase, conditions=conditions, container_statuses=(restarts,))
    return Pod(metadata=metadata, spec=PodSpec(node_name=node), status=status)


def replica_set(replicas: int = 1, **spec: Any) -> ReplicaSet:
    return ReplicaSet(metadata=ObjectMeta(name="r", generation=3), spec=ReplicaSetSpec(replicas=replicas, **spec))


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (pod("b", node=""), pod("a")),
        (pod("b", phase="Pending", ready_s=None), pod("a", phase="Unknown", ready_s=None)),
        (pod("b", phase="Unknown"), pod("a")),
        (pod("b", ready_s=None), pod("a")),
        (pod("b", cost="-5"), pod("a")),
        (pod("b"), pod("a", cost="10")),
        (pod("b", ready_s=10), pod("a", ready_s=1_000)),
        (pod("b", restarts=3), pod("a")),
        (pod("b", age_s=60), pod("a", age_s=3_600)),
        (pod("a"), pod("b")),
    ],
    ids=["unplaced", "pending", "unknown", "not ready", "cheap", "dear", "ready later", "restarted", "young", "uid"],
)
def test_the_pod_whose_loss_hurts_least_goes_first(first: Pod, second: Pod):
    for pods in ([first, second], [second, first]):
        assert choose_pods_to_delete(pods, 1, related=[], now=NOW) == (first,)


def test_times_of_the_same_order_of_magnitude_do_not_decide():
    older = pod("a", ready_s=1_000)
    younger = pod("b", ready_s=900)
    assert choose_pods_to_delete([younger, older], 1, related=[], now=NOW) == (older,)


def test_of_equal_pods_the_one_on_the_fuller_node_goes():
    alone, crowded = pod("a", node="n1"), pod("b", node="n2")
    sibling = pod("c", node="n2")
    assert choose_pods_to_delete([alone, crowded], 1, related=[alone, crowded, sibling], now=NOW) == (crowded,)


@pytest.mark.parametrize(("text", "cost"), [("7", 7), ("-7", -7), ("+7", 0), ("007", 0), ("x", 0), ("3000000000", 0)])
def test_a_deletion_cost_that_is_no_number_is_none(text: str, cost: int):
    assert read_deletion_cost(pod(cost=text)) == cost


def test_pods_that_ended_or_are_ending_do_not_count():
    pods = [pod("a"), pod("b", phase="Failed"), pod("c", phase="Succeeded"), pod("d", is_ending=True)]
    assert plan_replica_set(replica_set(3), pods, NOW).create == 2


def test_no_more_than_a_burst_is_made_in_one_turn():
    assert plan_replica_set(replica_set(10_000), [], NOW).create == BURST


def test_a_set_that_is_being_deleted_is_left_alone():
    doomed = msgspec.structs.replace(replica_set(3), metadata=ObjectMeta(name="r", deletion_timestamp=NOW))
    plan = plan_replica_set(doomed, [], NOW)
    assert (plan.create, plan.delete) == (0, ())


def test_available_are_those_ready_for_long_enough():
    pods = [pod("a", ready_s=29), pod("b", ready_s=30), pod("c", ready_s=None)]
    status = compute_replica_set_status(replica_set(3, min_ready_seconds=30), pods, NOW)
    assert (status.replicas, status.ready_replicas, status.available_replicas) == (3, 2, 1)
    assert compute_next_look_s(replica_set(3, min_ready_seconds=30), pods, NOW) == 1


def test_a_failure_keeps_its_first_message_until_it_is_over():
    first = compute_replica_set_status(replica_set(1), [], NOW, failure=Failure(message="quota"))
    failed = msgspec.structs.replace(replica_set(1), status=first)
    later = compute_replica_set_status(failed, [], NOW + timedelta(minutes=1), failure=Failure(message="other"))
    assert [(condition.reason, condition.message) for condition in later.conditions] == [("FailedCreate", "quota")]
    assert compute_replica_set_status(failed, [], NOW).conditions == ()


PODS = st.lists(
    st.builds(
        pod,
        st.uuids().map(str),
        node=st.sampled_from(["", "n1", "n2", "n3"]),
        phase=st.sampled_from(["Pending", "Running", "Unknown", "Failed", "Succeeded"]),
        ready_s=st.none() | st.floats(0, 1e6),
        is_ending=st.booleans(),
        restarts=st.integers(0, 3),
        cost=st.sampled_from(["0", "5", "-5", "x"]),
    ),
    max_size=12,
    unique_by=lambda build: build.metadata.uid,
)


@given(pods=PODS, replicas=st.integers(0, 12))
@settings(max_examples=150, deadline=None)
def test_a_plan_leads_to_the_wanted_number_and_then_to_nothing(pods: list[Pod], replicas: int):
    plan = plan_replica_set(replica_set(replicas), pods, NOW)
    gone = {item.metadata.uid for item in plan.delete}
    assert all(is_active(item) for item in plan.delete)
    assert not (plan.create and plan.delete)
    after = [item for item in pods if item.metadata.uid not in gone]
    after += [pod(f"new {number}", node="", phase="Pending", ready_s=None) for number in range(plan.create)]
    assert sum(map(is_active, after)) == replicas
    done = plan_replica_set(replica_set(replicas), after, NOW)
    assert (done.create, done.delete) == (0, ())


@given(pods=PODS, count=st.integers(0, 12), chance=st.randoms(use_true_random=False))
@settings(max_examples=100, deadline=None)
def test_which_pods_go_does_not_depend_on_the_order_they_are_listed_in(pods: list[Pod], count: int, chance: Any):
    shuffled = list(pods)
    chance.shuffle(shuffled)
    chosen = [set(map(id, choose_pods_to_delete(item, count, related=pods, now=NOW))) for item in (pods, shuffled)]
    assert chosen[0] == chosen[1]
