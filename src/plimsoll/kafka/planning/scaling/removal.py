"""The rebalance off leaving brokers exists: the rows "down" of docs/design/kafka.md section 4.4."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.kafka.model.auto_rebalance import AutoRebalanceState
from plimsoll.kafka.model.rebalances import RebalanceAnnotation, RebalanceState
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.scaling import reasons
from plimsoll.kafka.planning.scaling.ending import has_ended, is_active, is_refresh_pending, list_moved_back
from plimsoll.kafka.planning.scaling.retrying import compute_retry_time, hold_stopped, retry_failed
from plimsoll.kafka.planning.scaling.starting import start_next

if TYPE_CHECKING:
    from plimsoll.kafka.model.auto_rebalance import AutoRebalanceObject
    from plimsoll.kafka.planning.scaling.step_builder import StepBuilder

_MODE = Mode.REMOVE_BROKERS
_ROUNDS: Final = 3
"""Rounds without progress that follow each other at once."""


def step_removal(builder: StepBuilder, rebalance: AutoRebalanceObject) -> None:
    builder.follow(_MODE, rebalance)
    if builder.queue:
        builder.explain(reasons.build_queued(builder.queue))
    if rebalance.state is RebalanceState.RECONCILIATION_PAUSED:
        builder.explain(reasons.build_rebalance_paused(_MODE))
    elif not builder.is_configured(_MODE):
        builder.explain(reasons.build_not_configured(_MODE))
    elif not builder.blocked:
        builder.enqueue(list_moved_back(builder))
        _end(builder, rebalance)
    elif is_refresh_pending(rebalance):
        _await_refresh(builder, rebalance)
    else:
        builder.enqueue(list_moved_back(builder))
        if not _request_anew(builder, rebalance):
            _mirror(builder, rebalance)


def _end(builder: StepBuilder, rebalance: AutoRebalanceObject) -> None:
    """No broker has to be emptied any more: all are empty, or their removal was withdrawn (D12)."""
    requested = builder.stored.requested
    withdrawn = tuple(broker for broker in requested if broker in builder.wanted)
    has_earlier_round = builder.stored.has_moved and builder.stored.remaining_replicas is not None
    reason = reasons.build_finished(_MODE, requested, rebalance, has_earlier_round=has_earlier_round)
    if withdrawn:
        is_queued = bool(frozenset(withdrawn) & frozenset(builder.queue))
        reason = reasons.build_withdrawn(withdrawn, is_queued=is_queued)
    if is_active(rebalance) and not withdrawn:
        # The last movements end by themselves; the brokers are shown until then.
        builder.update(remove_brokers=requested)
        builder.explain(reasons.build_running(_MODE, rebalance))
        return
    if not has_ended(builder, _MODE, rebalance, reason):
        return
    builder.prepare_deletion(AutoRebalanceState.READY)
    builder.delete(_MODE, reason)
    start_next(builder)


def _await_refresh(builder: StepBuilder, rebalance: AutoRebalanceObject) -> None:
    builder.update(state=AutoRebalanceState.PENDING_PROPOSAL, is_stopping=False, next_retry_time=None)
    if rebalance.brokers == builder.blocked:
        builder.update(requested=builder.blocked)
    builder.explain(reasons.build_running(_MODE, rebalance))


def _request_anew(builder: StepBuilder, rebalance: AutoRebalanceObject) -> bool:
    """Ask for a new proposal if the brokers changed, or if the reason of our stop is gone."""
    blocked, requested = builder.blocked, builder.stored.requested
    is_stopped_by_us = builder.stored.is_stopping and (
        rebalance.state is RebalanceState.STOPPED or rebalance.annotation == RebalanceAnnotation.STOP
    )
    if is_stopped_by_us:
        return builder.refresh(_MODE, blocked, reasons.build_resumed(_MODE, blocked))
    builder.update(is_stopping=False)
    if rebalance.state is RebalanceState.STOPPED or rebalance.annotation == RebalanceAnnotation.STOP:
        return False
    if rebalance.brokers == blocked and rebalance.mode == _MODE:
        builder.update(requested=blocked)
        return False
    if blocked != requested:
        builder.update(attempts=0, remaining_replicas=None)
        return builder.refresh(_MODE, blocked, reasons.build_changed(_MODE, blocked, requested))
    builder.restore(_MODE, requested)
    return False


def _mirror(builder: StepBuilder, rebalance: AutoRebalanceObject) -> None:
    if rebalance.state.is_live:
        builder.update(next_retry_time=None)
        builder.explain(reasons.build_running(_MODE, rebalance))
    elif rebalance.state is RebalanceState.STOPPED:
        hold_stopped(builder, _MODE, rebalance)
    elif rebalance.state is RebalanceState.READY:
        _start_next_round(builder)
    elif rebalance.is_transient:
        builder.explain(reasons.build_renewing(_MODE, rebalance))
    else:
        _retry(builder, rebalance)


def _retry(builder: StepBuilder, rebalance: AutoRebalanceObject) -> None:
    """It failed. If fewer replicas remain than when it last ended, the waits begin again with the shortest."""
    if builder.stored.next_retry_time is None:
        has_earlier_end = builder.stored.remaining_replicas is not None
        if has_earlier_end and _has_progressed(builder):
            builder.update(attempts=0)
        builder.update(remaining_replicas=builder.seen.blocked_replicas)
    retry_failed(builder, _MODE, rebalance, builder.blocked)


def _start_next_round(builder: StepBuilder) -> None:
    """It succeeded, and the brokers still hold replicas: excluded topics, or topics created meanwhile."""
    blocked, replicas, stored = builder.blocked, builder.seen.blocked_replicas, builder.stored
    rounds, at = stored.attempts, stored.next_retry_time
    if at is None:
        rounds = 0 if _has_progressed(builder) else stored.attempts + 1
        builder.update(attempts=rounds, remaining_replicas=replicas)
        if rounds > _ROUNDS:
            at = compute_retry_time(builder, rounds - _ROUNDS)
            builder.update(next_retry_time=at)
    if at is not None and builder.seen.now < at:
        builder.update(state=AutoRebalanceState.NOT_READY)
        builder.warn(reasons.build_no_progress(blocked, rounds, at))
        builder.wait_until(at)
    elif not builder.refresh(_MODE, blocked, reasons.build_next_round(blocked, replicas)):
        builder.update(state=AutoRebalanceState.NOT_READY)
    elif rounds > _ROUNDS and at is not None:
        builder.warn(reasons.build_no_progress(blocked, rounds, at))


def _has_progressed(builder: StepBuilder) -> bool:
    before, now = builder.stored.remaining_replicas, builder.seen.blocked_replicas
    return now is not None and (before is None or now < before)
