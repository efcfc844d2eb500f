"""The Events that a kubelet records about a pod: pulled, created, started, stopping, backing off, rejected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from plimsoll.kube.recorder import EventType, build_reference

if TYPE_CHECKING:
    from plimsoll.kube.recorder import EventRecorder
    from plimsoll.objects.api.meta import ObjectReference
    from plimsoll.objects.api.pods import Container, ContainerStatus, Pod
    from plimsoll.objects.api.resource import Resource


class PodEvents:
    """Records the Events of status changes, as `kubectl describe pod` prints them."""

    def __init__(self, recorder: EventRecorder, resource: Resource) -> None:
        self._recorder = recorder
        self._resource = resource
        self._stopping: set[str] = set()

    def record_changes(self, before: Pod, after: Pod) -> None:
        """A status was written."""
        if after.status.phase == "Failed" and after.status.reason.startswith("OutOf"):
            message = after.status.message.removeprefix("Pod was rejected: ")
            self._record(after, EventType.WARNING, after.status.reason, message)
            return
        if after.metadata.deletion_timestamp is not None:
            self.record_stop(before)
            return
        was = {
            container_status.name: container_status
            for container_status in (*before.status.init_container_statuses, *before.status.container_statuses)
        }
        now = {
            container_status.name: container_status
            for container_status in (*after.status.init_container_statuses, *after.status.container_statuses)
        }
        for field, containers in (
            ("initContainers", after.spec.init_containers),
            ("containers", after.spec.containers),
        ):
            for container in containers:
                if container.name in now:
                    self._record_about_container(after, field, container, was.get(container.name), now[container.name])

    def record_stop(self, pod: Pod) -> None:
        """Record once that the containers are being stopped."""
        if pod.metadata.uid in self._stopping:
            return
        self._stopping.add(pod.metadata.uid)
        for container_status in pod.status.container_statuses:
            if container_status.state.running is not None:
                where = f"spec.containers{{{container_status.name}}}"
                self._record(pod, EventType.NORMAL, "Killing", f"Stopping container {container_status.name}", where)

    def forget(self, pod: Pod) -> None:
        self._stopping.discard(pod.metadata.uid)

    def _record_about_container(
        self, pod: Pod, field: str, container: Container, was: ContainerStatus | None, now: ContainerStatus
    ) -> None:
        where = f"spec.{field}{{{container.name}}}"
        if _starts(now) > (_starts(was) if was is not None else 0):
            self._report_pulled(pod, container, where)
            self._record(pod, EventType.NORMAL, "Created", f"Created container: {container.name}", where)
            self._record(pod, EventType.NORMAL, "Started", f"Started container {container.name}", where)
        elif now.state.waiting is not None and now.state.waiting.reason == "CrashLoopBackOff":
            metadata = pod.metadata
            whose = f"{metadata.name}_{metadata.namespace}({metadata.uid})"
            message = f"Back-off restarting failed container {container.name} in pod {whose}"
            self._record(pod, EventType.WARNING, "BackOff", message, where)

    def _report_pulled(self, pod: Pod, container: Container, where: str) -> None:
        """Nothing is pulled, so it takes no time and has no size; every image is on every node."""
        image = f'image "{container.image}"'
        if container.image_pull_policy == "Always":
            self._record(pod, EventType.NORMAL, "Pulling", f"Pulling {image}", where)
            message = f"Successfully pulled {image} in 0s (0s including waiting). Image size: 0 bytes."
        else:
            message = f"Container {image} already present on machine"
        self._record(pod, EventType.NORMAL, "Pulled", message, where)

    def _record(self, pod: Pod, event_type: EventType, reason: str, message: str, where: str = "") -> None:
        self._recorder.record(self._build_reference(pod, where), event_type, reason=reason, message=message)

    def _build_reference(self, pod: Pod, where: str) -> ObjectReference:
        return msgspec.structs.replace(build_reference(self._resource, pod), field_path=where)


def _starts(status: ContainerStatus) -> int:
    """How often the container was started."""
    has_run = status.state.waiting is None and (
        status.state.running is not None or (status.state.terminated is not None and bool(status.container_id))
    )
    return status.restart_count + has_run if status.last_state.terminated is None else status.restart_count + 1
