"""The table row of a pod: its phase, containers and conditions summarised in one word.

The word is derived in Kubernetes' order; people and scripts read `CrashLoopBackOff` and `Init:1/2` from it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plimsoll.local.apiserver.presentation.durations import format_age, format_duration, parse_timestamp
from plimsoll.local.apiserver.presentation.field_access import (
    NONE,
    Json,
    find_condition,
    get_flag,
    get_int,
    get_items,
    get_mapping,
    get_name,
    get_text,
    get_value,
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


def build_row_conditions(pod: Json) -> list[dict[str, str]]:
    """The conditions of a row: whether the pod has ended."""
    return _ENDED.get(get_text(pod, "status", "phase"), [])


def build_pod_cells(pod: Json, now: datetime) -> list[Any]:
    summary = _summarize(pod)
    total = len(get_items(pod, "spec", "containers")) + len(_find_sidecars(pod))
    first_ip = next(iter(get_items(pod, "status", "podIPs")), {})
    return [
        get_name(pod),
        f"{summary.ready}/{total}",
        _choose_final_status(pod, summary.word),
        _format_restarts(summary, now),
        format_age(pod, now),
        get_text(first_ip, "ip") or NONE,
        get_text(pod, "spec", "nodeName") or NONE,
        get_text(pod, "status", "nominatedNodeName") or NONE,
        _format_readiness_gates(pod),
    ]


class _Summary(NamedTuple):
    """What the containers come to: one word, how many are ready, how often they were restarted and when last."""

    word: str
    ready: int = 0
    restarts: int = 0
    last_restart: datetime | None = None

    def add_restarts(self, status: Json) -> _Summary:
        ended = parse_timestamp(get_value(status, "lastState", "terminated", "finishedAt"))
        known = [item for item in (self.last_restart, ended) if item is not None]
        return self._replace(
            restarts=self.restarts + get_int(status, "restartCount"), last_restart=max(known) if known else None
        )


def _summarize(pod: Json) -> _Summary:
    start = _Summary(_read_initial_status(pod))
    initial, of_sidecars, initializing = _init_summary(pod, start)
    initialized = find_condition(pod, "Initialized")
    if initializing and get_text(initialized, "status") != "True":
        return initial
    # Once the pod is initialised, restarts of containers that ran to their end are history.
    return _summarize_main_containers(
        pod, initial._replace(restarts=of_sidecars.restarts, last_restart=of_sidecars.last_restart)
    )


def _read_initial_status(pod: Json) -> str:
    gated = any(
        item.get("type") == "PodScheduled" and item.get("reason") == "SchedulingGated"
        for item in get_items(pod, "status", "conditions")
    )
    return "SchedulingGated" if gated else get_text(pod, "status", "reason") or get_text(pod, "status", "phase")


def _find_sidecars(pod: Json) -> set[str]:
    """Names of init containers that keep running."""
    return {
        get_text(item, "name")
        for item in get_items(pod, "spec", "initContainers")
        if item.get("restartPolicy") == "Always"
    }


def _init_summary(pod: Json, start: _Summary) -> tuple[_Summary, _Summary, bool]:
    """All init containers, the sidecars among them, and whether one of them holds the pod up."""
    sidecars = _find_sidecars(pod)
    everything, of_sidecars = start, start
    for position, status in enumerate(get_items(pod, "status", "initContainerStatuses")):
        everything = everything.add_restarts(status)
        is_sidecar = get_text(status, "name") in sidecars
        if is_sidecar:
            of_sidecars = of_sidecars.add_restarts(status)
        terminated = get_value(status, "state", "terminated")
        if isinstance(terminated, dict) and get_int(terminated, "exitCode") == 0:
            continue
        if is_sidecar and get_flag(status, "started"):
            everything = everything._replace(ready=everything.ready + get_flag(status, "ready"))
            continue
        word = _init_word(status, position, len(get_items(pod, "spec", "initContainers")))
        return everything._replace(word=word), of_sidecars, True
    return everything, of_sidecars, False


def _init_word(status: Json, position: int, total: int) -> str:
    if isinstance(get_value(status, "state", "terminated"), dict):
        return f"Init:{_describe_end(get_mapping(status, 'state', 'terminated'))}"
    waiting = get_text(status, "state", "waiting", "reason")
    return f"Init:{waiting}" if waiting and waiting != "PodInitializing" else f"Init:{position}/{total}"


def _describe_end(terminated: Json) -> str:
    if get_text(terminated, "reason"):
        return get_text(terminated, "reason")
    if get_int(terminated, "signal"):
        return f"Signal:{get_int(terminated, 'signal')}"
    return f"ExitCode:{get_int(terminated, 'exitCode')}"


def _summarize_main_containers(pod: Json, start: _Summary) -> _Summary:
    summary, running = start, False
    for status in reversed(get_items(pod, "status", "containerStatuses")):
        summary = summary.add_restarts(status)
        if get_text(status, "state", "waiting", "reason"):
            summary = summary._replace(word=get_text(status, "state", "waiting", "reason"))
        elif isinstance(get_value(status, "state", "terminated"), dict):
            summary = summary._replace(word=_describe_end(get_mapping(status, "state", "terminated")))
        elif get_flag(status, "ready") and isinstance(get_value(status, "state", "running"), dict):
            running = True
            summary = summary._replace(ready=summary.ready + 1)
    if summary.word == "Completed" and running:
        is_ready = any(
            item.get("type") == "Ready" and item.get("status") == "True"
            for item in get_items(pod, "status", "conditions")
        )
        return summary._replace(word="Running" if is_ready else "NotReady")
    return summary


def _choose_final_status(pod: Json, word: str) -> str:
    if not get_text(pod, "metadata", "deletionTimestamp"):
        return word
    if get_text(pod, "status", "reason") == "NodeLost":
        return "Unknown"
    return word if get_text(pod, "status", "phase") in _ENDED else "Terminating"


def _format_restarts(summary: _Summary, now: datetime) -> str:
    if summary.restarts and summary.last_restart is not None:
        return f"{summary.restarts} ({format_duration(now - summary.last_restart)} ago)"
    return str(summary.restarts)


def _format_readiness_gates(pod: Json) -> str:
    gates = get_items(pod, "spec", "readinessGates")
    if not gates:
        return NONE
    status_of: dict[str, str] = {}
    for item in get_items(pod, "status", "conditions"):
        status_of.setdefault(get_text(item, "type"), get_text(item, "status"))
    met = sum(status_of.get(get_text(gate, "conditionType")) == "True" for gate in gates)
    return f"{met}/{len(gates)}"
