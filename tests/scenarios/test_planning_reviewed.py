"""What fresh users of `plimsoll plan` stumbled over."""

from __future__ import annotations

from tests.scenarios.planning import NAP, Json, group, left, n1, planned, pods, reasons, sizes

GPU: Json = {"nvidia.com/gpu": 1}


def spread_over_zones(app: str) -> Json:
    selector = {"matchLabels": {"app": app}}
    key = "topology.kubernetes.io/zone"
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return {"labels": {"app": app}, "topologySpreadConstraints": [constraint]}


def test_no_pod_is_refused_because_another_would_open_a_zone():
    """A zone where a class can have no pods holds its minimum down as soon as anybody has a node there."""
    entries = [pods("p", 4, 1, 1, **spread_over_zones("a")), pods("q", 2, 1, 1, requests=GPU)]
    groups = [group("ga", 4, 16, price=0.1, zone="a"), group("gb", 4, 16, price=0.5, zone="b", resources=GPU)]
    answer = planned({"nodeGroups": groups, "pods": entries})
    assert sizes(answer) == {"ga": 1}
    assert (left(answer), "open a zone" in reasons(answer)) == (2, True)
    assert "verificationFailures" not in answer["scaleUp"]


def test_similar_groups_share_what_is_added():
    groups = [group(f"g{zone}", 4, 16, price=0.2, zone=zone) for zone in "ab"]
    answer = planned(
        {"options": {"balance-similar-node-groups": True}, "nodeGroups": groups, "pods": [pods("p", 24, 1, 1)]}
    )
    assert sizes(answer) == {"ga": 3, "gb": 3}


def test_expendable_and_consuming_pods_make_nothing_grow():
    consuming = pods("c", 2, 1, 1)
    consuming["template"]["metadata"]["annotations"] = {"autoscaling.x-k8s.io/consume-provisioning-request": "r"}
    entries = [pods("e", 2, 1, 1, priority=-11), consuming]
    answer = planned({"nodeGroups": [group("g", 4, 16)], "pods": entries})
    assert sizes(answer) == {}


def test_a_pod_that_needs_the_node_of_another_is_helped_as_far_as_it_has_room():
    term = {"labelSelector": {"matchLabels": {"app": "b"}}, "topologyKey": "kubernetes.io/hostname"}
    wants = {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    entries = [pods("a", 4, 1, 1, labels={"app": "a"}, affinity=wants), pods("b", 1, 1, 1, labels={"app": "b"})]
    answer = planned({"nodeGroups": [group("g", 4, 16, price=0.2)], "pods": entries})
    assert (sizes(answer), answer["scaleUp"]["helped"]) == ({"g": 1}, 4)


def test_for_the_same_money_rather_one_group_than_fewer_nodes():
    answer = planned({"options": NAP, "machineTypes": n1(1, 2, 4, 8, 16), "pods": [pods("p", 3, 1, 1)]})
    assert sizes(answer) == {"n1-standard-1": 3}
