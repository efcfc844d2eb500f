"""A simulated cluster with TiDB in it: nodes that are there from the start, and people who write TidbClusters."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Self

from plimsoll.local.components import KUBELET, SCHEDULER
from plimsoll.local.controller_manager.services import build_garbage_collector_services
from plimsoll.local.controller_manager.workloads.stateful_sets.controller import build_stateful_set_services
from plimsoll.local.kubelet import Kubelet, KubeletSettings
from plimsoll.local.scheduler import Scheduler, SchedulerSettings
from plimsoll.local.tidb.instances import OPERATOR
from plimsoll.local.tidb.simulated import SimulatedTidb, route_to_simulated
from plimsoll.local.volumes.services import build_volume_services
from plimsoll.local.volumes.storage_classes import build_default_storage_class
from plimsoll.objects.api.tidb import TIDB_GROUP
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.objects.validation import list_shipped_definitions
from plimsoll.runtime.supervisor import Service
from tests.local.apiserver.builders import MERGE
from tests.local.local_cluster import CrashingLocalCluster

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plimsoll.kube.client import Client
    from plimsoll.local.components import Components
    from tests.faults import CrashAfter

Json = dict[str, Any]

NAMESPACE = "prod"
CLUSTERS = f"/apis/pingcap.com/v1alpha1/namespaces/{NAMESPACE}/tidbclusters"
SETS = f"/apis/apps/v1/namespaces/{NAMESPACE}/statefulsets"
NODES = "/api/v1/nodes"
CORE = f"/api/v1/namespaces/{NAMESPACE}"


class LocalTidbCluster(CrashingLocalCluster):
    """With `nodes` nodes of 16 cores in the namespace `prod`."""

    def __init__(
        self, *, nodes: int = 12, speed: float = 0.0, through: Callable[[Any], Any] = lambda port: port
    ) -> None:
        super().__init__(self._made_of, kinds=OUR_KINDS, through=through)
        self._nodes = nodes
        self._speed = speed
        self.tidb: SimulatedTidb

    def __enter__(self) -> Self:
        self.run.__enter__()
        self.run.run_until(self.application.start())
        for manifest in list_shipped_definitions():
            if manifest.body["spec"]["group"] == TIDB_GROUP:
                self.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", manifest.body)
        self.run.settle()
        self.namespace(NAMESPACE)
        self.made("/apis/storage.k8s.io/v1/storageclasses", build_default_storage_class())
        for number in range(self._nodes):
            self._add_node(f"n{number}")
        self.start()
        return self

    def _add_node(self, name: str) -> None:
        self.made(NODES, {"metadata": {"name": name, "labels": {"kubernetes.io/hostname": name}}})
        amounts = {"cpu": "16", "memory": "64Gi", "pods": "110"}
        ready = [{"type": "Ready", "status": "True"}]
        status = {"status": {"capacity": amounts, "allocatable": amounts, "conditions": ready}}
        self.ask("PATCH", f"{NODES}/{name}/status", status, content=MERGE)
        self.ask("PATCH", f"{NODES}/{name}", {"spec": {"taints": None}}, content=MERGE)

    def _made_of(self, components: Components) -> Sequence[Service]:
        scheduler = Scheduler(components.build_component("default-scheduler", manager=SCHEDULER), SchedulerSettings())
        kubelet = Kubelet(
            components.build_component("kubelet", manager=KUBELET), settings=KubeletSettings(selector=""), writes=False
        )
        self.tidb = SimulatedTidb(components, speed=self._speed)
        return [
            *build_stateful_set_services(components),
            *build_volume_services(components),
            *build_garbage_collector_services(components),
            Service(name="kubelet", run=kubelet.pods.controller.run),
            scheduler.build_service(),
            *self.tidb.build_services(),
        ]

    def connect(self, manager: str) -> Client:
        """Faults strike the operator and its PD only: the other parts have tests of their own."""
        through = self._through
        if manager != OPERATOR:
            self._through = lambda port: port
        try:
            return super().connect(manager)
        finally:
            self._through = through

    # ---- people

    def have(self, body: Json) -> None:
        """Make it, unless it is there."""
        assert self.ask("POST", CLUSTERS, body).status in {201, 409}
        self.run.settle()

    def make(self, body: Json) -> None:
        self.made(CLUSTERS, body)
        self.run.settle()

    def patch(self, name: str, **spec: Any) -> None:
        reply = self.ask("PATCH", f"{CLUSTERS}/{name}", {"spec": spec}, content=MERGE)
        assert reply.status == 200, reply
        self.run.settle()

    def delete(self, name: str) -> None:
        assert self.ask("DELETE", f"{CLUSTERS}/{name}").status == 200

    def load(self, curve: str, name: str = "load", **more: str) -> None:
        self.made(f"{CORE}/configmaps", {"metadata": {"name": name}, "data": {"curve.csv": curve, **more}})

    def after(self, seconds: float) -> Self:
        self.run.advance_by(seconds)
        return self

    # ---- what is to be seen

    def get(self, url: str) -> Any:
        return self.ask("GET", url).body

    def cluster(self, name: str = "db") -> Any:
        return self.get(f"{CLUSTERS}/{name}")

    def names(self, kind: str, url: str = CORE) -> list[str]:
        return sorted(item["metadata"]["name"] for item in self.get(f"{url}/{kind}")["items"])

    def replicas(self, name: str) -> int:
        return int(self.get(f"{SETS}/{name}")["spec"]["replicas"])

    def pd(self, method: str, path: str, body: Any = None, *, base: str = "db") -> tuple[int, Any]:
        """One request to a PD by its address in the cluster."""
        target = route_to_simulated(f"http://{base}-pd.{NAMESPACE}:2379{path}")
        assert target is not None
        sent = b"" if body is None else json.dumps(body).encode()
        status, answer = self.run.run_until(self.tidb.answer(method, target, sent))
        return status, json.loads(answer)

    def stores(self) -> dict[str, str]:
        """States by pod, the buried ones too."""
        _, found = self.pd("GET", "/pd/api/v1/stores?state=0&state=1&state=2")
        return {store["store"]["address"].split(".")[0]: store["store"]["state_name"] for store in found["stores"]}

    def store(self, pod: str) -> Any:
        _, found = self.pd("GET", "/pd/api/v1/stores?state=0&state=1&state=2")
        return [store for store in found["stores"] if store["store"]["address"].startswith(f"{pod}.")][-1]


class CrashingTidbCluster(LocalTidbCluster):
    """With few nodes. Steps may be taken twice, so they say what is wanted."""

    def __init__(self, crash: CrashAfter) -> None:
        self.crashes_by(crash)
        super().__init__(nodes=5, speed=100.0, through=self.through_the_crash)

    def taking(self, step: Callable[[], object]) -> None:
        self.surviving(step)


# ---- builders


def base_cluster(name: str = "db", *, tikv: int = 3, tidb: int = 2, **metadata: Any) -> Json:
    """The common base of the specification's scenarios."""
    return {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbCluster",
        "metadata": {"name": name, "namespace": NAMESPACE, **metadata},
        "spec": {
            "version": "v7.5.0",
            "pd": {"replicas": 1, "requests": {"cpu": "500m", "memory": "1Gi", "storage": "10Gi"}},
            "tikv": {"replicas": tikv, "requests": {"cpu": "4", "memory": "16Gi", "storage": "100Gi"}},
            "tidb": {"replicas": tidb, "requests": {"cpu": "4", "memory": "8Gi"}},
        },
    }


def group_cluster(name: str = "auto-1", *, replicas: int = 1, config: Any = None) -> Json:
    """A TidbCluster that joins `db`, as the autoscaler makes it."""
    labels = {"group": "pd-auto-scaling-tikv-small", "resource-type": "small", "specialUse": "hotRegion"}
    tikv = {
        "replicas": replicas,
        "requests": {"cpu": "1", "memory": "2Gi", "storage": "10Gi"},
        "limits": {"cpu": "1", "memory": "2Gi"},
        "config": {"server": {"labels": labels}} if config is None else config,
    }
    spec = {"version": "v7.5.0", "cluster": {"name": "db", "namespace": NAMESPACE}, "enablePVReclaim": True}
    return {
        "apiVersion": "pingcap.com/v1alpha1",
        "kind": "TidbCluster",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {**spec, "tikv": tikv},
    }
