"""One test per event of docs/design/kafka.md section 4.5, named after the event."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.plans import Reason
from plimsoll.kafka.model.auto_rebalance import (
    ActionKind,
    AutoRebalance,
    ModeConfiguration,
    SettingsKind,
    SettingsLookup,
    SettingsReference,
    StrimziState,
)
from plimsoll.kafka.model.rebalances import RebalanceSpec, RebalanceState
from plimsoll.kafka.planning.scaling.auto_rebalance_step import decide_step, needs_executor_state, plan_write_ahead
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
from tests.kafka.planning.scaling.rows import Row, check_row, list_actions

IDLE, ON_SCALE_UP, ON_SCALE_DOWN = StrimziState.IDLE, StrimziState.ON_SCALE_UP, StrimziState.ON_SCALE_DOWN
NEW, PENDING, PROPOSED = RebalanceState.NEW, RebalanceState.PENDING_PROPOSAL, RebalanceState.PROPOSAL_READY
REBALANCING, READY, FAILED = RebalanceState.REBALANCING, RebalanceState.READY, RebalanceState.NOT_READY
STOPPED, PAUSED = RebalanceState.STOPPED, RebalanceState.RECONCILIATION_PAUSED
INVALID = SettingsLookup(problem=Reason(code="AutoRebalanceSettingsInvalid", message="unknown goal X"))
ONLY_ADD = (ModeConfiguration(mode=ADD),)
ONLY_REMOVE = (ModeConfiguration(mode=REMOVE),)
DELETING: dict[str, Any] = {"is_deleting": True}


def events_of_scaling() -> list[Row]:
    return [
        Row(
            id="4.5-both-directions-removal-first",
            seen=observe(added=(3,), wanted=(3,), ready=(3,), blocked=(12,)),
            does=("create remove-brokers 12",),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            add=(3,),
            remove=(12,),
            says="AutoRebalanceQueued",
        ),
        Row(
            id="4.5-both-directions-then-add",
            seen=see_down(
                READY,
                before=running(REMOVE, REBALANCING, (12,), add_brokers=(3,)),
                blocked=(),
                wanted=(3,),
                ready=(3,),
            ),
            does=("delete remove-brokers", "create add-brokers 3"),
            state="PendingProposal",
            strimzi=ON_SCALE_UP,
            add=(3,),
        ),
        Row(
            id="4.5-second-scale-up",
            seen=see_up(REBALANCING, added=(4,), wanted=(3, 4)),
            does=("refresh add-brokers 3,4",),
            state="PendingProposal",
            strimzi=ON_SCALE_UP,
            add=(3, 4),
        ),
        Row(
            id="4.5-second-scale-down",
            seen=see_down(REBALANCING, blocked=(12, 13)),
            does=("refresh remove-brokers 12,13",),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            remove=(12, 13),
        ),
        Row(
            id="4.5-added-and-removed-again",
            seen=see_up(REBALANCING, wanted=(), blocked=(3,), before=running(ADD, REBALANCING, (3,))),
            does=("stop add-brokers",),
            state="Rebalancing",
            strimzi=ON_SCALE_UP,
            remove=(3,),
        ),
        Row(
            id="4.5-second-scale-up-while-a-stop-of-the-user-is-pending",
            seen=see_up(REBALANCING, added=(4,), wanted=(3, 4), rebalance={"annotation": "stop"}),
            state="Rebalancing",
            strimzi=ON_SCALE_UP,
            add=(3, 4),
        ),
    ]


def events_of_crashes() -> list[Row]:
    both: dict[str, Any] = {
        "add_rebalance": rebalance(ADD, REBALANCING, (3,)),
        "remove_rebalance": rebalance(REMOVE, PENDING, (12,)),
        "blocked": (12,),
        "wanted": (3,),
    }
    return [
        Row(
            id="4.5-crash-after-create-before-status-up",
            seen=see_up(PROPOSED, before=stored("ScalingUp", add_brokers=(3,))),
            state="ProposalReady",
            strimzi=ON_SCALE_UP,
            add=(3,),
        ),
        Row(
            id="4.5-crash-after-create-before-status-up-list-lost",
            seen=see_up(PROPOSED, before=AutoRebalance()),
            state="ProposalReady",
            strimzi=ON_SCALE_UP,
            add=(3,),
        ),
        Row(
            id="4.5-crash-after-create-before-status-down",
            seen=see_down(REBALANCING, before=AutoRebalance()),
            state="Rebalancing",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
        ),
        Row(
            id="4.5-crash-after-status-before-create-up",
            seen=observe(running(ADD, PENDING, (3,), rebalance_uid=""), wanted=(3,), ready=(3,)),
            does=("create add-brokers 3",),
            state="PendingProposal",
            strimzi=ON_SCALE_UP,
            add=(3,),
        ),
        Row(
            id="4.5-crash-after-status-before-create-down",
            seen=observe(running(REMOVE, PENDING, (12,), rebalance_uid=""), blocked=(12,)),
            does=("create remove-brokers 12",),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
        ),
        Row(
            id="4.5-crash-after-delete-before-status-up",
            seen=observe(running(ADD, READY, (3,), add_brokers=()), wanted=(3,), ready=(3,)),
            state="Ready",
            strimzi=IDLE,
        ),
        Row(
            id="4.5-crash-after-delete-before-status-down",
            seen=observe(running(REMOVE, READY, (12,), remove_brokers=())),
            state="Ready",
            strimzi=IDLE,
        ),
        Row(
            id="4.5-crash-within-deletion-after-success",
            seen=see_up(READY, before=running(ADD, READY, (3,), add_brokers=()), rebalance=DELETING),
            does=("delete add-brokers",),
            state="Ready",
            strimzi=IDLE,
        ),
        Row(
            id="4.5-crash-within-deletion-of-the-chain",
            seen=see_up(
                STOPPED,
                before=stored("ScalingUp", add_brokers=(3,), is_stopping=True),
                blocked=(12,),
                rebalance=DELETING,
            ),
            does=("delete add-brokers",),
            state="ScalingUp",
            strimzi=IDLE,
            add=(3,),
            remove=(12,),
        ),
        Row(
            id="4.5-crash-before-deletion-of-the-chain",
            seen=see_up(STOPPED, before=stored("ScalingUp", add_brokers=(3,), is_stopping=True), blocked=(12,)),
            does=("delete add-brokers", "create remove-brokers 12"),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            add=(3,),
            remove=(12,),
        ),
        Row(
            id="4.5-crash-between-delete-and-create-of-the-chain",
            seen=observe(stored("ScalingUp", add_brokers=(3,)), wanted=(3,), ready=(3,), blocked=(12,)),
            does=("create remove-brokers 12",),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            add=(3,),
            remove=(12,),
        ),
        Row(
            id="4.5-two-rebalances-the-addition-is-live",
            seen=observe(running(ADD, REBALANCING, (3,)), **both),
            does=("stop add-brokers",),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            add=(3,),
            remove=(12,),
        ),
        Row(
            id="4.5-two-rebalances-the-addition-has-ended",
            seen=observe(running(ADD, REBALANCING, (3,)), **{**both, "add_rebalance": rebalance(ADD, STOPPED, (3,))}),
            does=("delete add-brokers",),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            add=(3,),
            remove=(12,),
        ),
        Row(
            id="4.5-crash-after-refresh-before-status",
            seen=see_up(FAILED, brokers=(3, 4), before=running(ADD, FAILED, (3,)), rebalance={"annotation": "refresh"}),
            state="PendingProposal",
            strimzi=ON_SCALE_UP,
            add=(3,),
        ),
    ]


def events_of_users() -> list[Row]:
    stripped: dict[str, Any] = {"rebalance": {"is_ours": False}}
    return [
        Row(
            id="4.5-user-deletes-up-Rebalancing",
            seen=see_up(REBALANCING, rebalance=DELETING, is_executing=True),
            does=("stop-execution add-brokers",),
            state="Rebalancing",
            strimzi=ON_SCALE_UP,
            add=(3,),
        ),
        Row(
            id="4.5-user-deletes-up-Rebalancing-engine-silent",
            seen=see_up(REBALANCING, rebalance=DELETING),
            does=("stop-execution add-brokers",),
            state="Rebalancing",
            strimzi=ON_SCALE_UP,
            add=(3,),
        ),
        Row(
            id="4.5-user-deletes-up-executor-idle",
            seen=see_up(REBALANCING, rebalance=DELETING, is_executing=False),
            does=("delete add-brokers",),
            state="",
            strimzi=IDLE,
            says="AutoRebalanceCancelled",
        ),
        Row(
            id="4.5-user-deletes-up-NotReady",
            seen=see_up(FAILED, rebalance=DELETING),
            does=("delete add-brokers",),
            state="",
            strimzi=IDLE,
            says="AutoRebalanceCancelled",
        ),
        Row(
            id="4.5-user-deletes-up-while-another-broker-is-added",
            seen=see_up(FAILED, rebalance=DELETING, wanted=(3, 4), added=(4,)),
            does=("delete add-brokers",),
            state="ScalingUp",
            strimzi=IDLE,
            add=(4,),
        ),
        Row(
            id="4.5-user-deletes-down-Rebalancing",
            seen=see_down(REBALANCING, rebalance=DELETING, is_executing=True),
            does=("stop-execution remove-brokers",),
            state="Rebalancing",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
        ),
        Row(
            id="4.5-user-deletes-down-executor-idle",
            seen=see_down(REBALANCING, rebalance=DELETING, is_executing=False),
            does=("delete remove-brokers",),
            state="PendingProposal",
            strimzi=IDLE,
            remove=(12,),
            says="AutoRebalanceDeleted",
        ),
        Row(
            id="4.5-user-deletes-down-recreated",
            seen=observe(stored("PendingProposal", remove_brokers=(12,)), blocked=(12,)),
            does=("create remove-brokers 12",),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
        ),
        Row(
            id="4.5-user-strips-finalizer-and-deletes-up",
            seen=observe(running(ADD, PENDING, (3,)), wanted=(3,), ready=(3,)),
            state="",
            strimzi=IDLE,
            says="AutoRebalanceCancelled",
        ),
        Row(
            id="4.5-user-strips-finalizer-and-deletes-up-executing",
            seen=observe(running(ADD, REBALANCING, (3,)), wanted=(3,), ready=(3,), is_executing=True),
            does=("stop-execution add-brokers",),
            state="",
            strimzi=IDLE,
            says="AutoRebalanceCancelled",
        ),
        Row(
            id="4.5-user-strips-finalizer-and-deletes-down-executing",
            seen=observe(running(REMOVE, REBALANCING, (12,)), blocked=(12,), is_executing=True),
            does=("stop-execution remove-brokers",),
            state="Rebalancing",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
        ),
        Row(
            id="4.5-user-strips-finalizer-and-deletes-down",
            seen=observe(running(REMOVE, REBALANCING, (12,)), blocked=(12,), is_executing=False),
            does=("create remove-brokers 12",),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
        ),
        Row(
            id="4.5-user-strips-finalizer-up",
            seen=see_up(REBALANCING, **stripped),
            state="NotReady",
            strimzi=ON_SCALE_UP,
            add=(3,),
            warns=("AutoRebalanceNameConflict",),
        ),
        Row(
            id="4.5-user-strips-finalizer-down",
            seen=see_down(REBALANCING, **stripped),
            state="NotReady",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
            warns=("AutoRebalanceNameConflict",),
        ),
        Row(
            id="4.5-user-annotates-refresh-up",
            seen=see_up(FAILED, rebalance={"annotation": "refresh"}),
            state="PendingProposal",
            strimzi=ON_SCALE_UP,
            add=(3,),
        ),
        Row(
            id="4.5-user-annotates-refresh-down",
            seen=see_down(STOPPED, rebalance={"annotation": "refresh"}),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
        ),
        Row(
            id="4.5-user-edits-brokers-up",
            seen=see_up(REBALANCING, rebalance={"brokers": (0, 3)}),
            does=("restore add-brokers 3",),
            state="Rebalancing",
            strimzi=ON_SCALE_UP,
            add=(3,),
        ),
        Row(
            id="4.5-user-edits-brokers-up-and-it-is-Ready",
            seen=see_up(READY, before=running(ADD, REBALANCING, (3,)), rebalance={"brokers": (0,)}),
            does=("restore add-brokers 3",),
            state="PendingProposal",
            strimzi=ON_SCALE_UP,
            add=(3,),
        ),
        Row(
            id="4.5-user-edits-mode-up",
            seen=see_up(PENDING, rebalance={"mode": "full"}),
            does=("restore add-brokers 3",),
            state="PendingProposal",
            strimzi=ON_SCALE_UP,
            add=(3,),
        ),
        Row(
            id="4.5-user-edits-brokers-down",
            seen=see_down(REBALANCING, rebalance={"brokers": ()}),
            does=("restore remove-brokers 12",),
            state="Rebalancing",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
        ),
    ]


def events_of_cruise_control() -> list[Row]:
    return [
        Row(
            id="4.5-proposal-error-up",
            seen=see_up(FAILED, before=running(ADD, PENDING, (3,)), rebalance={"message": "[RackAwareGoal] no racks"}),
            state="NotReady",
            strimzi=ON_SCALE_UP,
            add=(3,),
            warns=("AutoRebalanceFailed",),
        ),
        Row(
            id="4.5-proposal-error-down",
            seen=see_down(FAILED, before=running(REMOVE, PENDING, (12,))),
            state="NotReady",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
            warns=("AutoRebalanceRetryScheduled",),
        ),
        Row(
            id="4.5-execution-error-up",
            seen=see_up(FAILED, before=running(ADD, REBALANCING, (3,)), rebalance={"has_session": True}),
            state="NotReady",
            strimzi=ON_SCALE_UP,
            add=(3,),
            warns=("AutoRebalanceFailed",),
        ),
        Row(
            id="4.5-execution-error-down",
            seen=see_down(FAILED, before=running(REMOVE, REBALANCING, (12,)), rebalance={"has_session": True}),
            state="NotReady",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
            warns=("AutoRebalanceRetryScheduled",),
        ),
        Row(
            id="4.5-cruise-control-unreachable",
            seen=see_down(FAILED, rebalance={"is_transient": True}),
            state="NotReady",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
            says="AutoRebalanceRenewing",
        ),
        Row(
            id="4.5-cruise-control-not-deployed",
            seen=see_up(FAILED, configuration=()),
            does=("delete add-brokers",),
            state="",
            strimzi=IDLE,
        ),
    ]


def events_of_configuration() -> list[Row]:
    named = (
        ModeConfiguration(mode=ADD, settings=SettingsReference(kind=SettingsKind.SETTINGS, name="s")),
        ModeConfiguration(mode=REMOVE),
    )
    wrong = (
        ModeConfiguration(mode=ADD, problem=Reason(code="AutoRebalanceConfigInvalid", message="inline goals")),
        ModeConfiguration(mode=REMOVE),
    )
    settings = SettingsLookup(spec=RebalanceSpec(goals=("CpuCapacityGoal",)))
    return [
        Row(
            id="4.5-settings-invalid-up",
            seen=observe(added=(3,), wanted=(3,), ready=(3,), add_settings=INVALID),
            state="NotReady",
            strimzi=IDLE,
            add=(3,),
            warns=("AutoRebalanceSettingsInvalid",),
        ),
        Row(
            id="4.5-settings-invalid-down",
            seen=observe(blocked=(12,), remove_settings=INVALID),
            state="NotReady",
            strimzi=IDLE,
            remove=(12,),
            warns=("AutoRebalanceSettingsInvalid",),
        ),
        Row(
            id="4.5-settings-invalid-in-one-mode-leaves-the-other",
            seen=observe(added=(3,), wanted=(3,), ready=(3,), blocked=(12,), remove_settings=INVALID),
            does=("create add-brokers 3",),
            state="PendingProposal",
            strimzi=ON_SCALE_UP,
            add=(3,),
            remove=(12,),
            warns=("AutoRebalanceSettingsInvalid",),
        ),
        Row(
            id="4.5-settings-invalid-removal-stops-nothing",
            seen=see_up(REBALANCING, blocked=(12,), remove_settings=INVALID),
            state="Rebalancing",
            strimzi=ON_SCALE_UP,
            add=(3,),
            remove=(12,),
            warns=("AutoRebalanceSettingsInvalid",),
        ),
        Row(
            id="4.5-settings-not-looked-up",
            seen=observe(added=(3,), wanted=(3,), ready=(3,), configuration=named),
            state="NotReady",
            strimzi=IDLE,
            add=(3,),
            warns=("AutoRebalanceSettingsNotFound",),
        ),
        Row(
            id="4.5-settings-mistake-in-the-entry",
            seen=observe(added=(3,), wanted=(3,), ready=(3,), configuration=wrong),
            state="NotReady",
            strimzi=IDLE,
            add=(3,),
            warns=("AutoRebalanceConfigInvalid",),
        ),
        Row(
            id="4.5-settings-edited-mid-flight",
            seen=see_up(REBALANCING, add_settings=settings),
            state="Rebalancing",
            strimzi=ON_SCALE_UP,
            add=(3,),
        ),
        Row(
            id="4.5-settings-gone-when-brokers-change",
            seen=see_up(REBALANCING, added=(4,), wanted=(3, 4), add_settings=INVALID),
            state="Rebalancing",
            strimzi=ON_SCALE_UP,
            add=(3, 4),
            warns=("AutoRebalanceSettingsInvalid",),
        ),
        Row(
            id="4.5-one-mode-only-remove",
            seen=observe(configuration=ONLY_REMOVE, added=(3,), wanted=(3,), ready=(3,)),
            state="",
            strimzi=IDLE,
        ),
        Row(
            id="4.5-one-mode-only-add",
            seen=observe(configuration=ONLY_ADD, blocked=(12,)),
            state="",
            strimzi=IDLE,
        ),
        Row(
            id="4.5-one-mode-removed-while-it-runs",
            seen=see_up(REBALANCING, configuration=ONLY_REMOVE),
            does=("stop add-brokers",),
            state="Rebalancing",
            strimzi=ON_SCALE_UP,
            says="AutoRebalanceTurnedOff",
        ),
        Row(
            id="4.5-one-mode-removed-and-it-has-stopped",
            seen=see_up(STOPPED, configuration=ONLY_REMOVE, blocked=(12,)),
            does=("delete add-brokers", "create remove-brokers 12"),
            state="PendingProposal",
            strimzi=ON_SCALE_DOWN,
            remove=(12,),
        ),
        Row(
            id="4.5-one-mode-unclear-runs-on",
            seen=see_up(REBALANCING, configuration=ONLY_REMOVE, is_configuration_complete=False),
            state="Rebalancing",
            strimzi=ON_SCALE_UP,
            add=(3,),
            says="AutoRebalanceConfigUnclear",
        ),
        Row(
            id="4.5-configuration-unreadable-runs-on",
            seen=see_down(STOPPED, configuration=(), is_configuration_complete=False),
            state="Stopped",
            strimzi=ON_SCALE_DOWN,
            says="AutoRebalanceConfigUnclear",
        ),
        Row(
            id="4.5-autoRebalance-removed-live",
            seen=see_down(REBALANCING, configuration=()),
            does=("stop remove-brokers",),
            state="Rebalancing",
            strimzi=ON_SCALE_DOWN,
            says="AutoRebalanceTurnedOff",
        ),
        Row(
            id="4.5-autoRebalance-removed-stopped",
            seen=see_down(STOPPED, configuration=()),
            does=("delete remove-brokers",),
            state="",
            strimzi=IDLE,
        ),
        Row(
            id="4.5-autoRebalance-removed-user-deletes-too",
            seen=see_up(REBALANCING, configuration=(), rebalance=DELETING, is_executing=True),
            does=("stop-execution add-brokers",),
            state="Rebalancing",
            strimzi=ON_SCALE_UP,
        ),
        Row(
            id="4.5-autoRebalance-removed-paused-and-executing",
            seen=see_up(PAUSED, configuration=(), rebalance={"has_session": True}, is_executing=True),
            state="ReconciliationPaused",
            strimzi=ON_SCALE_UP,
            warns=("AutoRebalancePaused",),
        ),
        Row(
            id="4.5-autoRebalance-removed-paused",
            seen=see_up(PAUSED, configuration=()),
            does=("delete add-brokers",),
            state="",
            strimzi=IDLE,
        ),
        Row(
            id="4.5-autoRebalance-removed-nothing-runs",
            seen=observe(stored("ScalingUp", add_brokers=(3,)), configuration=(), wanted=(3,)),
            state="",
            strimzi=IDLE,
        ),
        Row(
            id="4.5-autoRebalance-removed-object-of-a-user-stays",
            seen=see_up(REBALANCING, configuration=(), rebalance={"is_ours": False}),
            state="",
            strimzi=IDLE,
        ),
        Row(
            id="4.5-Kafka-paused",
            seen=see_up(REBALANCING, is_paused=True, blocked=(12,)),
            state="Rebalancing",
            strimzi=ON_SCALE_UP,
            add=(3,),
            says="ReconciliationPaused",
        ),
        Row(
            id="4.5-Kafka-deleted",
            seen=observe(
                running(ADD, REBALANCING, (3,)),
                is_deleting=True,
                add_rebalance=rebalance(ADD, REBALANCING, (3,)),
                remove_rebalance=rebalance(REMOVE, STOPPED, (12,)),
            ),
            does=("delete add-brokers", "delete remove-brokers"),
            state="",
            strimzi=IDLE,
        ),
    ]


EVENTS = [
    *events_of_scaling(),
    *events_of_crashes(),
    *events_of_users(),
    *events_of_cruise_control(),
    *events_of_configuration(),
]


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in EVENTS])
def test_event(row: Row):
    check_row(row)


def test_ids_of_events_are_unique():
    assert len({row.id for row in EVENTS}) == len(EVENTS)


@pytest.mark.parametrize("row", [pytest.param(row, id=row.id) for row in EVENTS if "removed" in row.id])
def test_a_feature_that_is_off_leaves_no_status_once_its_rebalances_are_gone(row: Row):
    step = decide_step(row.seen)
    if not row.seen.configuration and not step.stored.state:
        assert step.stored == AutoRebalance()


def test_objects_of_users_are_never_touched():
    for row in EVENTS:
        for mode, found in ((ADD, row.seen.add_rebalance), (REMOVE, row.seen.remove_rebalance)):
            if found is not None and not found.is_ours:
                actions = list_actions(decide_step(row.seen))
                assert not [action for action in actions if f" {mode}" in action]


def test_added_brokers_are_stored_before_pools_change():
    ahead = plan_write_ahead(observe(added=(3,), wanted=(3,)))
    assert ahead is not None
    assert (ahead.state, ahead.add_brokers, ahead.state_since) == ("ScalingUp", (3,), NOW)
    during = plan_write_ahead(see_up(REBALANCING, added=(4,), wanted=(3, 4)))
    assert during is not None
    assert (during.state, during.add_brokers, during.running) == ("Rebalancing", (3, 4), ADD)
    again = observe(ahead, added=(3,), wanted=(3,))
    assert plan_write_ahead(again) is None
    assert plan_write_ahead(observe()) is None
    assert plan_write_ahead(observe(added=(3,), wanted=(3,), configuration=ONLY_REMOVE)) is None
    assert decide_step(again).stored == ahead


def test_the_engine_is_asked_only_when_the_answer_decides():
    up = rebalance(ADD, REBALANCING, (3,))
    assert not needs_executor_state(AutoRebalance(), None, None)
    assert not needs_executor_state(running(ADD, REBALANCING, (3,)), up, None)
    assert needs_executor_state(running(ADD, REBALANCING, (3,)), rebalance(ADD, REBALANCING, (3,), **DELETING), None)
    assert needs_executor_state(running(ADD, REBALANCING, (3,)), None, None)
    assert not needs_executor_state(running(ADD, PENDING, (3,)), None, None)
    assert needs_executor_state(running(ADD, FAILED, (3,)), rebalance(ADD, FAILED, (3,), has_session=True), None)


@pytest.mark.parametrize(
    ("found", "says"),
    [
        ({"replica_movements": 7}, "replicas have moved onto broker 3"),
        ({}, "replicas have moved onto broker 3"),
        ({"replica_movements": 0}, "no replica has moved onto broker 3: the proposal moves no replica"),
        ({"replica_movements": 0, "empty_brokers": "no replica moves onto broker 3: why"}, None),
        ({"replica_movements": 2, "empty_brokers": "no replica moves onto broker 3: why"}, None),
    ],
)
def test_a_scale_up_says_what_moved(found: dict[str, Any], says: str | None):
    step = decide_step(see_up(READY, before=running(ADD, REBALANCING, (3,)), rebalance=found))
    (action,) = step.actions
    if says is None:
        assert action.reason.code == "AutoRebalanceBrokersStayEmpty"
        assert action.reason.message.endswith("no replica moves onto broker 3: why")
        assert ("have moved" in action.reason.message) == bool(found["replica_movements"])
    else:
        assert (action.reason.code, action.reason.message) == ("AutoRebalanceFinished", says)


@pytest.mark.parametrize(
    ("moved", "remaining", "says"),
    [
        (7, None, "replicas have moved off broker 12"),
        (0, None, "no replica has moved off broker 12: it held no replica"),
        (0, 5, "replicas have moved off broker 12"),
    ],
)
def test_a_removal_says_whether_anything_moved(moved: int, remaining: int | None, says: str):
    before = running(REMOVE, REBALANCING, (12,), remaining_replicas=remaining)
    step = decide_step(see_down(READY, before=before, blocked=(), rebalance={"replica_movements": moved}))
    assert [action.reason.message for action in step.actions] == [says]


@pytest.mark.parametrize("rebalance_state", [REBALANCING, FAILED, READY])
def test_the_end_of_a_deleted_addition_is_stored_before_its_object_goes(rebalance_state: RebalanceState):
    """Strimzi's definitions prune the uid: what is gone would look like what was never created, and run again."""
    step = decide_step(see_up(rebalance_state, rebalance=DELETING, is_executing=False))
    assert [action.kind for action in step.actions] == [ActionKind.DELETE]
    assert step.write_ahead is not None
    assert step.write_ahead.running is None
    assert step.write_ahead.add_brokers == ()
