"""Removals of consolidation are replayed by the plain rules before they start."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.scale_down_plan import NodeRemoval, PodMove
from plimsoll.nodes.planning.consolidation.planner import ConsolidationOptions, consolidate
from plimsoll.nodes.planning.consolidation.verification import verify_removals
from plimsoll.scheduling.cluster_view import PodKey
from tests.nodes.planning.scaledown.builders import HOSTNAME, NOON, group, node, pod, policy, snapshot

if TYPE_CHECKING:
    from plimsoll.nodes.model.snapshot import Snapshot


def pods_apart(count: int) -> list[Any]:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
    apart: dict[str, Any] = {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    }
    return [pod(f"p{number}", on=f"n{number}", labels={"app": "web"}, **apart) for number in range(count)]


def cluster(spare: int) -> Snapshot:
    """Two nodes with a pod each that avoids the other, and empty nodes that belong to no group."""
    nodes = [node("n0"), node("n1"), *(node(f"spare{number}", group="") for number in range(spare))]
    return snapshot(nodes, pods_apart(2), groups=[group(size=2, price_per_hour=1.0)])


def removal(name: str, pod_name: str, target: str) -> NodeRemoval:
    move = PodMove(pod=PodKey("default", pod_name), source=name, target=target)
    return NodeRemoval(
        node=name, group="g", is_empty=False, moves=(move,), reason=Reason(code="Underutilized", message="")
    )


def test_what_consolidation_proposes_holds_by_the_plain_rules():
    world = cluster(spare=2)
    chosen = policy(consolidation="underutilized")
    options = ConsolidationOptions(budgets=(), may_replace=False)
    proposed = consolidate(world, chosen, now=NOON, options=options)
    assert [node_removal.node for node_removal in proposed.removals] == ["n0", "n1"]
    verified = verify_removals(world, chosen, proposed.removals, now=NOON)
    assert verified.removals == proposed.removals
    assert not verified.refused


def test_a_pod_without_a_place_keeps_its_node():
    world = cluster(spare=1)
    proposed = [removal("n0", "p0", "spare0"), removal("n1", "p1", "spare0")]
    verified = verify_removals(world, policy(), proposed, now=NOON)
    assert [node_removal.node for node_removal in verified.removals] == ["n0"]
    assert {name: reason.code for name, reason in verified.refused.items()} == {"n1": "NoPlaceToMovePods"}


def test_a_pod_that_its_target_refuses_goes_to_another_node():
    verified = verify_removals(cluster(spare=1), policy(), [removal("n0", "p0", "n1")], now=NOON)
    assert [move.target for move in verified.removals[0].moves] == ["spare0"]
