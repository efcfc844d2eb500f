"""The status that a pod's kubelet writes at a given moment, and when it changes next. Pure.

    Pending ──start──▶ Running ──containers end──▶ Succeeded | Failed
       └──────────────────┴──────────deleted──────────────┘ ──▶ removed

`compute_pod_status` reads the pod, its pace annotations and the time. The times that decide a pod's future are in its
status (`startTime`, `startedAt`, `finishedAt`) and metadata (`deletionTimestamp`), so another kubelet that takes the
node over continues where this one was. Whole seconds: that is the precision of Kubernetes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.durations import add_seconds
from plimsoll.core.values import Value
from plimsoll.local.kubelet.containers import (
    KILLED,
    ContainerUpdate,
    ContainerView,
    advance,
    build_container_view,
    build_running,
    build_waiting,
    complete_init,
    stop,
)
from plimsoll.local.kubelet.pod_conditions import PodFacts, build_conditions
from plimsoll.local.kubelet.pod_patches import build_status_patch
from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from plimsoll.local.kubelet.settings import Pace
    from plimsoll.objects.api.pods import Container, Pod

TERMINAL: Final = frozenset({"Succeeded", "Failed"})

_SIGTERM_EXIT: Final = 143

# Times in conditions are whole seconds, rounded down.
_WRITTEN_TO_S: Final = 1.0


class PodAddresses(Value, frozen=True):
    """Where the pod is: the node's address and its own."""

    host_ip: str
    pod_ip: str


class PodStatusUpdate(Value, frozen=True):
    """Patch the pod's status so; look again at `until`."""

    patch: dict[str, Any]
    until: datetime | None
    phase: str


class PodUnchanged(Value, frozen=True):
    """The status is up to date until `until`; None: until a change."""

    until: datetime | None = None


class RemovePod(Value, frozen=True):
    """The pod was to go and nothing of it runs any more: delete the object."""


def compute_pod_status(
    pod: Pod, now: datetime, *, place: PodAddresses, pace: Pace
) -> PodStatusUpdate | PodUnchanged | RemovePod:
    """What is to be done about a pod which its node has admitted."""
    metadata, status = pod.metadata, pod.status
    if status.phase in TERMINAL:
        return remove_or_keep(pod)
    if metadata.deletion_timestamp is not None:
        return _compute_terminating(pod, now, place=place, pace=pace)
    deadline = _compute_deadline(pod)
    if deadline is not None and deadline <= now:
        return build_update(pod, _build_past_deadline(pod, now, place))
    starts_at = add_seconds(_find_start_time(pod, now), pace.start_s)
    if now < starts_at and not has_started(pod):
        return build_update(pod, build_pending(pod, now, place), _find_earliest(starts_at, deadline))
    wanted, until = _start(pod, now, place=place, pace=pace)
    return build_update(pod, wanted, _find_earliest(until, deadline))


def reject(pod: Pod, now: datetime, *, reason: str, message: str) -> PodStatusUpdate:
    """The node does not take the pod."""
    wanted: dict[str, Any] = {
        "phase": "Failed",
        "reason": reason,
        "message": f"Pod was rejected: {message}",
        "startTime": format_time(pod.status.start_time or now),
    }
    if pod.metadata.generation:
        wanted["observedGeneration"] = pod.metadata.generation
    return PodStatusUpdate(patch=wanted, until=None, phase="Failed")


# ---- the states


def remove_or_keep(pod: Pod) -> PodUnchanged | RemovePod:
    """With finalizers the object stays, and its grace period of 0 shows that we are through with it."""
    is_going = pod.metadata.deletion_timestamp is not None
    return RemovePod() if is_going and pod.metadata.deletion_grace_period_seconds != 0 else PodUnchanged()


def _compute_terminating(
    pod: Pod, now: datetime, *, place: PodAddresses, pace: Pace
) -> PodStatusUpdate | PodUnchanged | RemovePod:
    metadata = pod.metadata
    killed_at = metadata.deletion_timestamp or now
    grace_s = metadata.deletion_grace_period_seconds or 0
    ends_at = min(killed_at, add_seconds(killed_at, pace.stop_s - grace_s))
    if now < ends_at:
        return PodUnchanged(until=ends_at)
    if not pace.reports_end:
        return RemovePod()
    # A server that was stopped has done its work; work that was cut short has not.
    obeyed = 0 if pod.spec.restart_policy in {"", "Always"} else _SIGTERM_EXIT
    exit_code = KILLED if pace.stop_s > grace_s else obeyed
    return build_update(pod, build_ended(pod, now, place=place, exit_code=exit_code))


def _build_past_deadline(pod: Pod, now: datetime, place: PodAddresses) -> dict[str, Any]:
    wanted = build_ended(pod, now, place=place, exit_code=KILLED)
    message = "Pod was active on the node longer than the specified deadline"
    return wanted | {"phase": "Failed", "reason": "DeadlineExceeded", "message": message}


def build_pending(pod: Pod, now: datetime, place: PodAddresses, *, message: str = "") -> dict[str, Any]:
    """The status of a pod whose containers were not started yet. `message`: what they wait for."""
    reason = "PodInitializing" if pod.spec.init_containers else "ContainerCreating"
    inits = [build_waiting(init, reason) for init in _list_init_containers(pod)]
    mains = [build_waiting(main, reason, message) for main in list_main_containers(pod)]
    facts = PodFacts(
        phase="Pending",
        has_sandbox=False,
        uninitialized=[container.name for container in pod.spec.init_containers],
        unready=_list_unready(pod, inits, mains),
    )
    return _build_status(
        pod, now, facts=facts, place=PodAddresses(host_ip=place.host_ip, pod_ip=""), inits=inits, mains=mains
    )


def _start(pod: Pod, now: datetime, *, place: PodAddresses, pace: Pace) -> tuple[dict[str, Any], datetime | None]:
    policy = pod.spec.restart_policy or "Always"
    mains = [advance(main, now, pace=pace, restart_policy=policy) for main in list_main_containers(pod)]
    return build_advanced(pod, now, place=place, mains=mains)


def build_advanced(
    pod: Pod, now: datetime, *, place: PodAddresses, mains: Sequence[ContainerUpdate]
) -> tuple[dict[str, Any], datetime | None]:
    """The status of a pod whose main containers were started, and when it changes by itself."""
    codes = [became.exit_code for became in mains]
    if all(code is not None for code in codes):
        inits = [
            stop(init, now, exit_code=0) if _is_sidecar(init.container) else complete_init(init, now)
            for init in _list_init_containers(pod)
        ]
        phase = "Failed" if any(codes) else "Succeeded"
        facts = PodFacts(phase=phase, has_sandbox=False, uninitialized=(), unready=())
        return _build_status(pod, now, facts=facts, place=place, inits=inits, mains=mains), None
    inits = [
        build_running(init, now) if _is_sidecar(init.container) else complete_init(init, now)
        for init in _list_init_containers(pod)
    ]
    facts = PodFacts(phase="Running", has_sandbox=True, uninitialized=(), unready=_list_unready(pod, inits, mains))
    wanted = _build_status(pod, now, facts=facts, place=place, inits=inits, mains=mains)
    return wanted, _find_earliest(*(became.until for became in mains))


def build_ended(pod: Pod, now: datetime, *, place: PodAddresses, exit_code: int) -> dict[str, Any]:
    """The status of a pod whose containers were stopped."""
    mains = [stop(main, now, exit_code=exit_code) for main in list_main_containers(pod)]
    inits = [stop(init, now, exit_code=exit_code) for init in _list_init_containers(pod)]
    phase = "Failed" if any(became.exit_code for became in mains) else "Succeeded"
    has_begun = has_started(pod)
    facts = PodFacts(
        phase=phase,
        has_sandbox=False,
        uninitialized=() if has_begun else [container.name for container in pod.spec.init_containers],
        unready=(),
    )
    place = place if has_begun else PodAddresses(host_ip=place.host_ip, pod_ip="")
    return _build_status(pod, now, facts=facts, place=place, inits=inits, mains=mains)


# ---- parts


def build_update(pod: Pod, wanted: dict[str, Any], until: datetime | None = None) -> PodStatusUpdate | PodUnchanged:
    """What of a status has to be written."""
    patch = build_status_patch(pod, wanted)
    return PodStatusUpdate(patch=patch, until=until, phase=wanted["phase"]) if patch else PodUnchanged(until=until)


def _build_status(
    pod: Pod,
    now: datetime,
    *,
    facts: PodFacts,
    place: PodAddresses,
    inits: Sequence[ContainerUpdate],
    mains: Sequence[ContainerUpdate],
) -> dict[str, Any]:
    status: dict[str, Any] = {
        "phase": facts.phase,
        "conditions": build_conditions(pod, facts, now),
        "startTime": format_time(pod.status.start_time or now),
        "containerStatuses": [became.status for became in mains],
    }
    if inits:
        status["initContainerStatuses"] = [became.status for became in inits]
    if pod.metadata.generation:
        status["observedGeneration"] = pod.metadata.generation
    if place.host_ip:
        status |= {"hostIP": place.host_ip, "hostIPs": [{"ip": place.host_ip}]}
    if place.pod_ip:
        status |= {"podIP": place.pod_ip, "podIPs": [{"ip": place.pod_ip}]}
    return status


def list_main_containers(pod: Pod) -> list[ContainerView]:
    return [build_container_view(pod, container, pod.status.container_statuses) for container in pod.spec.containers]


def _list_init_containers(pod: Pod) -> list[ContainerView]:
    return [
        build_container_view(pod, container, pod.status.init_container_statuses)
        for container in pod.spec.init_containers
    ]


def _is_sidecar(container: Container) -> bool:
    return container.restart_policy == "Always"


def _list_unready(pod: Pod, inits: Sequence[ContainerUpdate], mains: Sequence[ContainerUpdate]) -> list[str]:
    """Sidecars count among the containers whose readiness is the pod's."""
    sidecars = [
        became for container, became in zip(pod.spec.init_containers, inits, strict=True) if _is_sidecar(container)
    ]
    return [became.status["name"] for became in (*sidecars, *mains) if not became.status["ready"]]


def has_started(pod: Pod) -> bool:
    return any(
        container_status.state.running is not None
        or container_status.state.terminated is not None
        or container_status.last_state.terminated is not None
        for container_status in pod.status.container_statuses
    )


def _find_start_time(pod: Pod, now: datetime) -> datetime:
    """When the node began with the pod: when it was bound, even if this process comes to it late.

    So where thousands are bound at once, one that should run by now is not first reported as starting.
    """
    if pod.status.start_time is not None:
        return pod.status.start_time
    for condition in pod.status.conditions:
        if (
            condition.type == "PodScheduled"
            and condition.status == "True"
            and condition.last_transition_time is not None
        ):
            return min(now, add_seconds(condition.last_transition_time, _WRITTEN_TO_S))
    return now


def _compute_deadline(pod: Pod) -> datetime | None:
    allowed_s, since = pod.spec.active_deadline_seconds, pod.status.start_time
    return None if allowed_s is None or since is None else add_seconds(since, allowed_s)


def _find_earliest(*moments: datetime | None) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)
