"""The statuses of a Kafka and its node pools as merge patches (docs/design/kafka.md sections 2.1, 2.2). Pure.

A patch has only what differs from the status that is there: a quiet reconcile writes nothing. The times of conditions
change when their status, reason or message does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.plans import Reason
from plimsoll.kube.conditions import find_unchanged, list_conditions, set_transition_time, to_json
from plimsoll.objects.api.meta import Condition

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from datetime import datetime

    from plimsoll.objects.api.kafka import KafkaStatus

READY: Final = "Ready"
NOT_READY: Final = "NotReady"
PAUSED: Final = "ReconciliationPaused"
WARNING: Final = "Warning"
MOST_WARNINGS: Final = 20


def build_conditions(
    before: Any, *, now: datetime, problem: Reason | None, warnings: Iterable[Reason], is_paused: bool = False
) -> list[dict[str, Any]]:
    """Ready, NotReady with its reason, or ReconciliationPaused; and the warnings."""
    if is_paused:
        written = [Condition(type=PAUSED, status="True")]
    elif problem is None:
        written = [Condition(type=READY, status="True")]
    else:
        written = [Condition(type=NOT_READY, status="True", reason=problem.code, message=str(problem))]
    messages: dict[tuple[str, str], None] = {}
    for warning in warnings:
        messages.setdefault((warning.code, str(warning)))
    written += [
        Condition(type=WARNING, status="True", reason=code, message=message)
        for code, message in list(messages)[:MOST_WARNINGS]
    ]
    known = list_conditions(before)
    conditions = [to_json(condition, omits_empty=True) for condition in written]
    return [set_transition_time(condition, find_unchanged(known, condition), now) for condition in conditions]


def add_pause(before: Any, pause: Reason, *, now: datetime) -> list[dict[str, Any]]:
    """The conditions with one that names the pause of our controllers. The next reconcile after it removes it."""
    known = list_conditions(before)
    condition = to_json(Condition(type=PAUSED, status="True", reason=pause.code, message=str(pause)), omits_empty=True)
    others = [other for other in known if other.get("type") != PAUSED]
    return [*others, set_transition_time(condition, find_unchanged(known, condition), now)]


def build_pool_conditions(
    before: Any, *, now: datetime, problem: Reason | None, warnings: Iterable[Reason]
) -> list[dict[str, Any]]:
    """What is wrong with a node pool; empty: nothing. As Strimzi's, a pool has no condition Ready."""
    conditions = build_conditions(before, now=now, problem=problem, warnings=warnings)
    return [condition for condition in conditions if condition["type"] != READY]


def explain_creation(brokers: Collection[int]) -> Reason | None:
    """Why a cluster that was never seen is not ready. It is no mistake. None: it has no brokers."""
    if not brokers:
        return None
    return Reason(code="Creating", message="the Kafka cluster is being deployed: no broker has answered yet")


def read_warnings(conditions: Any) -> tuple[Reason, ...]:
    """The Warning conditions of a status."""
    return tuple(
        Reason(code=str(condition.get("reason", "")), message=str(condition.get("message", "")))
        for condition in list_conditions(conditions)
        if condition.get("type") == WARNING
    )


def keep_warnings(conditions: Any, of_objects: tuple[Reason, ...] | None) -> tuple[Reason, ...]:
    """The warnings of a reconcile that failed: those of the last one, except that objects may have been mended since.

    `of_objects`: what is wrong in the objects now; None: it is not known, and nothing is left out.
    """
    before = read_warnings(conditions)
    if of_objects is None:
        return before
    return (*of_objects, *(warning for warning in before if warning.code not in _OF_OBJECTS))


_OF_OBJECTS: Final = frozenset(
    {
        "AutoRebalanceConfigAmbiguous",
        "AutoRebalanceConfigInvalid",
        "KafkaNodePoolMissing",
        "NodeIdRangesInvalid",
        "NodeIdRangesUnusual",
    }
)
"""Warnings that follow from a Kafka and its node pools alone, whatever its brokers answer."""


def find_pruned(patch: Mapping[str, Any], written: KafkaStatus) -> frozenset[str]:
    """The fields of a patch that the server did not keep. Fields that the struct does not declare are not looked at."""
    kept = msgspec.to_builtins(written)
    declared = {field.encode_name for field in msgspec.structs.fields(written)}
    return frozenset(field for field in declared.intersection(patch) if _has_value(patch[field]) and field not in kept)


def _has_value(value: Any) -> bool:
    """Whether a merge patch sets something, not only removes."""
    return any(_has_value(inner) for inner in value.values()) if isinstance(value, dict) else value is not None


def reduce_patch(status: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a merge patch that changes something; empty: nothing does."""
    reduced: dict[str, Any] = {}
    for field, value in patch.items():
        before = status.get(field)
        if isinstance(value, dict):
            if inner := reduce_patch(before if isinstance(before, dict) else {}, value):
                reduced[field] = inner
        elif value is None:
            if field in status:
                reduced[field] = None
        elif before != value:
            reduced[field] = value
    return reduced
