"""Removals by counts per (term, domain) against the plain rules, on random clusters whose pods have rules."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from plimsoll.nodes.model.planner_cache import PlannerCache
from plimsoll.nodes.planning.scaledown import counted_removals
from plimsoll.nodes.planning.scaledown import simulator as simulator_module
from plimsoll.nodes.planning.scaledown.counted_removals import CountedRemovals
from plimsoll.nodes.planning.scaledown.drainability import DrainRules
from plimsoll.nodes.planning.scaledown.eligibility import ScaleDownState
from plimsoll.nodes.planning.scaledown.planner import find_receiving_nodes, find_unneeded
from plimsoll.nodes.planning.scaledown.problem import ScaleDownProblem
from plimsoll.nodes.planning.scaledown.simulator import Unplaceable
from plimsoll.nodes.planning.state.node_pods import remove_node_name
from plimsoll.nodes.planning.state.snapshot_builder import SnapshotBuilder, SnapshotChanges, SnapshotInputs
from plimsoll.scheduling import ClusterView, Fits, check_node
from plimsoll.scheduling.cluster_view import PlacedPod, get_pod_key
from tests.effort import share_of
from tests.nodes.planning.scaledown.builders import HOSTNAME, NOON, node, pod, policy, snapshot

if TYPE_CHECKING:
    import pytest

    from plimsoll.nodes.model.scale_down_plan import PodMove
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.objects.api.meta import ObjectMeta
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod

ZONE = "topology.kubernetes.io/zone"
RACK = "rack"
NAMESPACES = {"default": {"team": "a"}, "other": {"team": "b"}}
TERMINATING = {"deletionTimestamp": "2026-01-01T11:59:59Z"}


def _selectors(draw: st.DrawFn) -> dict[str, Any]:
    return draw(
        st.sampled_from(
            [
                {"labelSelector": {"matchLabels": {"app": "web"}}},
                {"labelSelector": {"matchLabels": {"app": "db"}}},
                {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "In", "values": ["web", "db"]}]}},
                {"labelSelector": {"matchExpressions": [{"key": "app", "operator": "NotIn", "values": ["db"]}]}},
                {"labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["hash"]},
                {"labelSelector": {}},
            ]
        )
    )


def _rules(draw: st.DrawFn) -> dict[str, Any]:
    kind = draw(st.sampled_from(["", "", "spread", "spread", "podAffinity", "podAntiAffinity", "podAntiAffinity"]))
    keys = st.sampled_from([ZONE, HOSTNAME, HOSTNAME, RACK])
    if kind == "spread":
        constraints = [
            {
                "maxSkew": draw(st.integers(1, 2)),
                "topologyKey": draw(keys),
                "whenUnsatisfiable": "DoNotSchedule",
                **draw(st.sampled_from([{}, {}, {"minDomains": 3}, {"nodeAffinityPolicy": "Ignore"}])),
                **draw(st.sampled_from([{}, {"nodeTaintsPolicy": "Honor"}])),
                **_selectors(draw),
            }
            for _ in range(draw(st.integers(1, 2)))
        ]
        return {"topologySpreadConstraints": constraints}
    if kind:
        scopes: st.SearchStrategy[dict[str, Any]] = st.sampled_from([{}, {}, {"namespaces": ["other", "default"]}])
        terms = [
            {"topologyKey": draw(keys), **_selectors(draw), **draw(scopes)} for _ in range(draw(st.integers(1, 2)))
        ]
        return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    return {}


@st.composite
def running_pods(draw: st.DrawFn, number: int, names: list[str]) -> Pod:
    wanted: dict[str, Any] = draw(st.sampled_from([{}, {}, {}, {"nodeSelector": {"disk": "ssd"}}]))
    labels = {"app": draw(st.sampled_from(["web", "db", "cache"])), "hash": draw(st.sampled_from(["1", "2"]))}
    return pod(
        f"p{number}",
        on=draw(st.sampled_from(names)),
        cpu=draw(st.sampled_from(["500m", "1"])),
        namespace=draw(st.sampled_from(["default"] * 4 + ["other"])),
        labels=labels,
        metadata=draw(st.sampled_from([{}] * 9 + [TERMINATING])),
        **wanted,
        **_rules(draw),
    )


def _node(draw: st.DrawFn, number: int) -> Node:
    labels = {
        **draw(st.sampled_from([{ZONE: "z1"}, {ZONE: "z2"}, {ZONE: "z3"}, {}])),
        **draw(st.sampled_from([{RACK: "r1"}, {RACK: f"r-{number}"}, {}])),
        **draw(st.sampled_from([{}, {"disk": "ssd"}])),
    }
    taints = draw(st.sampled_from([[], [], [], [{"key": "x", "effect": "NoSchedule"}]]))
    return node(f"n{number}", cpu=draw(st.sampled_from([2, 4, 8])), labels=labels, taints=taints)


@st.composite
def objects(draw: st.DrawFn) -> tuple[list[Node], list[Pod]]:
    nodes = [_node(draw, number) for number in range(draw(st.integers(3, 6)))]
    names = [made_node.metadata.name for made_node in nodes]
    return nodes, [draw(running_pods(number, names)) for number in range(draw(st.integers(2, 9)))]


def build_snapshot(nodes: list[Node], pods: list[Pod]) -> Snapshot:
    return snapshot(nodes, view=ClusterView.from_objects(nodes, pods, namespaces=NAMESPACES))


def build_problem(world: Snapshot, cache: PlannerCache | None = None) -> ScaleDownProblem:
    rules = DrainRules(options=policy().scale_down, now=NOON)
    return ScaleDownProblem.from_snapshot(world, rules, cache=cache)


def simulate(problem: ScaleDownProblem) -> CountedRemovals:
    return CountedRemovals(problem, receives=find_receiving_nodes(problem, ScaleDownState()))


def apply(view: ClusterView, pods: dict[Any, PlacedPod], gone: str, moves: tuple[PodMove, ...]) -> ClusterView:
    """The view after a removal; each move must be one that the plain rules allow at that point."""
    view = view.without_nodes({gone})
    for move in moves:
        moved = remove_node_name(pods[move.pod].pod)
        assert isinstance(check_node(moved, view.nodes[move.target].node, view), Fits), move
        view = view.with_pod(moved, move.target)
        pods[move.pod] = view.nodes[move.target].pods[move.pod]
    return view


def assert_same_verdicts(simulator: CountedRemovals, problem: ScaleDownProblem, view: ClusterView) -> None:
    """Every class on every node that is left, against the plain rules on the same cluster built from scratch."""
    for pod_class in problem.running_classes.table:
        if problem.first_pod[pod_class.index] == len(problem.pods_by_node.kind):
            continue  # Only remembered: none of its pods is there to be moved.
        # A name of its own: the view holds the pod that represents the class.
        meta = structs.replace(pod_class.pod.metadata, name="another")
        another = structs.replace(remove_node_name(pod_class.pod), metadata=meta)
        for state in view.nodes.values():
            expected = not state.problem and isinstance(check_node(another, state.node, view), Fits)
            row = problem.arrays.row_of[state.name]
            assert simulator.fits(pod_class.index, row) == expected, (pod_class.pod.metadata.name, state.name)


@given(made=objects())
@settings(max_examples=share_of(400), deadline=None)
def test_counts_say_what_the_plain_rules_say_after_every_removal(made: tuple[list[Node], list[Pod]]):
    world = build_snapshot(*made)
    problem = build_problem(world)
    simulator = simulate(problem)
    view = world.view
    pods = {placed.key: placed for state in view.nodes.values() for placed in state.pods.values()}
    assert_same_verdicts(simulator, problem, view)
    for row, name in enumerate(problem.arrays.names[:-1]):
        found = simulator.simulate_removal(row)
        if not isinstance(found, Unplaceable):
            view = apply(view, pods, name, found)
        assert_same_verdicts(simulator, problem, view)


@given(made=objects(), number=st.integers(0, 5))
@settings(max_examples=share_of(200), deadline=None)
def test_a_node_with_one_pod_goes_exactly_when_the_plain_rules_know_another_place(
    made: tuple[list[Node], list[Pod]], number: int
):
    world = build_snapshot(*made)
    problem = build_problem(world)
    row = number % len(problem.arrays)
    moving = problem.list_pods_to_move(row)
    if len(moving) != 1:
        return
    view = world.view.without_nodes({problem.arrays.names[row]})
    moved = remove_node_name(moving[0].placed.pod)
    places = [name for name, state in view.nodes.items() if isinstance(check_node(moved, state.node, view), Fits)]
    found = simulate(problem).simulate_removal(row)
    assert isinstance(found, Unplaceable) == (not places)
    assert isinstance(found, Unplaceable) or found[0].target in places


@given(made=objects(), data=st.data())
@settings(max_examples=share_of(200), deadline=None)
def test_counts_kept_from_turn_to_turn_equal_counts_from_scratch(
    made: tuple[list[Node], list[Pod]], data: st.DataObject
):
    nodes, pods = made
    builder = SnapshotBuilder()
    around = SnapshotInputs(at=NOON, namespaces=NAMESPACES)
    names = [made_node.metadata.name for made_node in nodes]
    changes = SnapshotChanges(
        nodes={made_node.metadata.name: made_node for made_node in nodes},
        pods={get_pod_key(running): running for running in pods},
    )
    for turn in range(3):
        world = builder.update(changes, around)
        kept = build_problem(world)
        fresh = build_problem(world, PlannerCache())
        later, scratch = simulate(kept), simulate(fresh)
        for row in range(len(kept.arrays) - 1):
            assert later.simulate_removal(row) == scratch.simulate_removal(row)
        assert_same_verdicts(later, kept, build_view(world, later))
        gone = data.draw(st.sampled_from(pods))
        fresh_pod = data.draw(running_pods(100 + turn, names))
        changes = SnapshotChanges(pods={get_pod_key(gone): None, get_pod_key(fresh_pod): fresh_pod})


def build_view(world: Snapshot, simulator: CountedRemovals) -> ClusterView:
    """The cluster after what a simulation has removed and moved."""
    names = list(world.view.nodes)
    moved = {pod.placed.key: (pod.placed, names[row]) for row, listed in simulator.moved_pods.items() for pod in listed}
    view = world.view.without_nodes(set(names) - {name for row, name in enumerate(names) if simulator.stays(row)})
    for placed, name in moved.values():
        view = view.with_pod(remove_node_name(placed.pod), name)
    return view


def anti_affinity(app: str) -> dict[str, Any]:
    term = {"topologyKey": HOSTNAME, "labelSelector": {"matchLabels": {"app": app}}}
    return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}}


def apart(count: int, app: str = "web") -> tuple[list[Node], list[Pod]]:
    """Nodes with one pod each, all of which avoid each other, and as many empty ones."""
    nodes = [node(f"n{number}") for number in range(2 * count)]
    pods = [pod(f"p{number}", on=f"n{number}", labels={"app": app}, **anti_affinity(app)) for number in range(count)]
    return nodes, pods


def test_pods_that_avoid_each_other_go_to_nodes_of_their_own():
    problem = build_problem(build_snapshot(*apart(3)))
    simulator = simulate(problem)
    found = [simulator.simulate_removal(row) for row in range(3)]
    assert [moves[0].target for moves in found if not isinstance(moves, Unplaceable)] == ["n3", "n4", "n5"]
    assert isinstance(simulator.simulate_removal(3), Unplaceable)


def test_the_place_of_the_last_simulation_comes_first():
    problem = build_problem(build_snapshot(*apart(2)))
    receives = find_receiving_nodes(problem, ScaleDownState())
    moving = problem.list_pods_to_move(0)[0].placed.key
    found = CountedRemovals(problem, receives=receives, hints={moving: "n3"}).simulate_removal(0)
    assert not isinstance(found, Unplaceable)
    assert found[0].target == "n3"


def test_effort_is_counted_and_a_removal_without_any_left_changes_nothing(monkeypatch: pytest.MonkeyPatch):
    problem = build_problem(build_snapshot(*apart(3)))
    monkeypatch.setattr(counted_removals, "MAX_EFFORT", 1)
    simulator = simulate(problem)
    found = simulator.simulate_removal(0)
    assert isinstance(found, Unplaceable)
    assert found.gave_up
    assert not any(simulator.moved_pods.values())
    assert simulator.stays(0)


def world_apart(count: int) -> Snapshot:
    """Nodes with one pod each that avoids the others, all removable, and as many empty nodes that are not."""
    nodes, pods = apart(count)
    empty = [structs.replace(made_node, metadata=without_group(made_node)) for made_node in nodes[count:]]
    return snapshot([*nodes[:count], *empty], pods)


def without_group(made_node: Node) -> ObjectMeta:
    meta = made_node.metadata
    return structs.replace(meta, labels={key: value for key, value in meta.labels.items() if key != "group"})


def test_nodes_that_a_turn_has_no_effort_for_come_first_in_the_next_one(monkeypatch: pytest.MonkeyPatch):
    world = world_apart(4)
    chosen = policy()
    # Enough to sort the candidates and to look at n1, n2, n3 and n4 for the pod of n0, but at n4 alone for that of n1.
    monkeypatch.setattr(counted_removals, "MAX_EFFORT", 8)
    first = find_unneeded(world, chosen, now=NOON)
    assert [unneeded.node for unneeded in first.unneeded] == ["n0"]
    assert first.postponed == ("n2", "n3", "n1")
    reasons = {unremovable.node: str(unremovable.reason) for unremovable in first.unremovable}
    assert reasons["n3"] == "the effort of this turn is used up; the next turn begins with it"
    state = ScaleDownState(unneeded_since={"n0": NOON}, hints=first.build_pod_hints(), postponed=first.postponed)
    second = find_unneeded(world, chosen, now=NOON, state=state)
    assert [unneeded.node for unneeded in second.unneeded] == ["n0", "n2"]
    assert second.postponed == ("n1", "n3")


def test_the_plain_rules_get_to_one_node_per_turn_however_large_the_cluster_is(monkeypatch: pytest.MonkeyPatch):
    """Counting all pods for a class is effort too, and is charged when the node has its verdict."""
    port: dict[str, Any] = {"containers": [{"name": "c", "ports": [{"hostPort": 80}]}]}
    nodes = [node("n0"), node("n1"), node("n2", group=""), node("n3", group="")]
    pods = [
        pod(f"p{number}", on=f"n{number}", labels={"app": "web"}, **anti_affinity("web"), **port) for number in (0, 1)
    ]
    monkeypatch.setattr(simulator_module, "_PODS_PER_EFFORT", 1e-6)
    found = find_unneeded(snapshot(nodes, pods), policy(), now=NOON)
    assert [unneeded.node for unneeded in found.unneeded] == ["n0"]
    assert found.postponed == ("n1",)
