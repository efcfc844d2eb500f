"""Pods spread over zones that differ in price: as `plimsoll plan` shares them out (docs/design/nodes.md 7.4)."""

from __future__ import annotations

from tests.scenarios.planning import Json, group, planned, pods, sizes

ZONE = "topology.kubernetes.io/zone"
PRICES = {"a": 0.4, "b": 0.1, "c": 0.2}


def spread_with(skew: int) -> Json:
    selector = {"matchLabels": {"app": "web"}}
    rule = {"maxSkew": skew, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"labels": {"app": "web"}, "topologySpreadConstraints": [rule]}


def nodes_by_zone(skew: int, prices: dict[str, float] = PRICES) -> Json:
    """Six pods, each of which fills a node."""
    groups = [group(zone, 4, 16, price=price, zone=zone) for zone, price in prices.items()]
    return sizes(planned({"nodeGroups": groups, "pods": [pods("web", 6, 4, 8, **spread_with(skew))]}))


def test_a_skew_of_one_leaves_no_choice():
    assert nodes_by_zone(1) == {"a": 2, "b": 2, "c": 2}


def test_what_the_skew_leaves_open_is_decided_by_price():
    assert nodes_by_zone(2) == {"a": 1, "b": 3, "c": 2}
    assert nodes_by_zone(3) == {"b": 3, "c": 3}


def test_zones_of_one_price_are_filled_evenly():
    assert nodes_by_zone(3, dict.fromkeys("abc", 0.2)) == {"a": 2, "b": 2, "c": 2}


def test_the_cheap_zone_gets_no_more_where_even_shares_need_fewer_nodes():
    """Four pods of half a node: two zones with a node each are cheaper than three pods in the cheap one."""
    groups = [group("a", 4, 16, price=0.2, zone="a"), group("b", 4, 16, price=0.19, zone="b")]
    answer = planned({"nodeGroups": groups, "pods": [pods("web", 4, 2, 4, **spread_with(2))]})
    assert sizes(answer) == {"a": 1, "b": 1}
