"""Snapshots made from the ones before are what they would be if everything were read anew."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from plimsoll.nodes.planning.scaledown.planner import find_unneeded
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from plimsoll.nodes.planning.state.snapshot_builder import SnapshotBuilder, SnapshotChanges, SnapshotInputs
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.scheduling import Storage
from plimsoll.scheduling.cluster_view import PodKey, get_pod_key
from tests.nodes.planning.builders import NOON
from tests.nodes.planning.random_clusters import CLAIMS, CLASSES, NAMESPACES, NODE_NAMES, VOLUMES, nodes, pods
from tests.nodes.planning.scale_up_clusters import COST, group
from tests.scheduling.builders import node, pod

if TYPE_CHECKING:
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod

AROUND = SnapshotInputs(
    at=NOON, namespaces=NAMESPACES, storage=Storage(claims=CLAIMS, volumes=VOLUMES, classes=CLASSES)
)
POD_NAMES = tuple(f"p{index}" for index in range(6))


class ReferenceCluster:
    """What a history of changes comes to, in plain code."""

    def __init__(self) -> None:
        self.nodes: dict[str, Node] = {}
        self.pods: dict[PodKey, Pod | BadObject] = {}

    def apply(self, changes: SnapshotChanges) -> None:
        both: Any = ((self.nodes, changes.nodes), (self.pods, changes.pods))
        for known, changed in both:
            for key, item in changed.items():
                known.pop(key, None)
                if item is not None:
                    known[key] = item

    @property
    def everything(self) -> SnapshotChanges:
        return SnapshotChanges(nodes=dict(self.nodes), pods=dict(self.pods))


@st.composite
def histories(draw: st.DrawFn) -> list[SnapshotChanges]:
    return [_changes(draw) for _ in range(draw(st.integers(1, 4)))]


def _changes(draw: st.DrawFn) -> SnapshotChanges:
    made: dict[str, Node | None] = {node.metadata.name: node for node in nodes(draw) if draw(st.booleans())}
    made |= {name: None for name in NODE_NAMES if draw(st.integers(0, 5)) == 0}
    changed: dict[PodKey, Pod | BadObject | None] = {}
    for name in draw(st.lists(st.sampled_from(POD_NAMES), max_size=4, unique=True)):
        one = pods(draw, name)
        kind = draw(st.sampled_from(["placed", "placed", "waiting", "waiting", "gone", "bad", "ended"]))
        where = draw(st.sampled_from(NODE_NAMES))
        if kind != "waiting":
            one = structs.replace(one, spec=structs.replace(one.spec, node_name=where))
        elif one.spec.node_name:
            one = structs.replace(one, spec=structs.replace(one.spec, node_name=""))
        key = get_pod_key(one)
        if kind == "ended":
            one = structs.replace(one, status=structs.replace(one.status, phase="Failed"))
        if kind == "bad":
            changed[key] = BadObject(kind="Pod", problem="odd", namespace=key.namespace, name=name, node_name=where)
        else:
            changed[key] = None if kind == "gone" else one
    return SnapshotChanges(nodes=made, pods=changed)


def reported(snapshot: Snapshot) -> dict[str, Any]:
    """Everything rules could read of it, in its order."""
    view = snapshot.view
    return {
        "nodes": [
            (name, state.node, state.free, state.used, state.problem, state.unreadable_pods)
            for name, state in view.nodes.items()
        ],
        "pods": [[(key, placed_pod.pod) for key, placed_pod in state.pods.items()] for state in view.nodes.values()],
        "repelling": [state.name for state in view.anti_affine_nodes],
        "pending": snapshot.pending,
    }


@settings(max_examples=30, deadline=None)
@given(histories())
def test_what_changed_comes_to_the_same_as_everything_anew(history: list[SnapshotChanges]):
    keeper, cluster = SnapshotBuilder(), ReferenceCluster()
    for number, changes in enumerate(history, start=1):
        cluster.apply(changes)
        snapshot = keeper.update(changes, AROUND)

        assert reported(snapshot) == reported(SnapshotBuilder().update(cluster.everything, AROUND))
        assert snapshot.number == number


@settings(max_examples=10, deadline=None)
@given(histories())
def test_plans_with_a_memory_are_plans_without_one(history: list[SnapshotChanges]):
    keeper = SnapshotBuilder()
    around = replace(AROUND, groups=(group("g"),), group_of=dict.fromkeys(NODE_NAMES, "g"))
    for changes in history:
        snapshot = keeper.update(changes, around)
        fresh = replace(snapshot, cache=None)

        assert plan_scale_up(snapshot, COST) == plan_scale_up(fresh, COST)
        ours = find_unneeded(snapshot, COST, now=NOON)
        theirs = find_unneeded(fresh, COST, now=NOON)
        assert (ours.unneeded, ours.unremovable) == (theirs.unneeded, theirs.unremovable)


def test_earlier_snapshots_stay_what_they_were():
    keeper = SnapshotBuilder()
    first = keeper.update(
        SnapshotChanges(nodes={"n1": node("n1")}, pods={PodKey("default", "a"): pod("a", on="n1")}), AROUND
    )
    before = reported(first)

    keeper.update(
        SnapshotChanges(nodes={"n1": None, "n2": node("n2")}, pods={PodKey("default", "a"): pod("a")}), AROUND
    )

    assert reported(first) == before


def test_nodes_on_which_nothing_happened_are_the_very_same():
    keeper = SnapshotBuilder()
    first = keeper.update(SnapshotChanges(nodes={name: node(name) for name in ("n2", "n1", "n3")}), AROUND)
    second = keeper.update(SnapshotChanges(pods={PodKey("default", "a"): pod("a", on="n2")}), AROUND)

    assert list(second.view.nodes) == ["n1", "n2", "n3"]
    same = [first.view.nodes[name] is second.view.nodes[name] for name in second.view.nodes]
    assert same == [True, False, True]


def test_pods_of_one_owner_wait_as_one_entry_named_after_the_oldest():
    keeper = SnapshotBuilder()
    made = {PodKey("default", name): pod(name, labels={"app": "web"}) for name in ("b", "a", "c")}
    snapshot = keeper.update(SnapshotChanges(pods=made), AROUND)
    (entry,) = snapshot.pending
    assert (entry.key, entry.count, entry.names) == ("default/a", 3, ("a", "b", "c"))

    left = keeper.update(SnapshotChanges(pods={PodKey("default", "a"): None}), AROUND)

    assert [(pending.key, pending.count) for pending in left.pending] == [("default/b", 2)]


def test_pods_with_claims_of_their_own_wait_alone():
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "bound-z1"}}]
    made = {PodKey("default", name): pod(name, volumes=volumes) for name in ("a", "b")}

    assert [pending.count for pending in SnapshotBuilder().update(SnapshotChanges(pods=made), AROUND).pending] == [1, 1]


def test_a_pod_may_be_there_before_its_node():
    keeper = SnapshotBuilder()
    keeper.update(SnapshotChanges(pods={PodKey("default", "a"): pod("a", on="n1")}), AROUND)

    snapshot = keeper.update(SnapshotChanges(nodes={"n1": node("n1")}), AROUND)

    assert list(snapshot.view.nodes["n1"].pods) == [PodKey("default", "a")]
