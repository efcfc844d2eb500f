"""Automatic rebalances that end before they are done: stopped by the operator, or deleted by a user.

A rebalance is deleted only when nothing is computed or moved for it any more. Stopping takes two steps: the stop is
annotated, and the object is deleted once it is `Stopped`. Otherwise the stop may never reach Cruise Control.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.kafka.model.auto_rebalance import AutoRebalance, AutoRebalanceState
from plimsoll.kafka.model.rebalances import RebalanceAnnotation, RebalanceState
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.scaling import reasons

if TYPE_CHECKING:
    from plimsoll.core.plans import Reason
    from plimsoll.kafka.model.auto_rebalance import AutoRebalanceObject
    from plimsoll.kafka.planning.scaling.step_builder import StepBuilder

MODES: Final = (Mode.ADD_BROKERS, Mode.REMOVE_BROKERS)
EXECUTOR_WAIT_S: Final = 5.0
"""The engine is asked again after this time."""


def is_active(rebalance: AutoRebalanceObject) -> bool:
    """Whether it computes or moves, or is about to because of an annotation."""
    return rebalance.state.is_live or is_refresh_pending(rebalance)


def is_refresh_pending(rebalance: AutoRebalanceObject) -> bool:
    """Whether it ended, and a refresh that is not handled yet starts it again."""
    has_ended = not rebalance.state.is_live and rebalance.state is not RebalanceState.RECONCILIATION_PAUSED
    return has_ended and rebalance.annotation == RebalanceAnnotation.REFRESH


def take_down(builder: StepBuilder, mode: Mode, reason: Reason) -> bool:
    """Stop the rebalance of a mode and delete it. Returns whether it is gone; otherwise another step follows."""
    rebalance = builder.get_rebalance(mode)
    if rebalance is None:
        return True
    is_paused = rebalance.state is RebalanceState.RECONCILIATION_PAUSED
    if is_paused and may_execute(rebalance) and builder.seen.is_executing is not False:
        builder.warn(reasons.build_rebalance_paused(mode))
        return False
    if not has_ended(builder, mode, rebalance, reason):
        return False
    builder.delete(mode, reason)
    return True


def has_ended(builder: StepBuilder, mode: Mode, rebalance: AutoRebalanceObject, reason: Reason) -> bool:
    """Whether a rebalance may be deleted. Otherwise it is stopped."""
    if is_active(rebalance):
        builder.stop(mode, rebalance, reason)
        return False
    if may_execute(rebalance) and builder.seen.is_executing:
        builder.stop_execution(mode)
        builder.wait(EXECUTOR_WAIT_S)
        return False
    return True


def may_execute(rebalance: AutoRebalanceObject) -> bool:
    """Whether the engine may move replicas for it. A failed one keeps its session, and so does a paused one."""
    if rebalance.state is RebalanceState.REBALANCING:
        return True
    return rebalance.has_session and rebalance.state in {RebalanceState.NOT_READY, RebalanceState.RECONCILIATION_PAUSED}


# ---- the feature is off, or the Kafka goes


def disable(builder: StepBuilder) -> None:
    """The configuration is gone (D15): what runs stops and is deleted, then both views are cleared."""
    is_done = True
    for mode in MODES:
        rebalance = builder.get_rebalance(mode)
        if rebalance is None:
            continue
        if rebalance.is_deleting:
            if _is_moving(builder, rebalance):
                builder.stop_execution(mode)
                builder.wait(EXECUTOR_WAIT_S)
            else:
                builder.delete(mode, reasons.build_turned_off(mode))
        else:
            take_down(builder, mode, reasons.build_turned_off(mode))
        if builder.get_rebalance(mode) is not None:
            builder.follow(mode, rebalance)
            is_done = False
    if is_done:
        builder.stored = AutoRebalance()


def release_all(builder: StepBuilder) -> None:
    """The Kafka is being deleted: its automatic rebalances go with it."""
    for mode in MODES:
        if builder.get_rebalance(mode) is not None:
            builder.delete(mode, reasons.build_kafka_deleted(mode))
    builder.stored = AutoRebalance()


# ---- a user deletes


def handle_deletions(builder: StepBuilder) -> bool:
    """Let go of automatic rebalances that are being deleted. Returns whether the step ends with that."""
    is_over = False
    for mode in MODES:
        rebalance = builder.get_rebalance(mode)
        if rebalance is not None and rebalance.is_deleting:
            is_over |= _handle_deletion(builder, mode, rebalance)
    return is_over


def _handle_deletion(builder: StepBuilder, mode: Mode, rebalance: AutoRebalanceObject) -> bool:
    before = builder.before
    if _is_moving(builder, rebalance):
        builder.follow(mode, rebalance)
        builder.stop_execution(mode)
        builder.wait(EXECUTOR_WAIT_S)
        return True
    is_leftover = before.running is not None and before.running is not mode
    if mode is Mode.ADD_BROKERS:
        _release_addition(builder, rebalance, is_leftover=is_leftover)
    elif builder.blocked:
        builder.delete(mode, reasons.build_deleted(builder.blocked))
        builder.end_operation(AutoRebalanceState.PENDING_PROPOSAL)
    else:
        builder.delete(mode, reasons.build_finished(mode, rebalance.brokers, rebalance))
        builder.enqueue(list_moved_back(builder))
        builder.end_operation(AutoRebalanceState.READY)
    builder.wait(0.0)
    return not is_leftover


def _release_addition(builder: StepBuilder, rebalance: AutoRebalanceObject, *, is_leftover: bool) -> None:
    """A deleted add-brokers rebalance: finished, put back by the operator itself, or not wanted by the user.

    The end is stored first. Where Strimzi's definitions prune the uid, an object that is gone looks like one that was
    never created, and another execution would follow.
    """
    before, mode = builder.before, Mode.ADD_BROKERS
    is_finished = rebalance.state is RebalanceState.READY or before.state is AutoRebalanceState.READY
    if is_finished:
        builder.dequeue(rebalance.brokers)
        reason = reasons.build_finished(mode, rebalance.brokers, rebalance)
    elif before.running is mode or rebalance.state.is_live:
        reason = reasons.build_cancelled(rebalance.brokers)
        cancel_addition(builder)
    else:
        reason = reasons.build_queued(builder.queue or rebalance.brokers)
    if not is_leftover:
        waiting = AutoRebalanceState.SCALING_UP if builder.queue else AutoRebalanceState.NONE
        builder.end_operation(AutoRebalanceState.READY if is_finished and not builder.queue else waiting)
    builder.save_first()
    builder.delete(mode, reason)


def cancel_addition(builder: StepBuilder) -> None:
    """The user is not interested in replicas on the new brokers. Brokers that were added just now are another wish."""
    builder.dequeue(frozenset(builder.queue) - frozenset(builder.seen.added))


# ---- the rebalance is gone


def recover_missing(builder: StepBuilder) -> bool:
    """The recorded rebalance is not there, or no longer ours. Returns whether the step ends with that."""
    before = builder.before
    mode = before.running
    if mode is None or builder.get_rebalance(mode) is not None:
        return False
    found = builder.get_object(mode)
    if not before.rebalance_uid or before.state is AutoRebalanceState.READY:
        # It was never created, or it had finished.
        builder.end_operation(before.state)
        return False
    if found is not None and found.uid == before.rebalance_uid and not _is_passed_over(builder, mode, found):
        builder.update(state=AutoRebalanceState.NOT_READY)
        builder.warn(reasons.build_name_conflict(mode))
        return True
    is_moving = before.state is AutoRebalanceState.REBALANCING and builder.seen.is_executing is True
    if is_moving:
        builder.stop_execution(mode)
    if mode is Mode.ADD_BROKERS:
        builder.explain(reasons.build_cancelled(before.requested or before.add_brokers))
        cancel_addition(builder)
        builder.end_operation(AutoRebalanceState.SCALING_UP if builder.queue else AutoRebalanceState.NONE)
        return is_moving
    if is_moving:
        builder.wait(EXECUTOR_WAIT_S)
        return True
    if not builder.blocked:
        builder.enqueue(list_moved_back(builder))
    builder.end_operation(AutoRebalanceState.PENDING_PROPOSAL if builder.blocked else AutoRebalanceState.READY)
    return False


def _is_passed_over(builder: StepBuilder, mode: Mode, found: AutoRebalanceObject) -> bool:
    """Whether the cluster goes on without a rebalance from which a user stripped the finalizer."""
    if mode is Mode.REMOVE_BROKERS:
        return not builder.blocked
    return bool(builder.blocked) and not found.state.is_live


def list_moved_back(builder: StepBuilder) -> tuple[int, ...]:
    """Brokers whose removal was withdrawn after replicas had moved off them (D12)."""
    if not builder.stored.has_moved:
        return ()
    return tuple(broker for broker in builder.stored.requested if broker in builder.wanted)


def _is_moving(builder: StepBuilder, rebalance: AutoRebalanceObject) -> bool:
    """Whether the finalizer has to stay. What could not be asked is taken for moving while the state says so."""
    is_executing = builder.seen.is_executing
    return (
        is_executing is not False
        if rebalance.state is RebalanceState.REBALANCING
        else (may_execute(rebalance) and is_executing is True)
    )
