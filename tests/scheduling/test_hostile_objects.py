"""Objects made to hurt: every question still gets an answer, in time that grows with the object and no faster."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.scheduling.cluster_view import ClusterView
from plimsoll.scheduling.feasibility import check_node, explain
from plimsoll.scheduling.messages import NotSchedulable, compute_scheduling_outcome
from plimsoll.scheduling.verdicts import DoesNotFit, Fits
from tests.scheduling.builders import ZONE, node, node_affinity, pod, required, spread

MANY = 10_000
NODES = [node(f"n{index}", zone=f"z{index % 3}") for index in range(20)]
RUNNING = [pod(f"r{index}", on=f"n{index % 20}", labels={"app": "web"}) for index in range(200)]
VIEW = ClusterView.from_objects(NODES, RUNNING)

NONE_OF_MANY = {"matchExpressions": [{"key": f"k{index}", "operator": "DoesNotExist"} for index in range(MANY)]}
MANY_VALUES = {"matchExpressions": [{"key": "app", "operator": "In", "values": [f"v{index}" for index in range(MANY)]}]}


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        (required({"topologyKey": ZONE, "labelSelector": NONE_OF_MANY}), False),
        (required({"topologyKey": ZONE, "labelSelector": MANY_VALUES}), True),
        (spread(None, labelSelector=NONE_OF_MANY), True),
        (
            node_affinity(
                *(
                    {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [f"q{index}"]}]}
                    for index in range(MANY)
                )
            ),
            False,
        ),
        ({"tolerations": [{"key": f"k{index}", "operator": "Exists"} for index in range(MANY)]}, True),
        ({"nodeSelector": {f"k{index}": "v" for index in range(MANY)}}, False),
        ({"initContainers": [{"name": f"i{index}", "restartPolicy": "Always"} for index in range(1000)]}, True),
    ],
    ids=["anti-affinity", "values", "spread", "terms", "tolerations", "nodeSelector", "sidecars"],
)
def test_ten_thousand_of_anything_is_answered_for_every_node(spec: dict[str, Any], fits: bool):
    made = pod(labels={"app": "web"}, **spec)

    assert any(not refusals for refusals in explain(made, VIEW).values()) is fits


def test_a_pod_of_many_terms_against_itself_is_answered():
    terms = [{"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": f"a{index}"}}} for index in range(1000)]
    crowd = pod("crowd", on="n0", **required(terms))

    answer = check_node(pod(labels={"app": "a999"}), NODES[0], VIEW.with_pod(crowd))

    assert isinstance(answer, DoesNotFit)
    assert answer.reason.messages == ("node(s) didn't satisfy existing pods anti-affinity rules",)


@pytest.mark.parametrize("text", ["1.5Mi5", "", "-", "NaN", "1e999999999", "9" * 1_000_000, "0x10"])
def test_any_text_for_a_quantity_gives_a_reason_with_its_path(text: str):
    made = pod(requests={"memory": text})
    outcome = compute_scheduling_outcome(made, VIEW)

    assert isinstance(check_node(made, NODES[0], VIEW), DoesNotFit)
    assert isinstance(outcome, NotSchedulable)
    assert "spec.containers[0].resources.requests[memory]" in outcome.message
    assert len(outcome.message) < 1000


def test_a_request_of_less_than_nothing_makes_no_room():
    """It would free what it is subtracted from; an API server refuses such a pod."""
    verdict = check_node(pod(requests={"cpu": "-5"}), NODES[0], VIEW)
    assert "requests[cpu]: must be greater than or equal to 0" in str(verdict)
    crowded = VIEW.with_pod(pod(name="evil", requests={"cpu": "-100"}, on=NODES[0].metadata.name))
    assert isinstance(check_node(pod(requests={"cpu": "50"}), NODES[0], crowded), DoesNotFit)


def test_huge_amounts_are_only_numbers():
    assert isinstance(check_node(pod(requests={"cpu": "9e60"}), NODES[0], VIEW), DoesNotFit)


def test_a_spread_over_a_million_skew_or_none_is_answered():
    everywhere = pod(labels={"app": "web"}, **spread({"app": "web"}, max_skew=10**18))
    nowhere = pod(labels={"app": "web"}, **spread({"app": "web"}, max_skew=-(10**18)))

    assert isinstance(check_node(everywhere, NODES[0], VIEW), Fits)
    assert isinstance(check_node(nowhere, NODES[0], VIEW), DoesNotFit)


def test_ten_thousand_taints_and_tolerations_are_looked_up_not_compared():
    taints = [{"key": f"k{index}", "value": "v", "effect": "NoSchedule"} for index in range(MANY)]
    tolerations = [{"key": f"k{index}", "value": "v", "effect": "NoSchedule"} for index in range(MANY)]
    place = node(taints=taints)

    assert isinstance(check_node(pod(tolerations=tolerations), place, ClusterView.from_objects([place])), Fits)
    assert isinstance(
        check_node(pod(tolerations=tolerations[1:]), place, ClusterView.from_objects([place])), DoesNotFit
    )


def test_ten_thousand_disks_and_ports_are_looked_up_not_compared():
    disks = [{"name": f"v{index}", "gcePersistentDisk": {"pdName": f"d{index}"}} for index in range(MANY)]
    ports = [{"hostPort": 80, "hostIP": f"10.0.{index // 250}.{index % 250}"} for index in range(MANY)]
    first, second = ([{"name": "c", "ports": half}] for half in (ports[::2], ports[1::2]))
    view = ClusterView.from_objects([node()], [pod("other", on="n1", volumes=disks[::2], containers=first)])

    assert isinstance(check_node(pod(volumes=disks[1::2], containers=second), node(), view), Fits)
    assert isinstance(check_node(pod(volumes=disks, containers=second), node(), view), DoesNotFit)
