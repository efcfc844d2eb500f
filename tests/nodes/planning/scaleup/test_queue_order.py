"""Who is served when not all can be, and which groups serve them: docs/design/nodes.md 8.2 and 8.4, whole groups,
balance.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.nodes.model.prices import Overlay
from plimsoll.nodes.model.snapshot import CapacityType
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from tests.nodes.planning.builders import policy
from tests.nodes.planning.plan_checks import problems
from tests.nodes.planning.scale_up_clusters import (
    added,
    group,
    left,
    machine,
    on_existing,
    on_new_nodes,
    reported,
    waiting,
    world,
)
from tests.scheduling.builders import ZONE, node, required, spread, term

if TYPE_CHECKING:
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import Snapshot


def planned(snapshot: Snapshot, rules: Any = None, **options: Any) -> ScaleUpPlan:
    chosen = rules or policy(**{"expander": "cost", **options})
    plan = plan_scale_up(snapshot, chosen)
    assert problems(snapshot, chosen, plan) == []
    return plan


def test_pods_with_fewer_suitable_groups_are_first_on_existing_nodes():
    narrow = waiting("narrow", 1, requests={"cpu": "500m"}, nodeSelector={"pool": "x"})
    wide = waiting("wide", 4, requests={"cpu": 1})
    snapshot = world(
        narrow,
        wide,
        nodes=[node("n", cpu=2, labels={"pool": "x"})],
        groups=[group("small", cpu=2, most=1, price=0.078, labels={"pool": "x"}), group("large", cpu=16, price=0.49)],
    )
    plan = planned(snapshot)
    assert on_existing(plan) == {"n": {"narrow": 1, "wide": 1}}
    assert added(plan) == {"large": 1}


class TestInLine:
    def test_one_old_big_pod_is_not_dropped_to_help_three_young_small_ones(self):
        pending = [waiting("small", 3, 1, age=10), waiting("big", 1, 4, age=100)]
        plan = planned(world(*pending, groups=[group("g", cpu=4, most=1)]))
        assert left(plan) == {"small": 3}
        assert plan.scheduled == 1

    def test_priority_goes_before_age(self):
        pending = [waiting("old", 4, age=100), waiting("urgent", 4, age=1, priority=10)]
        assert left(planned(world(*pending, groups=[group("g", cpu=4, most=1)]))) == {"old": 4}

    def test_names_decide_among_equals(self):
        pending = [waiting("b", 4, labels={"x": "b"}), waiting("a", 4, 0.9, labels={"x": "a"})]
        assert left(planned(world(*pending, groups=[group("g", cpu=4, most=1)])))["b"] > 0

    def test_later_pods_use_the_remaining_room(self):
        pending = [waiting("big", 1, 3, age=100), waiting("medium", 1, 2, age=50), waiting("small", 1, 1, age=1)]
        assert left(planned(world(*pending, groups=[group("g", cpu=4, most=1)]))) == {"medium": 1}

    def test_pods_that_fit_nowhere_delay_nothing(self):
        pending = [waiting("huge", 1, 64, age=100), waiting("web", 8, age=1)]
        plan = planned(world(*pending, groups=[group("g", cpu=4, most=2)]))
        assert left(plan) == {"huge": 1}
        assert added(plan) == {"g": 2}

    @pytest.mark.parametrize("order", [1, -1])
    def test_the_older_bundle_is_served(self, order: int):
        pending = [waiting("b", 4, 1, bundle="default/b", age=10), waiting("a", 4, 0.9, bundle="default/a", age=1)]
        plan = planned(world(*pending[::order], groups=[group("g", cpu=4, most=1)]))
        assert left(plan) == {"a": 4}

    def test_the_cluster_s_limits_make_a_line_too(self):
        pending = [waiting("young", 4, age=1), waiting("old", 4, 1.5, age=9)]
        plan = planned(world(*pending, groups=[group("g", cpu=4)]), max_cpu=8)
        assert left(plan) == {"young": 2}

    def test_compatible_planner_serves_in_line_within_the_group_s_size(self):
        pending = [waiting("old", 3, 3, age=9), waiting("young", 3, 2, age=1)]
        snapshot = world(*pending, groups=[group("g", cpu=4, most=3)])
        plan = planned(snapshot, planner="compatible", expander="least-waste")
        assert left(plan) == {"young": 3}


class TestBundles:
    def test_over_several_groups_or_not_at_all(self):
        pending = [
            waiting("gpu", 2, 2, bundle="default/r", nodeSelector={"kind": "gpu"}),
            waiting("cpu", 4, 2, bundle="default/r", nodeSelector={"kind": "cpu"}),
        ]
        kinds = [group("gpu", labels={"kind": "gpu"}, most=1), group("cpu", labels={"kind": "cpu"})]
        assert added(planned(world(*pending, groups=kinds))) == {"gpu": 1, "cpu": 2}
        small = [group("gpu", labels={"kind": "gpu"}, cpu=2, most=1), kinds[1]]
        plan = planned(world(*pending, groups=small))
        assert added(plan) == {}
        assert left(plan) == {"gpu": 2, "cpu": 4}

    def test_a_bundle_that_does_not_fit_leaves_the_room_to_others(self):
        pending = [waiting("whole", 20, bundle="default/r", age=100), waiting("web", 4)]
        plan = planned(world(*pending, groups=[group("g", cpu=4, most=2)]))
        assert left(plan) == {"whole": 20}
        assert added(plan) == {"g": 1}

    def test_pods_alike_outside_a_bundle_do_not_count_for_it(self):
        pending = [waiting("whole", 6, app="x", bundle="default/r"), waiting("free", 4, app="x")]
        plan = planned(world(*pending, groups=[group("g", cpu=4, most=2)]))
        assert left(plan) == {"free": 2}


class TestRequestsAndOrdinaryPods:
    """One queue for all (docs/design/nodes.md 4.2, 4.5): four pods are placed, two requested ones are not."""

    ROOM = (group("g", cpu=4, most=1),)

    def test_a_request_of_higher_priority_goes_before_an_older_one(self):
        old = waiting("old", 4, bundle="default/old", age=100)
        urgent = waiting("urgent", 4, 0.9, bundle="default/urgent", age=1, priority=5)
        assert left(planned(world(old, urgent, groups=self.ROOM))) == {"old": 4}

    def test_the_highest_priority_of_its_pod_sets_counts(self):
        plain = waiting("plain", 4, bundle="default/plain", age=100)
        mixed = [waiting(f"mixed{number}", 2, 0.9, bundle="default/mixed", priority=number) for number in (0, 7)]
        assert left(planned(world(plain, *mixed, groups=self.ROOM))) == {"plain": 4}

    def test_names_decide_among_requests_of_the_same_instant(self):
        pending = [waiting(f"{name}-pods", 4, bundle=f"default/{name}", labels={"x": name}) for name in ("b", "a")]
        assert left(planned(world(*pending, groups=self.ROOM))) == {"b-pods": 4}

    def test_older_ordinary_pods_go_before_a_request(self):
        web, asked = waiting("web", 2, age=100), waiting("asked", 4, 0.9, bundle="default/r", age=1)
        assert left(planned(world(web, asked, groups=self.ROOM))) == {"asked": 4}

    def test_an_older_request_goes_before_ordinary_pods(self):
        web, asked = waiting("web", 2, age=1), waiting("asked", 4, 0.9, bundle="default/r", age=100)
        assert left(planned(world(web, asked, groups=self.ROOM))) == {"web": 2}

    def test_ordinary_pods_stand_where_the_oldest_of_them_does(self):
        old, young = waiting("old", 1, age=100), waiting("young", 1, 0.5, age=1)
        asked = waiting("asked", 4, 0.9, bundle="default/r", age=50)
        assert left(planned(world(old, young, asked, groups=self.ROOM))) == {"asked": 4}

    def test_ordinary_pods_of_low_priority_do_not_stand_with_those_of_high(self):
        urgent, idle = waiting("urgent", 1, age=100, priority=5), waiting("idle", 2, age=100, priority=-5)
        asked = waiting("asked", 3, 0.9, bundle="default/r", age=1)
        assert left(planned(world(urgent, idle, asked, groups=self.ROOM))) == {"idle": 2}

    def test_a_request_is_served_beside_ordinary_pods_that_do_not_all_fit(self):
        huge, web = waiting("huge", 1, 64, age=200), waiting("web", 1, age=100)
        asked = waiting("asked", 3, bundle="default/r", age=1)
        assert left(planned(world(huge, web, asked, groups=self.ROOM))) == {"huge": 1}

    def test_what_an_earlier_turn_has_begun_to_serve_goes_first(self):
        begun = replace(waiting("begun", 4, bundle="default/begun", age=1), rank=-1)
        urgent = waiting("urgent", 4, 0.9, bundle="default/urgent", age=100, priority=5)
        assert left(planned(world(urgent, begun, groups=self.ROOM))) == {"urgent": 4}


class TestWholeGroups:
    """Zero or max: such a group grows to its largest size or not at all."""

    def test_it_grows_to_its_maximum(self):
        plan = planned(world(waiting("web", 2), groups=[group("slice", cpu=4, most=4, zero_or_max=True)]))
        assert added(plan) == {"slice": 4}

    def test_its_idle_nodes_are_used_and_paid_for(self):
        groups = [group("slice", cpu=4, most=4, price=0.3, zero_or_max=True), group("g", cpu=4, price=0.4)]
        assert added(planned(world(waiting("web", 2), groups=groups))) == {"g": 1}
        assert added(planned(world(waiting("web", 16), groups=groups))) == {"slice": 4}

    def test_limits_are_those_of_the_whole_group(self):
        groups = [group("slice", cpu=4, most=4, price=0.1, zero_or_max=True), group("g", cpu=4, price=1)]
        wants = waiting("other", 4, nodeSelector={"pool": "x"})
        x = group("x", cpu=4, labels={"pool": "x"})
        plan = planned(world(waiting("web", 8), wants, groups=[*groups, x]), max_cpu=16)
        assert "slice" not in added(plan)
        assert left(plan) == {}

    def test_pods_that_look_at_others_open_it_whole_too(self):
        rule = required([term({"app": "web"}), term({"app": "web"}, key=ZONE)])
        groups = [group("slice", zone="a", most=3, zero_or_max=True)]
        assert added(planned(world(waiting("web", 1, **rule), groups=groups))) == {"slice": 3}


class TestChoosing:
    def test_existing_nodes_are_used_first(self):
        snapshot = world(waiting("web", 6), nodes=[node("n1", cpu=4)], groups=[group("g", cpu=4)])
        plan = planned(snapshot)
        assert on_existing(plan) == {"n1": {"web": 4}}
        assert added(plan) == {"g": 1}

    def test_the_priority_expander_s_tiers_come_before_money(self):
        rules = replace(policy(expander="priority,cost"), priorities={10: ("dear",), 5: (".*",)})
        groups = [group("dear", price=9, most=1), group("cheap", price=0.1)]
        assert added(planned(world(waiting("web", 6), groups=groups), rules)) == {"dear": 1, "cheap": 1}

    def test_the_price_overlay_changes_the_choice(self):
        groups = [group("a", price=0.4, machine_type="m-a"), group("b", price=0.5, machine_type="m-b")]
        snapshot = world(waiting("web", 4), groups=groups)
        assert added(planned(snapshot)) == {"a": 1}
        rules = replace(policy(expander="cost"), overlay={"m-b": Overlay(price=0.1)})
        assert added(planned(snapshot, rules)) == {"b": 1}

    def test_spot_only_where_pods_accept_it(self):
        taint = {"key": "spot", "value": "yes", "effect": "NoSchedule"}
        groups = [
            group("spot", price=0.1, capacity_type=CapacityType.SPOT, taints=[taint]),
            group("open-spot", price=0.1, capacity_type=CapacityType.SPOT),
            group("safe", price=0.4),
        ]
        firm = waiting("firm", 4)
        loose = waiting("loose", 4, tolerations=[{"key": "spot", "operator": "Exists"}])
        assert added(planned(world(firm, loose, groups=groups))) == {"spot": 1, "safe": 1}

    def test_gpu_nodes_are_reserved_for_pods_that_request_gpus(self):
        groups = [group("gpu", price=0.1, **dict[str, Any]({"nvidia.com/gpu": 1})), group("plain", price=0.4)]
        assert added(planned(world(waiting("web", 4), groups=groups))) == {"plain": 1}
        assert added(planned(world(waiting("web", 4), groups=groups[:1]))) == {"gpu": 1}

    def test_types_are_mixed_where_that_is_cheaper(self):
        groups = [group("x", cpu=4, price=0.20), group("y", cpu=16, price=0.72)]
        assert added(planned(world(waiting("big", 5, 3), waiting("small", 4), groups=groups))) == {"x": 1, "y": 1}

    def test_no_more_groups_are_made_than_may_be(self):
        pending = [waiting(f"p{index}", 1, nodeSelector={"color": str(index)}) for index in range(4)]
        types = (machine("m4", 4),)
        rules = policy(node_autoprovisioning=True, max_autoprovisioned_node_group_count=2, expander="cost")
        plan = planned(world(*pending, machine_types=types), rules)
        assert len(plan.scale_ups) == 2
        assert plan.scheduled == 2


class TestBalance:
    ALIKE = tuple(group(f"g{index}", cpu=4, target=index) for index in range(3))

    def test_growth_goes_to_the_smallest_first(self):
        plan = planned(world(waiting("web", 24), groups=self.ALIKE), balance_similar_node_groups=True)
        assert {growth.option.group: growth.after for growth in plan.scale_ups} == {"g0": 3, "g1": 3, "g2": 3}

    def test_it_is_off_by_default(self):
        assert len(added(planned(world(waiting("web", 24), groups=self.ALIKE)))) == 1

    def test_largest_sizes_hold(self):
        groups = [replace(self.ALIKE[0], max_size=1), *self.ALIKE[1:]]
        plan = planned(world(waiting("web", 12), groups=groups), balance_similar_node_groups=True)
        assert added(plan)["g0"] == 1
        assert plan.scheduled == 12

    def test_pods_that_look_at_others_stay_where_they_may_be(self):
        zones = [group(f"g-{zone}", zone=zone) for zone in "ab"]
        pending = [
            waiting("db", 8, nodeSelector={ZONE: "a"}),
            waiting("cache", 8, **required(term({"app": "db"}, key=ZONE), "podAffinity")),
        ]
        plan = planned(world(*pending, groups=zones), balance_similar_node_groups=True)
        assert left(plan) == {}

    def test_a_little_less_memory_is_too_little_for_a_full_node(self):
        full = group("a", cpu=4, memory="16Gi")
        less = group("b", cpu=4, memory="15900Mi", price=0.4)
        pending = waiting("web", 8, requests={"cpu": 1, "memory": "4Gi"})
        plan = planned(world(pending, groups=[full, less]), balance_similar_node_groups=True)
        assert left(plan) == {}
        assert added(plan) == {"a": 2}

    def test_spread_over_zones_survives_it(self):
        zones = [group(f"g-{zone}", zone=zone, target=target) for zone, target in (("a", 0), ("b", 5))]
        nodes = [node(f"n{index}", zone="b", cpu="100m") for index in range(5)]
        snapshot = world(waiting("web", 8, 2, **spread({"app": "web"})), nodes=nodes, groups=zones)
        plan = planned(snapshot, balance_similar_node_groups=True)
        assert added(plan) == {"g-a": 2, "g-b": 2}
        assert on_new_nodes(plan) == {"web": [2, 2, 2, 2]}
        assert reported(plan) == ""
