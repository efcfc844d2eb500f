"""A cluster with the pod-set controller and nothing that runs pods: tests report what becomes of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

from plimsoll.kafka.controllers.pod_set_controller import NAME, PodSetController
from plimsoll.objects.api.meta import format_time
from plimsoll.objects.custom_kinds import OUR_KINDS
from tests.local.apiserver.builders import MERGE
from tests.local.local_cluster import CrashingLocalCluster
from tests.objects.crds.kafka_definitions import DEFINITIONS, NAMESPACE, list_our_definitions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from plimsoll.local.components import Components
    from plimsoll.runtime.supervisor import Service
    from tests.faults import CrashAfter

Json = dict[str, Any]

SETS = f"/apis/core.strimzi.io/v1/namespaces/{NAMESPACE}/strimzipodsets"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
EVENTS = f"/api/v1/namespaces/{NAMESPACE}/events"
LABELS = {"strimzi.io/cluster": "c", "strimzi.io/pool-name": "p"}
REVISION = "strimzi.io/revision"


def build_parts(components: Components) -> Sequence[Service]:
    part = components.build_component(NAME, manager=NAME)
    controller = PodSetController(part.client, part.informers, part.recorder, clock=part.clock, entropy=part.entropy)
    return controller.list_services()


class PodSetCluster(CrashingLocalCluster):
    """With the namespace `kafka`. `definitions` replace ours."""

    def __init__(
        self,
        *,
        definitions: Iterable[Json] | None = None,
        parts: Callable[[Components], Sequence[Service]] = build_parts,
        through: Callable[[Any], Any] = lambda port: port,
    ) -> None:
        super().__init__(parts, kinds=OUR_KINDS, through=through)
        self._definitions = list_our_definitions() if definitions is None else list(definitions)

    def __enter__(self) -> Self:
        self.run.__enter__()
        self.run.run_until(self.application.start())
        for body in self._definitions:
            self.made(DEFINITIONS, body)
        self.run.settle()
        self.namespace(NAMESPACE)
        self.start()
        return self

    # ---- people and kubelets

    def make(self, *ids: int, **more: Any) -> Json:
        """A pod set that lists the pods with these node ids."""
        made: Json = self.made(SETS, build_pod_set(*ids, **more))
        self.run.settle()
        return made

    def relist(self, *pods: Any) -> None:
        """Replace `spec.pods`."""
        self.patch(f"{SETS}/c-p", {"spec": {"pods": list(pods)}})

    def patch(self, url: str, body: Json) -> None:
        reply = self.ask("PATCH", url, body, content=MERGE)
        assert reply.status == 200, reply
        self.run.settle()

    def delete(self, url: str, **options: Any) -> None:
        assert self.ask("DELETE", url, options or None).status in {200, 202}
        self.run.settle()

    def report(self, name: str, phase: str = "Running", *, is_ready: bool = True) -> None:
        """What a kubelet says of a pod."""
        ready = {"type": "Ready", "status": str(is_ready), "lastTransitionTime": format_time(self.run.clock.now())}
        self.patch(f"{PODS}/{name}/status", {"status": {"phase": phase, "conditions": [ready]}})

    def end(self, name: str) -> None:
        """The kubelet has stopped a pod that is being deleted."""
        self.ask("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})
        self.run.settle()

    # ---- what is to be seen

    @property
    def pods(self) -> dict[str, Json]:
        return {pod["metadata"]["name"]: pod for pod in self.ask("GET", PODS).body["items"]}

    @property
    def live(self) -> list[str]:
        """Pods that are not being deleted."""
        return sorted(name for name, pod in self.pods.items() if "deletionTimestamp" not in pod["metadata"])

    @property
    def status(self) -> Json:
        found: Json = self.ask("GET", f"{SETS}/c-p").body.get("status", {})
        return found

    @property
    def counts(self) -> tuple[Any, ...]:
        """pods, readyPods, currentPods, observedGeneration."""
        fields = ("pods", "readyPods", "currentPods", "observedGeneration")
        return tuple(self.status.get(field) for field in fields)

    @property
    def problem(self) -> str:
        conditions = self.status.get("conditions") or []
        assert all((condition["type"], condition["status"]) == ("NotReady", "True") for condition in conditions)
        return "; ".join(condition["message"] for condition in conditions)


class CrashingPodSetCluster(PodSetCluster):
    """The process dies after some call. Steps may be taken twice, so they say what is wanted."""

    def __init__(self, crash: CrashAfter) -> None:
        self.crashes_by(crash)
        super().__init__(through=self.through_the_crash)


def build_listed_pod(number: int, *, revision: str = "r1", **metadata: Any) -> Json:
    annotations = {REVISION: revision, "strimzi.io/odd": "kept"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"c-p-{number}", "labels": LABELS, "annotations": annotations, **metadata},
        "spec": {"containers": [{"name": "kafka", "image": "kafka:4.3.1"}], "terminationGracePeriodSeconds": 30},
    }


def build_pod_set(*ids: int, pods: list[Any] | None = None, selector: Any = None) -> Json:
    return {
        "apiVersion": "core.strimzi.io/v1",
        "kind": "StrimziPodSet",
        "metadata": {"name": "c-p", "labels": LABELS},
        "spec": {
            "selector": {"matchLabels": LABELS} if selector is None else selector,
            "pods": [build_listed_pod(number) for number in ids] if pods is None else pods,
        },
    }
