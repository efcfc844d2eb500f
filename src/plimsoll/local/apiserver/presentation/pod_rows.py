"""The table row of a pod: its phase, containers and conditions summarised in one word.

The word is derived in Kubernetes' order; people and scripts read `CrashLoopBackOff` and `Init:1/2` from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plimsoll.local.apiserver.presentation.durations import age, human, instant
from plimsoll.local.apiserver.presentation.field_access import (
    NONE,
    Json,
    condition,
    flag,
    items,
    mapping,
    name_of,
    text,
    value,
    whole,
)

if TYPE_CHECKING:
    from datetime import datetime

_SUCCEEDED: Final = {
    "type": "Completed",
    "status": "True",
    "reason": "Succeeded",
    "message": "The pod has completed successfully.",
}
_FAILED: Final = {"type": "Completed", "status": "True", "reason": "Failed", "message": "The pod failed."}
_ENDED: Final = {"Succeeded": [_SUCCEEDED], "Failed": [_FAILED]}


def row_conditions(pod: Json) -> list[dict[str, str]]:
    """The conditions of a row: whether the pod has ended."""
    return _ENDED.get(text(pod, "status", "phase"), [])


def pod_cells(pod: Json, now: datetime) -> list[Any]:
    summary = _summary(pod)
    total = len(items(pod, "spec", "containers")) + len(_sidecars(pod))
    first_ip = next(iter(items(pod, "status", "podIPs")), {})
    return [
        name_of(pod),
        f"{summary.ready}/{total}",
        _final_word(pod, summary.word),
        _restarts(summary, now),
        age(pod, now),
        text(first_ip, "ip") or NONE,
        text(pod, "spec", "nodeName") or NONE,
        text(pod, "status", "nominatedNodeName") or NONE,
        _readiness_gates(pod),
    ]


class _Summary(NamedTuple):
    """What the containers come to: one word, how many are ready, how often they were restarted and when last."""

    word: str
    ready: int = 0
    restarts: int = 0
    last_restart: datetime | None = None

    def add_restarts(self, status: Json) -> _Summary:
        ended = instant(value(status, "lastState", "terminated", "finishedAt"))
        known = [item for item in (self.last_restart, ended) if item is not None]
        return self._replace(
            restarts=self.restarts + whole(status, "restartCount"), last_restart=max(known) if known else None
        )


def _summary(pod: Json) -> _Summary:
    start = _Summary(_first_word(pod))
    initial, of_sidecars, initializing = _init_summary(pod, start)
    initialized = condition(pod, "Initialized")
    if initializing and text(initialized, "status") != "True":
        return initial
    # Once the pod is initialised, restarts of containers that ran to their end are history.
    return _main_summary(pod, initial._replace(restarts=of_sidecars.restarts, last_restart=of_sidecars.last_restart))


def _first_word(pod: Json) -> str:
    gated = any(
        item.get("type") == "PodScheduled" and item.get("reason") == "SchedulingGated"
        for item in items(pod, "status", "conditions")
    )
    return "SchedulingGated" if gated else text(pod, "status", "reason") or text(pod, "status", "phase")


def _sidecars(pod: Json) -> set[str]:
    """Names of init containers that keep running."""
    return {
        text(item, "name") for item in items(pod, "spec", "initContainers") if item.get("restartPolicy") == "Always"
    }


def _init_summary(pod: Json, start: _Summary) -> tuple[_Summary, _Summary, bool]:
    """All init containers, the sidecars among them, and whether one of them holds the pod up."""
    sidecars = _sidecars(pod)
    everything, of_sidecars = start, start
    for position, status in enumerate(items(pod, "status", "initContainerStatuses")):
        everything = everything.add_restarts(status)
        is_sidecar = text(status, "name") in sidecars
        if is_sidecar:
            of_sidecars = of_sidecars.add_restarts(status)
        terminated = value(status, "state", "terminated")
        if isinstance(terminated, dict) and whole(terminated, "exitCode") == 0:
            continue
        if is_sidecar and flag(status, "started"):
            everything = everything._replace(ready=everything.ready + flag(status, "ready"))
            continue
        word = _init_word(status, position, len(items(pod, "spec", "initContainers")))
        return everything._replace(word=word), of_sidecars, True
    return everything, of_sidecars, False


def _init_word(status: Json, position: int, total: int) -> str:
    if isinstance(value(status, "state", "terminated"), dict):
        return f"Init:{_end_word(mapping(status, 'state', 'terminated'))}"
    waiting = text(status, "state", "waiting", "reason")
    return f"Init:{waiting}" if waiting and waiting != "PodInitializing" else f"Init:{position}/{total}"


def _end_word(terminated: Json) -> str:
    if text(terminated, "reason"):
        return text(terminated, "reason")
    if whole(terminated, "signal"):
        return f"Signal:{whole(terminated, 'signal')}"
    return f"ExitCode:{whole(terminated, 'exitCode')}"


def _main_summary(pod: Json, start: _Summary) -> _Summary:
    summary, running = start, False
    for status in reversed(items(pod, "status", "containerStatuses")):
        summary = summary.add_restarts(status)
        if text(status, "state", "waiting", "reason"):
            summary = summary._replace(word=text(status, "state", "waiting", "reason"))
        elif isinstance(value(status, "state", "terminated"), dict):
            summary = summary._replace(word=_end_word(mapping(status, "state", "terminated")))
        elif flag(status, "ready") and isinstance(value(status, "state", "running"), dict):
            running = True
            summary = summary._replace(ready=summary.ready + 1)
    if summary.word == "Completed" and running:
        is_ready = any(
            item.get("type") == "Ready" and item.get("status") == "True" for item in items(pod, "status", "conditions")
        )
        return summary._replace(word="Running" if is_ready else "NotReady")
    return summary


def _final_word(pod: Json, word: str) -> str:
    if not text(pod, "metadata", "deletionTimestamp"):
        return word
    if text(pod, "status", "reason") == "NodeLost":
        return "Unknown"
    return word if text(pod, "status", "phase") in _ENDED else "Terminating"


def _restarts(summary: _Summary, now: datetime) -> str:
    if summary.restarts and summary.last_restart is not None:
        return f"{summary.restarts} ({human(now - summary.last_restart)} ago)"
    return str(summary.restarts)


def _readiness_gates(pod: Json) -> str:
    gates = items(pod, "spec", "readinessGates")
    if not gates:
        return NONE
    status_of: dict[str, str] = {}
    for item in items(pod, "status", "conditions"):
        status_of.setdefault(text(item, "type"), text(item, "status"))
    met = sum(status_of.get(text(gate, "conditionType")) == "True" for gate in gates)
    return f"{met}/{len(gates)}"
