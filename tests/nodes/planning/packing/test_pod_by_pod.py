"""Few pods that look at each other: no node too many for them, and no pod left whose partner comes later in line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from tests.nodes.planning.builders import policy
from tests.nodes.planning.plan_checks import problems
from tests.nodes.planning.scale_up_clusters import added, group, left, on_existing, waiting, world
from tests.scheduling.builders import HOSTNAME, ZONE, node, required, spread, term

if TYPE_CHECKING:
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import Snapshot


def planned(snapshot: Snapshot, **options: str) -> ScaleUpPlan:
    rules = policy(expander="cost", **options)
    plan = plan_scale_up(snapshot, rules)
    assert problems(snapshot, rules, plan) == []
    assert plan.verification_failures == 0
    return plan


def over_nodes(app: str, max_skew: int = 1, **more: int) -> dict[str, Any]:
    return spread({"app": app}, HOSTNAME, max_skew, **more)


def test_pods_spread_over_nodes_share_those_that_stand_with_others():
    nodes = [node("n1", cpu=8, memory="32Gi"), node("n2", cpu=8, memory="32Gi")]
    pending = [waiting("web", 6, 1.5, **over_nodes("web")), waiting("job", 3, 1.5)]
    plan = planned(world(*pending, nodes=nodes, groups=[group("g", cpu=8)]))
    assert (added(plan), left(plan)) == ({}, {})


def test_a_new_node_is_shared_by_pods_that_are_spread_and_others():
    pending = [waiting("job", 3, 3), waiting("web", 5, 0.5, **over_nodes("web"))]
    plan = planned(world(*pending, nodes=[node("n1", cpu=8, memory="64Gi")], groups=[group("g", cpu=8)]))
    assert (added(plan), left(plan)) == ({"g": 1}, {})


def test_more_than_one_goes_to_a_new_node_once_there_are_nodes_enough():
    groups = [group("small", cpu=4, most=5, price=0.2), group("large", cpu=16, most=5, price=0.8)]
    plan = planned(world(waiting("web", 6, 1, **over_nodes("web", minDomains=4)), groups=groups))
    assert (added(plan), left(plan)) == ({"small": 4}, {})


def test_pods_with_anti_affinity_get_new_nodes_and_the_others_the_existing_one():
    apart = required(term({"app": "web"}), "podAntiAffinity")
    pending = [
        waiting("web", 2, requests={"cpu": 1, "memory": "15000Mi"}, **over_nodes("web", 2)),
        waiting("alone", 3, requests={"cpu": 7, "memory": "1000Mi"}, app="web", **apart),
    ]
    groups = [group("large", cpu=16, most=3, price=0.527), group("g", cpu=8, memory="16Gi", price=0.263)]
    plan = planned(world(*pending, nodes=[node("n1", cpu=16, memory="64Gi")], groups=groups))
    assert (added(plan), left(plan)) == ({"g": 3}, {})


def test_company_that_comes_later_in_line_is_company():
    near = required(term({"app": "db"}, ZONE), "podAffinity")
    pending = [
        waiting("big", 4, 3, age=30),
        waiting("side", 2, 0.5, age=20, **near),
        waiting("db", 2, 1, age=10),
    ]
    nodes = [node("n1", cpu=4, zone="a"), node("n2", cpu=2, zone="b")]
    plan = planned(world(*pending, nodes=nodes, groups=[group("g", zone="a", most=1)]))
    assert left(plan) == {"big": 2}
    assert sum(pods.get("side", 0) for pods in on_existing(plan).values()) > 0


def test_a_host_is_chosen_so_that_its_guests_guest_has_room_near_it():
    pending = [
        waiting("side", 1, requests={"cpu": 1, "memory": "6000Mi"}, **required(term({"app": "db"}), "podAffinity")),
        waiting(
            "log",
            1,
            requests={"cpu": "500m", "memory": "6000Mi"},
            **required(term({"app": "side"}, ZONE), "podAffinity"),
        ),
        waiting("db", 4, requests={"cpu": 3, "memory": "256Mi"}),
    ]
    groups = [group("g", cpu=4, memory="32Gi", zone="b", most=3)]
    plan = planned(world(*pending, nodes=[node("n1", cpu=4, memory="8Gi", zone="a")], groups=groups))
    assert left(plan) == {}


def test_zones_are_opened_for_a_spread_even_if_fewer_were_cheaper():
    groups = [group(f"g-{zone}", cpu=8, zone=zone) for zone in "ab"]
    plan = planned(world(waiting("web", 4, 1, **spread({"app": "web"})), groups=groups))
    assert added(plan) == {"g-a": 1, "g-b": 1}
