"""Every recorded request that concerns the API server, replayed: our answer is the recorded one."""

from __future__ import annotations

import pytest

from tests.conformance.known_differences import KNOWN_DIFFERENCES
from tests.conformance.recordings import API_SERVER_GROUPS, FIXTURES, LOCAL_CLUSTER_GROUPS, golden
from tests.conformance.replay import replay, shown

_IDS = [recorded.id for group in API_SERVER_GROUPS for recorded in golden(group)]
_LEAST_SHARE_EQUAL = 0.95


@pytest.mark.parametrize("recorded_id", _IDS)
def test_the_answer_is_the_recorded_one(recorded_id: str):
    outcome = replay(recorded_id.rsplit("-", 1)[0])[recorded_id]
    if recorded_id in KNOWN_DIFFERENCES:
        assert outcome.differences, f"{recorded_id} is listed as a difference and is none any more"
        return
    assert not outcome.differences, shown(outcome)


def test_nineteen_of_twenty_answers_are_equal():
    outcomes = [outcome for group in API_SERVER_GROUPS for outcome in replay(group).values()]
    equal = sum(not outcome.differences for outcome in outcomes)
    assert equal >= _LEAST_SHARE_EQUAL * len(outcomes), f"{equal} of {len(outcomes)}"


def test_every_known_difference_is_a_recorded_answer():
    assert KNOWN_DIFFERENCES.keys() <= set(_IDS)


def test_every_recorded_file_is_replayed_here_or_with_the_local_cluster():
    files = {path.stem for path in (FIXTURES / "golden").glob("*.jsonl")}
    assert files == {*API_SERVER_GROUPS, *LOCAL_CLUSTER_GROUPS}
