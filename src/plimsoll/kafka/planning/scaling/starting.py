"""No rebalance runs: decides whether one starts, and for which brokers. Removal has priority."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.kafka.model.auto_rebalance import AutoRebalanceState
from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.planning.scaling import reasons
from plimsoll.kafka.planning.scaling.step_builder import SETTINGS_WAIT_S

if TYPE_CHECKING:
    from plimsoll.kafka.planning.scaling.step_builder import StepBuilder

PODS_WAIT_S: Final = 10.0
"""Readiness depends on brokers and engine too, which are not watched."""
_PODS_WARNING_S: Final = 1800.0


def start_next(builder: StepBuilder) -> None:
    """Create the rebalance that is due, or say what it waits for."""
    is_held = False
    if builder.blocked:
        problem = builder.find_start_problem(Mode.REMOVE_BROKERS)
        if problem is None:
            queue = builder.queue
            builder.create(Mode.REMOVE_BROKERS, builder.blocked)
            if queue:
                builder.explain(reasons.build_queued(queue))
            return
        # A removal that cannot start does not hold up the other mode.
        builder.warn(problem)
        builder.wait(SETTINGS_WAIT_S)
        is_held = True
    if builder.queue and builder.is_configured(Mode.ADD_BROKERS):
        if _start_addition(builder):
            return
        is_held |= not builder.list_not_ready()
    elif builder.queue:
        builder.explain(reasons.build_not_configured(Mode.ADD_BROKERS))
    builder.update(state=_choose_state(builder, is_held=is_held))


def _start_addition(builder: StepBuilder) -> bool:
    if missing := builder.list_not_ready():
        builder.explain(reasons.build_scaling_up(builder.queue, missing))
        builder.wait(PODS_WAIT_S)
        before = builder.before
        if before.state is AutoRebalanceState.SCALING_UP and before.state_since is not None:
            waited_s = (builder.seen.now - before.state_since).total_seconds()
            if waited_s >= _PODS_WARNING_S:
                builder.warn(reasons.build_pods_not_ready(missing, waited_s))
        return False
    if problem := builder.find_start_problem(Mode.ADD_BROKERS):
        builder.warn(problem)
        builder.wait(SETTINGS_WAIT_S)
        return False
    builder.create(Mode.ADD_BROKERS, builder.queue)
    return True


def _choose_state(builder: StepBuilder, *, is_held: bool) -> AutoRebalanceState:
    if is_held:
        return AutoRebalanceState.NOT_READY
    if builder.queue:
        return AutoRebalanceState.SCALING_UP
    state = builder.stored.state
    if not state.is_without_operation and builder.before.add_brokers:
        builder.explain(reasons.build_scaled_back(builder.before.add_brokers))
    return state if state.is_without_operation else AutoRebalanceState.NONE
