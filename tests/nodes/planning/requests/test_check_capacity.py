"""Requests that only ask: room for all of their pods on the nodes that are there, or none; kept from those behind."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.planning.requests.check_capacity import QueuedRequest, check_capacity, check_queued_requests
from plimsoll.nodes.planning.requests.check_queue import Check
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from tests.nodes.planning.builders import policy
from tests.nodes.planning.scale_up_clusters import group, running, waiting, world
from tests.scheduling.builders import node, term

POLICY = policy(expander="cost")


def check(name: str, *pods: Any, keeps: bool = True) -> Check:
    return Check(name=f"default/{name}", pods=pods, reserves=keeps)


def nodes(count: int = 3, cpu: int = 4) -> list[Any]:
    return [node(f"n{number}", cpu=cpu, memory=f"{4 * cpu}Gi") for number in range(count)]


def answers(snapshot: Any, *checks: Check) -> list[bool]:
    return [checked.fits for checked in check_capacity(snapshot, POLICY, checks).answers]


def test_room_for_all():
    """N03."""
    found = check_capacity(world(nodes=nodes()), POLICY, [check("r", waiting("a", 10))])
    assert [answer.fits for answer in found.answers] == [True]
    assert sum(sum(pods.values()) for pods in found.booked.values()) == 10


def test_no_room_for_one_of_them():
    """N04."""
    found = check_capacity(world(nodes=nodes(), groups=[group("g")]), POLICY, [check("r", waiting("a", 13))])
    (answer,) = found.answers
    assert not answer.fits
    fewer, _less_than_requested, scheduler = answer.reasons
    assert {reason.code for reason in answer.reasons} == {"CapacityIsNotFound"}
    assert fewer.facts == {"fit": 12, "pods": 13}
    assert scheduler.message == "0/3 nodes are available: 3 Insufficient cpu"
    assert found.booked == {}


def test_without_nodes_there_is_no_room():
    assert answers(world(), check("r", waiting("a", 1))) == [False]


@pytest.mark.parametrize(("keeps", "second"), [(True, False), (False, True)])
def test_room_is_kept_from_those_behind_unless_it_is_not_wanted(keeps: bool, second: bool):
    """N07."""
    first = check("a", waiting("a", 8), keeps=keeps)
    assert answers(world(nodes=nodes()), first, check("b", waiting("b", 8))) == [True, second]


def test_a_check_without_capacity_reserves_none():
    line = [check("a", waiting("a", 8)), check("b", waiting("b", 8)), check("c", waiting("c", 4))]
    assert answers(world(nodes=nodes()), *line) == [True, False, True]


def test_pods_that_run_take_room():
    """N41: 1 of 8 cores is free."""
    on = [(f"n{number % 2}", running(f"busy-{number}")) for number in range(7)]
    snapshot = world(nodes=nodes(2), on=on)
    assert answers(snapshot, check("r", waiting("a", 2)), check("s", waiting("b", 1))) == [False, True]


def test_pods_of_one_check_keep_off_each_other():
    apart: dict[str, Any] = {
        "affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term({"app": "a"})]}}
    }
    alike = [waiting("a", count, labels={"app": "a"}, **apart) for count in (3, 4)]
    snapshot = world(nodes=nodes())
    assert [answers(snapshot, check("r", template)) for template in alike] == [[True], [False]]


def test_a_no_is_not_just_a_bad_packing():
    """7.6: 5+5, 4+3+3 and 4+3+3 fill three nodes of ten to the last core."""
    pods = [waiting(name, count, cpu=cpu) for name, count, cpu in (("a", 2, 5), ("b", 2, 4), ("c", 4, 3))]
    assert answers(world(nodes=nodes(3, cpu=10)), check("r", *pods)) == [True]


@given(st.lists(st.lists(st.integers(1, 5), min_size=1, max_size=3), min_size=1, max_size=4))
@settings(max_examples=40, deadline=None)
def test_what_was_cut_from_nodes_fits_them(cuts: list[list[int]]):
    sizes = [size for cut in cuts for size in cut]
    pods = [waiting(f"s{size}", sizes.count(size), cpu=size) for size in sorted({*sizes})]
    there = [node(f"n{number}", cpu=sum(cut), memory="64Gi") for number, cut in enumerate(cuts)]
    assert answers(world(nodes=there), check("r", *pods)) == [True]


# ---- in line with others


def asking(name: str, pods: Any, *, grows: bool = False) -> QueuedRequest:
    return QueuedRequest(name=f"default/{name}", pods=(pods,), can_scale_up=grows)


def test_ordinary_pods_get_what_checks_leave():
    snapshot = world(waiting("web", 4), nodes=nodes(), groups=[group("g")])
    booked, found = check_queued_requests(snapshot, POLICY, [asking("r", waiting("a", 10))])
    assert found["default/r"].fits
    plan = plan_scale_up(booked, POLICY)
    assert [(growth.option.group, growth.added) for growth in plan.scale_ups] == [("g", 1)]
    assert sum(sum(pods.values()) for pods in plan.existing.values()) == 2


@pytest.mark.parametrize(("atomic_first", "fits"), [(True, False), (False, True)])
def test_the_first_request_of_the_queue_takes_existing_nodes_first(atomic_first: bool, fits: bool):
    grower = waiting("a", 8, bundle="default/atomic")
    line = [asking("atomic", grower, grows=True), asking("r", waiting("b", 8))]
    snapshot = world(grower, nodes=nodes(), groups=[group("g")])
    _, found = check_queued_requests(snapshot, POLICY, line if atomic_first else line[::-1])
    assert list(found) == ["default/r"]
    assert found["default/r"].fits is fits
