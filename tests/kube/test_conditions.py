"""A condition is written as the API has it, and keeps its time while it does not change."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from plimsoll.kube.conditions import find_unchanged, list_conditions, set_transition_time, to_json
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


def test_an_empty_reason_and_message_are_left_out_where_this_is_asked_for():
    condition = Condition(type="Ready", status="True", message="done")
    assert to_json(condition, omits_empty=True) == {"type": "Ready", "status": "True", "message": "done"}


@pytest.mark.parametrize(
    ("change", "since"),
    [
        ({}, "2024-01-01T00:00:00Z"),
        ({"status": "False"}, "2025-01-01T00:00:00Z"),
        ({"reason": "Other"}, "2025-01-01T00:00:00Z"),
        ({"message": "other"}, "2025-01-01T00:00:00Z"),
    ],
)
def test_an_unchanged_condition_keeps_its_time(change: dict[str, str], since: str):
    stored = {"type": "Warning", "status": "True", "reason": "Old", "message": "old"}
    known: list[dict[str, Any]] = [{"type": "Ready"}, {**stored, "lastTransitionTime": "2024-01-01T00:00:00Z"}]
    condition = {**stored, **change}
    written = set_transition_time(condition, find_unchanged(known, condition), datetime(2025, 1, 1, tzinfo=UTC))
    assert written == {**condition, "lastTransitionTime": since}


@pytest.mark.parametrize("time", [None, "", 7])
def test_a_stored_time_that_is_none_is_replaced(time: object):
    written = set_transition_time({"type": "A"}, {"lastTransitionTime": time}, datetime(2025, 1, 1, tzinfo=UTC))
    assert written == {"type": "A", "lastTransitionTime": "2025-01-01T00:00:00Z"}


def test_only_objects_count_as_stored_conditions():
    assert list_conditions([{"type": "A"}, "text", None]) == [{"type": "A"}]
    assert list_conditions(None) == list_conditions({"type": "A"}) == []
