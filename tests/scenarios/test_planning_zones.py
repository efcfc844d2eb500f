"""Which zones pods are spread over: every one that can be had, with every expander (docs/design/nodes.md 7.4)."""

from __future__ import annotations

import pytest

from tests.scenarios.planning import NAP, Json, group, machine, node, planned, pods, sizes

ZONE = "topology.kubernetes.io/zone"
EXPANDERS = ["cost", "least-waste", "most-pods", "random"]


def web(count: int = 9, *, skew: int = 1, **more: object) -> Json:
    """Pods that each fill a node."""
    selector = {"matchLabels": {"app": "web"}}
    rule = {"maxSkew": skew, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return pods("web", count, 4, 8, labels={"app": "web"}, topologySpreadConstraints=[rule], **more)


def groups(**more: Json) -> list[Json]:
    return [group(zone, 4, 16, zone=zone, **more.get(zone, {})) for zone in "abc"]


def in_zones(*zones: str) -> Json:
    expression = {"key": ZONE, "operator": "In", "values": list(zones)}
    terms = [{"matchExpressions": [expression]}]
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


@pytest.mark.parametrize("expander", EXPANDERS)
def test_empty_groups_in_three_zones_get_a_third_each(expander: str):
    answer = planned({"nodeGroups": groups(), "pods": [web()], "options": {"expander": expander}})
    assert sizes(answer) == {"a": 3, "b": 3, "c": 3}


@pytest.mark.parametrize("expander", EXPANDERS)
def test_affinity_says_which_zones_count(expander: str):
    options = {"expander": expander}
    answer = planned({"nodeGroups": groups(), "pods": [web(6, affinity=in_zones("a", "c"))], "options": options})
    assert sizes(answer) == {"a": 3, "c": 3}
    answer = planned({"nodeGroups": groups(), "pods": [web(6, nodeSelector={ZONE: "b"})], "options": options})
    assert sizes(answer) == {"b": 6}


@pytest.mark.parametrize("expander", EXPANDERS)
def test_a_zone_that_would_hold_the_others_back_is_left_out_and_named(expander: str):
    given = groups(c={"max": 1})
    answer = planned({"nodeGroups": given, "pods": [web()], "options": {"expander": expander}})
    assert sum(sizes(answer).values()) == 9
    assert "c" not in sizes(answer)
    assert f"{ZONE} c gets no nodes" in str(answer)


@pytest.mark.parametrize("expander", ["cost", "least-waste"])
def test_a_zone_whose_group_is_full_holds_the_others_back_and_is_named(expander: str):
    """Its node exists, so that kube-scheduler counts the zone."""
    document = {
        "nodeGroups": groups(c={"max": 1, "target": 1}),
        "objects": [node("c-0", "c", 1, 16, **{ZONE: "c"})],
        "pods": [web()],
        "options": {"expander": expander},
    }
    answer = planned(document)
    assert sizes(answer) == {"a": 1, "b": 1}
    assert "c can take no more and holds the others back" in str(answer)


@pytest.mark.parametrize("expander", EXPANDERS)
def test_a_machine_type_offers_all_its_zones(expander: str):
    types = [machine("m4", 4, 16, zones=["a", "b", "c"])]
    answer = planned({"machineTypes": types, "pods": [web()], "options": {**NAP, "expander": expander}})
    assert sorted((scale_up["zone"], scale_up["to"]) for scale_up in answer["scaleUp"]["plan"]) == [
        ("a", 3),
        ("b", 3),
        ("c", 3),
    ]


def test_a_dump_offers_the_zones_of_its_nodes():
    nodes = [node(f"n-{zone}", "other", 1, 1, **{ZONE: zone}) for zone in ("eu-1", "eu-2")]
    answer = planned({"machineTypes": [machine("m4", 4, 16)], "objects": nodes, "pods": [web(4)], "options": NAP})
    assert sorted((scale_up["zone"], scale_up["to"]) for scale_up in answer["scaleUp"]["plan"]) == [
        ("eu-1", 2),
        ("eu-2", 2),
    ]
