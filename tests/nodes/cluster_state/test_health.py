"""When the cluster and a group are healthy (docs/design/nodes.md 6.9, second paragraph)."""

import pytest

from plimsoll.nodes.cluster_state.observed import ObservedCluster
from tests.nodes.cluster_state.builders import NOON, at, instance, node, ready_nodes, state, world


def unready_nodes(count: int):
    return tuple(node(f"u{number}", ready=False) for number in range(count))


@pytest.mark.parametrize(
    ("unready", "ready", "healthy"),
    [
        (0, 0, True),
        (3, 0, True),  # 3 are always borne
        (4, 0, False),
        (4, 4, False),
        (4, 5, True),  # 44.4 %
        (9, 11, True),  # exactly 45 %
        (10, 12, False),  # 45.5 %
    ],
)
def test_the_cluster_is_unhealthy_with_more_than_3_and_more_than_45_percent_unready(
    unready: int, ready: int, healthy: bool
):
    registry = state()
    registry.observe(ObservedCluster(nodes=(*unready_nodes(unready), *ready_nodes(ready))), NOON)
    health = registry.assess_health(NOON)
    assert health.is_healthy is healthy
    reason = health.find_unhealthy_reason()
    assert (reason is None) is healthy
    if reason is not None:
        assert reason.code == "ClusterUnhealthy"
        assert reason.message == f"{unready} of {unready + ready} nodes are unready"


def test_both_numbers_of_health_are_options():
    registry = state(ok_total_unready_count=0, max_total_unready_percentage=0)
    registry.observe(ObservedCluster(nodes=(*unready_nodes(1), *ready_nodes(99))), NOON)
    assert not registry.assess_health(NOON).is_healthy


def test_nodes_that_have_not_started_yet_do_not_make_a_cluster_unhealthy():
    registry = state()
    registry.observe(ObservedCluster(nodes=tuple(node(f"s{n}", ready=False, age_s=1) for n in range(10))), NOON)
    assert registry.assess_health(NOON).is_healthy


@pytest.mark.parametrize(
    ("ready", "unready", "usable"),
    [(10, 0, True), (7, 3, True), (6, 4, True), (5, 5, False), (1, 9, False)],
)
def test_a_group_with_too_many_ready_nodes_missing_is_not_usable(ready: int, unready: int, usable: bool):
    registry = state()
    registry.observe(world(10, *ready_nodes(ready), *unready_nodes(unready)), NOON)
    found = registry.assess_health(NOON).groups["g"]
    assert found.is_healthy is usable
    assert found.not_usable == ("" if usable else "not ready")
    assert (found.reason is None) is usable


def test_nodes_on_their_way_are_not_missing():
    registry = state()
    registry.observe(world(2, *ready_nodes(2)), NOON)
    registry.register_scale_up("g", 8, NOON)
    assert registry.assess_health(NOON).groups["g"].is_healthy
    registry.observe(world(10, *ready_nodes(2)), at(10))
    assert registry.assess_health(at(10)).groups["g"].is_healthy


def test_when_they_do_not_come_they_are_missing():
    registry, late = state(), world(10, *ready_nodes(2))
    registry.observe(world(2, *ready_nodes(2)), NOON)
    registry.register_scale_up("g", 8, NOON)
    registry.observe(late, at(901))
    found = registry.assess_health(at(901)).groups["g"]
    assert found.missing == 8
    assert found.not_usable == "not ready"


def test_suspended_and_given_up_nodes_are_not_missing():
    registry = state()
    asleep = tuple(node(f"s{number}", conditions={"Suspended": "True"}) for number in range(4))
    lost = tuple(instance(f"x{number}") for number in range(4))
    observed = world(10, *ready_nodes(2), *asleep, waiting=lost)
    registry.observe(observed, NOON)
    registry.observe(observed, at(901))
    assert registry.assess_health(at(901)).groups["g"].missing == 0
