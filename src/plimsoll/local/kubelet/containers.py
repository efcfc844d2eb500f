"""The lifecycle of a container, computed from its status and the time: starts, ends, waits, restarts. Pure.

A state that has begun keeps the times in the object; a new one takes them from the clock. Ids are hashes of a
container's identity, so a kubelet that writes a state twice writes the same.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plimsoll.core.durations import add_seconds
from plimsoll.core.values import Value
from plimsoll.objects.api.meta import format_time
from plimsoll.objects.api.pods import ContainerStatus

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.local.kubelet.settings import Pace
    from plimsoll.objects.api.pods import Container, ContainerStateTerminated, Pod

# The kubelet's crash loop: restarted at once, then after 10 s, doubled up to 5 min; forgotten after 10 min of work.
_FIRST_BACKOFF_S: Final = 10.0
_LONGEST_BACKOFF_S: Final = 300.0
_BACKOFF_RESET_S: Final = 600.0
KILLED: Final = 137


class ContainerView(NamedTuple):
    """One container of a pod, as the object shows it."""

    pod: Pod
    container: Container
    status: ContainerStatus

    @property
    def restarts(self) -> int:
        return self.status.restart_count


class ContainerUpdate(Value, frozen=True):
    """A container's status from now on, and when it changes by itself; None: never."""

    status: dict[str, Any]
    until: datetime | None = None

    @property
    def is_running(self) -> bool:
        return "running" in self.status["state"]

    @property
    def exit_code(self) -> int | None:
        """None while it may still run."""
        ended = self.status["state"].get("terminated")
        return None if ended is None else int(ended["exitCode"])


def build_container_view(pod: Pod, container: Container, statuses: tuple[ContainerStatus, ...]) -> ContainerView:
    status = next(
        (container_status for container_status in statuses if container_status.name == container.name), _UNKNOWN
    )
    return ContainerView(pod=pod, container=container, status=status)


# ---- what a container can be


def build_waiting(view: ContainerView, reason: str, message: str = "") -> ContainerUpdate:
    """A container that has not started yet."""
    waiting = {"reason": reason, "message": message} if message else {"reason": reason}
    status = {"image": view.container.image, "imageID": "", "ready": False, "started": False}
    return ContainerUpdate(status=_build_status(view, {"waiting": waiting}, restarts=view.restarts, extra=status))


def build_running(
    view: ContainerView, now: datetime, *, restarts: int | None = None, last: dict[str, Any] | None = None
) -> ContainerUpdate:
    """A running container: since the time in its status, or from now on."""
    count = view.restarts if restarts is None else restarts
    before = view.status.state.running if restarts is None else None
    since = (before.started_at if before is not None else None) or now
    state = {"running": {"startedAt": format_time(since)}}
    return ContainerUpdate(
        status=_build_status(view, state, restarts=count, last=last, extra={"ready": True, "started": True})
    )


def complete_init(view: ContainerView, now: datetime) -> ContainerUpdate:
    """An init container that did its work; the kubelet calls it ready."""
    before = view.status.state.terminated
    ended = _keep(view, before) if before is not None else _build_terminated(view, 0, started=now, finished=now)
    return ContainerUpdate(
        status=_build_status(view, {"terminated": ended}, restarts=0, extra={"ready": True, "started": False})
    )


def stop(view: ContainerView, now: datetime, *, exit_code: int) -> ContainerUpdate:
    """It was asked to end, or killed. What never ran is not known to the runtime."""
    state = view.status.state
    if state.terminated is not None:
        ended = _keep(view, state.terminated)
    elif state.running is not None:
        ended = _build_terminated(view, exit_code, started=state.running.started_at or now, finished=now)
    else:
        ended = {
            "exitCode": KILLED,
            "reason": "ContainerStatusUnknown",
            "message": "The container could not be located when the pod was terminated",
        }
    return ContainerUpdate(status=_build_status(view, {"terminated": ended}, restarts=view.restarts, extra=_OVER))


def advance(view: ContainerView, now: datetime, *, pace: Pace, restart_policy: str) -> ContainerUpdate:
    """A container that was started, as time went on: it runs, has ended, or waits to be started again."""
    state = view.status.state
    over = state.terminated or view.status.last_state.terminated
    if state.running is not None:
        started = state.running.started_at or now
        finished = None if pace.run_s is None else add_seconds(started, pace.run_s)
        if finished is None or now < finished:
            return ContainerUpdate(status=build_running(view, now).status | _get_last_state(view), until=finished)
        ended = _build_terminated(view, pace.exit_code, started=started, finished=finished)
        return _build_ended(view, now, ended=ended, finished=finished, ran_s=pace.run_s or 0.0, policy=restart_policy)
    if over is None:
        return _run_for(view, now, pace)
    finished = over.finished_at or now
    ran_s = (finished - (over.started_at or finished)).total_seconds()
    ended = _keep(view, over)
    return _build_ended(view, now, ended=ended, finished=finished, ran_s=ran_s, policy=restart_policy)


# ---- inside

_UNKNOWN: Final = ContainerStatus()
_OVER: Final = {"ready": False, "started": False}


def _run_for(view: ContainerView, now: datetime, pace: Pace) -> ContainerUpdate:
    until = None if pace.run_s is None else add_seconds(now, pace.run_s)
    return ContainerUpdate(status=build_running(view, now).status, until=until)


def _build_ended(
    view: ContainerView,
    now: datetime,
    *,
    ended: dict[str, Any],
    finished: datetime,
    ran_s: float,
    policy: str,
) -> ContainerUpdate:
    code = int(ended["exitCode"])
    if policy == "Never" or (policy == "OnFailure" and code == 0):
        return ContainerUpdate(
            status=_build_status(view, {"terminated": ended}, restarts=view.restarts, extra=_OVER)
            | _get_last_state(view)
        )
    backoff_s = _compute_backoff_s(view.restarts, ran_s)
    again_at = add_seconds(finished, backoff_s)
    if again_at <= now:
        return build_running(view, now, restarts=view.restarts + 1, last={"terminated": ended})
    container, pod = view.container.name, _format_full_name(view)
    text = f"back-off {_format_go_duration(backoff_s)} restarting failed container={container} pod={pod}"
    state = {"waiting": {"reason": "CrashLoopBackOff", "message": text}}
    status = _build_status(view, state, restarts=view.restarts, last={"terminated": ended}, extra=_OVER)
    return ContainerUpdate(status=status, until=again_at)


def _compute_backoff_s(restarts: int, ran_s: float) -> float:
    if restarts == 0 or ran_s >= _BACKOFF_RESET_S:
        return 0.0
    return min(_FIRST_BACKOFF_S * 2.0 ** min(restarts - 1, 10), _LONGEST_BACKOFF_S)


def _format_go_duration(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


def _build_status(
    view: ContainerView,
    state: dict[str, Any],
    *,
    restarts: int,
    last: dict[str, Any] | None = None,
    extra: dict[str, Any],
) -> dict[str, Any]:
    container = view.container
    status: dict[str, Any] = {
        "name": container.name,
        "state": state,
        "lastState": last or {},
        "restartCount": restarts,
        "image": normalize_image_name(container.image),
        "imageID": _compute_image_id(container.image),
        **extra,
    }
    if last or _has_run(state):
        status["containerID"] = _compute_container_id(view, restarts)
    if container.resources.requests or container.resources.limits:
        given = {"requests": container.resources.requests, "limits": container.resources.limits}
        status["resources"] = {name: amounts for name, amounts in given.items() if amounts}
        if container.resources.requests:
            status["allocatedResources"] = container.resources.requests
    return status


def _has_run(state: dict[str, Any]) -> bool:
    return "running" in state or ("terminated" in state and "startedAt" in state["terminated"])


def _get_last_state(view: ContainerView) -> dict[str, Any]:
    """How it ended before, which stays in sight while it runs again."""
    before = view.status.last_state.terminated
    return {} if before is None else {"lastState": {"terminated": _keep(view, before, restarts=view.restarts - 1)}}


def _build_terminated(view: ContainerView, exit_code: int, *, started: datetime, finished: datetime) -> dict[str, Any]:
    return {
        "exitCode": exit_code,
        "reason": "Error" if exit_code else "Completed",
        "startedAt": format_time(started),
        "finishedAt": format_time(finished),
        "containerID": _compute_container_id(view, view.restarts),
    }


def _keep(view: ContainerView, ended: ContainerStateTerminated, *, restarts: int | None = None) -> dict[str, Any]:
    kept: dict[str, Any] = {
        "exitCode": ended.exit_code,
        "reason": ended.reason,
    }
    if ended.message:
        kept["message"] = ended.message
    if ended.finished_at is not None:
        kept["finishedAt"] = format_time(ended.finished_at)
    if ended.started_at is not None:
        kept["startedAt"] = format_time(ended.started_at)
        kept["containerID"] = _compute_container_id(view, view.restarts if restarts is None else restarts)
    return kept


def _format_full_name(view: ContainerView) -> str:
    metadata = view.pod.metadata
    return f"{metadata.name}_{metadata.namespace}({metadata.uid})"


def _compute_container_id(view: ContainerView, restarts: int) -> str:
    return f"containerd://{_digest(f'{view.pod.metadata.uid}/{view.container.name}/{restarts}')}"


def _compute_image_id(image: str) -> str:
    repository = normalize_image_name(image).partition("@")[0]
    head, slash, last = repository.rpartition("/")
    return f"{head}{slash}{last.partition(':')[0]}@sha256:{_digest(normalize_image_name(image))}"


def normalize_image_name(image: str) -> str:
    """An image by its full name, as a container runtime calls it: `nginx` is `docker.io/library/nginx:latest`."""
    first, slash, _ = image.partition("/")
    is_host = bool(slash) and ("." in first or ":" in first or first == "localhost")
    full = image if is_host else f"docker.io/{image}" if slash else f"docker.io/library/{image}"
    return full if "@" in full or ":" in full.rpartition("/")[2] else f"{full}:latest"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
