"""The page of costs: samples over time, and what removals saved. Answers are shared by readers."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from starlette.requests import Request

from plimsoll.console.costs.history import MOST_SAMPLES, CostSample
from plimsoll.console.shared_answers import KEEP_S, SharedAnswer
from plimsoll.console.views.costs import OTHERS, build_group_columns, choose_points
from plimsoll.core.plans import Action, Outcome, Plan, Reason, Ref, Result
from plimsoll.web.responses import build_json_response
from tests.console.console_world import ConsoleWorld

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.responses import Response

REQUEST = Request({"type": "http", "method": "GET", "path": "/", "query_string": b"", "headers": []})
NOW = datetime(2025, 1, 1, tzinfo=UTC)


def build_sample(number: int, **groups: float) -> CostSample:
    return CostSample(at=NOW + timedelta(minutes=number), cost=sum(groups.values()), bound=0.0, groups=groups)


def test_cost_and_bound_over_time_and_what_a_removal_saved():
    with ConsoleWorld() as world:
        world.add_node("n1", **{"cloud.plimsoll.io/node-group": "workers"})
        world.add_node("n2")
        world.namespace("here")
        world.add_pod("web", node="n1")
        world.run.advance_by(61)
        action = Action(verb="remove", target=Ref(kind="node", name="n2"), reason=Reason(code="Empty", message="empty"))
        plan = Plan(subsystem="nodes", snapshot=1, at=world.run.clock.now(), actions=(action,))
        world.run.run_until(world.journal.append(plan, (Outcome(action=action, result=Result.DONE),)))
        world.run.advance_by(KEEP_S)
        page = world.get("/api/costs")
        assert len(page["at"]) == len(page["cost"]) == len(page["bound"]) >= 2
        assert page["cost"][-1] > page["bound"][-1] > 0
        assert set(page["groups"]) == {"workers", "without a group"}
        assert page["estimatedNodes"] == 2
        (removal,) = page["removals"]
        assert removal["ref"] == "node/n2"
        assert removal["saved"] == page["savedPerHour"] > 0
        overview = world.get("/api/overview")["cost"]
        assert overview["perHour"] == page["cost"][-1]
        assert overview["ratio"] == round(overview["perHour"] / overview["boundPerHour"], 4)


def test_a_long_history_is_thinned_with_its_first_and_last_sample():
    samples = [build_sample(number, a=1.0) for number in range(MOST_SAMPLES)]
    points = choose_points(samples, 300)
    assert len(points) == 300
    assert (points[0], points[-1]) == (samples[0], samples[-1])
    assert choose_points(samples[:7], 300) == samples[:7]


def test_many_groups_are_shown_as_the_most_expensive_and_the_others():
    groups = {f"g{number:02}": float(number) for number in range(1, 20)}
    columns = build_group_columns([build_sample(0, **groups), build_sample(1)])
    assert len(columns) == 13
    assert columns["g19"] == [19.0, 0.0]
    assert columns[OTHERS] == [sum(range(1, 8)), 0.0]


def test_twenty_readers_share_one_answer():
    with ConsoleWorld() as world:
        calls = []

        async def show(_request: Request) -> Response:
            calls.append(world.run.clock.now())
            await world.run.clock.sleep(1)
            return build_json_response({"number": len(calls)})

        shared = SharedAnswer(show, clock=world.run.clock)
        tasks = [world.run.spawn(shared.show(REQUEST)) for _ in range(20)]
        world.run.advance_by(2)
        assert {task.result().body for task in tasks} == {b'{"number":1}'}
        world.run.advance_by(KEEP_S)
        assert world.run.run_until(shared.show(REQUEST)).body == b'{"number":2}'


def test_an_answer_that_failed_is_not_kept():
    with ConsoleWorld() as world:
        answers: Iterator[RuntimeError | Response] = iter([RuntimeError("gone"), build_json_response({})])

        async def show(_request: Request) -> Response:
            answer = next(answers)
            if isinstance(answer, Exception):
                raise answer
            return answer

        shared = SharedAnswer(show, clock=world.run.clock)
        task = world.run.loop.create_task(shared.show(REQUEST))
        world.run.settle()
        assert isinstance(task.exception(), RuntimeError)
        assert world.run.run_until(shared.show(REQUEST)).status_code == 200
