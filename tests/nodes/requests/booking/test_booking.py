"""Capacity that requests were given stays theirs: on which nodes, how much of it, and what is left of it when pods run.

docs/design/nodes.md 4.3.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plimsoll.nodes.model.scale_up_plan import GroupScaleUp, NodePattern
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from plimsoll.nodes.requests.booking.booking import BookingHints, answer_checks, book
from plimsoll.nodes.requests.model import ClassKind, Phase
from tests.nodes.planning.builders import policy
from tests.nodes.planning.scale_up_clusters import group, running, waiting, world
from tests.nodes.requests.request_views import consumer, pods_of, request_view
from tests.scheduling.builders import HOSTNAME, node, term

POLICY = policy(expander="cost", enable_provisioning_requests=True)
ONE = pods_of(1)


def nodes(count: int = 3, cpu: int = 4) -> list[Any]:
    return [node(f"n{number}", cpu=cpu, memory=f"{4 * cpu}Gi") for number in range(count)]


def booked(snapshot: Any, *held: Any, hints: BookingHints | None = None) -> Any:
    return book(snapshot, held, hints or BookingHints(), POLICY)


class TestRoom:
    def test_remaining_pods_stand_on_nodes(self):
        found = booked(world(nodes=nodes()), request_view("r", (ONE, 10)))
        assert sum(found.by_request["default/r"].values()) == 10
        assert found.nodes == {"n0", "n1", "n2"}
        assert found.unbookable == {}
        assert sum(state.free["cpu"] for state in found.snapshot.view.nodes.values()) == 2_000

    def test_half_a_node_of_booked_pods_is_one_thing_on_it(self):
        found = booked(world(nodes=nodes(1)), request_view("r", (ONE, 3)))
        (lump,) = found.snapshot.view.nodes["n0"].pods.values()
        assert (lump.count, lump.demand["cpu"], lump.demand["pods"]) == (3, 3_000, 3)

    def test_ordinary_pods_do_not_get_what_is_booked(self):
        snapshot = world(waiting("web", 4), nodes=nodes(), groups=[group("g")])
        plan = plan_scale_up(booked(snapshot, request_view("r", (ONE, 10))).snapshot, POLICY)
        assert [(growth.option.group, growth.added) for growth in plan.scale_ups] == [("g", 1)]

    def test_nor_do_other_requests(self):
        held = booked(world(nodes=nodes()), request_view("a", (ONE, 8)))
        line = [
            request_view(name, (ONE, pods), class_kind=ClassKind.CHECK, phase=Phase.DUE)
            for name, pods in (("b", 8), ("c", 4))
        ]
        _, answers = answer_checks(held.snapshot, line, POLICY)
        assert {name: answer.fits for name, answer in answers.items()} == {"default/b": False, "default/c": True}

    def test_pods_without_room_are_counted(self):
        found = booked(world(nodes=nodes(1)), request_view("r", (ONE, 6)))
        assert found.unbookable == {"default/r": 2}
        assert found.by_request == {"default/r": {"n0": 4}}

    def test_where_room_is_short_the_oldest_answer_keeps_it(self):
        held = [
            request_view("old", (pods_of(2), 2)),
            request_view("young", (ONE, 3)),
            request_view("small", (pods_of(0.5), 2)),
        ]
        found = booked(world(nodes=nodes(1, cpu=5)), *held)
        assert found.by_request["default/old"] == {"n0": 2}
        assert found.unbookable == {"default/young": 2, "default/small": 2}

    def test_a_check_that_does_not_want_it_kept_books_nothing(self):
        found = booked(world(nodes=nodes()), request_view("r", (ONE, 8), class_kind=ClassKind.CHECK, reserves=False))
        assert found.nodes == set()

    def test_nodes_promised_to_ordinary_pods_are_not_booked(self):
        snapshot = world(waiting("web", 4), nodes=nodes(2), nominations={"n0": {"default/web": 4}})
        found = booked(snapshot, request_view("r", (ONE, 6)))
        assert found.by_request == {"default/r": {"n1": 4}}
        assert found.unbookable == {"default/r": 2}

    def test_pods_that_keep_off_each_other_are_booked_apart(self):
        affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term({"app": "a"})]}}
        apart = pods_of(1, labels={"app": "a"}, affinity=affinity)
        found = booked(world(nodes=nodes()), request_view("r", (apart, 4)))
        assert found.by_request == {"default/r": {"n0": 1, "n1": 1, "n2": 1}}
        assert found.unbookable == {"default/r": 1}

    def test_booked_pods_count_singly_where_pods_are_spread(self):
        """Three are booked on n0; with a skew of one no pod joins them, as n1 has room for one only."""
        labels = {"app": "a"}
        spread: dict[str, Any] = {
            "topologySpreadConstraints": [
                {
                    "topologyKey": HOSTNAME,
                    "maxSkew": 1,
                    "whenUnsatisfiable": "DoNotSchedule",
                    "labelSelector": {"matchLabels": labels},
                }
            ]
        }
        snapshot = world(waiting("web", 2, labels=labels, **spread), nodes=[*nodes(1), node("n1", cpu=1)])
        tied = pods_of(1, labels=labels, nodeSelector={HOSTNAME: "n0"})
        plan = plan_scale_up(booked(snapshot, request_view("r", (tied, 3))).snapshot, POLICY)
        assert plan.existing == {"n1": {"default/web": 1}}


class TestConsumption:
    def test_pods_that_run_are_not_booked_again(self):
        on = [("n0", consumer(f"c{number}", "r", ONE)) for number in range(3)]
        found = booked(world(nodes=nodes(), on=on), request_view("r", (ONE, 10)))
        assert sum(found.by_request["default/r"].values()) == 7
        assert sum(state.free["cpu"] for state in found.snapshot.view.nodes.values()) == 2_000
        assert found.consumed == set()

    def test_when_all_run_it_is_consumed(self):
        on = [("n0", consumer(f"c{number}", "r", ONE)) for number in range(2)]
        found = booked(world(nodes=nodes(), on=on), request_view("r", (ONE, 2)))
        assert found.consumed == {"default/r"}
        assert found.nodes == set()

    @pytest.mark.parametrize("prefix", ["autoscaling.x-k8s.io", "cluster-autoscaler.kubernetes.io"])
    def test_both_spellings_consume(self, prefix: str):
        on = [("n0", consumer("c", "r", ONE, key=f"{prefix}/consume-provisioning-request"))]
        assert booked(world(nodes=nodes(), on=on), request_view("r", (ONE, 1))).consumed == {"default/r"}

    def test_each_pod_counts_for_the_pod_set_it_is_of(self):
        on = [("n0", consumer(f"c{number}", "r", pods_of(2))) for number in range(2)]
        found = booked(world(nodes=nodes(), on=on), request_view("r", (ONE, 4), (pods_of(2), 3)))
        assert found.consumption["default/r"].remaining == (4, 1)

    def test_more_pods_of_one_set_than_it_has_are_none_of_another(self):
        on = [(f"n{number}", consumer(f"c{number}", "r", ONE)) for number in range(3)]
        found = booked(world(nodes=nodes(), on=on), request_view("r", (ONE, 1), (pods_of(2), 2)))
        assert found.consumption["default/r"].remaining == (0, 2)

    def test_a_pod_like_none_of_them_counts_for_any(self):
        on = [("n0", consumer("c", "r", pods_of(0.5)))]
        found = booked(world(nodes=nodes(), on=on), request_view("r", (ONE, 1), (pods_of(2), 2)))
        assert found.consumption["default/r"].remaining == (0, 2)

    def test_of_pod_sets_alike_labels_show_which(self):
        sets = [(pods_of(1, labels={"role": role}), 2) for role in ("leader", "worker")]
        on = [("n0", consumer("c", "r", ONE, role="worker", extra="x"))]
        found = booked(world(nodes=nodes(), on=on), request_view("r", *sets))
        assert found.consumption["default/r"].remaining == (2, 1)

    def test_a_request_of_the_same_name_elsewhere_is_another(self):
        elsewhere = consumer("c", "r", pods_of(1, namespace="other"))
        found = booked(world(nodes=nodes(), on=[("n0", elsewhere)]), request_view("r", (ONE, 1)))
        assert found.consumption["default/r"].remaining == (1,)


class TestHints:
    def test_the_nodes_of_the_turn_before_are_booked_again(self):
        request = request_view("r", (ONE, 4))
        crowded = world(nodes=nodes(), on=[("n0", running("busy", cpu=2)), ("n1", running("more", cpu=3))])
        before = booked(crowded, request)
        after = booked(world(nodes=nodes()), request, hints=before.hints)
        assert after.by_request == before.by_request

    def test_a_growth_is_booked_on_the_nodes_it_was_planned_for(self):
        """The packer would put all four on n0; two nodes of g were asked for them."""
        grown = group("g", cpu=4)
        request = request_view("r", (ONE, 4))
        snapshot = world(*request.pods, groups=[grown])
        plan = plan_scale_up(snapshot, POLICY)
        (growth,) = plan.scale_ups
        two = GroupScaleUp(
            option=growth.option,
            before=0,
            after=2,
            patterns=(NodePattern(nodes=2, pods={"default/r/0": 2}),),
            reason=growth.reason,
        )
        hints = BookingHints().with_plan([request], scaled_up=[("g", 2, two)])
        coming = world(nodes=nodes(3), group_of={"n1": "g", "n2": "g"})
        assert booked(coming, request, hints=hints).by_request == {"default/r": {"n1": 2, "n2": 2}}

    def test_a_machine_that_joins_under_another_name_is_followed(self):
        request = request_view("r", (ONE, 4))
        coming = [node(f"g-upcoming-{number}", cpu=2, memory="8Gi") for number in range(2)]
        group_of = {node.metadata.name: "g" for node in coming} | {"real": "g"}
        before = booked(world(nodes=coming, group_of=group_of), request)
        there = [coming[0], node("real", cpu=2, memory="8Gi"), node("large", cpu=16, memory="64Gi")]
        after = booked(world(nodes=there, group_of=group_of), request, hints=before.hints)
        assert after.by_request == {"default/r": {"g-upcoming-0": 2, "real": 2}}

    def test_pods_that_come_to_run_leave_their_nodes_and_no_others(self):
        request = request_view("r", (ONE, 8))
        before = booked(world(nodes=nodes(2)), request)
        on = [("n0", consumer("c0", "r", ONE)), ("n1", consumer("c1", "r", ONE))]
        after = booked(world(nodes=nodes(2), on=on), request, hints=before.hints)
        assert after.by_request == {"default/r": {"n0": 3, "n1": 3}}

    def test_another_request_of_the_name_has_no_part_in_it(self):
        crowded = world(nodes=nodes(), on=[("n0", running("busy", cpu=2)), ("n1", running("more", cpu=3))])
        before = booked(crowded, request_view("r", (ONE, 4)))
        anew = request_view("r", (ONE, 4), uid="another")
        plain = booked(world(nodes=nodes()), anew)
        assert booked(world(nodes=nodes()), anew, hints=before.hints).by_request == plain.by_request

    def test_a_deleted_request_leaves_no_trace(self):
        snapshot = world(nodes=nodes())
        both = booked(snapshot, request_view("a", (ONE, 4)), request_view("b", (ONE, 4)))
        left = booked(snapshot, request_view("b", (ONE, 4)), hints=both.hints)
        assert set(left.by_request) == {"default/b"}
        assert all("default/a/0" not in filling.pods for filling in left.hints.fillings)
        none = booked(snapshot, hints=left.hints)
        assert none.snapshot is snapshot
        assert none.hints.fillings == ()

    def test_nodes_on_which_nothing_changed_are_the_very_same(self):
        snapshot, request = world(nodes=nodes()), request_view("r", (ONE, 8))
        before = booked(snapshot, request)
        after = booked(snapshot, request, hints=before.hints)
        pairs = zip(before.snapshot.view.nodes.values(), after.snapshot.view.nodes.values(), strict=True)
        assert all(before is other for before, other in pairs)


# ---- whatever the cluster


@st.composite
def worlds(draw: Any) -> Any:
    """Nodes with pods on them, some of which consume, and requests of one or two pod sets."""
    there = [
        node(f"n{number}", cpu=draw(st.integers(1, 8)), memory="64Gi") for number in range(draw(st.integers(0, 4)))
    ]
    held = [
        request_view(
            f"r{number}",
            *(
                (pods_of(draw(st.sampled_from([0.5, 1, 3]))), draw(st.integers(1, 5)))
                for _ in range(draw(st.integers(1, 2)))
            ),
        )
        for number in range(draw(st.integers(1, 3)))
    ]
    on = []
    for number in range(draw(st.integers(0, 5)) if there else 0):
        request = draw(st.sampled_from(held))
        template = draw(st.sampled_from(request.templates))
        where = draw(st.sampled_from(there)).metadata.name
        on.append((where, consumer(f"c{number}", request.request.metadata.name, template)))
    return world(nodes=there, on=on), held


@given(worlds(), worlds())
@settings(max_examples=30, deadline=None)
def test_never_more_is_booked_than_there_is(before: Any, after: Any):
    """Whatever was hinted."""
    hints = BookingHints()
    for snapshot, held in (before, after):
        found = booked(snapshot, *held, hints=hints)
        for name, state in found.snapshot.view.nodes.items():
            taken_before = snapshot.view.nodes[name].free
            booked_here = {resource: taken_before[resource] - state.free[resource] for resource in taken_before}
            assert all(amount <= max(taken_before[resource], 0) for resource, amount in booked_here.items())
        hints = found.hints


@given(worlds())
@settings(max_examples=30, deadline=None)
def test_what_is_booked_and_what_runs_and_what_lacks_room_is_all_there_is(drawn: Any):
    snapshot, held = drawn
    found = booked(snapshot, *held)
    for request in held:
        run = found.consumption[request.name]
        assert sum(run.remaining) >= request.total - run.running
        kept = sum(found.by_request.get(request.name, {}).values()) + found.unbookable.get(request.name, 0)
        assert kept == (0 if request.name in found.consumed else sum(run.remaining))


def _three_requests_for_one_node() -> Any:
    """r0 and r2 are booked, r1 needs the whole node. Without r0 the node is not free: r2 keeps its booking."""
    held = [request_view(f"r{number}", (pods_of(cpu), 1)) for number, cpu in enumerate((0.5, 3, 0.5))]
    return world(nodes=[node("n0", cpu=3, memory="64Gi")]), held


@given(worlds(), st.integers(0, 2))
@example(_three_requests_for_one_node(), 0)
@settings(max_examples=30, deadline=None)
def test_a_deleted_request_leaves_nothing_behind(drawn: Any, number: int):
    """The next loop books what it would with hints of the other requests alone: all the room is there again."""
    snapshot, held = drawn
    gone = held[number % len(held)]
    left = [request for request in held if request is not gone]
    before = booked(snapshot, *held)
    after = booked(snapshot, *left, hints=before.hints)
    never = booked(snapshot, *left, hints=_without(before.hints, gone))
    assert (after.by_request, after.unbookable) == (never.by_request, never.unbookable)
    assert gone.name not in after.by_request
    assert gone.name not in after.unbookable
    assert not any(key.startswith(f"{gone.name}/") for filling in after.hints.fillings for key in filling.pods)


@given(worlds(), st.integers(0, 2))
@example(_three_requests_for_one_node(), 0)
@settings(max_examples=30, deadline=None)
def test_the_room_of_a_deleted_request_goes_to_the_others(drawn: Any, number: int):
    """Bookings stay where they are, even if an older request lacks room; what is free after that is not left unused."""
    snapshot, held = drawn
    left = [request for request in held if request is not held[number % len(held)]]
    before = booked(snapshot, *held)
    after = booked(snapshot, *left, hints=before.hints)
    free = [state.free["cpu"] for state in after.snapshot.view.nodes.values()]
    for request in left:
        assert after.unbookable.get(request.name, 0) <= before.unbookable.get(request.name, 0)
        for node_name, pods in before.by_request.get(request.name, {}).items():
            assert after.by_request[request.name][node_name] >= pods
    booked_pods = Counter[str]()
    for filling in after.hints.fillings:
        booked_pods.update(filling.pods)
    for request in (request for request in left if request.name in after.unbookable):
        for pending, remaining in zip(request.pods, after.consumption[request.name].remaining, strict=True):
            cpu = 1_000 * pending.pod.spec.containers[0].resources.requests["cpu"]
            assert remaining == booked_pods[pending.key] or max(free, default=0) < cpu


def _without(hints: BookingHints, gone: Any) -> BookingHints:
    """The hints as if the request had never existed."""
    prefix = f"{gone.name}/"
    fillings = (
        replace(filling, pods={key: pods for key, pods in filling.pods.items() if not key.startswith(prefix)})
        for filling in hints.fillings
    )
    owners = {key: uid for key, uid in hints.owners.items() if not key.startswith(prefix)}
    return BookingHints(fillings=tuple(filling for filling in fillings if filling.pods), owners=owners)
