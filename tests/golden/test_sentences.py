"""The wording of Plimsoll's own sentences, in one golden file.

Other tests assert reason codes and facts, and pass sentences to the fixture `reviewed`. Here the sentences of a fixed
set of results are compared with `sentences.json`: log lines, Events, reasons in the journal, and messages of
ProvisioningRequests. Numbers are replaced by `#`. After a deliberate rewording run the test with
`PLIMSOLL_UPDATE_GOLDEN=1` and review the difference.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from plimsoll.core.plans import Reason
from plimsoll.nodes.autoscaler import Autoscaler
from plimsoll.nodes.config.policy import Policy
from plimsoll.nodes.loop_result import LoopResult, ScaleDownPart
from plimsoll.nodes.model.results import DeletedGroup, RemovalResult, ScaleUpPart
from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
from plimsoll.nodes.planning.requests.cost_shares import CostShare
from plimsoll.nodes.reporting.events.emitter import build_events
from plimsoll.nodes.reporting.journal.group_notes import GroupNotes
from plimsoll.nodes.reporting.journal.plan_entries import build_plan_and_outcomes
from plimsoll.nodes.reporting.log_line import build_log_line
from plimsoll.nodes.requests.booking.consumption import find_consumer_warnings
from plimsoll.nodes.requests.intents import Attempt
from plimsoll.nodes.requests.lifecycle import find_time_update
from plimsoll.nodes.requests.model import ClassKind, ObservedRequests, Phase, RequestsPart, StatusUpdate
from plimsoll.nodes.requests.status import ConditionReason, Intent
from plimsoll.nodes.requests.status_updates import StatusUpdates
from plimsoll.simulation.files.scenario_reader import read_scenario
from plimsoll.simulation.runner import run_scenario
from tests.architecture.source_tree import REPOSITORY
from tests.golden.reviewed_sentences import BY_TEST, SUBSYSTEMS, check_subsystem, read_golden
from tests.nodes.planning.builders import NOON
from tests.nodes.reporting.loop_results import (
    STOCKOUT,
    ended,
    loop_result,
    option,
    planned,
    removal,
    scale_down,
    scale_up,
    scale_up_result,
    scaled_up_loop,
    unneeded,
    unschedulable_loop,
    waiting,
)
from tests.nodes.requests.request_views import consumer, pods_of, request_view

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.golden.reviewed_sentences import Sentence


SCENARIOS = REPOSITORY / "tests" / "scenarios"
STORIES = (
    "c01-stock-out.yaml",
    "c02-quota.yaml",
    "c04-boot-never-finishes.yaml",
    "c05-failing-calls.yaml",
    "f01-stock-out-of-the-cheapest.yaml",
    "f03-nodes-that-never-register.yaml",
    "f04-pod-that-cannot-be-evicted.yaml",
    "f05-failing-growth-is-backed-off.yaml",
    "f06-dry-run-and-pause.yaml",
    "f07-removals-per-hour.yaml",
    "f09-consolidation.yaml",
    "n06.yaml",
    "n07-batch.yaml",
    "n08.yaml",
    "n11a.yaml",
    "n15-capped.yaml",
    "n24a.yaml",
    "n30.yaml",
    "n36-priority.yaml",
    "n39.yaml",
    "n39-not-safe.yaml",
    "n41.yaml",
    "n42a.yaml",
    "n47.yaml",
)
ONE = pods_of(1)


@pytest.mark.slow
def test_sentences_are_as_reviewed(monkeypatch: pytest.MonkeyPatch) -> None:
    loops = [*_built_loops(), *_scenario_loops(monkeypatch)]
    check_subsystem("nodes", (sentence for loop in loops for sentence in _sentences_of(loop)))


def test_every_part_of_the_file_is_compared() -> None:
    assert set(read_golden()) == {BY_TEST, *SUBSYSTEMS}


def test_every_test_with_sentences_exists() -> None:
    gone = [test for test in read_golden()[BY_TEST] if not _find_test(test)]
    assert not gone, "remove from tests/golden/sentences.json"


def _find_test(test: str) -> bool:
    path, *names = test.split("[", maxsplit=1)[0].split("::")
    file = REPOSITORY / path
    return file.exists() and f"def {names[-1]}(" in file.read_text(encoding="utf-8")


def _sentences_of(loop: LoopResult) -> Iterator[Sentence]:
    yield "log line", "", build_log_line(loop)
    for event in build_events(loop):
        yield "events", event.reason, event.message
    plan, outcomes = build_plan_and_outcomes(loop)
    for action in plan.actions:
        yield from _reasons(action.reason)
    for outcome in outcomes:
        yield from _reasons(outcome.reason)
    for not_done in (*plan.not_done, *GroupNotes().build(loop)):
        yield "journal: not done", not_done.reason.code, not_done.what
        yield from _reasons(not_done.reason)
    for update in loop.requests.updates:
        yield "request status", f"{update.kind.value}/{update.reason.code}", update.reason.message


def _reasons(reason: Reason | None) -> Iterator[Sentence]:
    if reason is not None:
        yield "journal: reasons", reason.code, reason.message
        for cause in reason.because:
            yield from _reasons(cause)


def _scenario_loops(monkeypatch: pytest.MonkeyPatch) -> list[LoopResult]:
    loops: list[LoopResult] = []
    run_once = Autoscaler.run_once

    async def run_and_record(autoscaler: Autoscaler) -> LoopResult:
        loop = await run_once(autoscaler)
        loops.append(loop)
        return loop

    monkeypatch.setattr(Autoscaler, "run_once", run_and_record)
    for story in STORIES:
        run_scenario(read_scenario((SCENARIOS / story).read_bytes(), source=story))
    return loops


# ---- results built by hand, for what the scenarios do not reach


def _built_loops() -> list[LoopResult]:
    planned_scale_up = scale_up(option("g"))
    cooldown = Reason(code="ScaleDownInCooldown", message="in cooldown")
    limit = Reason(code="CpuResourceLimit", message="max cluster cpu limit reached")
    pause = Reason(code="Paused", message="paused")
    return [
        loop_result(),
        scaled_up_loop(scale_up(option("g", size=1), waiting("p"), nodes=2)),
        scaled_up_loop(scale_up(option("n", exists=False), waiting("p"))),
        loop_result(
            scale_up=ScaleUpPart(
                plan=planned(planned_scale_up), results=(scale_up_result(planned_scale_up, failure=STOCKOUT),)
            )
        ),
        loop_result(
            scale_up=ScaleUpPart(
                plan=planned(planned_scale_up), results=(scale_up_result(planned_scale_up, held_back=pause),)
            )
        ),
        unschedulable_loop(waiting("p"), reasons=(limit,)),
        loop_result(scale_down=scale_down(removal("n1"), removal("n2", "p"))),
        loop_result(scale_down=ScaleDownPart(unneeded=(unneeded("n1"),), skipped=cooldown)),
        loop_result(scale_down=scale_down(finished=(ended(removal("n1")), ended(removal("n2"), RemovalResult.FAILED)))),
        loop_result(deleted_groups=(DeletedGroup(group="nap-1"), DeletedGroup(group="nap-2", failure=STOCKOUT))),
        loop_result(ended_early=Reason(code="CannotSee", message="no answer")),
        *(loop_result(requests=RequestsPart(updates=(update,))) for update in _request_updates()),
        loop_result(requests=_consumer_warnings()),
    ]


def _request_updates() -> list[StatusUpdate]:
    updates = StatusUpdates(NOON, Policy())
    due = request_view("r", (ONE, 3), phase=Phase.DUE)
    held = request_view("r", (ONE, 3))
    blocking = {"0": ["no group has such nodes"]}
    attempt = Attempt(view=due, share=CostShare(nodes={"g": 2}), intent=Intent(attempt=1))
    timed = (
        find_time_update(request_view("r", (ONE, 3), phase=Phase.DUE), NOON + timedelta(days=30)),
        find_time_update(request_view("r", (ONE, 3), phase=Phase.OVER), NOON + timedelta(days=1)),
        find_time_update(request_view("r", (ONE, 3), phase=Phase.OVER, reserves=False), NOON + timedelta(days=1)),
    )
    return [
        updates.mark_failed(due, ConditionReason.NO_PODS, "it has no pod sets"),
        updates.record_attempt(attempt),
        updates.mark_found(due),
        updates.mark_requested(due, {"g": 2, "shared": 0, "nap": 1}, new_group_reasons={"nap": "no group fits"}),
        updates.mark_arrived(due),
        updates.mark_not_found(due, blocking),
        updates.mark_not_placed(due, ScaleUpPlan(result=planned().result)),
        updates.mark_check_failed(due, "the planner failed"),
        updates.mark_answered_by_class(due),
        updates.mark_rolling_back(due, Intent(attempt=1), blocking),
        updates.mark_rolled_back(due, {"g": 2}),
        updates.mark_rolled_back(due, {}),
        updates.mark_consumed(held),
        updates.mark_revoked(held, ConditionReason.NODES_LOST, "nodes are gone"),
        *(update for update in timed if isinstance(update, StatusUpdate)),
    ]


def _consumer_warnings() -> RequestsPart:
    over = request_view("over", (ONE, 2), phase=Phase.OVER)
    held = request_view("held", (ONE, 2), class_kind=ClassKind.ATOMIC)
    pods = [
        consumer("a", "missing", ONE),
        consumer("b", "over", ONE, stated_class=""),
        consumer("c", "held", pods_of(2), stated_class="other"),
    ]
    observed = ObservedRequests(held=(held,), others=(over,), known=frozenset({"default/over", "default/held"}))
    return RequestsPart(warnings=find_consumer_warnings(pods, observed, unbookable={"default/held": 1}))
