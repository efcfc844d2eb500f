"""The view: what it counts, and that changing it leaves the one before alone."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.scheduling.cluster_view import ClusterView, PlacedPod, PodKey
from plimsoll.scheduling.feasibility import check_node, check_nodes, check_other_nodes, prepare_pod
from plimsoll.scheduling.pod_requests import compute_pod_demand
from plimsoll.scheduling.verdicts import DoesNotFit, Fits
from tests.scheduling.builders import HOSTNAME, node, pod, required, spread, term

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pytest

    from plimsoll.objects.api.pods import Pod


def used(view: ClusterView) -> Mapping[str, int]:
    return {name: state.used["cpu"] for name, state in view.nodes.items()}


def test_used_resources_are_those_of_the_pods_on_each_node():
    view = ClusterView.from_objects(
        [node("n1"), node("n2")], [pod("a", on="n1", requests={"cpu": "1"}), pod("b", on="gone")]
    )

    assert used(view) == {"n1": 1000, "n2": 0}
    assert view.nodes["n1"].free["cpu"] == 3000


def test_placing_and_taking_away_gives_new_views():
    empty = ClusterView.from_objects([node("n1"), node("n2")])
    made = pod("a", requests={"cpu": "1"})

    placed = empty.with_pod(made, "n2")
    again = placed.without_pod(made, "n2")

    assert [used(view)["n2"] for view in (empty, placed, again)] == [0, 1000, 0]


def test_placing_the_same_pod_again_replaces_it():
    view = ClusterView.from_objects([node()]).with_pod(pod("a", requests={"cpu": "1"}), "n1")

    assert used(view.with_pod(pod("a", requests={"cpu": "2"}), "n1")) == {"n1": 2000}


def test_nodes_come_and_go():
    view = ClusterView.from_objects([node("n1")], [pod("a", on="n1", requests={"cpu": "1"})])

    grown = view.with_node(node("n2")).with_node(node("n1", cpu="8"))

    assert list(grown.nodes) == ["n1", "n2"]
    assert grown.nodes["n1"].free["cpu"] == 7000
    assert list(grown.without_nodes({"n1"}).nodes) == ["n2"]
    assert view.nodes["n1"].free["cpu"] == 3000


def test_pods_that_keep_others_away_are_known_however_they_came():
    lonely = pod("lonely", on="n1", **required(term({"app": "web"})))
    view = ClusterView.from_objects([node("n1"), node("n2")])

    placed = view.with_pod(lonely)

    assert not view.has_anti_affinity
    assert [place.name for place in placed.anti_affine_nodes] == ["n1"]
    assert [place.name for place in ClusterView.from_objects([node("n1")], [lonely]).anti_affine_nodes] == ["n1"]
    assert not placed.without_pod(lonely).has_anti_affinity
    assert not placed.without_nodes({"n1"}).has_anti_affinity


def test_a_node_the_view_does_not_know_is_judged_as_if_it_had_joined():
    web = {"app": "web"}
    view = ClusterView.from_objects([node("n1")], [pod("a", on="n1", labels=web)])
    made = pod(labels=web, **spread(web, key=HOSTNAME))

    assert isinstance(check_node(made, node("n1"), view), Fits)
    assert isinstance(check_node(made, node("new"), view), Fits)
    assert isinstance(check_node(made, node("n1"), view.with_node(node("new"))), DoesNotFit)


def test_a_pod_the_view_holds_is_judged_as_if_taken_off_first():
    exclusive = pod("a", on="n1", requests={"cpu": "4"}, labels={"app": "a"}, **required(term({"app": "a"})))
    view = ClusterView.from_objects([node("n1")], [exclusive])

    assert isinstance(check_node(exclusive, node("n1"), view), Fits)
    assert isinstance(check_nodes(exclusive, view)["n1"], Fits)


def test_a_pod_is_prepared_once_for_all_nodes_of_a_view():
    view = ClusterView.from_objects([node("n1"), node("n2")])
    made = pod()

    assert prepare_pod(made, view) is prepare_pod(made, view)
    assert prepare_pod(made, view) is not prepare_pod(made, view.with_pod(pod("other"), "n1"))


def test_a_plain_pod_looks_at_no_other_pod(monkeypatch: pytest.MonkeyPatch):
    view = ClusterView.from_objects([node("n1")], [pod(f"p{index}", on="n1") for index in range(50)])
    monkeypatch.setattr(view.nodes["n1"], "pods", None)

    assert isinstance(check_node(pod(), view.nodes["n1"].node, view), Fits)


STEPS = st.lists(st.tuples(st.integers(0, 5), st.sampled_from(["n1", "n2"]), st.integers(0, 3)), max_size=15)


@settings(max_examples=80, deadline=None)
@given(STEPS)
def test_a_changed_view_equals_one_made_from_scratch(steps: list[tuple[int, str, int]]):
    nodes = [node("n1"), node("n2")]
    view = ClusterView.from_objects(nodes)
    there: dict[int, tuple[str, Pod]] = {}
    for number, name, cpu in steps:
        if number in there:
            where, old = there.pop(number)
            view = view.without_pod(old, where)
        else:
            made = pod(f"p{number}", on=name, requests={"cpu": cpu}, **(required(term({})) if cpu == 3 else {}))
            there[number] = (name, made)
            view = view.with_pod(made)
    fresh = ClusterView.from_objects(nodes, [made for _, made in there.values()])

    assert used(view) == used(fresh)
    assert {place.name for place in view.anti_affine_nodes} == {place.name for place in fresh.anti_affine_nodes}
    assert view.nodes["n1"].used == sum(
        (compute_pod_demand(made) for where, made in there.values() if where == "n1"),
        start=fresh.nodes["n1"].used.scale_by(0),
    )


def test_a_pod_that_cannot_be_read_makes_its_node_unknown():
    bad = BadObject(kind="Pod", namespace="x", name="odd", node_name="n1", problem="spec.containers: Expected `array`")
    view = ClusterView.from_objects([node("n1"), node("n2")], bad_pods=[bad]).with_pod(pod("a"), "n1")

    found = check_nodes(pod("b"), view)
    assert isinstance(found["n2"], Fits)
    assert "pod x/odd: spec.containers" in str(found["n1"])
    assert isinstance(check_nodes(pod("b"), view.with_node(node("n1", cpu="64")))["n1"], DoesNotFit)


def test_a_placed_pod_is_asked_where_else_it_could_run():
    """Draining: its own node is not asked, its own room does not count, and where it is does not bind it."""
    placed = pod("a", on="n1", requests={"cpu": "3"})
    view = ClusterView.from_objects([node("n1"), node("n2"), node("n3", cpu="2")], [placed])

    found = check_other_nodes(placed, view)
    assert {name: isinstance(verdict, Fits) for name, verdict in found.items()} == {"n2": True, "n3": False}


def test_pods_exchanged_on_a_node_stand_in_the_order_of_their_keys():
    state = ClusterView.from_objects(
        [node("n1")], [pod(name, on="n1", requests={"cpu": 1}) for name in ("c", "a")]
    ).nodes["n1"]

    after = state.exchange([PodKey("default", "a")], [PlacedPod(pod("b", requests={"cpu": 2}))])

    assert [key.name for key in after.pods] == ["b", "c"]
    assert after.free["cpu"] == 1000
    assert [key.name for key in state.pods] == ["c", "a"]


def test_a_pod_that_requests_very_many_pods_counts_within_bounds():
    huge = pod("p", requests={"pods": "9223372036854775807"})
    assert 1 <= PlacedPod(huge).count <= 2**31 - 1
