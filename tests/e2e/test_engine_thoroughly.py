"""The planning engine against the plain rules on thousands of random clusters: properties of `make test`, longer."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, given, settings

from tests.effort import share_of
from tests.nodes.planning.scale_up_clusters import policies, snapshots
from tests.nodes.planning.scaleup import test_planner_differential as engine

if TYPE_CHECKING:
    from collections.abc import Callable

CASES = {
    "plans with interactions hold": (engine.test_every_plan_with_interactions_holds, (snapshots(), policies())),
    "bulk plans are never refuted": (
        engine.test_bulk_plans_without_interactions_are_never_refuted,
        (snapshots(social=False), policies()),
    ),
    "who fits is placed": (
        engine.test_a_class_with_room_for_all_is_placed_in_bulk_instead_of_pod_by_pod,
        (snapshots(social=False, nap=False),),
    ),
    "one pod alone": (engine.test_one_pod_alone_is_placed_exactly_if_some_node_takes_it, (snapshots(nap=False),)),
}


@pytest.mark.parametrize("case", CASES)
def test_thousands_of_clusters(case: str):
    known, strategies = CASES[case]
    inner: Callable[..., None] = known.hypothesis.inner_test  # type: ignore[attr-defined]
    thorough = settings(max_examples=share_of(750), deadline=None, suppress_health_check=list(HealthCheck))
    thorough(given(*strategies)(inner))()


def test_first_plans_hold():
    engine.check_first_plans_hold(clusters=share_of(3000))


def test_as_many_are_helped_as_pod_by_pod():
    engine.check_as_many_are_helped(clusters=share_of(1000))
