"""The status of a KafkaRebalance: its state is read from the conditions, and an outcome is written. Pure.

The state is the type of exactly one condition. Warnings are conditions of type `Warning`. Conditions of other types are
not ours and stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import msgspec

from plimsoll.core.plans import Reason
from plimsoll.kafka.model.rebalances import RebalanceState
from plimsoll.kube.conditions import find_unchanged, list_conditions, set_transition_time, to_json
from plimsoll.objects.api.meta import Condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from plimsoll.kafka.model.rebalance_steps import RebalanceOutcome

Json = dict[str, Any]

WARNING: Final = "Warning"
LOAD_CONFIG_MAP: Final = "afterBeforeLoadConfigMap"
MAX_MESSAGE: Final = 4_096
MAX_WARNINGS: Final = 20
MAX_RESULT_BYTES: Final = 256 * 1024
"""A larger summary keeps only its numbers: the object must stay below the limit of the API server."""
_STATES: Final = frozenset(state.value for state in RebalanceState)


class StateReading(NamedTuple):
    """The state with its condition. `problem`: the conditions hold two states."""

    state: RebalanceState
    condition: Condition = Condition()
    problem: Reason | None = None


def read_state(conditions: Sequence[Condition]) -> StateReading:
    """The state of a status. Without any it is New; with two of them it is NotReady, and the problem says so."""
    found = [condition for condition in conditions if condition.type in _STATES]
    if not found:
        return StateReading(RebalanceState.NEW)
    if len(found) > 1:
        types = ", ".join(condition.type for condition in found[:MAX_WARNINGS])
        message = f"status.conditions: exactly one condition may be a state, but there are {len(found)}: {types}"
        problem = Reason(
            code="InvalidResourceException", message=message, facts={"field": "status.conditions", "states": types}
        )
        return StateReading(RebalanceState.NOT_READY, problem=problem)
    return StateReading(RebalanceState(found[0].type), found[0])


def read_undecoded_state(conditions: Any) -> StateReading:
    """The state of a status that cannot be decoded, as far as its conditions can be read."""
    fields = ("type", "status", "reason", "message")
    read = [
        {field: condition[field] for field in fields if isinstance(condition.get(field), str)}
        for condition in list_conditions(conditions)
    ]
    return read_state([Condition(**found) for found in read])


def build_conditions_patch(before: Mapping[str, Any], outcome: RebalanceOutcome, *, now: datetime) -> Json:
    """The part of the status that is written of an object that cannot be decoded; empty: nothing changes."""
    conditions = _build_conditions(before.get("conditions"), outcome, now)
    return {} if conditions == before.get("conditions") else {"conditions": conditions}


def build_status_patch(
    before: Mapping[str, Any], outcome: RebalanceOutcome, *, name: str, generation: int, now: datetime
) -> Json:
    """The merge patch of the status that an outcome asks for; empty: nothing changes. `name`: of the ConfigMap."""
    after: Json = {"conditions": _build_conditions(before.get("conditions"), outcome, now)}
    if outcome.handles_spec:
        after["observedGeneration"] = generation
    after["sessionId"] = outcome.session_id or None
    if outcome.body is not None:
        after["optimizationResult"] = {**_build_result(outcome.body), LOAD_CONFIG_MAP: name}
    elif outcome.clears_result:
        after["optimizationResult"] = None
    if outcome.state in _HAS_PROGRESS:
        after["progress"] = {"rebalanceProgressConfigMap": name}
    elif outcome.state in _HAS_NO_PROGRESS:
        after["progress"] = None
    return {
        field: _replace_map(before.get(field), value) for field, value in after.items() if before.get(field) != value
    }


_HAS_PROGRESS: Final = frozenset({RebalanceState.PROPOSAL_READY, RebalanceState.REBALANCING, RebalanceState.READY})
_HAS_NO_PROGRESS: Final = frozenset({RebalanceState.NEW, RebalanceState.PENDING_PROPOSAL})


def _replace_map(before: Any, after: Any) -> Any:
    """A map in a merge patch replaces the one before: its other keys are removed."""
    if not isinstance(before, dict) or not isinstance(after, dict):
        return after
    return {**dict.fromkeys(sorted(before.keys() - after.keys())), **after}


def _build_conditions(before: Any, outcome: RebalanceOutcome, now: datetime) -> list[Json]:
    """The state first, then the warnings, then what others wrote. A time changes only with what it is about."""
    known = list_conditions(before)
    others = [condition for condition in known if condition.get("type") not in _STATES | {WARNING}]
    state = _build_condition(outcome.state.value, outcome.reason, outcome.message)
    states = [condition for condition in known if condition.get("type") == outcome.state.value]
    warnings = [_build_condition(WARNING, reason.code, str(reason)) for reason in _drop_repeated(outcome.warnings)]
    return [
        set_transition_time(state, states[0] if len(states) == 1 else None, now),
        *(set_transition_time(warning, find_unchanged(known, warning), now) for warning in warnings),
        *others,
    ]


def _drop_repeated(reasons: Iterable[Reason]) -> list[Reason]:
    return list({(reason.code, str(reason)): reason for reason in reasons}.values())[:MAX_WARNINGS]


def _build_condition(of_type: str, reason: str, message: str) -> Json:
    condition = Condition(type=of_type, status="True", reason=reason, message=message[:MAX_MESSAGE])
    return to_json(condition, omits_empty=True)


def _build_result(body: Mapping[str, Any]) -> Json:
    """The summary of a proposal, bounded."""
    summary = body.get("summary")
    if not isinstance(summary, dict):
        return {}
    try:
        size = len(msgspec.json.encode(summary))
    except (RecursionError, ValueError, TypeError):
        size = MAX_RESULT_BYTES + 1
    if size <= MAX_RESULT_BYTES:
        return dict(summary)
    return {field: value for field, value in list(summary.items())[:100] if isinstance(value, bool | int | float)}
