"""What stood in for kubelets when kubectl was recorded: it reported that pods run, and removed those that were deleted.

The nodes are Node objects without a kubelet; the scheduler and the controllers are those of `plimsoll up`.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.e2e.apiserver.processes import ApiServer

_MERGE: Final = "application/merge-patch+json"
_LONG_AGO: Final = "2026-01-01T00:00:00Z"
_SIZE: Final = {"cpu": "4", "ephemeral-storage": "100Gi", "memory": "8Gi", "pods": "110"}
_LOOKS_EVERY_S: Final = 0.05
_REPORTS_EVERY_S: Final = 5.0


def _conditions(heartbeat: str) -> list[dict[str, str]]:
    states = {"Ready": "True", "MemoryPressure": "False", "DiskPressure": "False", "PIDPressure": "False"}
    reported = {"reason": "Kubelet", "message": "m", "lastHeartbeatTime": heartbeat, "lastTransitionTime": _LONG_AGO}
    return [{"type": name, "status": status, **reported} for name, status in states.items()]


def make_node(server: ApiServer, name: str) -> None:
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "topology.kubernetes.io/zone": "z1",
    }
    status = {"capacity": _SIZE, "allocatable": _SIZE, "conditions": _conditions(_LONG_AGO)}
    code, answer = server.ask("POST", "/api/v1/nodes", {"metadata": {"name": name, "labels": labels}, "status": status})
    assert code == 201, answer


@contextmanager
def kubelets(server: ApiServer, *nodes: str) -> Iterator[None]:
    """For nodes that are there, until the end; whatever failed on the way is raised then."""
    at_an_end = threading.Event()
    failures: list[Exception] = []

    def look_after_pods() -> None:
        reported_s = time.monotonic()
        while not at_an_end.wait(_LOOKS_EVERY_S):
            try:
                for pod in server.ask("GET", "/api/v1/pods")[1]["items"]:
                    _look_after(server, pod)
                if time.monotonic() - reported_s > _REPORTS_EVERY_S:
                    reported_s = time.monotonic()
                    for name in nodes:
                        _report(server, name)
            except (OSError, KeyError, ValueError) as failure:
                failures.append(failure)
                return

    thread = threading.Thread(target=look_after_pods)
    thread.start()
    try:
        yield
    finally:
        at_an_end.set()
        thread.join()
    assert failures == []


def _report(server: ApiServer, node: str) -> None:
    """A node that says nothing is given up before all commands have been run."""
    conditions = _conditions(datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    server.ask("PATCH", f"/api/v1/nodes/{node}/status", {"status": {"conditions": conditions}}, content=_MERGE)


def _look_after(server: ApiServer, pod: dict[str, Any]) -> None:
    metadata = pod["metadata"]
    path = f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"
    if "deletionTimestamp" in metadata:
        server.ask("DELETE", path, {"gracePeriodSeconds": 0, "preconditions": {"uid": metadata["uid"]}})
    elif "nodeName" in pod["spec"] and pod["status"]["phase"] == "Pending":
        server.ask("PATCH", f"{path}/status", {"status": _running(pod)}, content=_MERGE)


def _running(pod: dict[str, Any]) -> dict[str, Any]:
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    conditions = [
        {"type": name, "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
        for name in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
    ]
    containers = [
        {
            "name": container["name"],
            "image": container["image"],
            "imageID": "",
            "lastState": {},
            "ready": True,
            "restartCount": 0,
            "started": True,
            "state": {"running": {"startedAt": now}},
        }
        for container in pod["spec"]["containers"]
    ]
    return {
        "phase": "Running",
        "startTime": now,
        "hostIP": "10.0.0.1",
        "podIP": "10.1.0.5",
        "podIPs": [{"ip": "10.1.0.5"}],
        "conditions": conditions,
        "containerStatuses": containers,
    }
