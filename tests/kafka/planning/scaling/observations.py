"""Builds what a step of automatic rebalancing sees. Brokers 0, 1, 2 are old; 3, 4 are new; 12, 13 leave."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from plimsoll.kafka.model.auto_rebalance import (
    AutoRebalance,
    AutoRebalanceObject,
    AutoRebalanceObservation,
    AutoRebalanceState,
    ModeConfiguration,
)
from plimsoll.kafka.model.rebalances import RebalanceState
from plimsoll.kafka.model.requests import Mode

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
EARLIER = NOW - timedelta(minutes=5)
ADD = Mode.ADD_BROKERS
REMOVE = Mode.REMOVE_BROKERS
BOTH = (ModeConfiguration(mode=ADD), ModeConfiguration(mode=REMOVE))
OLD = (0, 1, 2)
STATES = {state.value: state for state in AutoRebalanceState}


def stored(state: AutoRebalanceState | RebalanceState | str = "", **fields: Any) -> AutoRebalance:
    """What was stored five minutes ago."""
    name = AutoRebalanceState.PENDING_PROPOSAL if state == RebalanceState.NEW else STATES[str(state)]
    times = {} if name is AutoRebalanceState.NONE and not fields else {"last_transition_time": EARLIER}
    since = {} if name is AutoRebalanceState.NONE and not fields else {"state_since": EARLIER}
    return AutoRebalance(state=name, **{**times, **since, **fields})


def running(mode: Mode, state: RebalanceState, brokers: tuple[int, ...], **fields: Any) -> AutoRebalance:
    """A rebalance of this mode was seen in this state."""
    lists: dict[str, Any] = {"add_brokers": brokers} if mode is ADD else {"remove_brokers": brokers}
    known: dict[str, Any] = {"running": mode, "rebalance_uid": f"uid-{mode}", "requested": brokers}
    return stored(state, **{**lists, **known, **fields})


def rebalance(mode: Mode, state: RebalanceState, brokers: tuple[int, ...], **fields: Any) -> AutoRebalanceObject:
    known: dict[str, Any] = {"uid": f"uid-{mode}", "is_ours": True, "mode": mode.value}
    return AutoRebalanceObject(**{**known, "state": state, "brokers": brokers, **fields})


def observe(before: AutoRebalance | None = None, **fields: Any) -> AutoRebalanceObservation:
    """Both modes are configured, and the brokers 0, 1, 2 are wanted and ready; `wanted` and `ready` add to them."""
    removed = fields.get("removed", fields.get("blocked", ()))
    wanted = (*OLD, *fields.pop("wanted", ()))
    ready = (*OLD, *fields.pop("ready", ()))
    known: dict[str, Any] = {"now": NOW, "configuration": BOTH, "stored": before or AutoRebalance()}
    known |= {"brokers": tuple(sorted({*wanted, *fields.get("blocked", ())})), "ready_brokers": ready}
    return AutoRebalanceObservation(**{**known, "removed": removed, **fields})


def see_up(state: RebalanceState, brokers: tuple[int, ...] = (3,), **fields: Any) -> AutoRebalanceObservation:
    """The add-brokers rebalance is in this state, as at the last step; its brokers are wanted and ready."""
    before = fields.pop("before", None) or running(ADD, state, brokers)
    found = msgspec.structs.replace(rebalance(ADD, state, brokers), **fields.pop("rebalance", {}))
    wanted = fields.pop("wanted", brokers)
    return observe(before, add_rebalance=found, wanted=wanted, ready=fields.pop("ready", wanted), **fields)


def see_down(state: RebalanceState, brokers: tuple[int, ...] = (12,), **fields: Any) -> AutoRebalanceObservation:
    """The remove-brokers rebalance is in this state, as at the last step; its brokers still hold replicas."""
    before = fields.pop("before", None) or running(REMOVE, state, brokers)
    found = msgspec.structs.replace(rebalance(REMOVE, state, brokers), **fields.pop("rebalance", {}))
    return observe(before, remove_rebalance=found, **{"blocked": brokers, **fields})


def change(seen: AutoRebalanceObservation, **fields: Any) -> AutoRebalanceObservation:
    return msgspec.structs.replace(seen, **fields)
