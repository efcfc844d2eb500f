"""Both status views of automatic rebalancing (docs/design/kafka.md sections 2.1, 4.6, D2 to D5).

`status.cruiseControl.autoRebalance` is the design's view, with the hints that recovery needs. `status.autoRebalance` is
Strimzi's. Both are written from one value, so they cannot disagree. Where Strimzi's definitions are installed, the
first is pruned; then the second and the KafkaRebalances say where an operation stands.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.kafka.model.auto_rebalance import AutoRebalance, AutoRebalanceState, StrimziState
from plimsoll.kafka.model.node_ids import HIGHEST_NODE_ID, MOST_NODES
from plimsoll.kafka.model.requests import Mode
from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from plimsoll.objects.api.kafka import AutoRebalanceStatus, AutoRebalanceSummary, KafkaStatus

_STATES: Final = {state.value: state for state in AutoRebalanceState}
_MODES: Final = {mode.value: mode for mode in (Mode.ADD_BROKERS, Mode.REMOVE_BROKERS)}
_RUNNING: Final = {
    StrimziState.ON_SCALE_UP.value: Mode.ADD_BROKERS,
    StrimziState.ON_SCALE_DOWN.value: Mode.REMOVE_BROKERS,
}
_MOST_ATTEMPTS: Final = 1_000_000


def build_status_views(stored: AutoRebalance) -> dict[str, Any]:
    """A merge patch of `status`. Fields that are not used are null, which removes them."""
    view = build_view(stored)
    return {
        "cruiseControl": None if view is None else {"autoRebalance": view},
        "autoRebalance": build_strimzi_view(stored),
    }


def build_view(stored: AutoRebalance) -> dict[str, Any] | None:
    """The design's view; None if there is no operation and none is remembered."""
    if stored.state is AutoRebalanceState.NONE and not stored.add_brokers and not stored.remove_brokers:
        return None
    return {
        "state": stored.state.value or None,
        "add-brokers": _sort(stored.add_brokers) or None,
        "remove-brokers": _sort(stored.remove_brokers) or None,
        "leavingBrokers": _sort(stored.leaving_brokers) or None,
        "running": stored.running.value if stored.running is not None else None,
        "rebalanceUid": stored.rebalance_uid or None,
        "requestedBrokers": _sort(stored.requested) or None,
        "stopping": stored.is_stopping or None,
        "moved": stored.has_moved or None,
        "attempts": stored.attempts or None,
        "remainingReplicas": stored.remaining_replicas,
        "nextRetryTime": _format(stored.next_retry_time),
        "lastTransitionTime": _format(stored.state_since),
    }


def build_strimzi_view(stored: AutoRebalance) -> dict[str, Any] | None:
    """Strimzi's view; None if automatic rebalancing was never used. The running mode stands first."""
    lists = {Mode.ADD_BROKERS: _sort(stored.add_brokers), Mode.REMOVE_BROKERS: _sort(stored.remove_brokers)}
    is_used = stored.last_transition_time is not None or any(lists.values())
    if stored.state is AutoRebalanceState.NONE and not is_used:
        return None
    order = sorted(lists, key=lambda mode: (mode is not stored.running, mode))
    modes = [{"mode": mode.value, "brokers": lists[mode]} for mode in order if lists[mode]]
    return {
        "state": stored.strimzi_state.value,
        "lastTransitionTime": _format(stored.last_transition_time),
        "modes": modes or None,
    }


def read_status_views(status: KafkaStatus) -> AutoRebalance:
    """What was stored. The design's view rules; without it, or with a state that it cannot have, Strimzi's is read."""
    view = status.cruise_control.auto_rebalance if status.cruise_control is not None else None
    summary = status.auto_rebalance
    if view is not None and view.state in _STATES:
        return _read_view(view, summary)
    return _read_strimzi_view(summary) if summary is not None else AutoRebalance()


def is_view_missing(status: KafkaStatus) -> bool:
    """Whether only Strimzi's view has an operation: the definitions prune the other, or Strimzi wrote the status."""
    summary = status.auto_rebalance
    has_view = status.cruise_control is not None and status.cruise_control.auto_rebalance is not None
    return not has_view and summary is not None and (summary.state in _RUNNING or bool(summary.modes))


def _read_view(view: AutoRebalanceStatus, summary: AutoRebalanceSummary | None) -> AutoRebalance:
    state = _STATES[view.state]
    running = _MODES.get(view.running)
    if running is None and summary is not None and not state.is_without_operation:
        running = _RUNNING.get(summary.state)
    return AutoRebalance(
        state=state,
        add_brokers=_read_ids(view.add_brokers),
        remove_brokers=_read_ids(view.remove_brokers),
        leaving_brokers=_read_ids(view.leaving_brokers),
        running=running,
        rebalance_uid=view.rebalance_uid,
        requested=_read_ids(view.requested_brokers),
        is_stopping=view.stopping,
        has_moved=view.moved,
        attempts=max(0, min(view.attempts, _MOST_ATTEMPTS)),
        remaining_replicas=None if view.remaining_replicas is None else max(0, view.remaining_replicas),
        next_retry_time=view.next_retry_time,
        state_since=view.last_transition_time,
        last_transition_time=summary.last_transition_time if summary is not None else view.last_transition_time,
    )


def _read_strimzi_view(summary: AutoRebalanceSummary) -> AutoRebalance:
    """The state of the KafkaRebalance is not in this view: the step takes it from the object."""
    lists: dict[Mode, set[int]] = {mode: set() for mode in _MODES.values()}
    for listed in summary.modes[: len(_MODES) * 2]:
        if listed.mode in _MODES:
            lists[_MODES[listed.mode]].update(_read_ids(listed.brokers))
    running = _RUNNING.get(summary.state)
    state = AutoRebalanceState.NONE
    if running is not None:
        state = AutoRebalanceState.PENDING_PROPOSAL
    elif lists[Mode.ADD_BROKERS]:
        state = AutoRebalanceState.SCALING_UP
    return AutoRebalance(
        state=state,
        add_brokers=tuple(_sort(lists[Mode.ADD_BROKERS])),
        remove_brokers=tuple(_sort(lists[Mode.REMOVE_BROKERS])),
        running=running,
        last_transition_time=summary.last_transition_time,
    )


def _read_ids(ids: Iterable[int]) -> tuple[int, ...]:
    """Ids that brokers can have, ascending and once. Others are a mistake of the writer of the status."""
    return tuple(_sort(node_id for node_id in ids if 0 <= node_id <= HIGHEST_NODE_ID)[:MOST_NODES])


def _sort(ids: Iterable[int]) -> list[int]:
    return sorted(set(ids))


def _format(moment: datetime | None) -> str | None:
    return None if moment is None else format_time(moment)
