"""The engine answers for classes over all nodes what the scheduling rules answer for each pod on each node."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import structs

from plimsoll.nodes.model.snapshot import PendingPods
from plimsoll.nodes.planning.equivalence.pod_classes import ClassTable
from plimsoll.nodes.planning.predicates.predicates import Predicates
from plimsoll.nodes.planning.predicates.static_predicates import RefusalCache
from plimsoll.nodes.planning.state.node_arrays import NodeArrays
from plimsoll.scheduling import ClusterView, Fits, NotSchedulable, Profile, check_nodes, compute_scheduling_outcome
from tests.nodes.planning.predicates.trial_placements import Trial
from tests.nodes.planning.random_clusters import clusters, waiting
from tests.scheduling.builders import HOSTNAME, ZONE, node, pod, required, spread, term

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import Pod

MANY = settings(max_examples=60, deadline=None)


def predicates_of(pending: list[PendingPods], view: ClusterView) -> Predicates:
    table = ClassTable.build(pending, view)
    return Predicates(table, NodeArrays.from_view(view, resources=table.resources), view)


@MANY
@given(clusters(), waiting())
def test_every_pod_of_a_class_gets_the_verdict_of_the_rules_on_every_node(
    view: ClusterView, pending: list[PendingPods]
):
    engine = predicates_of(pending, view)

    for index, pending_pods in enumerate(pending):
        codes = engine.find_codes(int(engine.table.class_of[index])).tolist()
        for name, verdict in check_nodes(pending_pods.pod, view).items():
            code = codes[engine.arrays.row_of[name]]
            if isinstance(verdict, Fits):
                assert code == 0
            else:
                found = engine.get_refusal(code)
                assert (found.plugin, found.messages) == (verdict.reason.plugin, verdict.reason.messages)


@MANY
@given(clusters(), waiting(most=1))
def test_reasons_are_counted_in_the_words_of_the_scheduler(view: ClusterView, pending: list[PendingPods]):
    outcome = compute_scheduling_outcome(pending[0].pod, view)
    reported = predicates_of(pending, view).build_fit_error(0)

    if isinstance(outcome, NotSchedulable):
        assert outcome.message.startswith(reported.message)


@MANY
@given(st.data(), clusters(), waiting(most=3))
def test_what_a_trial_places_counts_as_if_it_ran(data: st.DataObject, view: ClusterView, pending: list[PendingPods]):
    engine = predicates_of(pending, view)
    trial = Trial(engine)
    for step in range(data.draw(st.integers(1, 3))):
        number = data.draw(st.integers(0, len(engine.table) - 1))
        rows = np.flatnonzero(trial.fits(number)).tolist()
        if rows:
            row = data.draw(st.sampled_from(rows))
            trial.place(number, row)
            view = view.with_pod(renamed(engine.table.classes[number].pod, f"placed-{step}"), engine.arrays.names[row])

    for index, pending_pods in enumerate(pending):
        codes = trial.codes(int(engine.table.class_of[index])).tolist()
        for name, verdict in check_nodes(pending_pods.pod, view).items():
            assert (codes[engine.arrays.row_of[name]] == 0) == isinstance(verdict, Fits), (name, verdict)


@MANY
@given(
    st.lists(st.tuples(st.sampled_from(["z1", "z2", "z3"]), st.integers(0, 3)), min_size=2, max_size=4),
    st.integers(1, 2),
    st.sampled_from([ZONE, HOSTNAME]),
    st.sampled_from([{}, {"minDomains": 3}]),
)
def test_skew_is_measured_from_the_emptiest_domain(
    rows: list[tuple[str, int]], skew: int, key: str, more: dict[str, int]
):
    names = [f"n{index}" for index in range(len(rows))]
    running = [
        pod(f"{name}-{index}", on=name, labels={"app": "web"})
        for name, (_, count) in zip(names, rows, strict=True)
        for index in range(count)
    ]
    view = ClusterView.from_objects(
        [node(name, zone=zone) for name, (zone, _) in zip(names, rows, strict=True)], running
    )
    made = pod("a", labels={"app": "web"}, **spread({"app": "web"}, key, skew, **more))
    answers = [isinstance(verdict, Fits) for verdict in check_nodes(made, view).values()]

    assert predicates_of([PendingPods(key="a", pod=made, count=1)], view).find_fitting(0).tolist() == answers


def renamed(made: Pod, name: str) -> Pod:
    return structs.replace(made, metadata=structs.replace(made.metadata, name=name))


def test_a_rule_that_a_profile_switches_off_is_not_asked():
    view = ClusterView.from_objects([node("n1", unschedulable=True, cpu=1)])
    pending = [PendingPods(key="a", pod=pod("a", requests={"cpu": 2}), count=1)]
    table = ClassTable.build(pending, view)
    profile = Profile(disabled=frozenset({"NodeResourcesFit", "NodeUnschedulable"}))

    assert not predicates_of(pending, view).find_fitting(0).any()
    assert Predicates(table, NodeArrays.from_view(view), view, profile=profile).find_fitting(0).all()


def test_answers_kept_between_turns_are_the_same_answers():
    kept = RefusalCache()
    pending = [PendingPods(key="a", pod=pod("a", nodeSelector={"disk": "ssd"}), count=1)]
    for labels in ({"disk": "ssd"}, {"disk": "hdd"}, {}):
        view = ClusterView.from_objects([node("n1", labels=labels)])
        table = ClassTable.build(pending, view)
        engine = Predicates(table, NodeArrays.from_view(view), view, refusal_cache=kept)

        assert engine.find_fitting(0).tolist() == [labels == {"disk": "ssd"}]


def test_simple_classes_that_others_avoid_interact():
    view = ClusterView.from_objects([node("n1")])
    avoiding = pod("a", labels={"app": "a"}, **required(term({"app": "b"})))
    pending = [
        PendingPods(key=example.metadata.name, pod=example, count=1)
        for example in (avoiding, pod("b", labels={"app": "b"}), pod("c", labels={"app": "c"}))
    ]

    assert predicates_of(pending, view).interacts.tolist() == [True, True, False]


def test_without_nodes_the_scheduler_has_nothing_to_say_but_that():
    pending = [PendingPods(key="a", pod=pod("a"), count=1)]

    assert (
        predicates_of(pending, ClusterView.from_objects()).build_fit_error(0).message
        == "no nodes available to schedule pods"
    )
