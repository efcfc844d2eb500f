"""Kinds of running pods stay sorted while kinds come and go, as if they were sorted anew."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from plimsoll.nodes.planning.equivalence.scheduling_keys import SchedulingKeys
from plimsoll.nodes.planning.scaledown.running_classes import classify_kinds
from plimsoll.nodes.planning.state.node_arrays import NodeArrays
from plimsoll.nodes.planning.state.node_pods import PodsByNode
from plimsoll.scheduling import ClusterView, Storage
from tests.nodes.planning.random_clusters import CLAIMS, CLASSES, NAMESPACES, VOLUMES, pods
from tests.scheduling.builders import node, pod

if TYPE_CHECKING:
    from plimsoll.nodes.planning.scaledown.running_classes import RunningClasses
    from plimsoll.objects.api.pods import Pod

STORAGE = Storage(claims=CLAIMS, volumes=VOLUMES, classes=CLASSES)


def views(draw: st.DrawFn) -> list[ClusterView]:
    known: dict[str, Pod] = {}
    found = []
    for _ in range(draw(st.integers(1, 4))):
        names = draw(st.lists(st.sampled_from("abcdef"), max_size=5, unique=True))
        known = {name: known.get(name) or _running(draw, name) for name in sorted(names)}
        found.append(ClusterView.from_objects([node("n1")], known.values(), namespaces=NAMESPACES, storage=STORAGE))
    return found


def _running(draw: st.DrawFn, name: str) -> Pod:
    made = pods(draw, name) if draw(st.booleans()) else pod(name, requests={"cpu": draw(st.integers(1, 2))})
    return structs.replace(made, spec=structs.replace(made.spec, node_name="n1"))


def reported(found: RunningClasses, homes: PodsByNode) -> list[object]:
    """Of each pod: with which of the others it is in a class, what it asks for, and whether it looks at others."""
    numbers = [int(found.class_of[kind]) for kind in homes.kind.tolist()]
    return [
        ([other == number for other in numbers], found.table.classes[number].demand, bool(found.interacting[number]))
        for number in numbers
    ]


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_sorted_by_and_by_is_sorted_anew(data: st.DataObject):
    forms, before, homes, arrays = SchedulingKeys(), None, None, None
    for view in data.draw(st.composite(views)()):
        homes = PodsByNode.from_view(view, homes)
        arrays = NodeArrays.from_view(view) if arrays is None else arrays.update_view(view)
        before = classify_kinds(view, arrays, homes, forms=forms, before=before)
        fresh = PodsByNode.from_view(view)

        assert reported(before, homes) == reported(
            classify_kinds(view, NodeArrays.from_view(view), fresh, forms=SchedulingKeys(), before=None), fresh
        )


def test_a_new_kind_does_not_have_all_others_sorted_again():
    forms, running = SchedulingKeys(), [pod("a", on="n1", requests={"cpu": 1})]
    view = ClusterView.from_objects([node("n1")], running)
    homes, arrays = PodsByNode.from_view(view), NodeArrays.from_view(view)
    before = classify_kinds(view, arrays, homes, forms=forms, before=None)
    later = view.with_pod(pod("b", on="n1", requests={"cpu": 2}))

    found = classify_kinds(
        later, arrays.update_view(later), PodsByNode.from_view(later, homes), forms=forms, before=before
    )

    assert found.table.classes[0] is before.table.classes[0]
    assert len(found.table) == 2
