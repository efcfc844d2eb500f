"""The conditions a kubelet of 1.34 writes into a pod's status, with its reasons and messages. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from plimsoll.objects.api.pods import Pod, PodCondition

READY: Final = "Ready"
CONTAINERS_READY: Final = "ContainersReady"
INITIALIZED: Final = "Initialized"
SCHEDULED: Final = "PodScheduled"
SANDBOX: Final = "PodReadyToStartContainers"

_ENDED: Final = {"Succeeded": "PodCompleted", "Failed": "PodFailed"}


class ConditionContent(NamedTuple):
    """The content of one condition."""

    status: bool
    reason: str = ""
    message: str = ""


class PodFacts(NamedTuple):
    """What the conditions follow from."""

    phase: str
    has_sandbox: bool
    uninitialized: Sequence[str]
    """Names of init containers that are not through."""
    unready: Sequence[str]
    """Names of containers that are not ready."""


def build_conditions(pod: Pod, facts: PodFacts, now: datetime) -> list[dict[str, Any]]:
    """All five, in the kubelet's order. One whose status stays keeps its time."""
    known = {condition.type: condition for condition in pod.status.conditions}
    containers = _build_containers_ready(facts)
    contents = {
        SANDBOX: ConditionContent(facts.has_sandbox),
        INITIALIZED: _build_initialized(facts),
        READY: _build_ready(pod, containers, known),
        CONTAINERS_READY: containers,
        SCHEDULED: ConditionContent(status=True),
    }
    generation = pod.metadata.generation
    return [_write_condition(type_, content, known.get(type_), now, generation) for type_, content in contents.items()]


def is_up_to_date(wanted: Mapping[str, Any], known: PodCondition | None) -> bool:
    """Whether the object shows this condition already."""
    return known is not None and (
        known.status,
        known.reason,
        known.message,
        known.observed_generation,
    ) == (wanted["status"], wanted.get("reason", ""), wanted.get("message", ""), wanted.get("observedGeneration", 0))


def _build_initialized(facts: PodFacts) -> ConditionContent:
    if facts.phase == "Succeeded":
        return ConditionContent(status=True, reason="PodCompleted")
    if facts.uninitialized:
        listed = " ".join(facts.uninitialized)
        return ConditionContent(
            status=False,
            reason="ContainersNotInitialized",
            message=f"containers with incomplete status: [{listed}]",
        )
    return ConditionContent(status=True)


def _build_containers_ready(facts: PodFacts) -> ConditionContent:
    if facts.phase in _ENDED:
        return ConditionContent(status=False, reason=_ENDED[facts.phase])
    if facts.unready:
        listed = " ".join(facts.unready)
        return ConditionContent(
            status=False, reason="ContainersNotReady", message=f"containers with unready status: [{listed}]"
        )
    return ConditionContent(status=True)


def _build_ready(pod: Pod, containers: ConditionContent, known: Mapping[str, PodCondition]) -> ConditionContent:
    """Ready if the containers are and every readiness gate is true."""
    if not containers.status:
        return containers
    missing = []
    for gate in pod.spec.readiness_gates:
        one = known.get(gate.condition_type)
        if one is None:
            missing.append(f'corresponding condition of pod readiness gate "{gate.condition_type}" does not exist.')
        elif one.status != "True":
            missing.append(f'the status of pod readiness gate "{gate.condition_type}" is not "True", but {one.status}')
    if missing:
        return ConditionContent(status=False, reason="ReadinessGatesNotReady", message=", ".join(missing))
    return ConditionContent(status=True)


def _write_condition(
    type_: str, content: ConditionContent, before: PodCondition | None, now: datetime, generation: int
) -> dict[str, Any]:
    status = "True" if content.status else "False"
    stayed = before is not None and before.status == status
    since = before.last_transition_time if before is not None and stayed else None
    written: dict[str, Any] = {
        "type": type_,
        "status": status,
        "lastTransitionTime": format_time(since or now),
    }
    if generation:
        written["observedGeneration"] = generation
    if content.reason:
        written["reason"] = content.reason
    if content.message:
        written["message"] = content.message
    return written
