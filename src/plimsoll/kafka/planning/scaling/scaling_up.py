"""The rebalance onto new brokers exists: the rows "up" of docs/design/kafka.md section 4.4."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.kafka.model.auto_rebalance import AutoRebalanceState, OnFailure
from plimsoll.kafka.model.rebalances import RebalanceAnnotation, RebalanceState
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.scaling import reasons
from plimsoll.kafka.planning.scaling.ending import has_ended, is_refresh_pending
from plimsoll.kafka.planning.scaling.retrying import hold_failed, hold_stopped, retry_failed
from plimsoll.kafka.planning.scaling.starting import PODS_WAIT_S
from plimsoll.kafka.planning.scaling.step_builder import SETTINGS_WAIT_S

if TYPE_CHECKING:
    from plimsoll.kafka.model.auto_rebalance import AutoRebalanceObject
    from plimsoll.kafka.planning.scaling.step_builder import StepBuilder

_MODE = Mode.ADD_BROKERS


def step_up(builder: StepBuilder, rebalance: AutoRebalanceObject) -> None:
    builder.follow(_MODE, rebalance)
    if rebalance.state is RebalanceState.RECONCILIATION_PAUSED:
        builder.explain(reasons.build_rebalance_paused(_MODE))
    elif not builder.is_configured(_MODE):
        builder.explain(reasons.build_not_configured(_MODE))
    elif _can_remove(builder):
        _give_way(builder, rebalance)
    elif not builder.queue and rebalance.state is not RebalanceState.READY:
        _end_unneeded(builder, rebalance)
    elif is_refresh_pending(rebalance):
        _await_refresh(builder, rebalance)
    elif rebalance.state is RebalanceState.READY:
        _finish(builder, rebalance)
    elif not _request_anew(builder, rebalance):
        _mirror(builder, rebalance)


def _can_remove(builder: StepBuilder) -> bool:
    """Whether a removal waits. One that cannot start stops nothing."""
    if not builder.blocked:
        return False
    if problem := builder.find_start_problem(Mode.REMOVE_BROKERS):
        builder.warn(problem)
        builder.wait(SETTINGS_WAIT_S)
        return False
    return True


def _give_way(builder: StepBuilder, rebalance: AutoRebalanceObject) -> None:
    """Removal goes first (D10): stop, wait until it has stopped, delete, create the removal. The queue stays."""
    blocked = builder.blocked
    if not has_ended(builder, _MODE, rebalance, reasons.build_preempted(blocked, builder.queue)):
        return
    if rebalance.state is RebalanceState.READY:
        builder.dequeue(rebalance.brokers)
    builder.prepare_deletion(AutoRebalanceState.SCALING_UP if builder.queue else AutoRebalanceState.NONE)
    builder.delete(_MODE, reasons.build_preempted(blocked, builder.queue))
    builder.create(Mode.REMOVE_BROKERS, blocked)


def _end_unneeded(builder: StepBuilder, rebalance: AutoRebalanceObject) -> None:
    """The new brokers are no longer asked for."""
    reason = reasons.build_scaled_back(rebalance.brokers)
    if has_ended(builder, _MODE, rebalance, reason):
        builder.delete(_MODE, reason)
        builder.end_operation(AutoRebalanceState.NONE)


def _await_refresh(builder: StepBuilder, rebalance: AutoRebalanceObject) -> None:
    builder.update(state=AutoRebalanceState.PENDING_PROPOSAL, is_stopping=False, next_retry_time=None)
    if rebalance.brokers == builder.queue:
        builder.update(requested=builder.queue)
    builder.explain(reasons.build_running(_MODE, rebalance))


def _finish(builder: StepBuilder, rebalance: AutoRebalanceObject) -> None:
    """It succeeded. Brokers that came meanwhile get a new proposal, at once if they are ready."""
    if rebalance.brokers == builder.queue:
        builder.update(requested=rebalance.brokers)
    done, former = builder.stored.requested, builder.queue
    more = tuple(broker for broker in former if broker not in done)
    is_finishing = builder.before.state is AutoRebalanceState.READY
    is_ready = bool(more) and not builder.list_not_ready() and not is_finishing
    if is_ready and builder.refresh(_MODE, former, reasons.build_changed(_MODE, former, done)):
        return
    if not is_finishing and _is_edited(builder, rebalance):
        builder.restore(_MODE, done)
        builder.update(state=AutoRebalanceState.PENDING_PROPOSAL)
        return
    builder.dequeue(done)
    builder.update(state=AutoRebalanceState.READY)
    builder.save_first()
    builder.delete(_MODE, reasons.build_finished(_MODE, done, rebalance))
    builder.end_operation(AutoRebalanceState.SCALING_UP if builder.queue else AutoRebalanceState.READY)
    if builder.queue:
        builder.wait(PODS_WAIT_S)


def _request_anew(builder: StepBuilder, rebalance: AutoRebalanceObject) -> bool:
    """Ask for a new proposal if the brokers changed, or if the reason of our stop is gone."""
    queue, requested = builder.queue, builder.stored.requested
    is_stopped_by_us = builder.stored.is_stopping and (
        rebalance.state is RebalanceState.STOPPED or rebalance.annotation == RebalanceAnnotation.STOP
    )
    if not is_stopped_by_us:
        builder.update(is_stopping=False)
        if rebalance.annotation == RebalanceAnnotation.STOP and rebalance.state.is_live:
            return False
    if rebalance.brokers == queue and rebalance.mode == _MODE and not is_stopped_by_us:
        builder.update(requested=queue)
        return False
    if not builder.list_not_ready():
        if queue != requested:
            builder.update(attempts=0)
            return builder.refresh(_MODE, queue, reasons.build_changed(_MODE, queue, requested))
        if is_stopped_by_us:
            return builder.refresh(_MODE, queue, reasons.build_resumed(_MODE, queue))
    elif queue != requested or is_stopped_by_us:
        builder.explain(reasons.build_scaling_up(queue, builder.list_not_ready()))
        builder.wait(PODS_WAIT_S)
    if _is_edited(builder, rebalance):
        builder.restore(_MODE, requested)
    return False


def _is_edited(builder: StepBuilder, rebalance: AutoRebalanceObject) -> bool:
    """Whether a user changed what the operator writes."""
    return rebalance.mode != _MODE or rebalance.brokers != builder.stored.requested


def _mirror(builder: StepBuilder, rebalance: AutoRebalanceObject) -> None:
    if rebalance.state.is_live:
        builder.update(next_retry_time=None)
        builder.explain(reasons.build_running(_MODE, rebalance))
    elif rebalance.state is RebalanceState.STOPPED:
        if not builder.stored.is_stopping:
            hold_stopped(builder, _MODE, rebalance)
    elif rebalance.is_transient:
        builder.explain(reasons.build_renewing(_MODE, rebalance))
    elif builder.get_configuration(_MODE).on_failure is OnFailure.RETRY and not builder.list_not_ready():
        retry_failed(builder, _MODE, rebalance, builder.queue)
    else:
        hold_failed(builder, _MODE, rebalance)
