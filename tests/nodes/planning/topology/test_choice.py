"""Pods with rules about each other, planned jointly: every plan holds, and none falls below first fit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from plimsoll.nodes.planning.packing.binpacking import PackingOptions
from plimsoll.nodes.planning.packing.pod_relations import PodRelations
from plimsoll.nodes.planning.problem.pod_names import build_unexplained_plan
from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
from plimsoll.nodes.planning.problem.scheduled_pods import assign_places
from plimsoll.nodes.planning.problem.verifier import verify
from plimsoll.nodes.planning.topology.greedy import place_greedily
from plimsoll.nodes.planning.topology.groups import TopologyGroups, find_unreachable
from plimsoll.nodes.planning.topology.joint import place_jointly
from tests.effort import share_of
from tests.nodes.planning.scale_up_clusters import COST, group, snapshots, waiting, world
from tests.scheduling.builders import HOSTNAME, ZONE, node, required, spread, term

if TYPE_CHECKING:
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.planning.problem.placement import Placement

many = settings(max_examples=share_of(500), deadline=None, suppress_health_check=[HealthCheck.too_slow])
LETTERS = ("a", "b", "c")
THREE_ZONES = tuple(group(f"g-{zone}", zone=zone, most=100) for zone in LETTERS)


def plan_both(snapshot: Snapshot) -> tuple[ScaleUpProblem, list[Placement]]:
    """The greedy and the joint placement, as far as the rules are of kinds that they know."""
    problem = ScaleUpProblem.from_snapshot(snapshot, COST)
    relations = PodRelations(problem.table, problem.rules, snapshot.view)
    unreachable = find_unreachable(problem, relations)
    demand = {
        pods.index: pods.count for pods in problem.table if pods.problem is None and pods.index not in unreachable
    }
    usable = np.ones(len(problem.options), dtype=np.bool_)
    found = (
        place_greedily(problem, relations, demand, usable),
        place_jointly(problem, relations, demand, PackingOptions(usable=usable)),
    )
    return problem, [placement for placement in found if placement is not None]


def find_refuted(problem: ScaleUpProblem, placement: Placement) -> tuple[object, ...]:
    return verify(problem.snapshot, build_unexplained_plan(problem, assign_places(problem, placement)))


@many
@given(snapshots(nap=False))
def test_what_is_placed_holds(snapshot: Snapshot):
    problem, placements = plan_both(snapshot)
    for placement in placements:
        assert find_refuted(problem, placement) == ()
        assert (placement.count_placed(len(problem.table)) <= problem.table.counts).all()


def letter(index: int, step: int = 1) -> dict[str, str]:
    return {"letter": LETTERS[(index * step) % len(LETTERS)]}


def count_in_zones(problem: ScaleUpProblem, placement: Placement, app: str) -> list[int]:
    """Pods with the letter, per zone."""
    zones = dict.fromkeys(LETTERS, 0)
    for batch in placement.batches:
        for number, pods in batch.content.items():
            if problem.table.classes[number].pod.metadata.labels.get("letter") == app:
                zones[problem.options[batch.option].zone] += pods * batch.nodes
    return sorted(zones.values())


def test_pods_of_many_sizes_that_count_in_each_others_spread_are_even_over_zones():
    pods = [
        waiting(f"p{index}", 1, cpu=1 + index % 3, labels=letter(index), **spread(letter(index // 3), ZONE, 1))
        for index in range(27)
    ]
    problem, placements = plan_both(world(*pods, groups=THREE_ZONES))
    assert len(placements) == 2
    for placement in placements:
        assert placement.count_placed(len(problem.table)).sum() == 27
        assert find_refuted(problem, placement) == ()
    joint = placements[1]
    assert [count_in_zones(problem, joint, app) for app in LETTERS] == [[3, 3, 3]] * 3


@pytest.mark.parametrize(
    ("key", "counted", "is_independent"), [(ZONE, "own", True), (ZONE, "all", False), (HOSTNAME, "own", False)]
)
def test_rules_that_count_their_own_class_over_zones_need_no_joint_plan(
    key: str, counted: str, *, is_independent: bool
):
    apps = [{"app": str(number), "any": "yes"} for number in range(3)]
    selected = [{"app": app["app"]} if counted == "own" else {"any": "yes"} for app in apps]
    pods = [
        waiting(f"p{number}", 4, cpu=1 + number, labels=apps[number], **spread(selected[number], key, 1))
        for number in range(3)
    ]
    snapshot = world(*pods, groups=THREE_ZONES)
    problem = ScaleUpProblem.from_snapshot(snapshot, COST)
    relations = PodRelations(problem.table, problem.rules, snapshot.view)
    groups = TopologyGroups.build(problem, relations, [pods.index for pods in problem.table])
    assert groups.is_independent is is_independent


def test_a_node_takes_one_pod_of_each_letter_that_is_spread_over_nodes():
    pods = [
        waiting(f"p{index}", 1, cpu=0.5, labels=letter(index), **spread(letter(index // 3), HOSTNAME, 1))
        for index in range(12)
    ]
    problem, placements = plan_both(world(*pods, groups=[group("big", cpu=16, most=100)]))
    assert len(placements) == 2
    for placement in placements:
        assert placement.count_placed(len(problem.table)).sum() == 12
        assert find_refuted(problem, placement) == ()
    assert placements[1].count_new_nodes(len(problem.options)).sum() == 4


def test_pods_that_require_each_other_on_a_node_are_merged():
    rule = {app: required(term({"letter": app}), "podAffinity") for app in LETTERS}
    pods = [waiting(f"p{index}", 2, labels=letter(index), **rule[LETTERS[index // 3]]) for index in range(9)]
    problem, placements = plan_both(world(*pods, groups=[group("big", cpu=64, most=100)]))
    joint = placements[1]
    assert joint.count_placed(len(problem.table)).sum() == 18
    assert joint.count_new_nodes(len(problem.options)).sum() == 1
    assert find_refuted(problem, joint) == ()


def test_a_company_that_needs_several_nodes_begins_each_with_a_pod_that_matches_itself():
    rule = {app: required(term({"letter": app}), "podAffinity") for app in LETTERS}
    pods = [waiting(f"p{index}", 2, labels=letter(index), **rule[LETTERS[index // 3]]) for index in range(9)]
    problem, placements = plan_both(world(*pods, groups=[group("small", cpu=8, most=100)]))
    for placement in placements:
        assert find_refuted(problem, placement) == ()
    assert placements[1].count_placed(len(problem.table)).sum() == 18
    assert placements[1].count_new_nodes(len(problem.options)).sum() == 3


def test_a_pod_whose_company_can_never_come_is_unreachable():
    wants_b = required(term({"letter": "b"}), "podAffinity")
    wants_a = required(term({"letter": "a"}), "podAffinity")
    snapshot = world(
        waiting("first", 1, labels={"letter": "a"}, **wants_b),
        waiting("second", 1, labels={"letter": "b"}, **wants_a),
        waiting("third", 1, labels={"letter": "c"}, **required(term({"letter": "c"}), "podAffinity")),
        groups=THREE_ZONES,
    )
    problem = ScaleUpProblem.from_snapshot(snapshot, COST)
    unreachable = find_unreachable(problem, PodRelations(problem.table, problem.rules, snapshot.view))
    assert {problem.table.classes[number].pod.metadata.labels["letter"] for number in unreachable} == {"a", "b"}


def test_existing_nodes_are_filled_before_new_ones_are_added():
    there = [node(f"n-{zone}", zone=zone, cpu=4) for zone in LETTERS]
    pods = [
        waiting(f"p{index}", 1, cpu=1, labels=letter(index), **spread(letter(index // 3), ZONE, 1))
        for index in range(9)
    ]
    snapshot = world(*pods, nodes=there, groups=THREE_ZONES)
    problem, placements = plan_both(snapshot)
    for placement in placements:
        assert placement.count_placed(len(problem.table)).sum() == 9
        assert not placement.batches
        assert find_refuted(problem, placement) == ()
