"""What is written down before nodes are added for requests, and how far back groups go when that fails."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.plans import Reason
from plimsoll.nodes.planning.requests.replan import remove_requests, repack
from plimsoll.nodes.planning.scaleup.planner import plan_scale_up
from plimsoll.nodes.requests.intents import (
    RollbackPlan,
    build_attempts,
    build_rollback_intents,
    count_added_before,
    find_surplus,
)
from plimsoll.nodes.requests.model import Phase
from plimsoll.nodes.requests.status import Details, GroupStep, Intent
from tests.nodes.planning.builders import policy
from tests.nodes.planning.scale_up_clusters import group, waiting, world
from tests.nodes.requests.request_views import pods_of, request_view

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import Snapshot
    from plimsoll.nodes.requests.model import RequestView

WHY = Reason(code="Test", message="withdrawn")


def asking(name: str, *counts: int, cpu: Any = 1, intent: Intent | None = None) -> RequestView:
    phase = Phase.DUE if intent is None else Phase.INTENDED
    found = request_view(name, *((pods_of(cpu), count) for count in counts), phase=phase)
    return replace(found, details=Details(intent=intent))


def planned(*line: RequestView, size: int = 0, ordinary: int = 0) -> tuple[Snapshot, ScaleUpPlan]:
    pods = [pending for request in line for pending in request.pods]
    others = [waiting("web", ordinary)] if ordinary else []
    snapshot = world(*pods, *others, groups=[group("g", target=size, most=50)])
    return snapshot, plan_scale_up(snapshot, policy(expander="cost"))


def nodes_of(plan: ScaleUpPlan) -> int:
    return sum(scale_up.added for scale_up in plan.scale_ups)


def pods_on(plan: ScaleUpPlan) -> Counter[str]:
    """By key, pods on new nodes."""
    found: Counter[str] = Counter()
    for growth in plan.scale_ups:
        for pattern in growth.patterns:
            found.update({key: pods * pattern.nodes for key, pods in pattern.pods.items()})
    return found


# ---- forward


def test_the_intent_of_one_request_is_what_its_group_grows_by():
    one = asking("r", 8)
    snapshot, plan = planned(one, size=3)
    intent = build_attempts(plan, [one], snapshot.pending)["default/r"].intent
    assert intent == Intent(attempt=1, groups={"g": GroupStep(before=3, after=5)})


def test_intents_of_several_follow_each_other():
    first, second = asking("a", 6), asking("b", 6)
    snapshot, plan = planned(first, second)
    found = build_attempts(plan, [first, second], snapshot.pending)
    steps = [request.intent.groups["g"] for request in found.values() if request.intent is not None]
    assert steps == [GroupStep(before=0, after=2), GroupStep(before=2, after=3)]


def test_growth_that_was_begun_keeps_the_size_it_began_with():
    one = asking("r", 8, intent=Intent(attempt=4, groups={"g": GroupStep(before=1, after=2)}))
    snapshot, plan = planned(one, size=2)
    intent = build_attempts(plan, [one], snapshot.pending)["default/r"].intent
    assert intent == Intent(attempt=4, groups={"g": GroupStep(before=1, after=4)})


def test_what_was_added_is_reported_by_the_size_of_the_group():
    one = asking("r", 8, intent=Intent(attempt=1, groups={"g": GroupStep(before=1, after=4)}))
    assert count_added_before(one, {"g": 3}) == {"g": 2}
    assert count_added_before(one, {"g": 9}) == {"g": 3}
    assert count_added_before(one, {"g": 1}) == count_added_before(one, {}) == {}


# ---- without some


@given(pods=st.lists(st.integers(1, 9), min_size=1, max_size=5), gone=st.sets(st.integers(0, 4)), web=st.integers(0, 5))
@settings(deadline=None, max_examples=40)
def test_a_plan_without_some_is_what_the_others_need_of_it(pods: Sequence[int], gone: set[int], web: int):
    line = [asking(f"r{number}", count) for number, count in enumerate(pods)]
    snapshot, plan = planned(*line, ordinary=web)
    names = {request.name for number, request in enumerate(line) if number in gone}
    left = remove_requests(plan, names, pending=snapshot.pending, why=WHY)
    keys = {pending.key for pending in snapshot.pending if pending.bundle in names}
    fillings = [pattern for growth in plan.scale_ups for pattern in growth.patterns]
    assert nodes_of(left) == sum(pattern.nodes for pattern in fillings if pattern.pods.keys() - keys)
    assert left.scheduled == plan.scheduled - sum(request.total for request in line if request.name in names)
    assert not {key for growth in left.scale_ups for pattern in growth.patterns for key in pattern.pods} & keys
    assert left.cost_per_hour <= plan.cost_per_hour
    served = build_attempts(left, line, snapshot.pending)
    assert served.keys() == {request.name for request in line} - names


# ---- back


@given(
    pods=st.lists(st.integers(1, 9), min_size=1, max_size=5),
    failed=st.sets(st.integers(0, 4), min_size=1),
    web=st.integers(0, 5),
)
@settings(deadline=None, max_examples=40)
def test_all_that_the_others_do_not_need_goes_back_and_nothing_else(pods: Sequence[int], failed: set[int], web: int):
    line = [asking(f"r{number}", count) for number, count in enumerate(pods)]
    snapshot, plan = planned(*line, size=2, ordinary=web)
    names = {request.name for number, request in enumerate(line) if number in failed}
    left = remove_requests(plan, names, pending=snapshot.pending, why=WHY)
    kept = repack(left, snapshot, policy(expander="cost"), left={"g"}, grown={"g"})
    assert nodes_of(kept) == math.ceil((sum(request.total for request in line if request.name not in names) + web) / 4)
    assert pods_on(kept) == pods_on(left)
    parts = find_surplus(
        plan, kept, [attempt for name, attempt in build_attempts(plan, line, snapshot.pending).items() if name in names]
    )
    grown = 2 + nodes_of(plan)
    returns = [RollbackPlan(view=request, nodes=parts[request.name]) for request in line if request.name in names]
    ways = build_rollback_intents(returns, {"g": grown})
    size = grown
    for rollback in reversed(returns):
        size = min([size, *(step.back for step in ways[rollback.view.name].groups.values() if step.back is not None)])
    assert size == (2 + nodes_of(kept) if names else grown)


def test_a_return_goes_on_from_where_one_that_was_begun_before_ends():
    before = Intent(attempt=1, groups={"g": GroupStep(before=2, after=5, back=3)})
    one = asking("r", 4, intent=Intent(attempt=1, groups={"g": GroupStep(before=5, after=6)}))
    ways = build_rollback_intents([RollbackPlan(view=one, nodes={"g": 1})], {"g": 6}, begun=[before])
    assert ways["default/r"].groups["g"] == GroupStep(before=5, after=6, back=2)
