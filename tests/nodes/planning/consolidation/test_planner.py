"""Nodes removed for money: modes, prices, budgets, the balanced rule, replacement (docs/design/nodes.md 8.6)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.nodes.config.node_disruption_budgets import DisruptionBudget
from plimsoll.nodes.planning.consolidation.planner import Consolidation, ConsolidationOptions, consolidate
from plimsoll.nodes.planning.scaledown.eligibility import ScaleDownState
from tests.nodes.planning.scaledown.builders import HOSTNAME, NOON, budget, group, node, pod, policy, snapshot

if TYPE_CHECKING:
    from plimsoll.nodes.model.snapshot import Snapshot

FREELY = ConsolidationOptions(budgets=(), may_replace=False)


def consolidated(
    world: Snapshot, mode: str = "underutilized", *, terms: ConsolidationOptions = FREELY, **options: Any
) -> Consolidation:
    return consolidate(world, policy(consolidation=mode, **options), now=NOON, options=terms)


def going(world: Snapshot, mode: str = "underutilized", **more: Any) -> list[str]:
    return [node_removal.node for node_removal in consolidated(world, mode, **more).removals]


def why(world: Snapshot, mode: str = "underutilized", **more: Any) -> dict[str, str]:
    return {unremovable.node: unremovable.reason.code for unremovable in consolidated(world, mode, **more).unremovable}


def priced(nodes: int, price: float, name: str = "g", **more: Any) -> Any:
    return group(name, size=nodes, price_per_hour=price, **more)


def half_used(count: int, cpu: str = "2", **more: Any) -> Snapshot:
    """Equal nodes of 4 cpu with one pod each."""
    pods = [pod(f"p{index}", on=f"n{index}", cpu=cpu, labels={"app": "web"}) for index in range(count)]
    return snapshot([node(f"n{index}") for index in range(count)], pods, groups=[priced(count, 1.0)], **more)


def test_off_does_nothing():
    assert consolidated(half_used(4), "off") == Consolidation(mode="off")


def test_empty_takes_only_nodes_without_pods_to_move():
    world = snapshot([node("n1"), node("n2")], [pod("a", on="n1")], groups=[priced(2, 1.0)])
    assert going(world, "empty") == ["n2"]
    assert why(world, "empty") == {"n1": "NotEmpty"}


def test_underutilized_packs_pods_on_fewer_nodes():
    found = consolidated(half_used(6))
    assert len(found.removals) == 3
    assert (found.cost_per_hour, found.savings_per_hour) == (6.0, 3.0)
    assert found.disruption == 6.0
    assert found.lower_bound_per_hour == pytest.approx(3.0)


def test_nodes_that_are_well_used_go_too_when_that_saves_money():
    assert len(going(half_used(6, cpu="1300m"))) == 4


def test_the_dearest_nodes_go_first():
    nodes = [node("cheap1"), node("cheap2"), node("dear", group="d")]
    pods = [pod(name, on=name, cpu="1") for name in ("cheap1", "cheap2", "dear")]
    groups = [priced(2, 1.0), priced(1, 9.0, "d")]
    assert "dear" in going(snapshot(nodes, pods, groups=groups))


def test_moves_name_pods_with_their_new_nodes():
    found = consolidated(half_used(2))
    assert [(str(move.pod), move.source, move.target) for move in found.removals[0].moves] == [
        ("default/p0", "n0", "n1")
    ]


def test_a_budget_limits_nodes_of_a_group():
    assert len(going(half_used(6), terms=ConsolidationOptions(may_replace=False))) == 1
    two = ConsolidationOptions(budgets=(DisruptionBudget(nodes=2),), may_replace=False)
    assert len(going(half_used(6), terms=two)) == 2
    assert "DisruptionLimitReached" in why(half_used(6), terms=two).values()


def test_a_budget_of_none_stops_everything():
    assert going(half_used(6), terms=ConsolidationOptions(budgets=(DisruptionBudget(nodes=0),))) == []


def test_budgets_of_empty_and_used_nodes_are_apart():
    pods = [pod(f"p{index}", on=f"n{index}", cpu="2") for index in range(4)]
    world = snapshot([node(f"n{index}") for index in range(6)], pods, groups=[priced(6, 1.0)])
    found = consolidated(world, terms=ConsolidationOptions(may_replace=False))
    assert sorted(removal.reason.code for removal in found.removals) == ["Empty", "Underutilized"]


def test_disruption_budgets_are_never_exceeded():
    found = consolidated(half_used(6, budgets=(budget(allowed=1, app="web"),)))
    assert sum(len(removal.moves) for removal in found.removals) == 1


def test_minimum_sizes_and_minima_hold():
    nodes = [node(f"n{index}") for index in range(4)]
    assert len(going(snapshot(nodes, groups=[priced(4, 1.0, least=3)]))) == 1
    assert len(going(snapshot(nodes, groups=[priced(4, 1.0)]), min_cpu=8)) == 2


def test_groups_that_are_not_autoscaled_are_left_as_they_are():
    world = snapshot([node("n1"), node("n2")], groups=[priced(2, 1.0, autoscaled=False)])
    assert set(why(world).values()) == {"NotAutoscaled"}


def test_pods_that_keep_apart_are_moved_by_the_plain_rules():
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": "web"}}}
    apart: dict[str, Any] = {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    }
    pods = [pod(f"p{index}", on=f"n{index}", labels={"app": "web"}, **apart) for index in (1, 2)]
    pair = [node("n1"), node("n2")]
    assert going(snapshot(pair, pods, groups=[priced(2, 1.0)])) == []
    spare = node("n3", group="")
    assert len(going(snapshot([*pair, spare], pods, groups=[priced(2, 1.0)]))) == 1


class TestBalanced:
    """Savings in parts of the group's cost, twice, at least the disturbance in parts of the group's."""

    def uneven(self, *pods_on: int) -> Snapshot:
        pods = [
            pod(f"p{index}-{number}", on=f"n{index}", cpu="100m", memory="1Mi")
            for index, many in enumerate(pods_on)
            for number in range(many)
        ]
        nodes = [node(f"n{index}") for index in range(len(pods_on))]
        return snapshot(nodes, pods, groups=[priced(len(pods_on), 1.0)])

    def test_a_node_with_a_fair_share_of_pods_goes(self):
        assert len(going(self.uneven(4, 4, 4), "balanced")) == 2

    def test_a_node_with_most_of_the_pods_stays(self):
        world = self.uneven(20, 1, 1)
        assert "n0" not in going(world, "balanced")
        assert why(world, "balanced")["n0"] == "NotWorthTheDisruption"

    def test_pods_dear_to_delete_weigh_more(self):
        dear = {"controller.kubernetes.io/pod-deletion-cost": str(2**31 - 1)}
        nodes = [node(f"n{index}") for index in range(3)]
        pods = [pod("a", on="n0", annotations=dear), pod("b", on="n1"), pod("c", on="n2")]
        world = snapshot(nodes, pods, groups=[priced(3, 1.0)])
        assert why(world, "balanced")["n0"] == "NotWorthTheDisruption"


class TestReplacement:
    """Dear nodes for cheaper ones."""

    def world(self, *, cheap: float, **more: Any) -> Snapshot:
        nodes = [node("n1", group="dear", cpu=16, gib=64)]
        groups = [
            group("dear", size=1, price_per_hour=2.0, template=node("t", cpu=16, gib=64)),
            group("small", size=0, price_per_hour=cheap, **more),
        ]
        return snapshot(nodes, [pod("a", on="n1", cpu="2")], groups=groups)

    def test_a_node_is_replaced_by_a_cheaper_one(self):
        found = consolidated(self.world(cheap=0.5), terms=ConsolidationOptions(budgets=()))
        assert found.replacement is not None
        assert found.replacement.nodes == ("n1",)
        assert [str(pod) for pod in found.replacement.pods] == ["default/a"]
        assert [(growth.option.group, growth.added) for growth in found.replacement.plan.scale_ups] == [("small", 1)]
        assert found.savings_per_hour == 1.5

    def test_not_by_one_that_costs_as_much(self):
        assert consolidated(self.world(cheap=2.0), terms=ConsolidationOptions(budgets=())).replacement is None

    def test_not_where_there_is_no_room(self):
        assert consolidated(self.world(cheap=0.5, most=0), terms=ConsolidationOptions(budgets=())).replacement is None

    def test_not_when_no_client_may(self):
        assert consolidated(self.world(cheap=0.5)).replacement is None

    def test_not_in_the_mode_for_empty_nodes(self):
        assert consolidated(self.world(cheap=0.5), "empty", terms=ConsolidationOptions(budgets=())).replacement is None


def test_nodes_already_leaving_use_up_the_budget():
    world = half_used(6)
    known = ScaleDownState(being_deleted=frozenset({"n0"}))
    found = consolidate(world, policy(consolidation="underutilized"), now=NOON, state=known)
    assert found.removals == ()
