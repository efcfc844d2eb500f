from __future__ import annotations

from typing import Any

import msgspec
import pytest

from plimsoll.objects.api.pods import Pod
from plimsoll.scheduling.cluster_view import ClusterView
from plimsoll.scheduling.feasibility import check_node, check_nodes
from plimsoll.scheduling.verdicts import DoesNotFit, Fits
from tests.scheduling.builders import HOSTNAME, ZONE, node, pod, spread

WEB = {"app": "web"}
NODES = [node("a1", zone="a"), node("a2", zone="a"), node("b1", zone="b"), node("c1", zone="c")]


def web(*on: str, **more: Any) -> list[Pod]:
    return [pod(f"web-{index}", on=name, labels=WEB, **more) for index, name in enumerate(on)]


def where(made: Pod, others: list[Pod], nodes: list[Any] | None = None) -> list[str]:
    view = ClusterView.from_objects(nodes or NODES, others)
    return [name for name, verdict in check_nodes(made, view).items() if isinstance(verdict, Fits)]


def test_the_domain_may_exceed_the_emptiest_by_max_skew():
    assert where(pod(labels=WEB, **spread(WEB)), web("a1", "b1")) == ["c1"]
    assert where(pod(labels=WEB, **spread(WEB, max_skew=2)), web("a1", "b1")) == ["a1", "a2", "b1", "c1"]


def test_a_selector_that_is_there_but_empty_counts_no_pod():
    """kube-scheduler does not count for it, though the pod itself matches."""
    assert where(pod(labels=WEB, **spread({})), web("a1", "a1", "a2")) == ["a1", "a2", "b1", "c1"]


def test_hosts_are_domains_even_with_no_pod_on_them():
    assert where(pod(labels=WEB, **spread(WEB, key=HOSTNAME)), web("a1", "b1")) == ["a2", "c1"]


def test_any_label_can_be_a_topology():
    racks = [node("n1", labels={"rack": "1"}), node("n2", labels={"rack": "2"})]

    assert where(pod(labels=WEB, **spread(WEB, key="rack")), web("n1"), racks) == ["n2"]


def test_a_pod_that_does_not_match_its_own_selector_does_not_count_itself():
    assert where(pod(labels={"app": "x"}, **spread(WEB)), web("a1")) == ["a1", "a2", "b1", "c1"]
    assert where(pod(labels={"app": "x"}, **spread(WEB)), web("a1", "a2")) == ["b1", "c1"]


def test_a_node_without_the_key_is_refused_for_good():
    lost = node("lost", zone="")
    verdict = check_node(pod(labels=WEB, **spread(WEB)), lost, ClusterView.from_objects([*NODES, lost]))

    assert isinstance(verdict, DoesNotFit)
    assert verdict.reason.messages == ("node(s) didn't match pod topology spread constraints (missing required label)",)
    assert not verdict.reason.resolvable


def test_nodes_that_lack_any_of_the_keys_are_no_domains():
    both: dict[str, Any] = {
        "topologySpreadConstraints": [
            *spread(WEB)["topologySpreadConstraints"],
            *spread(WEB, key="rack", max_skew=9)["topologySpreadConstraints"],
        ]
    }
    racked = [node("a1", zone="a", labels={"rack": "1"}), node("b1", zone="b", labels={"rack": "1"}), NODES[3]]

    assert where(pod(labels=WEB, **both), web("a1", "b1"), racked) == ["a1", "b1"]


def test_min_domains_holds_the_minimum_at_zero_until_there_are_enough():
    assert where(pod(labels=WEB, **spread(WEB, minDomains=4)), web("a1", "b1", "c1")) == []
    assert where(pod(labels=WEB, **spread(WEB, minDomains=3)), web("a1", "b1", "c1")) == ["a1", "a2", "b1", "c1"]


def test_nodes_the_pods_affinity_excludes_are_no_domains_unless_the_policy_ignores_it():
    not_c: dict[str, Any] = {"nodeSelector": {"tier": "web"}}
    nodes = [node("a1", zone="a", labels={"tier": "web"}), node("b1", zone="b", labels={"tier": "web"}), NODES[3]]
    others = web("a1", "b1")

    assert where(pod(labels=WEB, **not_c, **spread(WEB)), others, nodes) == ["a1", "b1"]
    assert where(pod(labels=WEB, **not_c, **spread(WEB, nodeAffinityPolicy="Ignore")), others, nodes) == []


def test_tainted_nodes_are_domains_unless_the_policy_honors_taints():
    taint = [{"key": "x", "effect": "NoSchedule"}]
    nodes = [NODES[0], NODES[2], node("c1", zone="c", taints=taint)]
    others = web("a1", "b1")

    assert where(pod(labels=WEB, **spread(WEB)), others, nodes) == []
    assert where(pod(labels=WEB, **spread(WEB, nodeTaintsPolicy="Honor")), others, nodes) == ["a1", "b1"]


def test_match_label_keys_count_only_the_pods_own_revision():
    mine = {**WEB, "rev": "2"}

    assert where(pod(labels=mine, **spread(WEB, matchLabelKeys=["rev"])), web("a1")) == ["a1", "a2", "b1", "c1"]


def test_other_namespaces_and_pods_on_their_way_out_do_not_count():
    going = msgspec.to_builtins(web("a1")[0])
    going["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    others = [msgspec.convert(going, Pod), pod("x", on="b1", namespace="other", labels=WEB)]

    assert where(pod(labels=WEB, **spread(WEB)), others) == ["a1", "a2", "b1", "c1"]


def test_schedule_anyway_refuses_no_pod():
    soft = spread(WEB, whenUnsatisfiable="ScheduleAnyway")

    assert where(pod(labels=WEB, **soft), web("a1", "a1", "a2")) == ["a1", "a2", "b1", "c1"]


@pytest.mark.parametrize("selector", [None, {"labelSelector": None}])
def test_an_absent_selector_counts_no_pod(selector: dict[str, Any] | None):
    assert where(pod(labels=WEB, **spread(None, **(selector or {}))), web("a1", "a2")) == ["a1", "a2", "b1", "c1"]


def test_wording_and_detail():
    verdict = check_node(pod(labels=WEB, **spread(WEB)), NODES[0], ClusterView.from_objects(NODES, web("a1")))

    assert isinstance(verdict, DoesNotFit)
    assert verdict.reason.plugin == "PodTopologySpread"
    assert verdict.reason.messages == ("node(s) didn't match pod topology spread constraints",)
    assert verdict.reason.resolvable
    assert verdict.reason.detail == f"{ZONE}=a would be 2 above the emptiest, maxSkew is 1"


def test_a_node_outside_every_domain_counts_as_empty():
    honoring = spread(WEB, nodeTaintsPolicy="Honor")
    tainted = node("c1", zone="c", taints=[{"key": "x", "effect": "NoSchedule"}])
    tolerant_nodes = [NODES[0], tainted]
    explained = check_nodes(pod(labels=WEB, **honoring), ClusterView.from_objects(tolerant_nodes, web("a1")))

    refused = explained["c1"]

    assert isinstance(refused, DoesNotFit)
    assert refused.reason.plugin == "TaintToleration"
    assert isinstance(explained["a1"], Fits)
