"""A condition is written as the API has it."""

from __future__ import annotations

from datetime import UTC, datetime

from plimsoll.kube.conditions import to_json
from plimsoll.objects.api.meta import Condition


def test_a_condition_is_written_with_its_time_and_generation():
    at = datetime(2025, 1, 1, tzinfo=UTC)
    condition = Condition(
        type="Ready",
        status="True",
        reason="Done",
        message="ready",
        last_transition_time=at,
        observed_generation=3,
    )
    assert to_json(condition) == {
        "type": "Ready",
        "status": "True",
        "reason": "Done",
        "message": "ready",
        "lastTransitionTime": "2025-01-01T00:00:00Z",
        "observedGeneration": 3,
    }


def test_what_is_not_set_is_left_out():
    written = to_json(Condition(type="Ready", status="False", reason="Waiting"))
    assert written == {"type": "Ready", "status": "False", "reason": "Waiting", "message": ""}
