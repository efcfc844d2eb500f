"""Deletions and evictions, replayed with controllers: garbage collection, budgets and namespaces end up as recorded."""

from __future__ import annotations

import pytest

from tests.conformance.controlled_replay import replay_with_controllers, with_controllers
from tests.conformance.known_differences import KNOWN_DIFFERENCES
from tests.conformance.replay import shown

# Recorded while the replica set controller had not yet reported how many pods it has, or made the one that was missing;
# ours is at rest before every request. The rest of the answer is the same.
_TAKEN_IN_BETWEEN = {"delete-040": "eplicas: ", "eviction-007": "status.expectedPods: recorded 2, ours 3"}

_IDS = [recorded.id for group in ("delete", "eviction") for recorded in with_controllers(group)]


@pytest.mark.parametrize("recorded_id", _IDS)
def test_with_controllers_the_answer_is_the_recorded_one(recorded_id: str):
    outcome = replay_with_controllers(recorded_id.rsplit("-", 1)[0])[recorded_id]
    if recorded_id in KNOWN_DIFFERENCES:
        assert outcome.differences, f"{recorded_id} is listed as a difference and is none any more"
        return
    in_between = _TAKEN_IN_BETWEEN.get(recorded_id)
    if in_between is not None:
        assert outcome.differences
        assert all(in_between in difference for difference in outcome.differences), shown(outcome)
        return
    assert not outcome.differences, shown(outcome)
