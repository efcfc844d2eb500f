"""One test per row of docs/design/kafka.md section 4.4, named after the row."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from plimsoll.core.plans import Reason
from plimsoll.kafka.model.auto_rebalance import (
    AutoRebalanceState,
    ModeConfiguration,
    OnFailure,
    SettingsLookup,
    StrimziState,
)
from plimsoll.kafka.model.rebalances import RebalanceSpec, RebalanceState
from plimsoll.kafka.planning.scaling.auto_rebalance_step import decide_step
from tests.kafka.planning.scaling.observations import (
    ADD,
    NOW,
    REMOVE,
    observe,
    rebalance,
    running,
    see_down,
    see_up,
    stored,
)
from tests.kafka.planning.scaling.rows import Row, check_row

LIVE = (
    RebalanceState.NEW,
    RebalanceState.PENDING_PROPOSAL,
    RebalanceState.PROPOSAL_READY,
    RebalanceState.REBALANCING,
)
WITHOUT_OPERATION = (AutoRebalanceState.NONE, AutoRebalanceState.IDLE, AutoRebalanceState.READY)
RETRY = (ModeConfiguration(mode=ADD, on_failure=OnFailure.RETRY), ModeConfiguration(mode=REMOVE))
NOT_FOUND = SettingsLookup(problem=Reason(code="AutoRebalanceSettingsNotFound", message="no settings s"))
IDLE, ON_SCALE_UP, ON_SCALE_DOWN = StrimziState.IDLE, StrimziState.ON_SCALE_UP, StrimziState.ON_SCALE_DOWN


def rows_without_operation() -> list[Row]:
    """Missing, Idle and Ready."""
    rows: list[Row] = []
    for state in WITHOUT_OPERATION:
        before = stored(state)
        name = f"4.4-{state or 'none'}"
        rows += [
            Row(
                id=f"{name}-need-down",
                seen=observe(before, blocked=(12,), added=(3,), wanted=(3,)),
                does=("create remove-brokers 12",),
                state="PendingProposal",
                strimzi=ON_SCALE_DOWN,
                add=(3,),
                remove=(12,),
                says="AutoRebalanceQueued",
            ),
            Row(
                id=f"{name}-need-up-pods-not-ready",
                seen=observe(before, added=(3,), wanted=(3,)),
                state="ScalingUp",
                strimzi=IDLE,
                add=(3,),
                says="AutoRebalanceScalingUp",
            ),
            Row(
                id=f"{name}-need-up-pods-ready",
                seen=observe(before, added=(3,), wanted=(3,), ready=(3,)),
                does=("create add-brokers 3",),
                state="PendingProposal",
                strimzi=ON_SCALE_UP,
                add=(3,),
                says="AutoRebalanceStarted",
            ),
            Row(id=f"{name}-neither", seen=observe(before), state=state, strimzi=IDLE),
        ]
    return rows


def rows_scaling_up() -> list[Row]:
    before = stored("ScalingUp", add_brokers=(3,))
    long_before = stored("ScalingUp", add_brokers=(3,), state_since=NOW - timedelta(minutes=30))
    return [
        Row(
            id="4.4-ScalingUp-need-down",
            seen=observe(before, wanted=(3,), ready=(3,), blocked=(12,)),
            does=("create remove-brokers 12",),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            add=(3,),
            remove=(12,),
        ),
        Row(
            id="4.4-ScalingUp-pods-ready",
            seen=observe(before, wanted=(3,), ready=(3,)),
            does=("create add-brokers 3",),
            state="PendingProposal",
            strimzi=ON_SCALE_UP,
            add=(3,),
        ),
        Row(
            id="4.4-ScalingUp-not-ready",
            seen=observe(before, wanted=(3,)),
            state="ScalingUp",
            strimzi=IDLE,
            add=(3,),
            says="AutoRebalanceScalingUp",
        ),
        Row(
            id="4.4-ScalingUp-not-ready-for-30-minutes",
            seen=observe(long_before, wanted=(3,)),
            state="ScalingUp",
            strimzi=IDLE,
            add=(3,),
            warns=("AutoRebalancePodsNotReady",),
        ),
        Row(
            id="4.4-ScalingUp-one-of-two-ready",
            seen=observe(stored("ScalingUp", add_brokers=(3, 4)), wanted=(3, 4), ready=(3,)),
            state="ScalingUp",
            strimzi=IDLE,
            add=(3, 4),
        ),
        Row(
            id="4.4-ScalingUp-scaled-back",
            seen=observe(before),
            state="",
            strimzi=IDLE,
            says="AutoRebalanceScaledBack",
        ),
    ]


def rows_up_running() -> list[Row]:
    rows: list[Row] = []
    for state in LIVE:
        shown = "PendingProposal" if state is RebalanceState.NEW else state.value
        name = f"4.4-up-{state}"
        rows += [
            Row(
                id=f"{name}-need-down",
                seen=see_up(state, blocked=(12,)),
                does=("stop add-brokers",),
                state=shown,
                strimzi=ON_SCALE_UP,
                add=(3,),
                remove=(12,),
                says="AutoRebalancePreempted",
            ),
            Row(
                id=f"{name}-need-down-stop-is-annotated-once",
                seen=see_up(
                    state,
                    blocked=(12,),
                    before=running(ADD, state, (3,), is_stopping=True),
                    rebalance={"annotation": "stop"},
                ),
                state=shown,
                strimzi=ON_SCALE_UP,
                add=(3,),
                remove=(12,),
                says="AutoRebalanceStopping",
            ),
            Row(
                id=f"{name}-brokers-changed-pods-ready",
                seen=see_up(state, wanted=(3, 4), added=(4,)),
                does=("refresh add-brokers 3,4",),
                state="PendingProposal",
                strimzi=ON_SCALE_UP,
                add=(3, 4),
                says="AutoRebalanceChanged",
            ),
            Row(
                id=f"{name}-brokers-changed-pods-not-ready",
                seen=see_up(state, wanted=(3, 4), ready=(3,), added=(4,)),
                state=shown,
                strimzi=ON_SCALE_UP,
                add=(3, 4),
                says="AutoRebalanceScalingUp",
            ),
            Row(
                id=f"{name}-scaled-back",
                seen=see_up(state, wanted=()),
                does=("stop add-brokers",),
                state=shown,
                strimzi=ON_SCALE_UP,
                says="AutoRebalanceScaledBack",
            ),
            Row(
                id=f"{name}-same-set",
                seen=see_up(state),
                state=shown,
                strimzi=ON_SCALE_UP,
                add=(3,),
                says="AutoRebalanceRunning",
            ),
        ]
    stopping = running(ADD, RebalanceState.REBALANCING, (3,), is_stopping=True)
    return [
        *rows,
        Row(
            id="4.4-up-stopped-by-us-need-down",
            seen=see_up(RebalanceState.STOPPED, blocked=(12,), before=stopping),
            does=("delete add-brokers", "create remove-brokers 12"),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            add=(3,),
            remove=(12,),
        ),
        Row(
            id="4.4-up-stopped-by-us-scaled-back",
            seen=see_up(RebalanceState.STOPPED, wanted=(), before=stopping),
            does=("delete add-brokers",),
            state="",
            strimzi=IDLE,
        ),
        Row(
            id="4.4-up-stopped-by-us-removal-withdrawn",
            seen=see_up(RebalanceState.STOPPED, before=stopping),
            does=("refresh add-brokers 3",),
            state="PendingProposal",
            strimzi=ON_SCALE_UP,
            add=(3,),
            says="AutoRebalanceResumed",
        ),
    ]


def rows_up_ended() -> list[Row]:
    ready, failed, stopped = RebalanceState.READY, RebalanceState.NOT_READY, RebalanceState.STOPPED
    before = running(ADD, RebalanceState.REBALANCING, (3,))
    due = running(ADD, failed, (3,), attempts=1, next_retry_time=NOW)
    return [
        Row(
            id="4.4-up-Ready-need-down",
            seen=see_up(ready, before=before, blocked=(12,)),
            does=("delete add-brokers", "create remove-brokers 12"),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
        ),
        Row(
            id="4.4-up-Ready-brokers-changed",
            seen=see_up(ready, before=before, wanted=(3, 4), added=(4,)),
            does=("refresh add-brokers 3,4",),
            state="PendingProposal",
            strimzi=ON_SCALE_UP,
            add=(3, 4),
        ),
        Row(
            id="4.4-up-Ready-brokers-changed-pods-not-ready",
            seen=see_up(ready, before=before, wanted=(3, 4), ready=(3,), added=(4,)),
            does=("delete add-brokers",),
            state="ScalingUp",
            strimzi=IDLE,
            add=(4,),
        ),
        Row(
            id="4.4-up-Ready",
            seen=see_up(ready, before=before),
            does=("delete add-brokers",),
            state="Ready",
            strimzi=IDLE,
            says="AutoRebalanceFinished",
        ),
        Row(
            id="4.4-up-NotReady-need-down",
            seen=see_up(failed, blocked=(12,)),
            does=("delete add-brokers", "create remove-brokers 12"),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            add=(3,),
            remove=(12,),
        ),
        Row(
            id="4.4-up-NotReady-need-down-still-executing",
            seen=see_up(failed, blocked=(12,), rebalance={"has_session": True}, is_executing=True),
            does=("stop-execution add-brokers",),
            state="NotReady",
            strimzi=ON_SCALE_UP,
            add=(3,),
            remove=(12,),
        ),
        Row(
            id="4.4-up-NotReady-brokers-changed",
            seen=see_up(failed, wanted=(3, 4), added=(4,)),
            does=("refresh add-brokers 3,4",),
            state="PendingProposal",
            strimzi=ON_SCALE_UP,
            add=(3, 4),
        ),
        Row(
            id="4.4-up-NotReady-hold",
            seen=see_up(failed, rebalance={"message": "OptimizationFailureException"}),
            state="NotReady",
            strimzi=ON_SCALE_UP,
            add=(3,),
            warns=("AutoRebalanceFailed",),
        ),
        Row(
            id="4.4-up-NotReady-transient",
            seen=see_up(failed, rebalance={"is_transient": True}),
            state="NotReady",
            strimzi=ON_SCALE_UP,
            add=(3,),
            says="AutoRebalanceRenewing",
        ),
        Row(
            id="4.4-up-NotReady-retry-is-scheduled",
            seen=see_up(failed, configuration=RETRY),
            state="NotReady",
            strimzi=ON_SCALE_UP,
            add=(3,),
            warns=("AutoRebalanceRetryScheduled",),
        ),
        Row(
            id="4.4-up-NotReady-retry-is-due",
            seen=see_up(failed, configuration=RETRY, before=due),
            does=("refresh add-brokers 3",),
            state="PendingProposal",
            strimzi=ON_SCALE_UP,
            add=(3,),
            says="AutoRebalanceRetried",
        ),
        Row(
            id="4.4-up-Stopped-need-down",
            seen=see_up(stopped, blocked=(12,)),
            does=("delete add-brokers", "create remove-brokers 12"),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            add=(3,),
            remove=(12,),
        ),
        Row(
            id="4.4-up-Stopped-brokers-changed",
            seen=see_up(stopped, wanted=(3, 4), added=(4,)),
            does=("refresh add-brokers 3,4",),
            state="PendingProposal",
            strimzi=ON_SCALE_UP,
            add=(3, 4),
        ),
        Row(
            id="4.4-up-Stopped-hold",
            seen=see_up(stopped),
            state="Stopped",
            strimzi=ON_SCALE_UP,
            add=(3,),
            warns=("AutoRebalanceStopped",),
        ),
    ]


def rows_down_running() -> list[Row]:
    rows: list[Row] = []
    for state in LIVE:
        shown = "PendingProposal" if state is RebalanceState.NEW else state.value
        name = f"4.4-down-{state}"
        has_moved = state in {RebalanceState.PROPOSAL_READY, RebalanceState.REBALANCING}
        rows += [
            Row(
                id=f"{name}-withdrawn",
                seen=see_down(state, blocked=(), wanted=(12,)),
                does=("stop remove-brokers",),
                state=shown,
                strimzi=ON_SCALE_DOWN,
                add=(12,) if has_moved else (),
                says="AutoRebalanceWithdrawn",
            ),
            Row(
                id=f"{name}-emptied",
                seen=see_down(state, blocked=()),
                state=shown,
                strimzi=ON_SCALE_DOWN,
                remove=(12,),
                says="AutoRebalanceRunning",
            ),
            Row(
                id=f"{name}-brokers-changed",
                seen=see_down(state, blocked=(12, 13)),
                does=("refresh remove-brokers 12,13",),
                state="PendingProposal",
                strimzi=ON_SCALE_DOWN,
                remove=(12, 13),
            ),
            Row(
                id=f"{name}-same-set",
                seen=see_down(state),
                state=shown,
                strimzi=ON_SCALE_DOWN,
                remove=(12,),
                says="AutoRebalanceRunning",
            ),
        ]
    stopping = running(REMOVE, RebalanceState.REBALANCING, (12,), is_stopping=True, has_moved=True, add_brokers=(12,))
    return [
        *rows,
        Row(
            id="4.4-down-stopped-by-us-withdrawn",
            seen=see_down(RebalanceState.STOPPED, before=stopping, blocked=(), wanted=(12,), ready=(12,)),
            does=("delete remove-brokers", "create add-brokers 12"),
            state="PendingProposal",
            strimzi=ON_SCALE_UP,
            add=(12,),
        ),
        Row(
            id="4.4-down-stopped-by-us-asked-again",
            seen=see_down(RebalanceState.STOPPED, before=stopping),
            does=("refresh remove-brokers 12",),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
            says="AutoRebalanceResumed",
        ),
        Row(
            id="4.4-down-partly-withdrawn",
            seen=see_down(RebalanceState.REBALANCING, brokers=(12, 13), blocked=(13,), wanted=(12,)),
            does=("refresh remove-brokers 13",),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            add=(12,),
            remove=(13,),
        ),
    ]


def rows_down_ended() -> list[Row]:
    ready, failed, stopped = RebalanceState.READY, RebalanceState.NOT_READY, RebalanceState.STOPPED
    before = running(REMOVE, RebalanceState.REBALANCING, (12,))
    queued = running(REMOVE, RebalanceState.REBALANCING, (12,), add_brokers=(3,))
    third = running(REMOVE, RebalanceState.REBALANCING, (12,), attempts=3, remaining_replicas=5)
    waiting = running(REMOVE, failed, (12,), attempts=4, remaining_replicas=5, next_retry_time=NOW)
    due = running(REMOVE, failed, (12,), attempts=1, next_retry_time=NOW)
    return [
        Row(
            id="4.4-down-Ready-emptied",
            seen=see_down(ready, before=before, blocked=()),
            does=("delete remove-brokers",),
            state="Ready",
            strimzi=IDLE,
            says="AutoRebalanceFinished",
        ),
        Row(
            id="4.4-down-Ready-emptied-need-up-pods-ready",
            seen=see_down(ready, before=queued, blocked=(), wanted=(3,), ready=(3,)),
            does=("delete remove-brokers", "create add-brokers 3"),
            state="PendingProposal",
            strimzi=ON_SCALE_UP,
            add=(3,),
        ),
        Row(
            id="4.4-down-Ready-emptied-need-up-pods-not-ready",
            seen=see_down(ready, before=queued, blocked=(), wanted=(3,)),
            does=("delete remove-brokers",),
            state="ScalingUp",
            strimzi=IDLE,
            add=(3,),
        ),
        Row(
            id="4.4-down-Ready-still-hosting",
            seen=see_down(ready, before=before, blocked_replicas=5),
            does=("refresh remove-brokers 12",),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
            says="AutoRebalanceNextRound",
        ),
        Row(
            id="4.4-down-Ready-no-progress",
            seen=see_down(ready, before=third, blocked_replicas=5),
            state="NotReady",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
            warns=("AutoRebalanceNoProgress",),
        ),
        Row(
            id="4.4-down-Ready-no-progress-next-attempt",
            seen=see_down(ready, before=waiting, blocked_replicas=5),
            does=("refresh remove-brokers 12",),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
            warns=("AutoRebalanceNoProgress",),
        ),
        Row(
            id="4.4-down-NotReady-retry-is-scheduled",
            seen=see_down(failed),
            state="NotReady",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
            warns=("AutoRebalanceRetryScheduled",),
        ),
        Row(
            id="4.4-down-NotReady-retry-is-due",
            seen=see_down(failed, before=due),
            does=("refresh remove-brokers 12",),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
            says="AutoRebalanceRetried",
        ),
        Row(
            id="4.4-down-NotReady-transient",
            seen=see_down(failed, rebalance={"is_transient": True}),
            state="NotReady",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
            says="AutoRebalanceRenewing",
        ),
        Row(
            id="4.4-down-NotReady-withdrawn",
            seen=see_down(failed, before=running(REMOVE, failed, (12,)), blocked=(), wanted=(12,)),
            does=("delete remove-brokers",),
            state="Ready",
            strimzi=IDLE,
        ),
        Row(
            id="4.4-down-Stopped-hold",
            seen=see_down(stopped),
            state="Stopped",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
            warns=("AutoRebalanceStopped",),
        ),
        Row(
            id="4.4-down-Stopped-emptied",
            seen=see_down(stopped, blocked=()),
            does=("delete remove-brokers",),
            state="Ready",
            strimzi=IDLE,
        ),
    ]


def rows_without_rebalance() -> list[Row]:
    """NotReady, and no rebalance was ever created; paused rebalances."""
    waiting = stored("NotReady", add_brokers=(3,))
    blocked = stored("NotReady", remove_brokers=(12,))
    others = rebalance(ADD, RebalanceState.REBALANCING, (9,), is_ours=False, uid="of a user")
    return [
        Row(
            id="4.4-NotReady-without-rebalance-settings-still-missing",
            seen=observe(waiting, wanted=(3,), ready=(3,), add_settings=NOT_FOUND),
            state="NotReady",
            strimzi=IDLE,
            add=(3,),
            warns=("AutoRebalanceSettingsNotFound",),
        ),
        Row(
            id="4.4-NotReady-without-rebalance-settings-exist-now",
            seen=observe(waiting, wanted=(3,), ready=(3,), add_settings=SettingsLookup(spec=RebalanceSpec())),
            does=("create add-brokers 3",),
            state="PendingProposal",
            strimzi=ON_SCALE_UP,
            add=(3,),
        ),
        Row(
            id="4.4-NotReady-without-rebalance-name-conflict",
            seen=observe(waiting, wanted=(3,), ready=(3,), add_rebalance=others),
            state="NotReady",
            strimzi=IDLE,
            add=(3,),
            warns=("AutoRebalanceNameConflict",),
        ),
        Row(
            id="4.4-NotReady-without-rebalance-removal-settings-missing",
            seen=observe(blocked, blocked=(12,), remove_settings=NOT_FOUND),
            state="NotReady",
            strimzi=IDLE,
            remove=(12,),
            warns=("AutoRebalanceSettingsNotFound",),
        ),
        Row(
            id="4.4-NotReady-without-rebalance-withdrawn",
            seen=observe(blocked, wanted=(12,), remove_settings=NOT_FOUND),
            state="",
            strimzi=IDLE,
        ),
        Row(
            id="4.4-any-up-ReconciliationPaused",
            seen=see_up(RebalanceState.RECONCILIATION_PAUSED, blocked=(12,)),
            state="ReconciliationPaused",
            strimzi=ON_SCALE_UP,
            add=(3,),
            remove=(12,),
            says="AutoRebalancePaused",
        ),
        Row(
            id="4.4-any-down-ReconciliationPaused",
            seen=see_down(RebalanceState.RECONCILIATION_PAUSED, blocked=(12, 13)),
            state="ReconciliationPaused",
            strimzi=ON_SCALE_DOWN,
            remove=(12, 13),
            says="AutoRebalancePaused",
        ),
    ]


ROWS = [
    *rows_without_operation(),
    *rows_scaling_up(),
    *rows_up_running(),
    *rows_up_ended(),
    *rows_down_running(),
    *rows_down_ended(),
    *rows_without_rebalance(),
]


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in ROWS])
def test_row(row: Row):
    check_row(row)


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in ROWS if row.id.endswith("-neither")])
def test_a_cluster_that_does_not_scale_writes_no_status(row: Row):
    assert decide_step(row.seen).stored == row.seen.stored


def test_ids_of_rows_are_unique():
    assert len({row.id for row in ROWS}) == len(ROWS)


def test_created_and_refreshed_rebalances_have_the_settings_with_forced_mode_and_brokers():
    spec = RebalanceSpec(goals=("RackAwareGoal",), skip_hard_goal_check=True, replication_throttle=7, brokers=(99,))
    settings: dict[str, Any] = {"add_settings": SettingsLookup(spec=spec)}
    created = decide_step(observe(added=(3,), wanted=(3,), ready=(3,), **settings)).actions[0].spec
    refreshed = decide_step(see_up(RebalanceState.REBALANCING, wanted=(3, 4), added=(4,), **settings)).actions[0].spec
    assert created is not None
    assert refreshed is not None
    assert (created.mode, created.brokers, refreshed.brokers) == (ADD, (3,), (3, 4))
    assert created.goals == refreshed.goals == spec.goals
    assert created.replication_throttle == 7


def test_waits_between_attempts_grow_from_half_a_minute_to_a_quarter_of_an_hour():
    waits: list[float] = []
    before = running(REMOVE, RebalanceState.NOT_READY, (12,))
    for _ in range(8):
        step = decide_step(see_down(RebalanceState.NOT_READY, before=before))
        assert step.retry_after_s is not None
        waits.append(step.retry_after_s)
        before = running(REMOVE, RebalanceState.NOT_READY, (12,), attempts=step.stored.attempts)
    assert waits == [30, 60, 120, 240, 480, 900, 900, 900]


def test_waits_of_a_removal_begin_again_when_fewer_replicas_remain():
    waits: list[float] = []
    before = running(REMOVE, RebalanceState.NOT_READY, (12,))
    for remaining in (9, 9, 4, 4, 6, 5):
        step = decide_step(see_down(RebalanceState.NOT_READY, before=before, blocked_replicas=remaining))
        assert step.retry_after_s is not None
        waits.append(step.retry_after_s)
        stored = step.stored
        before = running(
            REMOVE,
            RebalanceState.NOT_READY,
            (12,),
            attempts=stored.attempts,
            remaining_replicas=stored.remaining_replicas,
        )
    assert waits == [30, 60, 30, 60, 120, 30]


def test_stops_and_deletions_are_stored_first():
    """A crash behind the action finds that it was the operator's."""
    stop = decide_step(see_up(RebalanceState.REBALANCING, blocked=(12,)))
    assert stop.write_ahead is not None
    assert stop.write_ahead.is_stopping
    preempt = decide_step(see_up(RebalanceState.STOPPED, blocked=(12,)))
    assert preempt.write_ahead is not None
    assert (preempt.write_ahead.running, preempt.write_ahead.add_brokers) == (None, (3,))
    finish = decide_step(see_up(RebalanceState.READY, before=running(ADD, RebalanceState.REBALANCING, (3,))))
    assert finish.write_ahead is not None
    assert (finish.write_ahead.state, finish.write_ahead.add_brokers) == ("Ready", ())
    assert decide_step(see_up(RebalanceState.REBALANCING)).write_ahead is None
