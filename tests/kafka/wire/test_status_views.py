"""Both status views (docs/design/kafka.md 4.6, D2 to D5): consistent, and each enough to go on from."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.kafka.model.auto_rebalance import AutoRebalance, AutoRebalanceState, StrimziState
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.wire.status_views import build_status_views, read_status_views
from plimsoll.objects.api.kafka import KafkaStatus

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
EARLIER = datetime(2026, 1, 31, 11, tzinfo=UTC)


def apply_patch(patch: Any) -> Any:
    """A merge patch on an empty status: null removes."""
    if isinstance(patch, dict):
        return {key: apply_patch(value) for key, value in patch.items() if value is not None}
    return patch


def read_back(stored: AutoRebalance, *, without: str = "") -> AutoRebalance:
    status = apply_patch(build_status_views(stored))
    status.pop(without, None)
    return read_status_views(msgspec.convert(status, KafkaStatus))


RUNNING = AutoRebalance(
    state=AutoRebalanceState.REBALANCING,
    add_brokers=(7, 3),
    remove_brokers=(12, 12),
    leaving_brokers=(5,),
    running=Mode.REMOVE_BROKERS,
    rebalance_uid="u1",
    requested=(12,),
    is_stopping=True,
    has_moved=True,
    attempts=2,
    remaining_replicas=40,
    next_retry_time=NOW,
    state_since=NOW,
    last_transition_time=EARLIER,
)


def test_both_views_say_the_same():
    assert apply_patch(build_status_views(RUNNING)) == {
        "cruiseControl": {
            "autoRebalance": {
                "state": "Rebalancing",
                "add-brokers": [3, 7],
                "remove-brokers": [12],
                "leavingBrokers": [5],
                "running": "remove-brokers",
                "rebalanceUid": "u1",
                "requestedBrokers": [12],
                "stopping": True,
                "moved": True,
                "attempts": 2,
                "remainingReplicas": 40,
                "nextRetryTime": "2026-01-31T12:00:00Z",
                "lastTransitionTime": "2026-01-31T12:00:00Z",
            }
        },
        "autoRebalance": {
            "state": "RebalanceOnScaleDown",
            "lastTransitionTime": "2026-01-31T11:00:00Z",
            "modes": [{"mode": "remove-brokers", "brokers": [12]}, {"mode": "add-brokers", "brokers": [3, 7]}],
        },
    }


def test_never_used_neither_view_shows():
    assert build_status_views(AutoRebalance()) == {"cruiseControl": None, "autoRebalance": None}
    assert read_status_views(KafkaStatus()) == AutoRebalance()


def test_after_an_operation_strimzi_shows_idle_and_the_design_ready():
    done = AutoRebalance(state=AutoRebalanceState.READY, state_since=NOW, last_transition_time=NOW)
    assert apply_patch(build_status_views(done)) == {
        "cruiseControl": {"autoRebalance": {"state": "Ready", "lastTransitionTime": "2026-01-31T12:00:00Z"}},
        "autoRebalance": {"state": "Idle", "lastTransitionTime": "2026-01-31T12:00:00Z"},
    }


def test_a_cancelled_operation_leaves_only_strimzis_idle():
    cancelled = AutoRebalance(last_transition_time=NOW)
    patch = build_status_views(cancelled)
    assert patch["cruiseControl"] is None
    assert patch["autoRebalance"]["state"] == "Idle"
    assert read_back(cancelled) == cancelled


def test_waiting_for_pods_is_idle_with_a_queued_mode_in_strimzis_view():
    waiting = AutoRebalance(
        state=AutoRebalanceState.SCALING_UP, add_brokers=(3,), state_since=NOW, last_transition_time=NOW
    )
    view = build_status_views(waiting)["autoRebalance"]
    assert (view["state"], view["modes"]) == ("Idle", [{"mode": "add-brokers", "brokers": [3]}])
    assert read_back(waiting) == waiting


@pytest.mark.parametrize(
    ("running", "state"),
    [
        (Mode.ADD_BROKERS, AutoRebalanceState.PENDING_PROPOSAL),
        (Mode.REMOVE_BROKERS, AutoRebalanceState.PENDING_PROPOSAL),
        (None, AutoRebalanceState.SCALING_UP),
    ],
)
def test_from_strimzis_view_alone_an_operation_goes_on(running: Mode | None, state: AutoRebalanceState):
    stored = msgspec.structs.replace(RUNNING, running=running, add_brokers=(3, 7), remove_brokers=(12,))
    recovered = read_back(stored, without="cruiseControl")
    assert recovered == AutoRebalance(
        state=state, add_brokers=(3, 7), remove_brokers=(12,), running=running, last_transition_time=EARLIER
    )


def test_from_the_designs_view_alone_everything_is_there():
    recovered = read_back(RUNNING, without="autoRebalance")
    assert recovered == msgspec.structs.replace(
        RUNNING, add_brokers=(3, 7), remove_brokers=(12,), last_transition_time=NOW
    )


def test_a_missing_hint_is_taken_from_strimzis_view():
    status = {
        "cruiseControl": {"autoRebalance": {"state": "Rebalancing", "add-brokers": [3]}},
        "autoRebalance": {"state": "RebalanceOnScaleUp", "modes": [{"mode": "add-brokers", "brokers": [3]}]},
    }
    assert read_status_views(msgspec.convert(status, KafkaStatus)).running is Mode.ADD_BROKERS


def test_lies_in_the_status_are_bounded():
    status = {
        "cruiseControl": {
            "autoRebalance": {
                "state": "ScalingUp",
                "add-brokers": [5, -1, 2**40, 5, *range(10, 30_000)],
                "attempts": 10**15,
                "remainingReplicas": -4,
                "running": "full",
            }
        },
        "autoRebalance": {"state": "Sleeping", "modes": [{"mode": "x", "brokers": [1]}]},
    }
    read = read_status_views(msgspec.convert(status, KafkaStatus))
    assert read.add_brokers[:3] == (5, 10, 11)
    assert len(read.add_brokers) == 10_000
    assert (read.attempts, read.remaining_replicas, read.running) == (1_000_000, 0, None)


def test_an_unknown_state_is_read_from_strimzis_view():
    status = {
        "cruiseControl": {"autoRebalance": {"state": "Dancing", "add-brokers": [9]}},
        "autoRebalance": {"state": "RebalanceOnScaleUp", "modes": [{"mode": "add-brokers", "brokers": [3]}]},
    }
    read = read_status_views(msgspec.convert(status, KafkaStatus))
    assert (read.state, read.add_brokers) == (AutoRebalanceState.PENDING_PROPOSAL, (3,))


TIMES = st.sampled_from([NOW, EARLIER])
STORED = st.builds(
    AutoRebalance,
    state=st.sampled_from([state for state in AutoRebalanceState if state is not AutoRebalanceState.NONE]),
    add_brokers=st.frozensets(st.integers(0, 20)).map(lambda ids: tuple(sorted(ids))),
    remove_brokers=st.frozensets(st.integers(0, 20)).map(lambda ids: tuple(sorted(ids))),
    leaving_brokers=st.just((3,)) | st.just(()),
    running=st.sampled_from([None, Mode.ADD_BROKERS, Mode.REMOVE_BROKERS]),
    rebalance_uid=st.sampled_from(["", "u1"]),
    requested=st.just((3,)) | st.just(()),
    is_stopping=st.booleans(),
    has_moved=st.booleans(),
    attempts=st.integers(0, 9),
    remaining_replicas=st.none() | st.integers(0, 9),
    next_retry_time=st.none() | TIMES,
    state_since=TIMES,
    last_transition_time=TIMES,
)


@given(STORED)
def test_what_is_stored_is_read_back(stored: AutoRebalance):
    assert read_back(stored) == stored
    strimzi = build_status_views(stored)["autoRebalance"]
    assert strimzi["state"] in set(StrimziState)
    listed = {mode["mode"]: tuple(mode["brokers"]) for mode in strimzi["modes"] or []}
    assert listed.get("add-brokers", ()) == stored.add_brokers
    assert listed.get("remove-brokers", ()) == stored.remove_brokers
