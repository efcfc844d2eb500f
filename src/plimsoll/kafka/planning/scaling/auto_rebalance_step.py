"""One step of automatic rebalancing (docs/design/kafka.md section 4): from what is seen to what is done. Pure.

Everything is derived from the objects that exist and from little that is stored, so a step may be interrupted after any
action and repeated. Only objects with our finalizer are touched, and no automatic rebalance is created while another
one of the cluster is live.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.kafka.model.auto_rebalance import AutoRebalance, AutoRebalanceState
from plimsoll.kafka.model.rebalances import RebalanceState
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.scaling import reasons
from plimsoll.kafka.planning.scaling.ending import (
    MODES,
    disable,
    handle_deletions,
    is_active,
    may_execute,
    recover_missing,
    release_all,
    take_down,
)
from plimsoll.kafka.planning.scaling.removal import step_removal
from plimsoll.kafka.planning.scaling.scaling_up import step_up
from plimsoll.kafka.planning.scaling.starting import start_next
from plimsoll.kafka.planning.scaling.step_builder import StepBuilder

if TYPE_CHECKING:
    from plimsoll.kafka.model.auto_rebalance import AutoRebalanceObject, AutoRebalanceObservation, AutoRebalanceStep


def decide_step(seen: AutoRebalanceObservation) -> AutoRebalanceStep:
    """Decide what is done now, what is stored, and why."""
    builder = StepBuilder(seen)
    if seen.is_deleting:
        release_all(builder)
    elif seen.is_paused:
        builder.stored = seen.stored
        builder.explain(reasons.build_kafka_paused())
    elif not seen.configuration and seen.is_configuration_complete:
        disable(builder)
    else:
        _decide(builder)
    return builder.build()


def plan_write_ahead(seen: AutoRebalanceObservation) -> AutoRebalance | None:
    """What is stored before pools and pod sets change, so that a crash does not lose the added brokers.

    None: nothing is to be stored.
    """
    builder = StepBuilder(seen)
    is_needed = bool(seen.added) and builder.is_configured(Mode.ADD_BROKERS)
    if not is_needed or seen.is_paused or seen.is_deleting or builder.queue == seen.stored.add_brokers:
        return None
    builder.update(remove_brokers=tuple(broker for broker in seen.stored.remove_brokers if broker not in builder.queue))
    if seen.stored.state.is_without_operation and seen.stored.running is None:
        builder.update(state=AutoRebalanceState.SCALING_UP)
    return builder.build().stored


def needs_executor_state(
    stored: AutoRebalance, add_rebalance: AutoRebalanceObject | None, remove_rebalance: AutoRebalanceObject | None
) -> bool:
    """Whether the step has to know if the engine moves replicas (`is_executing`). It is not asked otherwise."""
    objects = {Mode.ADD_BROKERS: add_rebalance, Mode.REMOVE_BROKERS: remove_rebalance}
    for rebalance in objects.values():
        # What runs and is not deleted is stopped by an annotation, and its state says when it has stopped.
        if (
            rebalance is not None
            and rebalance.is_ours
            and may_execute(rebalance)
            and (rebalance.is_deleting or rebalance.state is not RebalanceState.REBALANCING)
        ):
            return True
    if stored.running is None or stored.state is not AutoRebalanceState.REBALANCING:
        return False
    running = objects.get(stored.running)
    return running is None or not running.is_ours


def _decide(builder: StepBuilder) -> None:
    if handle_deletions(builder) or recover_missing(builder):
        return
    for mode in MODES:
        if builder.is_off(mode) and not _end_mode(builder, mode):
            return
    removal = builder.get_rebalance(Mode.REMOVE_BROKERS)
    addition = builder.get_rebalance(Mode.ADD_BROKERS)
    if removal is not None:
        if addition is None or _yield_to_removal(builder, addition, removal):
            step_removal(builder, removal)
    elif addition is not None:
        step_up(builder, addition)
    else:
        start_next(builder)


def _end_mode(builder: StepBuilder, mode: Mode) -> bool:
    """A mode that is no longer configured, while the other is (D13, D15). Returns whether its rebalance is gone."""
    rebalance = builder.get_rebalance(mode)
    if rebalance is None:
        return True
    if not take_down(builder, mode, reasons.build_turned_off(mode)):
        builder.follow(mode, rebalance)
        return False
    if builder.before.running in {mode, None}:
        builder.end_operation(AutoRebalanceState.NONE)
    return True


def _yield_to_removal(builder: StepBuilder, addition: AutoRebalanceObject, removal: AutoRebalanceObject) -> bool:
    """Both exist, after a crash or by a user: the removal wins, and the other ends. Returns whether it is gone."""
    if addition.state is RebalanceState.READY:
        builder.dequeue(addition.brokers)
    else:
        builder.enqueue(addition.brokers)
    builder.follow(Mode.REMOVE_BROKERS, removal)
    reason = reasons.build_preempted(removal.brokers, builder.queue)
    if is_active(addition):
        is_stopping = builder.stored.is_stopping
        builder.stop(Mode.ADD_BROKERS, addition, reason)
        builder.update(is_stopping=is_stopping)
        return False
    builder.save_first()
    return take_down(builder, Mode.ADD_BROKERS, reason)
