"""The status of a rebalance: its one state, and what an outcome changes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from plimsoll.core.plans import Reason
from plimsoll.kafka.model.rebalance_steps import RebalanceOutcome
from plimsoll.kafka.model.rebalances import RebalanceState
from plimsoll.kafka.wire.rebalance_status import MAX_RESULT_BYTES, build_status_patch, read_state
from plimsoll.objects.api.meta import Condition

State = RebalanceState
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LATER = datetime(2026, 1, 1, 13, tzinfo=UTC)
OUTCOME = RebalanceOutcome(row="r", state=State.PROPOSAL_READY, session_id="s1", body={"summary": {"dataToMoveMB": 8}})


def patch(before: dict[str, Any], outcome: RebalanceOutcome, now: datetime = NOW) -> dict[str, Any]:
    return build_status_patch(before, outcome, name="r", generation=2, now=now)


@pytest.mark.parametrize("state", State, ids=str)
def test_the_state_is_the_type_of_one_condition(state: State):
    conditions = (
        Condition(type="Warning", status="True", reason="w"),
        Condition(type=state.value, status="True", reason="x", message="y"),
        Condition(type="Other", status="True"),
    )
    reading = read_state(conditions)
    assert (reading.state, reading.condition.reason, reading.problem) == (state, "x", None)


def test_without_a_state_it_is_new():
    assert read_state(()).state is State.NEW
    assert read_state((Condition(type="Warning"), Condition(type="rebalancing"))).state is State.NEW


@pytest.mark.parametrize("types", [("Ready", "Rebalancing"), ("Ready", "Ready"), ("New",) * 50])
def test_two_states_are_an_error(types: tuple[str, ...]):
    reading = read_state(tuple(Condition(type=of_type, status="True") for of_type in types))
    assert reading.problem is not None
    assert reading.problem.facts["field"] == "status.conditions"


def test_a_first_status_is_written_whole():
    assert patch({}, OUTCOME) == {
        "conditions": [{"type": "ProposalReady", "status": "True", "lastTransitionTime": "2026-01-01T12:00:00Z"}],
        "observedGeneration": 2,
        "sessionId": "s1",
        "optimizationResult": {"dataToMoveMB": 8, "afterBeforeLoadConfigMap": "r"},
        "progress": {"rebalanceProgressConfigMap": "r"},
    }


def test_the_same_outcome_writes_nothing():
    assert patch(patch({}, OUTCOME), OUTCOME, LATER) == {}
    assert patch(patch({}, OUTCOME), replace(OUTCOME, body=None), LATER) == {}


def test_a_time_changes_only_with_its_state():
    warned = replace(OUTCOME, warnings=(Reason(code="InvalidAnnotation", message="m"),))
    first = patch({}, warned)
    (state, warning) = patch(first, replace(warned, message="x"), LATER)["conditions"]
    assert state["lastTransitionTime"] == warning["lastTransitionTime"] == "2026-01-01T12:00:00Z"
    (state, warning) = patch(first, replace(warned, state=State.REBALANCING), LATER)["conditions"]
    assert state["lastTransitionTime"] == "2026-01-01T13:00:00Z"
    assert warning["lastTransitionTime"] == "2026-01-01T12:00:00Z"


def test_there_is_one_state_and_foreign_conditions_stay():
    before = {
        "conditions": [
            {"type": "Ready", "status": "True"},
            {"type": "Rebalancing", "status": "True"},
            {"type": "Acme", "status": "True"},
            {"type": "Warning", "status": "True", "reason": "old"},
            "nonsense",
        ]
    }
    outcome = RebalanceOutcome(row="r", state=State.NOT_READY, reason="X", message="y" * 10_000)
    conditions = patch(before, outcome)["conditions"]
    assert [condition["type"] for condition in conditions] == ["NotReady", "Acme"]
    assert len(conditions[0]["message"]) < 5_000


def test_repeated_warnings_are_written_once():
    warnings = (Reason(code="A", message="a"), Reason(code="A", message="a"), Reason(code="A", message="b"))
    conditions = patch({}, replace(OUTCOME, warnings=warnings))["conditions"]
    assert [condition["message"] for condition in conditions[1:]] == ["a", "b"]


def test_sessions_and_results_go():
    before = patch({}, OUTCOME)
    pending = RebalanceOutcome(row="r", state=State.PENDING_PROPOSAL, clears_result=True)
    written = patch(before, pending)
    assert (written["sessionId"], written["optimizationResult"], written["progress"]) == (None, None, None)
    stopped = patch(before, RebalanceOutcome(row="r", state=State.STOPPED))
    assert stopped.keys() == {"conditions", "sessionId"}, "the result and the progress stay"


def test_a_spec_that_was_not_handled_stays_unobserved():
    assert "observedGeneration" not in patch({}, replace(OUTCOME, handles_spec=False))


def test_a_new_result_replaces_the_old_one():
    written = patch(patch({}, OUTCOME), replace(OUTCOME, body={"summary": {"other": 1}}))
    assert written["optimizationResult"] == {"dataToMoveMB": None, "other": 1, "afterBeforeLoadConfigMap": "r"}


def test_a_summary_beyond_all_limits_is_cut_to_its_numbers():
    summary = {"excludedTopics": ["t" * 100] * (MAX_RESULT_BYTES // 100), "dataToMoveMB": 8}
    written = patch({}, replace(OUTCOME, body={"summary": summary}))
    assert written["optimizationResult"] == {"dataToMoveMB": 8, "afterBeforeLoadConfigMap": "r"}
