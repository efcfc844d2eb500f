"""Nodes as columns of numbers, and how they follow a cluster that changes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.model.snapshot import PendingPods
from plimsoll.nodes.planning.equivalence.pod_classes import ClassTable
from plimsoll.nodes.planning.predicates.predicates import Predicates
from plimsoll.nodes.planning.state.node_arrays import NodeArrays
from plimsoll.scheduling import ClusterView
from tests.nodes.planning.predicates.trial_placements import Trial
from tests.nodes.planning.random_clusters import clusters, nodes, pods, waiting
from tests.scheduling.builders import HOSTNAME, ZONE, node, pod, required, spread, term

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import Pod
    from tests.golden.reviewed_sentences import ReviewedSentences

SOME = settings(max_examples=40, deadline=None)


def predicates(view: ClusterView, *made: Pod) -> Predicates:
    table = ClassTable.build(
        [PendingPods(key=template.metadata.name, pod=template, count=9) for template in made], view
    )
    return Predicates(table, NodeArrays.from_view(view, resources=table.resources), view)


def test_columns_are_the_four_of_every_node_then_the_others_by_name():
    view = ClusterView.from_objects([node("n1", **dict[str, Any]({"example.com/gpu": 2}))])

    arrays = NodeArrays.from_view(view, resources=["example.com/disk"])

    names = ("cpu", "memory", "ephemeral-storage", "pods", "example.com/disk", "example.com/gpu")
    assert arrays.columns.names == names
    assert arrays.alloc.tolist() == [[4000, 8 << 30, 100 << 30, 110, 0, 2]]


def test_free_is_what_pods_leave():
    view = ClusterView.from_objects([node("n1"), node("n2")], [pod("a", on="n2", requests={"cpu": "1500m"})])

    assert NodeArrays.from_view(view).free[:, [0, 3]].tolist() == [[4000, 110], [2500, 109]]


def test_amounts_beyond_64_bits_do_not_wrap():
    view = ClusterView.from_objects([node("n1", memory="8P")])
    engine = predicates(view, pod("a", requests={"memory": "19E"}), pod("b", requests={"memory": "1Gi"}))

    assert NodeArrays.from_view(view).free[0, 1] > 1 << 50
    assert engine.find_fitting(0).tolist() == [False]
    assert engine.find_fitting(1).tolist() == [True]


def test_a_node_with_more_than_any_machine_has_takes_no_pods(reviewed: ReviewedSentences):
    view = ClusterView.from_objects([node("n1", memory="20E")])

    reviewed(view.nodes["n1"].problem)
    assert predicates(view, pod("a", requests={"memory": "1Gi"})).find_fitting(0).tolist() == [False]


def test_nodes_are_grouped_by_the_labels_asked_about():
    view = ClusterView.from_objects(
        [node(f"n{index}", zone=f"z{index % 2}") for index in range(4)] + [node("n4", zone="")]
    )
    arrays = NodeArrays.from_view(view)

    rows, group_of = arrays.group_rows([ZONE])

    assert len(rows) == 3
    assert group_of[0] == group_of[2] != group_of[1] == group_of[3] != group_of[4]
    assert len(arrays.group_rows([HOSTNAME])[0]) == 5


@SOME
@given(st.data(), clusters(), waiting(most=2))
def test_updated_arrays_answer_as_if_made_anew(data: st.DataObject, view: ClusterView, pending: list[PendingPods]):
    before = NodeArrays.from_view(view)
    for step in range(data.draw(st.integers(0, 3))):
        view = _changed(data, view, step)
    table = ClassTable.build(pending, view)
    updated = Predicates(table, before.update_view(view, resources=table.resources), view)
    anew = Predicates(table, NodeArrays.from_view(view, resources=table.resources), view)

    assert updated.arrays.names == anew.arrays.names
    for name in anew.arrays.columns.names:
        columns = [node_arrays.columns.index[name] for node_arrays in (updated.arrays, anew.arrays)]
        assert (updated.arrays.free[:, columns[0]] == anew.arrays.free[:, columns[1]]).all()
    for number in range(len(table)):
        assert updated.build_fit_error(number) == anew.build_fit_error(number)


def _changed(data: st.DataObject, view: ClusterView, step: int) -> ClusterView:
    names = list(view.nodes)
    kind = data.draw(st.sampled_from(["pod", "gone", "node", "lost", "rebuilt"]))
    if kind == "pod" and names:
        return view.with_pod(pods(data.draw, f"later-{step}"), data.draw(st.sampled_from(names)))  # type: ignore[arg-type]
    if kind == "gone":
        placed = [(placed_pod.pod, name) for name, state in view.nodes.items() for placed_pod in state.pods.values()]
        return view.without_pod(*data.draw(st.sampled_from(placed))) if placed else view
    if kind == "node":
        return view.with_node(nodes(data.draw)[0])  # type: ignore[arg-type]
    if kind == "lost" and names:
        return view.without_nodes({data.draw(st.sampled_from(names))})
    return ClusterView.from_objects(
        [state.node for state in view.nodes.values()], namespaces=view.namespaces, storage=view.storage
    )


def test_only_nodes_that_changed_are_read_again():
    view = ClusterView.from_objects([node(f"n{index}") for index in range(3)], [pod("a", on="n0")])
    before = NodeArrays.from_view(view)

    after = before.update_view(view.with_pod(pod("b"), "n2"))

    kept = [node is other for node, other in zip(before.running_pods.nodes, after.running_pods.nodes, strict=True)]
    assert kept == [True, True, False]


def test_taking_back_leaves_a_trial_as_it_was():
    view = ClusterView.from_objects([node("n1"), node("n2")])
    trial = Trial(predicates(view, pod("a", requests={"cpu": 3}), pod("b", **required(term({})))))
    trial.place(0, 0)
    mark, free, codes = trial.mark(), trial.free.copy(), trial.codes(1)

    trial.place(1, 0)
    trial.place(0, 1)
    fork = trial.fork()
    trial.revert(mark)

    assert (trial.free == free).all()
    assert (trial.codes(1) == codes).all()
    assert trial.placements == ((0, 0, 1),)
    assert fork.pods_on(0) == {0: 1, 1: 1}


def test_room_is_how_many_more_a_node_takes():
    view = ClusterView.from_objects([node("n1", cpu=4), node("n2", cpu=1), node("n3", cpu=9, pods=2)])
    port = pod("b", containers=[{"name": "c", "ports": [{"hostPort": 80}]}])
    apart = pod("c", labels={"app": "c"}, **required(term({"app": "c"})))
    even = pod("d", labels={"app": "d"}, **spread({"app": "d"}, HOSTNAME, 2))
    engine = predicates(view, pod("a", requests={"cpu": 1}), port, apart, even)

    assert [engine.count_room(number).tolist() for number in range(4)] == [[4, 1, 2], [1, 1, 1], [1, 1, 1], [2, 2, 2]]
