"""Where many classes fit, asked at once: the same answer as for one class after the other."""

from __future__ import annotations

from hypothesis import given, settings

from plimsoll.nodes.model.snapshot import PendingPods
from plimsoll.nodes.planning.equivalence.pod_classes import ClassTable
from plimsoll.nodes.planning.predicates.predicates import Predicates
from plimsoll.nodes.planning.state.node_arrays import NodeArrays
from plimsoll.scheduling import ClusterView
from tests.nodes.planning.random_clusters import clusters, waiting
from tests.scheduling.builders import node, pod


def predicates_of(pending: list[PendingPods], view: ClusterView) -> Predicates:
    table = ClassTable.build(pending, view)
    return Predicates(table, NodeArrays.from_view(view, resources=table.resources), view)


@settings(max_examples=60, deadline=None)
@given(clusters(), waiting(most=6))
def test_many_classes_fit_where_each_of_them_does(view: ClusterView, pending: list[PendingPods]):
    engine = predicates_of(pending, view)
    numbers = list(range(len(engine.table)))[::-1]

    together = engine.node_predicates.find_fitting_of_all(numbers, engine.arrays.free, {})

    assert together.tolist() == [
        engine.node_predicates.find_fitting(number, engine.arrays.free, {}).tolist() for number in numbers
    ]


def test_an_overcommitted_node_takes_pods_without_requests_of_that_resource():
    view = ClusterView.from_objects([node("n1", cpu="1")], [pod("a", on="n1", requests={"cpu": "2"})])
    needs = [{"memory": "1Gi"}, {"cpu": "1m"}]
    pending = [
        PendingPods(key=f"p{at}", pod=pod(f"p{at}", requests=requests), count=1) for at, requests in enumerate(needs)
    ]
    engine = predicates_of(pending, view)

    assert engine.node_predicates.find_fitting_of_all([0, 1], engine.arrays.free, {}).tolist() == [[True], [False]]
