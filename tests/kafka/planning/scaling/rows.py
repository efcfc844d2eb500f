"""A row of the tables in docs/design/kafka.md section 4: what is seen, and what must follow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.values import Value
from plimsoll.kafka.model.auto_rebalance import AutoRebalance, AutoRebalanceObservation, StrimziState
from plimsoll.kafka.planning.scaling.auto_rebalance_step import decide_step
from tests.kafka.planning.scaling.observations import NOW

if TYPE_CHECKING:
    from plimsoll.kafka.model.auto_rebalance import AutoRebalanceStep


class Row(Value):
    """A row: what is seen, and what must follow."""

    id: str
    seen: AutoRebalanceObservation
    state: str
    strimzi: StrimziState
    does: tuple[str, ...] = ()
    """Kind, mode and brokers of each action."""
    add: tuple[int, ...] = ()
    remove: tuple[int, ...] = ()
    warns: tuple[str, ...] = ()
    says: str = ""
    """The code of a reason among others."""


def list_actions(step: AutoRebalanceStep) -> tuple[str, ...]:
    written: list[str] = []
    for action in step.actions:
        brokers = ",".join(str(broker) for broker in action.brokers)
        written.append(f"{action.kind} {action.mode} {brokers}".strip())
    return tuple(written)


def check_row(row: Row) -> AutoRebalanceStep:
    """Decide the step of a row, and compare everything that the row says."""
    step = decide_step(row.seen)
    assert list_actions(step) == row.does
    after = step.stored
    assert (after.state, after.strimzi_state) == (row.state, row.strimzi)
    assert (after.add_brokers, after.remove_brokers) == (row.add, row.remove)
    assert tuple(warning.code for warning in step.warnings) == row.warns
    if row.says:
        assert row.says in [reason.code for reason in step.reasons]
    assert all(warning in step.reasons for warning in step.warnings)
    if after == AutoRebalance():
        return step
    before = row.seen.stored
    if after.state is before.state and before.state_since is not None and after.state:
        assert after.state_since == before.state_since
    if after.strimzi_state is before.strimzi_state and before.last_transition_time is not None:
        assert after.last_transition_time == before.last_transition_time
    elif after.strimzi_state is not before.strimzi_state:
        assert after.last_transition_time == NOW
    return step
