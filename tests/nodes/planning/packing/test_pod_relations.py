"""Who is planned together, who after whom, and which new groups a plan does without when it may not make them all."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.planning.packing.pod_relations import PodRelations, split_layer
from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
from plimsoll.nodes.planning.scaleup import planner
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from tests.nodes.planning.builders import policy
from tests.nodes.planning.plan_checks import problems
from tests.nodes.planning.scale_up_clusters import (
    COST,
    added,
    group,
    left,
    machine,
    on_existing,
    on_new_nodes,
    waiting,
    world,
)
from tests.scheduling.builders import HOSTNAME, ZONE, node, spread

if TYPE_CHECKING:
    import pytest

    from plimsoll.nodes.model.snapshot import PendingPods

ZONES = ("a", "b", "c")


def level(name: str, count: int, *, app: str | None = None, cpu: float = 1) -> PendingPods:
    """Spread over nodes."""
    return waiting(name, count, cpu, app=app, **spread({"app": app or name}, key=HOSTNAME))


def parts(*pending: PendingPods) -> list[list[str]]:
    board = ScaleUpProblem.from_snapshot(world(*pending, groups=[group("g")]), COST)
    meetings = PodRelations(board.table, board.rules, board.snapshot.view)
    found = split_layer(board, meetings, range(len(board.table)))
    return [sorted(board.table.classes[number].pod.metadata.name for number in part) for part in found]


class TestTurns:
    def test_a_few_classes_spread_over_nodes_go_one_after_the_other(self):
        assert sorted(parts(level("a", 3), level("b", 3), waiting("plain", 2))) == [["a"], ["b"], ["plain"]]

    def test_many_of_them_are_placed_together_with_all_others(self):
        many = [level(name, 3) for name in "abcd"]
        assert parts(*many, waiting("plain", 2)) == [["a", "b", "c", "d", "plain"]]

    def test_pods_that_a_constraint_counts_are_placed_before_pods_with_the_constraint(self):
        counting = waiting("counting", 3, labels={"app": "x"}, **spread({"app": "counted"}))
        assert parts(counting, waiting("counted", 3)) == [["counted"], ["counting"]]

    def test_those_that_count_each_other_do_not_go_together(self):
        rule = spread({"tier": "web"}, key=HOSTNAME)
        many = [waiting(name, 2, labels={"tier": "web", "app": name}, **rule) for name in "abcd"]
        seen = [waiting("seer", 1, **spread({"app": name}, key=ZONE)) for name in "abcd"]
        assert len(parts(*many, *seen)) >= len(many)


class TestManySpreadOverNodes:
    def test_they_share_new_nodes(self):
        snapshot = world(*(level(name, 6) for name in "abcdef"), groups=[group("g", cpu=8, most=50)])
        plan = plan_scale_up(snapshot, COST)
        assert (problems(snapshot, COST, plan), left(plan), added(plan)) == ([], {}, {"g": 6})
        assert on_new_nodes(plan)["a"] == [1] * 6

    def test_existing_nodes_are_filled_evenly_whoever_opens_new_ones(self):
        nodes = [node(name, cpu="16", memory="64Gi") for name in ("n1", "n2")]
        big = waiting("big", 1, 32)
        groups = [group("g", cpu=32, most=50)]
        snapshot = world(level("a", 8), level("b", 6), big, nodes=nodes, groups=groups)
        plan = plan_scale_up(snapshot, COST)
        assert (problems(snapshot, COST, plan), left(plan), added(plan)) == ([], {}, {"g": 1})
        assert on_existing(plan) == {name: {"a": 4, "b": 3} for name in ("n1", "n2")}


class TestFewerGroups:
    NAP = policy(node_autoprovisioning=True, max_autoprovisioned_node_group_count=3, expander="cost")

    def test_pods_spread_over_zones_keep_a_group_in_each(self):
        """Zones with a node count, room or not: what stays is a group in each that takes the large pods."""
        types = [machine(f"m{cpu}", cpu, zones=ZONES, price=cpu / 10 + 0.001 * cpu**2) for cpu in (2, 8)]
        small = waiting("small", 40, 1)
        large = waiting("large", 3, 6, **spread({"app": "large"}))
        full = [node(f"full-{zone}", zone=zone, cpu="100m") for zone in ZONES]
        snapshot = world(small, large, nodes=full, machine_types=types)
        plan = plan_scale_up(snapshot, self.NAP)
        assert (problems(snapshot, self.NAP, plan), left(plan), len(plan.scale_ups)) == ([], {}, 3)
        assert {growth.option.zone for growth in plan.scale_ups} == {*ZONES}

    def test_a_hasty_look_at_what_would_be_too_many_changes_nothing_for_the_pods(self, monkeypatch: pytest.MonkeyPatch):
        monkeypatch.setattr(planner, "_PRESELECTION_WORK", 0)
        types = [machine(f"m{cpu}", cpu, zones=ZONES) for cpu in (2, 4, 8, 16)]
        entries = [waiting(f"p{cpu}", 5, cpu) for cpu in (1, 3, 7)]
        entries += [waiting("wide", 6, 2, **spread({"app": "wide"}))]
        snapshot = world(*entries, machine_types=types)
        plan = plan_scale_up(snapshot, self.NAP)
        assert (problems(snapshot, self.NAP, plan), left(plan)) == ([], {})
        assert len(plan.scale_ups) <= 3
        assert np.isclose(
            plan.cost_per_hour, sum(scale_up.added * scale_up.option.price_per_hour for scale_up in plan.scale_ups)
        )
