"""Affinity and anti-affinity between pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.scheduling.cluster_view import ClusterView
from plimsoll.scheduling.feasibility import check_node, check_nodes
from plimsoll.scheduling.verdicts import DoesNotFit, Fits
from tests.scheduling.builders import ZONE, node, pod, required, term

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import Pod

NODES = [node("n1", zone="z1"), node("n2", zone="z1"), node("n3", zone="z2"), node("n4", zone="")]
NO_AFFINITY_TARGET = "node(s) didn't match pod affinity rules"
AVOIDS = "node(s) didn't match pod anti-affinity rules"
AVOIDED = "node(s) didn't satisfy existing pods anti-affinity rules"


def where(made: Pod, *others: Pod, namespaces: dict[str, dict[str, str]] | None = None) -> list[str]:
    view = ClusterView.from_objects(NODES, others, namespaces=namespaces)
    return [name for name, verdict in check_nodes(made, view).items() if isinstance(verdict, Fits)]


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return required(list(terms), "podAffinity")


def away(*terms: dict[str, Any]) -> dict[str, Any]:
    return required(list(terms), "podAntiAffinity")


WEB = pod("web", on="n1", labels={"app": "web"})


def test_affinity_by_host_and_by_zone():
    assert where(pod(**near(term({"app": "web"}))), WEB) == ["n1"]
    assert where(pod(**near(term({"app": "web"}, key=ZONE))), WEB) == ["n1", "n2"]


def test_company_must_match_every_term_at_once():
    a, b = pod("a", on="n1", labels={"a": "1"}), pod("b", on="n1", labels={"b": "1"})
    both = pod("ab", on="n3", labels={"a": "1", "b": "1"})
    wants = pod(**near(term({"a": "1"}), term({"b": "1"}, key=ZONE)))

    assert where(wants, a, b) == []
    assert where(wants, a, b, both) == ["n3"]


def test_anti_affinity_by_host_and_by_zone():
    assert where(pod(**away(term({"app": "web"}))), WEB) == ["n2", "n3", "n4"]
    assert where(pod(**away(term({"app": "web"}, key=ZONE))), WEB) == ["n3", "n4"]


def test_each_anti_affinity_term_counts_by_itself():
    wary = pod(**away(term({"app": "web"}), term({"app": "db"}, key=ZONE)))

    assert where(wary, WEB, pod("db", on="n3", labels={"app": "db"})) == ["n2", "n4"]


def test_pods_already_there_keep_others_away():
    keeps_off = pod("alone", on="n1", **away(term({"app": "web"}, key=ZONE)))

    assert where(pod("web2", labels={"app": "web"}), keeps_off) == ["n3", "n4"]
    assert where(pod("other", labels={"app": "db"}), keeps_off) == ["n1", "n2", "n3", "n4"]


def test_the_first_of_a_group_may_go_anywhere_its_topology_exists():
    first = pod(labels={"app": "db"}, **near(term({"app": "db"}, key=ZONE)))

    assert where(first) == ["n1", "n2", "n3"]
    assert where(first, pod("db-0", on="n3", labels={"app": "db"})) == ["n3"]


def test_whoever_wants_others_cannot_be_the_first():
    assert where(pod(labels={"app": "web"}, **near(term({"app": "db"})))) == []


@pytest.mark.parametrize(
    ("more", "met"),
    [
        ({}, False),
        ({"namespaces": ["other"]}, True),
        ({"namespaces": ["default"]}, False),
        ({"namespaceSelector": {}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "b"}}}, True),
        ({"namespaceSelector": {"matchLabels": {"team": "c"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"team": "c"}}, "namespaces": ["other"]}, True),
    ],
)
def test_namespaces_of_a_term(more: dict[str, Any], met: bool):
    elsewhere = pod("web", on="n1", namespace="other", labels={"app": "web"})
    namespaces = {"default": {"team": "a"}, "other": {"team": "b"}}
    wary = pod(**away(term({"app": "web"}, **more)))
    resentful = pod("old", on="n1", **away(term({"app": "web"}, **more)))
    incoming = pod("web", namespace="other", labels={"app": "web"})

    assert ("n1" not in where(wary, elsewhere, namespaces=namespaces)) is met
    assert ("n1" not in where(incoming, resentful, namespaces=namespaces)) is met


def test_a_namespace_selector_stands_in_for_the_pods_own_namespace():
    only_others = term({"app": "web"}, namespaceSelector={"matchLabels": {"team": "b"}})
    namespaces = {"default": {"team": "a"}}

    assert where(pod(**away(only_others)), WEB, namespaces=namespaces) == ["n1", "n2", "n3", "n4"]


def test_a_selector_that_is_absent_matches_nothing_and_an_empty_one_everything():
    assert where(pod(**away(term(None))), WEB) == ["n1", "n2", "n3", "n4"]
    assert where(pod(**away({"topologyKey": ZONE, "labelSelector": {}})), WEB) == ["n3", "n4"]


def test_match_label_keys_ask_for_the_pods_own_value():
    versioned = {"app": "web", "version": "2"}
    apart = term({"app": "web"}, matchLabelKeys=["version", "absent"])

    assert where(pod(labels=versioned, **away(apart)), WEB) == ["n1", "n2", "n3", "n4"]
    assert where(pod(labels=versioned, **away(apart)), pod("w", on="n1", labels=versioned)) == ["n2", "n3", "n4"]


def test_mismatch_label_keys_ask_for_another_value():
    mine, theirs = {"tenant": "a"}, {"tenant": "b"}
    apart = {"topologyKey": ZONE, "labelSelector": {}, "mismatchLabelKeys": ["tenant"]}

    assert where(pod(labels=mine, **away(apart)), pod("x", on="n1", labels=mine)) == ["n1", "n2", "n3", "n4"]
    assert where(pod(labels=mine, **away(apart)), pod("x", on="n1", labels=theirs)) == ["n3", "n4"]


@pytest.mark.parametrize(
    ("made", "others", "words", "resolvable"),
    [
        (pod(**near(term({"app": "db"}))), (), NO_AFFINITY_TARGET, False),
        (pod(**away(term({"app": "web"}))), (WEB,), AVOIDS, True),
        (pod(labels={"app": "x"}), (pod("o", on="n1", **away(term({"app": "x"}))),), AVOIDED, True),
    ],
)
def test_wording(made: Pod, others: tuple[Pod, ...], words: str, resolvable: bool):
    verdict = check_node(made, NODES[0], ClusterView.from_objects(NODES, others))

    assert isinstance(verdict, DoesNotFit)
    assert (verdict.reason.plugin, verdict.reason.messages, verdict.reason.resolvable) == (
        "InterPodAffinity",
        (words,),
        resolvable,
    )


def test_terms_that_cannot_be_read_are_refused_by_their_path():
    broken = {"matchExpressions": [{"key": "a", "operator": "Near"}]}
    verdict = check_node(
        pod(**away({"topologyKey": ZONE, "labelSelector": broken})), NODES[0], ClusterView.from_objects(NODES)
    )

    assert isinstance(verdict, DoesNotFit)
    assert verdict.reason.messages == (
        (
            "spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].labelSelector: "
            'matchExpressions[0]: "Near" is not a valid label selector operator'
        ),
    )


def test_running_pods_whose_terms_cannot_be_read_keep_no_pod_away():
    broken = {"matchExpressions": [{"key": "a", "operator": "Near"}]}

    assert where(pod(), pod("o", on="n1", **away({"topologyKey": ZONE, "labelSelector": broken}))) == [
        "n1",
        "n2",
        "n3",
        "n4",
    ]
