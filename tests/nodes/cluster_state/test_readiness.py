"""Which heading a node or machine comes under, and what is upcoming (docs/design/nodes.md 6.9, first paragraph)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.cluster_state.observed import ObservedCluster, ObservedInstance
from plimsoll.nodes.cluster_state.readiness import Readiness
from plimsoll.nodes.model.instances import InstanceState
from plimsoll.objects.api.nodes import Node
from tests.nodes.cluster_state.builders import NOON, at, group, instance, node, ready_nodes, state, stillborn, world

DELETION = "ToBeDeletedByClusterAutoscaler"


def headings(observed: ObservedCluster, now_s: float = 0, **options: object) -> Readiness:
    registry = state(**options)
    registry.observe(observed, at(now_s))
    return registry.assess_health(at(now_s)).groups["g"].readiness


@pytest.mark.parametrize(
    ("given_node", "heading"),
    [
        (node("n"), "ready"),
        (node("n", ready=False), "unready"),
        (node("n", ready=False, age_s=899), "not_started"),
        (node("n", ready=False, age_s=900), "unready"),
        (node("n", conditions={"Ready": "Unknown"}), "unready"),
        (node("n", conditions={"DiskPressure": "True"}), "unready"),
        (node("n", conditions={"NetworkUnavailable": "True"}), "unready"),
        (node("n", conditions={"MemoryPressure": "True"}), "ready"),
        (node("n", conditions={"Suspended": "True"}), "suspended"),
        (node("n", conditions={"Suspended": "False"}), "ready"),
        (node("n", taints=("node.kubernetes.io/not-ready",)), "unready"),
        (node("n", taints=("startup-taint.cluster-autoscaler.kubernetes.io/x",)), "unready"),
        (node("n", age_s=60, taints=("startup-taint.cluster-autoscaler.kubernetes.io/x",)), "not_started"),
        (node("n", age_s=60, taints=("ignore-taint.cluster-autoscaler.kubernetes.io/x",)), "not_started"),
        (node("n", taints=("status-taint.cluster-autoscaler.kubernetes.io/x",)), "ready"),
        (node("n", unschedulable=True), "ready"),
        (node("n", taints=(DELETION,)), "deleted"),
    ],
)
def test_a_node_is_under_one_heading(given_node: Node, heading: str):
    found = headings(world(1, given_node))
    assert getattr(found, heading) == ("n",)
    assert found.registered == 1


def test_a_startup_taint_may_be_given_as_an_option():
    starting = world(1, node("n", age_s=60, taints=("example.com/warming-up",)))
    assert headings(starting, startup_taint="example.com/warming-up").not_started == ("n",)
    assert headings(starting).ready == ("n",)


def test_options_that_change_between_turns_count_at_once():
    registry, later = state(), state(startup_taint="example.com/warming-up").policy
    starting = world(1, node("n", age_s=60, taints=("example.com/warming-up",)))
    registry.observe(starting, NOON)
    registry.policy = later
    registry.observe(starting, NOON)
    assert registry.assess_health(NOON).groups["g"].readiness.not_started == ("n",)


def test_a_node_that_changes_is_read_again():
    registry = state()
    for ready in (True, False, True):
        registry.observe(world(1, node("n", ready=ready)), NOON)
        assert bool(registry.assess_health(NOON).groups["g"].readiness.ready) is ready


def test_a_node_that_should_have_gpus_and_shows_none_is_not_ready():
    lacking = node("n", labels={"cloud.google.com/gke-accelerator": "t4"})
    found = headings(world(1, lacking))
    assert (found.unready, found.resource_unready) == (("n",), ("n",))
    assert found.registered == 1
    having = node(
        "n", labels={"cloud.google.com/gke-accelerator": "t4"}, allocatable={"cpu": "4", "nvidia.com/gpu": "1"}
    )
    assert headings(world(1, having)).ready == ("n",)


def test_the_provider_knows_better_than_a_taint_whether_a_machine_is_gone():
    tainted, plain = node("a", taints=(DELETION,)), node("b")
    observed = ObservedCluster(
        nodes=(tainted, plain),
        group_of={"a": "g", "b": "g"},
        groups=(group(1),),
        has_instance={"a": True, "b": False},
    )
    found = headings(observed)
    assert (found.ready, found.deleted) == (("a",), ("b",))


def test_a_group_may_have_its_own_startup_time():
    assert headings(world(1, node("n", ready=False, age_s=60), startup_time_s=60)).unready == ("n",)


def test_an_instance_without_a_node_is_unregistered_and_after_15_minutes_long_unregistered():
    registry, waiting = state(), world(1, waiting=(instance("new"),))
    registry.observe(waiting, NOON)
    registry.observe(waiting, at(900))
    assert registry.assess_health(at(900)).groups["g"].readiness.unregistered == ("cloud://new",)
    registry.observe(waiting, at(900.001))
    assert registry.assess_health(at(900.001)).groups["g"].readiness.long_unregistered == ("cloud://new",)


def test_a_group_may_have_its_own_provision_time():
    registry, waiting = state(), world(1, waiting=(instance("new"),), provision_time_s=60.0)
    registry.observe(waiting, NOON)
    registry.observe(waiting, at(61))
    assert registry.assess_health(at(61)).groups["g"].readiness.long_unregistered == ("cloud://new",)


def test_an_instance_that_registered_and_lost_its_node_counts_from_anew():
    registry = state()
    registry.observe(world(1, waiting=(instance("n"),)), NOON)
    registry.observe(world(1, node("n")), at(600))
    registry.observe(world(1, waiting=(instance("n"),)), at(1000))
    assert registry.assess_health(at(1000)).groups["g"].readiness.unregistered == ("cloud://n",)


@pytest.mark.parametrize(
    "never", [instance("x", state=InstanceState.DELETING), stillborn("x"), instance("x", error=stillborn("x").error)]
)
def test_an_instance_that_leaves_or_failed_is_not_waited_for(never: ObservedInstance):
    assert headings(world(1, waiting=(never,))).all_unregistered == 0


def test_an_instance_of_unknown_state_is_waited_for():
    assert headings(world(1, waiting=(instance("x", state=None),))).unregistered == ("cloud://x",)


def test_nodes_of_no_group_count_for_the_cluster_only():
    registry = state()
    registry.observe(ObservedCluster(nodes=(node("free"),), groups=(group(0),)), NOON)
    health = registry.assess_health(NOON)
    assert health.total.ready == ("free",)
    assert health.groups["g"].readiness.registered == 0


def test_upcoming_is_the_target_without_what_is_ready_unready_given_up_or_suspended():
    registry = state()
    observed = world(
        10,
        *ready_nodes(2),
        node("bad", ready=False),
        node("asleep", conditions={"Suspended": "True"}),
        node("young", ready=False, age_s=1),
        node("gone", taints=(DELETION,)),
        waiting=(instance("late"), instance("fresh")),
    )
    registry.observe(world(10, waiting=(instance("late"),)), at(-1000))
    registry.observe(observed, NOON)
    health = registry.assess_health(NOON)
    assert health.groups["g"].readiness.long_unregistered == ("cloud://late",)
    assert health.upcoming == {"g": 10 - 2 - 1 - 1 - 1}
    assert health.not_started == {"young"}


counts = st.integers(0, 30)


@settings(max_examples=100, deadline=None)
@given(target=counts, ready=counts, unready=counts, starting=counts, waiting=counts)
def test_upcoming_is_never_negative_nor_above_the_target(
    target: int, ready: int, unready: int, starting: int, waiting: int
):
    registry = state()
    observed = world(
        target,
        *(node(f"r{n}") for n in range(ready)),
        *(node(f"u{n}", ready=False) for n in range(unready)),
        *(node(f"s{n}", ready=False, age_s=1) for n in range(starting)),
        waiting=tuple(instance(f"w{n}") for n in range(waiting)),
    )
    registry.observe(observed, NOON)
    found = registry.assess_health(NOON).groups["g"]
    assert 0 <= found.upcoming <= target
    assert found.readiness.registered == ready + unready + starting
    assert found.upcoming == max(0, target - ready - unready)
