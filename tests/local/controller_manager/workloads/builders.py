"""A cluster with stateful sets, daemon sets and jobs, and nothing else: no scheduler, kubelet or garbage collector.

Tests say themselves what becomes of pods. `gone` finishes what a kubelet would have to finish.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from plimsoll.local.controller_manager.workloads.daemon_sets.controller import build_daemon_set_services
from plimsoll.local.controller_manager.workloads.jobs.controller import build_job_services
from plimsoll.local.controller_manager.workloads.stateful_sets.controller import build_stateful_set_services
from plimsoll.objects.api.meta import format_time
from tests.effort import choose_calls
from tests.faults import CrashAfter
from tests.local.apiserver.builders import MERGE
from tests.local.local_cluster import CrashingLocalCluster, LocalClusterHarness

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plimsoll.local.components import Components
    from plimsoll.runtime.supervisor import Service

    Parts = Callable[[Components], Sequence[Service]]

NAMESPACE = "here"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
CLAIMS = f"/api/v1/namespaces/{NAMESPACE}/persistentvolumeclaims"
EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"
APPS = f"/apis/apps/v1/namespaces/{NAMESPACE}"
JOBS = f"/apis/batch/v1/namespaces/{NAMESPACE}/jobs"
NODES = "/api/v1/nodes"


def all_sets(components: Components) -> Sequence[Service]:
    return [
        *build_stateful_set_services(components),
        *build_daemon_set_services(components),
        *build_job_services(components),
    ]


class WorkloadCluster(LocalClusterHarness):
    """With the namespace `here`."""

    def __init__(self, parts: Parts = all_sets, *, through: Callable[[Any], Any] = lambda port: port) -> None:
        super().__init__(parts, through=through)

    def __enter__(self) -> Self:
        super().__enter__()
        self.namespace(NAMESPACE)
        return self

    # ---- asking

    def all(self, url: str, selector: str = "") -> list[Any]:
        return list(self.ask("GET", f"{url}?labelSelector={selector}" if selector else url).body["items"])

    @property
    def pods(self) -> list[Any]:
        return self.all(PODS)

    @property
    def names(self) -> list[str]:
        return sorted(pod["metadata"]["name"] for pod in self.pods)

    def get(self, url: str) -> Any:
        return self.ask("GET", url).body

    def reported(self, kind: str) -> list[tuple[str, str]]:
        events = self.ask("GET", f"{EVENTS}?fieldSelector=involvedObject.kind={kind}").body["items"]
        return [(event["reason"], event["message"]) for event in events]

    # ---- doing

    def make(self, url: str, body: Any) -> Any:
        made = self.made(url, body)
        self.run.settle()
        return made

    def patch(self, url: str, body: Any, *, content: str = MERGE) -> Any:
        reply = self.ask("PATCH", url, body, content=content)
        assert reply.status == 200, reply
        self.run.settle()
        return reply.body

    def phase(self, name: str, phase: str, *, ready: bool = False) -> None:
        """What a kubelet says of a pod."""
        now = format_time(self.run.clock.now())
        conditions = [{"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": now}]
        self.patch(f"{PODS}/{name}/status", {"status": {"phase": phase, "conditions": conditions}})

    def ready(self, name: str) -> None:
        self.phase(name, "Running", ready=True)

    def all_ready(self) -> None:
        """Each pod that there is now, as far as it is still there when its turn comes."""
        for name in [pod["metadata"]["name"] for pod in self.pods if not _is_ready(pod)]:
            if name in self.names:
                self.ready(name)

    def delete(self, url: str) -> None:
        reply = self.ask("DELETE", url, {"gracePeriodSeconds": 0} if "/pods/" in url else None)
        assert reply.status in {200, 202}, reply
        self.run.settle()


class CrashingWorkloadCluster(CrashingLocalCluster, WorkloadCluster):
    """The process dies after some call; the next one goes on. Steps may be taken twice, so they say what is wanted."""

    def __init__(self, parts: Parts, crash: CrashAfter) -> None:
        self.crashes_by(crash)
        super().__init__(parts, through=self.through_the_crash)


def sweep_crashes(parts: Parts, story: Callable[[CrashingWorkloadCluster], None]) -> int:
    """The story with a crash after calls of the controllers in turn; gives how many calls there were."""
    completed = 0
    for number in choose_calls(1000):
        crash = CrashAfter(number)
        with CrashingWorkloadCluster(parts, crash) as world:
            story(world)
        if crash.struck is None:
            return completed
        completed = number
    raise AssertionError("is there an end to this?")


def _is_ready(pod: Any) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


# ---- builders


def template(app: str, *, image: str = "nginx:1", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": image}]
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": containers, "terminationGracePeriodSeconds": 0, **spec},
    }


def stateful_set(name: str = "s", *, replicas: int = 2, **spec: Any) -> dict[str, Any]:
    whole = {
        "replicas": replicas,
        "serviceName": name,
        "selector": {"matchLabels": {"app": name}},
        "template": template(name),
        **spec,
    }
    return {"apiVersion": "apps/v1", "kind": "StatefulSet", "metadata": {"name": name}, "spec": whole}


def daemon_set(name: str = "d", *, pod: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    whole = {"selector": {"matchLabels": {"app": name}}, "template": template(name, **(pod or {})), **spec}
    return {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": name}, "spec": whole}


def job(name: str = "j", **spec: Any) -> dict[str, Any]:
    whole = {"template": template(name, restartPolicy="Never"), **spec}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": whole}


def node(name: str, **more: Any) -> dict[str, Any]:
    labels = more.pop("labels", {})
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "spec": more}


def with_image(image: str) -> dict[str, Any]:
    """A patch that asks for another image."""
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}
