"""What holds for removals of any cluster: pods have places by the plain rules, budgets and minima hold."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from plimsoll.nodes.model.pod_traits import is_daemon_pod
from plimsoll.nodes.planning.consolidation.planner import ConsolidationOptions, consolidate
from plimsoll.nodes.planning.problem.verifier import depends_on_other_pods
from plimsoll.nodes.planning.scaledown import simulator
from plimsoll.nodes.planning.scaledown.drainability import DrainRules
from plimsoll.nodes.planning.scaledown.eligibility import ScaleDownState
from plimsoll.nodes.planning.scaledown.planner import find_unneeded
from plimsoll.nodes.planning.scaledown.selection import select_nodes_to_delete
from plimsoll.scheduling import ClusterView, Fits, check_node
from plimsoll.scheduling.selectors import parse_label_selector
from tests.nodes.planning.scaledown.builders import HOSTNAME, NOON, budget, group, node, pod, policy, snapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.model.scale_down_plan import NodeRemoval, NodesToDelete
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import NodeState

ZONE = "topology.kubernetes.io/zone"
LONG_AGO = NOON - timedelta(days=1)
WIDE = {
    "max_scale_down_parallelism": 50,
    "max_drain_parallelism": 50,
    "scale_down_utilization_threshold": 1.0,
}


def _wishes(draw: st.DrawFn) -> dict[str, Any]:
    app = draw(st.sampled_from(["web", "db"]))
    key = draw(st.sampled_from([ZONE, HOSTNAME]))
    selector = {"labelSelector": {"matchLabels": {"app": app}}}
    term = {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": key, **selector}]}
    spread = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **selector}
    return draw(
        st.sampled_from(
            [
                {},
                {},
                {},
                {"affinity": {"podAntiAffinity": term}},
                {"affinity": {"podAffinity": term}},
                {"topologySpreadConstraints": [spread]},
                {"nodeSelector": {ZONE: "z1"}},
                {"tolerations": [{"operator": "Exists"}]},
                {"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]},
            ]
        )
    )


def _pod(draw: st.DrawFn, number: int, on: str) -> Pod:
    annotations = draw(st.sampled_from([*[{}] * 9, {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}]))
    return pod(
        f"p{number}",
        on=on,
        cpu=draw(st.sampled_from(["500m", "1", "2"])),
        memory=draw(st.sampled_from(["1Gi", "3Gi"])),
        owner=draw(st.sampled_from([*["ReplicaSet"] * 9, "DaemonSet", ""])),
        labels={"app": draw(st.sampled_from(["web", "db"]))},
        annotations=annotations,
        **_wishes(draw),
    )


@st.composite
def worlds(draw: st.DrawFn) -> Snapshot:
    groups = ("a", "a", "a", "b", "fixed", "")
    nodes = [
        node(
            f"n{index}",
            cpu=draw(st.sampled_from([4, 8])),
            gib=8,
            group=draw(st.sampled_from(groups)),
            labels={ZONE: draw(st.sampled_from(["z1", "z2"]))},
            taints=draw(st.sampled_from([[], [], [], [{"key": "x", "effect": "NoSchedule"}]])),
            ready=draw(st.sampled_from([True] * 5 + [False])),
        )
        for index in range(draw(st.integers(4, 7)))
    ]
    names = [node.metadata.name for node in nodes]
    pods = [_pod(draw, index, draw(st.sampled_from(names))) for index in range(draw(st.sampled_from([8, 6, 4, 1])))]
    sizes = Counter(node.metadata.labels["group"] for node in nodes)
    made = [
        group("a", size=sizes["a"], least=draw(st.sampled_from([0, 0, 1, 2])), price_per_hour=1.0),
        group("b", size=sizes["b"], price_per_hour=3.0, zero_or_max=draw(st.booleans())),
        group("fixed", size=sizes["fixed"], autoscaled=False),
    ]
    budgets = (
        budget(allowed=draw(st.sampled_from([4, 2, 1, 0])), app="web"),
        budget("c", allowed=draw(st.integers(1, 6))),
    )
    return snapshot(nodes, pods, groups=made, budgets=budgets)


def loose(of: Pod) -> Pod:
    return structs.replace(of, spec=structs.replace(of.spec, node_name=""))


def assert_pods_have_places(world: Snapshot, removals: Sequence[NodeRemoval]) -> None:
    """Replay, one pod at a time, on the cluster without the nodes that go."""
    gone = {removal.node for removal in removals}
    pods = {placed.key: placed.pod for state in world.view.nodes.values() for placed in state.pods.values()}
    view: ClusterView = world.view
    view = view.without_nodes(gone)
    for node_removal in sorted(removals, key=lambda removal: removal.is_empty):
        for move in node_removal.moves:
            moved = loose(pods[move.pod])
            assert isinstance(check_node(moved, view.nodes[move.target].node, view), Fits)
            view = view.with_pod(moved, move.target)


def assert_limits_hold(world: Snapshot, removals: Sequence[NodeRemoval]) -> None:
    lost = Counter(node_removal.group for node_removal in removals)
    assert set(lost) <= {"a", "b"}
    for node_group in world.groups:
        assert not lost[node_group.id] or node_group.target_size - lost[node_group.id] >= node_group.min_size
        assert not node_group.zero_or_max or lost[node_group.id] in {0, node_group.target_size}
    for limit in world.budgets:
        selector = parse_label_selector(limit.spec.selector)
        allowed = limit.status.disruptions_allowed
        pods = {placed.key: placed.pod for state in world.view.nodes.values() for placed in state.pods.values()}
        evicted = [
            sum(1 for move in node_removal.moves if selector.matches(pods[move.pod].metadata.labels))
            for node_removal in removals
        ]
        # Pods of one node are evicted one after the other; those of several together never exceed a budget.
        assert sum(min(pods, allowed) for pods in evicted) <= allowed
        assert allowed or not sum(evicted)


def assert_no_pod_is_forced(world: Snapshot, removals: Sequence[NodeRemoval]) -> None:
    """Every pod that has to move is named once, and none of them may not be evicted."""
    rules = DrainRules(options=policy().scale_down, now=NOON)
    for node_removal in removals:
        on_node = [placed.pod for placed in world.view.nodes[node_removal.node].pods.values()]
        assert not any(rules.check(pod).blocks_node for pod in on_node)
        movable = {pod.metadata.name for pod in on_node if not is_daemon_pod(pod)}
        assert sorted(move.pod.name for move in node_removal.moves) == sorted(movable)


def departing(world: Snapshot, **options: Any) -> NodesToDelete:
    known = ScaleDownState(unneeded_since=dict.fromkeys(world.view.nodes, LONG_AGO))
    chosen = policy(**WIDE, **options)
    return select_nodes_to_delete(find_unneeded(world, chosen, now=NOON, state=known), chosen, now=NOON, state=known)


@given(world=worlds())
@settings(max_examples=50, deadline=None)
def test_removals_are_safe(world: Snapshot):
    found = departing(world)
    assert_pods_have_places(world, found.removals)
    assert_limits_hold(world, found.removals)
    assert_no_pod_is_forced(world, found.removals)
    assert departing(world) == found


@given(world=worlds(), many=st.sampled_from([1, simulator.MANY_REMOVALS]))
@settings(max_examples=50, deadline=None)
def test_all_unneeded_nodes_can_go_together(world: Snapshot, many: int):
    """Whether candidates are emptied in one pass, or first into those at the end of the line."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(simulator, "MANY_REMOVALS", many)
        found = find_unneeded(world, policy(**WIDE), now=NOON)
    gone = {unneeded_node.node for unneeded_node in found.unneeded}
    places = found.build_pod_hints()
    view: ClusterView = world.view
    view = view.without_nodes(gone)
    assert not gone & set(places.values())
    for name in sorted(gone):
        for placed in world.view.nodes[name].pods.values():
            if is_daemon_pod(placed.pod):
                continue
            target = view.nodes[places[placed.key]]
            if not depends_on_other_pods(placed.pod) and not view.has_anti_affinity:
                assert isinstance(check_node(loose(placed.pod), target.node, view), Fits)
            view = view.with_pod(loose(placed.pod), target.name)
    assert not any(amount < 0 for state in view.nodes.values() if not state.problem for amount in over(state, world))


def over(state: NodeState, world: Snapshot) -> list[int]:
    """What is free on a node that was not overfull before."""
    return [state.free[name] for name in state.free if world.view.nodes[state.name].free[name] >= 0]


@given(world=worlds())
@settings(max_examples=40, deadline=None)
def test_every_node_has_one_verdict(world: Snapshot):
    found = find_unneeded(world, policy(**WIDE), now=NOON)
    named = [
        *(unneeded_node.node for unneeded_node in found.unneeded),
        *(unremovable.node for unremovable in found.unremovable),
    ]
    assert sorted(named) == sorted(world.view.nodes)


@given(world=worlds())
@settings(max_examples=40, deadline=None)
def test_a_node_with_one_pod_is_unneeded_exactly_when_the_plain_rules_know_another_place(world: Snapshot):
    rules = DrainRules(options=policy().scale_down, now=NOON)
    for name, state in world.view.nodes.items():
        movable = [placed.pod for placed in state.pods.values() if not is_daemon_pod(placed.pod)]
        if len(movable) != 1 or rules.check(movable[0]).blocks_node or is_overcommitted(state):
            continue
        alone = only_candidate(world, name)
        found = find_unneeded(alone, policy(**WIDE), now=NOON)
        without = world.view.without_nodes({name})
        places = [
            other
            for other in without.nodes.values()
            if all(condition.status == "True" for condition in other.node.status.conditions)
            and isinstance(check_node(loose(movable[0]), other.node, without), Fits)
        ]
        assert [unneeded_node.node for unneeded_node in found.unneeded] == ([name] if places else [])


def is_overcommitted(state: NodeState) -> bool:
    """Whether the pods of a node request more than it has: its utilization is then above any threshold."""
    return not state.used.fits_within(state.allocatable)


def only_candidate(world: Snapshot, name: str) -> Snapshot:
    """The same cluster in which only one node may go."""
    return replace(world, groups=(group("only", size=1),), group_of={name: "only"}, budgets=())


@given(world=worlds(), mode=st.sampled_from(["empty", "underutilized", "balanced"]))
@settings(max_examples=40, deadline=None)
def test_consolidation_is_safe_and_moves_no_pod_twice(world: Snapshot, mode: str):
    chosen = policy(consolidation=mode)
    terms = ConsolidationOptions(budgets=(), may_replace=False)
    found = consolidate(world, chosen, now=NOON, options=terms)
    assert_pods_have_places(world, found.removals)
    assert_limits_hold(world, found.removals)
    assert_no_pod_is_forced(world, found.removals)
    moved = [move.pod for node_removal in found.removals for move in node_removal.moves]
    assert len(moved) == len(set(moved))
    named = [
        *(node_removal.node for node_removal in found.removals),
        *(unremovable.node for unremovable in found.unremovable),
    ]
    assert sorted(named) == sorted(world.view.nodes)
    assert consolidate(world, chosen, now=NOON, options=terms) == found
    prices = {"a": 1.0, "b": 3.0}
    assert found.savings_per_hour == sum(prices[node_removal.group] for node_removal in found.removals)
