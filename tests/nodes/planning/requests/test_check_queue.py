"""Many checks in one line: each answered as if it stood there alone behind those before it, at little cost."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.planning.requests import check_queue
from plimsoll.nodes.planning.requests.check_capacity import QueuedRequest, check_capacity, check_queued_requests
from plimsoll.nodes.planning.requests.check_queue import Check
from plimsoll.scheduling.feasibility import check_node
from plimsoll.scheduling.verdicts import Fits
from tests.nodes.planning.builders import policy
from tests.nodes.planning.scale_up_clusters import group, waiting, world
from tests.scheduling.builders import node, required, term

POLICY = policy(expander="cost")


def asking(
    name: str, count: int = 1, cpu: Any = 1, *, grows: bool = False, keeps: bool = True, **more: Any
) -> QueuedRequest:
    pods = waiting(name, count, cpu=cpu, bundle=f"default/{name}", **more)
    return QueuedRequest(name=f"default/{name}", pods=(pods,), can_scale_up=grows, reserves=keeps)


def nodes(*cpus: int) -> list[Any]:
    return [node(f"n{number}", cpu=cpu, memory="256Gi") for number, cpu in enumerate(cpus)]


def fits(snapshot: Any, *line: QueuedRequest) -> dict[str, bool]:
    _, found = check_queued_requests(snapshot, POLICY, line)
    return {name.rpartition("/")[2]: checked.fits for name, checked in found.items()}


def test_small_ones_fit_behind_a_large_one_that_does_not():
    line = [asking("a", cpu=3), asking("huge", cpu=64), asking("b", cpu=1), asking("c", cpu=1)]
    assert fits(world(nodes=nodes(4)), *line) == {"a": True, "huge": False, "b": True, "c": False}


def test_a_thousand_alike_are_a_few_packings(monkeypatch: pytest.MonkeyPatch):
    packings = []

    def counted(*given: Any) -> Any:
        packings.append(given)
        return place(*given)

    place = check_queue.place  # type: ignore[attr-defined]
    monkeypatch.setattr(check_queue, "place", counted)
    line = [asking(f"r{number}", cpu=1 if number % 2 else 9) for number in range(1_000)]
    found = fits(world(nodes=nodes(*[4] * 100)), *line)
    assert sum(found.values()) == 400
    assert len(packings) <= 11


def test_the_room_of_each_is_reported():
    _, found = check_queued_requests(world(nodes=nodes(4, 2)), POLICY, [asking("a", 5), asking("b", 1, cpu=0.5)])
    assert sum(sum(pods.values()) for pods in found["default/a"].places.values()) == 5
    assert {key for pods in found["default/b"].places.values() for key in pods} == {"default/b"}


@pytest.mark.parametrize("checks", [1, 3])
def test_a_scale_up_request_at_the_head_of_the_queue_takes_existing_capacity(checks: int):
    """Of 6 cores the first takes 4, as it could grow by what else it needs; one behind it finds 2."""
    line = [asking("grows", 4, grows=True), *(asking(f"r{number}", 2) for number in range(checks))]
    snapshot = world(nodes=nodes(6), groups=[group("g")])
    assert fits(snapshot, *line) == {"r0": True, **{f"r{number}": False for number in range(1, checks)}}


def test_a_request_that_cannot_be_placed_takes_nothing():
    line = [asking("never", 4, cpu=3, grows=True), asking("r", 4)]
    assert fits(world(nodes=nodes(4), groups=[group("g", most=1)]), *line) == {"r": True}


def test_pods_that_run_and_keep_others_off_are_minded():
    loner = waiting("loner", labels={"app": "x"}, **required(term({"app": "r"}))).pod
    snapshot = world(nodes=nodes(8, 1), on=[("n0", loner)])
    line = [asking("first", cpu=64), *(asking(f"r{number}", app="r") for number in range(2))]
    assert fits(snapshot, *line) == {"first": False, "r0": True, "r1": False}


@given(
    st.lists(st.integers(1, 8), max_size=4),
    st.lists(st.tuples(st.sampled_from([0.5, 1, 2, 5]), st.integers(1, 3), st.booleans()), min_size=1, max_size=8),
)
@settings(max_examples=40, deadline=None)
def test_yes_has_its_room_and_no_has_none(cpus: list[int], asked: list[tuple[float, int, bool]]):
    line = [asking(f"r{at}", count, cpu=cpu, keeps=keeps) for at, (cpu, count, keeps) in enumerate(asked)]
    snapshot = world(nodes=nodes(*cpus))
    booked, found = check_queued_requests(snapshot, POLICY, line)
    view = booked.view
    assert all(state.free["cpu"] >= 0 for state in view.nodes.values())
    for in_line in line:
        answer = found[in_line.name]
        placed = sum(sum(pods.values()) for pods in answer.places.values())
        assert placed == (answer.pods if answer.fits and in_line.reserves else 0)
        if not answer.fits and answer.pods == 1:
            # Room only gets less: who found none then finds none now.
            pod = in_line.pods[0].pod
            assert not any(isinstance(check_node(pod, state.node, view), Fits) for state in view.nodes.values())


@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=4),
    st.lists(st.tuples(st.sampled_from([1, 2, 3]), st.integers(1, 4)), min_size=1, max_size=5),
)
@settings(max_examples=30, deadline=None)
def test_the_first_in_line_is_answered_as_if_it_were_alone(cpus: list[int], asked: list[tuple[int, int]]):
    checks = [
        Check(name=f"default/r{at}", pods=(waiting(f"r{at}", count, cpu=cpu),)) for at, (cpu, count) in enumerate(asked)
    ]
    snapshot = world(nodes=nodes(*cpus))
    alone = check_capacity(snapshot, POLICY, checks[:1]).answers[0]
    in_line = check_capacity(snapshot, POLICY, checks).answers[0]
    assert (in_line.fits, in_line.placed, in_line.reasons) == (alone.fits, alone.placed, alone.reasons)
