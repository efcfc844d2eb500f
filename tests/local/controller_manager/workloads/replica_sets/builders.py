"""A cluster with replica sets and deployments and no kubelet: tests say themselves what becomes of pods."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from plimsoll.local.controller_manager.workloads.deployments.controller import build_deployment_services
from plimsoll.local.controller_manager.workloads.replica_sets.controller import build_replica_set_services
from plimsoll.objects.api.meta import format_time
from tests.local.apiserver.builders import MERGE
from tests.local.local_cluster import LocalClusterHarness

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plimsoll.local.components import Components
    from plimsoll.runtime.supervisor import Service

NAMESPACE = "here"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"
SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/replicasets"
DEPLOYMENTS = f"/apis/apps/v1/namespaces/{NAMESPACE}/deployments"


def both(components: Components) -> Sequence[Service]:
    return [*build_replica_set_services(components), *build_deployment_services(components)]


class ReplicaSetCluster(LocalClusterHarness):
    """With the namespace `here`."""

    def __init__(
        self,
        parts: Callable[[Components], Sequence[Service]] = both,
        *,
        through: Callable[[Any], Any] = lambda port: port,
    ) -> None:
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
    def live_pods(self) -> list[Any]:
        return [pod for pod in self.pods if "deletionTimestamp" not in pod["metadata"]]

    def get(self, url: str, name: str) -> Any:
        return self.ask("GET", f"{url}/{name}").body

    def sizes(self) -> dict[str, int]:
        """Replicas wanted of every set that wants some, by the image of its template."""
        sets = [(set_["spec"]["template"]["spec"]["containers"][0]["image"], set_) for set_ in self.all(SETS)]
        return {image: item["spec"]["replicas"] for image, item in sets if item["spec"]["replicas"]}

    def reported(self, kind: str) -> list[tuple[str, str]]:
        events = self.ask("GET", f"{EVENTS}?fieldSelector=involvedObject.kind={kind}").body["items"]
        return [(event["reason"], event["message"]) for event in events]

    # ---- doing

    def patch(self, url: str, name: str, body: Any, *, subresource: str = "") -> Any:
        part = f"/{subresource}" if subresource else ""
        reply = self.ask("PATCH", f"{url}/{name}{part}", body, content=MERGE)
        assert reply.status == 200, reply
        return reply.body

    def make_ready(self, pod: Any) -> None:
        """What a kubelet says of a pod that runs."""
        now = format_time(self.run.clock.now())
        conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": now}]
        status = {"phase": "Running", "conditions": conditions}
        self.patch(PODS, pod["metadata"]["name"], {"status": status}, subresource="status")

    def make_all_ready(self) -> None:
        for pod in self.live_pods:
            if not is_ready(pod):
                self.make_ready(pod)
        self.run.advance_by(1)

    def roll_out(self, turns: int = 20) -> None:
        """Make every pod ready that appears, until nothing new does."""
        for _ in range(turns):
            self.make_all_ready()


def is_ready(pod: Any) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


# ---- builders


def template(app: str = "a", *, image: str = "nginx:1", **spec: Any) -> dict[str, Any]:
    containers = [{"name": "c", "image": image}]
    return {
        "metadata": {"labels": {"app": app}},
        "spec": {"containers": containers, "terminationGracePeriodSeconds": 0, **spec},
    }


def replica_set(name: str = "r", *, replicas: int = 2, **spec: Any) -> dict[str, Any]:
    whole = {"replicas": replicas, "selector": {"matchLabels": {"app": "a"}}, "template": template(), **spec}
    return {"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": name}, "spec": whole}


def deployment(name: str = "d", *, replicas: int = 2, image: str = "nginx:1", **spec: Any) -> dict[str, Any]:
    labels = {"matchLabels": {"app": name}}
    whole = {"replicas": replicas, "selector": labels, "template": template(name, image=image), **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name}, "spec": whole}


def rolling(surge: int | str, unavailable: int | str) -> dict[str, Any]:
    return {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}


def with_image(image: str) -> dict[str, Any]:
    """A patch that asks for another image."""
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": image}]}}}}
