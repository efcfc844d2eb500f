"""What each rule between pods costs, by planning again without it."""

from __future__ import annotations

from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from plimsoll.nodes.planning.scaleup.price_of_rules import price_rules
from tests.nodes.planning.scale_up_clusters import COST, group, waiting, world
from tests.scheduling.builders import HOSTNAME, ZONE, required, spread, term

BIG = group("big", cpu=16, most=10)


def test_a_rule_costs_what_the_plan_without_it_saves():
    apart = required(term({"app": "web"}), "podAntiAffinity")
    snapshot = world(waiting("web", 3, **apart), waiting("db", 1), groups=[BIG])
    prices = price_rules(snapshot, COST, plan_scale_up(snapshot, COST))
    assert prices.others == 0
    assert [(str(entry.rule), entry.pods, entry.cost_per_hour, entry.nodes) for entry in prices.priced] == [
        ("apart on hosts from app=web", 3, 3.2, 2)
    ]


def test_rules_of_several_kinds_are_priced_one_by_one_the_dearest_first():
    web = spread({"app": "web"}, HOSTNAME, 1)
    db = required(term({"app": "db"}), "podAffinity")
    zones = spread({"app": "api"}, ZONE, 1)
    groups = [group(f"g-{zone}", cpu=16, zone=zone) for zone in ("a", "b")]
    snapshot = world(waiting("web", 4, **web), waiting("db", 2, **db), waiting("api", 2, **zones), groups=groups)
    prices = price_rules(snapshot, COST, plan_scale_up(snapshot, COST))
    assert {str(entry.rule) for entry in prices.priced} == {
        "spread over hosts of app=web",
        "together on hosts with app=db",
        "spread over zones of app=api",
    }
    costs = [entry.cost_per_hour for entry in prices.priced]
    assert costs == sorted(costs, reverse=True)


def test_a_rule_that_leaves_pods_unschedulable_says_how_many():
    apart = required(term({"app": "web"}), "podAntiAffinity")
    snapshot = world(waiting("web", 3, **apart), groups=[group("one", cpu=16, most=1)])
    (entry,) = price_rules(snapshot, COST, plan_scale_up(snapshot, COST)).priced
    assert entry.more_placed == 2
    assert entry.cost_per_hour == 0
