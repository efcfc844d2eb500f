"""The bound knows what a node by itself takes: pods that keep each other off a node need one each."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from plimsoll.solver.problem import Effort
from tests.nodes.planning.builders import policy
from tests.nodes.planning.scale_up_clusters import group, waiting, world
from tests.scheduling.builders import ZONE, required, term


def bound(*pending: Any, effort: Effort | None = None) -> tuple[float, float]:
    snapshot = world(*pending, groups=[group("g", most=100)])
    plan = plan_scale_up(snapshot, policy(expander="cost"), effort=effort)
    assert not plan.unschedulable
    return plan.lower_bound_per_hour, plan.cost_per_hour


def test_pods_that_avoid_each_other_need_a_node_each():
    assert bound(waiting("a", 6, **required(term({"app": "a"})))) == pytest.approx((2.4, 2.4))


def test_so_do_pods_of_one_app_in_several_sizes():
    apart = required(term({"app": "db"}))
    pods = [waiting(name, 3, cpu, app="db", **apart) for name, cpu in (("small", 1), ("large", 2))]
    assert bound(*pods) == pytest.approx((2.4, 2.4))


def test_and_pods_that_want_the_same_port():
    containers = [
        {"name": "c", "ports": [{"containerPort": 80, "hostPort": 80}], "resources": {"requests": {"cpu": "1"}}}
    ]
    assert bound(waiting("a", 5, containers=containers)) == pytest.approx((2.0, 2.0))


def test_avoiding_others_is_not_avoiding_oneself():
    low, _ = bound(waiting("a", 4, **required(term({"app": "b"}))), waiting("b", 4))
    assert low == pytest.approx(0.8)


def test_zones_are_not_known():
    snapshot = world(
        waiting("a", 2, **required(term({"app": "a"}, ZONE))), groups=[group("x", zone="x"), group("y", zone="y")]
    )
    plan = plan_scale_up(snapshot, policy(expander="cost"))
    assert plan.lower_bound_per_hour == pytest.approx(0.4)
    assert plan.cost_per_hour == pytest.approx(0.8)


def test_proving_never_gives_less():
    pods = [waiting("a", 3, 3), waiting("b", 3, 2)]
    quick, cost = bound(*pods)
    proven, same = bound(*pods, effort=Effort(gap=0.0, rounds=200))
    assert quick <= proven <= same <= cost + 1e-9
