"""The status of a pod whose containers are a real process, and whether the process has to be started. Pure.

The virtual kubelet runs most pods by the clock (`pod_status`). A `ContainerRuntime` runs some of them for real; their
status follows what the runtime reports. Restarts and their back-off are the kubelet's for both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from plimsoll.core.values import Value
from plimsoll.local.kubelet.containers import KILLED, ContainerUpdate, advance
from plimsoll.local.kubelet.pod_status import (
    TERMINAL,
    PodStatusUpdate,
    PodUnchanged,
    RemovePod,
    build_advanced,
    build_ended,
    build_pending,
    build_update,
    has_started,
    list_main_containers,
    remove_or_keep,
)
from plimsoll.local.kubelet.settings import Pace

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from plimsoll.kube.informer.events import Key
    from plimsoll.local.kubelet.containers import ContainerView
    from plimsoll.local.kubelet.pod_status import PodAddresses
    from plimsoll.objects.api.pods import Pod


class ContainerProcess(Value, frozen=True):
    """The process of a pod's containers. Without an exit code it runs, or is about to."""

    is_running: bool = False
    is_ready: bool = False
    exit_code: int | None = None
    message: str = ""
    """What its start waits for."""


class ContainerRuntime(Protocol):
    """Runs the containers of some pods for real."""

    address: str
    """The address of its pods."""

    def can_run(self, pod: Pod) -> bool: ...

    def find_process(self, pod: Pod) -> ContainerProcess | None:
        """None: it was not started, or not by this process."""
        ...

    def start(self, pod: Pod) -> None:
        """Begin to start it, unless it runs."""
        ...

    def stop(self, pod: Pod) -> None:
        """Begin to stop it; it is killed at the end of the pod's grace period."""
        ...

    def remove(self, pod: Pod) -> None:
        """The object is gone: nothing of the pod is needed any longer."""
        ...

    def subscribe(self, on_change: Callable[[Key], None]) -> None:
        """Report every pod whose process changed."""
        ...


class ProcessPlan(Value, frozen=True):
    """What to do about the object, and whether to start the process."""

    plan: PodStatusUpdate | PodUnchanged | RemovePod
    starts: bool = False


def compute_process_status(
    pod: Pod, now: datetime, *, place: PodAddresses, process: ContainerProcess | None
) -> ProcessPlan:
    """What is to be done about a pod which its node has admitted."""
    if pod.status.phase in TERMINAL:
        return ProcessPlan(plan=remove_or_keep(pod))
    if pod.metadata.deletion_timestamp is not None:
        if process is not None and process.exit_code is None:
            return ProcessPlan(plan=PodUnchanged())
        exit_code = KILLED if process is None else process.exit_code or 0
        return ProcessPlan(plan=build_update(pod, build_ended(pod, now, place=place, exit_code=exit_code)))
    if not has_started(pod) and (process is None or not (process.is_running or process.exit_code is not None)):
        message = "" if process is None else process.message
        return ProcessPlan(
            plan=build_update(pod, build_pending(pod, now, place, message=message)), starts=process is None
        )
    # A process that an earlier kubelet started has ended with that.
    process = process or ContainerProcess(exit_code=KILLED)
    views = list_main_containers(pod)
    mains = [_advance(view, now, process) for view in views]
    starts = process.exit_code is not None and any(
        became.is_running and became.status["restartCount"] > view.restarts
        for view, became in zip(views, mains, strict=True)
    )
    wanted, until = build_advanced(pod, now, place=place, mains=mains)
    return ProcessPlan(plan=build_update(pod, wanted, until), starts=starts)


def _advance(view: ContainerView, now: datetime, process: ContainerProcess) -> ContainerUpdate:
    running = view.status.state.running
    run_s = None
    if process.exit_code is not None:
        started = None if running is None else running.started_at
        run_s = 0.0 if started is None else max((now - started).total_seconds(), 0.0)
    pace = Pace(start_s=0.0, stop_s=0.0, run_s=run_s, exit_code=process.exit_code or 0)
    became = advance(view, now, pace=pace, restart_policy=view.pod.spec.restart_policy or "Always")
    if not became.is_running:
        return became
    is_ready = process.is_ready and process.exit_code is None
    return ContainerUpdate(status=became.status | {"ready": is_ready}, until=became.until)
