"""The steps in one cluster: pods that want all or nothing, a machine type out of stock, and a TiDB that breathes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.app.tour.steps import Stage, Step, StepFailed
from plimsoll.app.tour.world import MAIN
from plimsoll.core.formatting import format_count
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.local.cloud.faults.injection import FaultInjector
from plimsoll.objects.api.core import ConfigMap, Namespace
from plimsoll.objects.api.pods import PodTemplate
from plimsoll.objects.api.provisioning_requests import ProvisioningRequest
from plimsoll.objects.api.simulated_cloud import NodeGroup
from plimsoll.objects.api.tidb import TidbCluster, TidbClusterAutoScaler
from plimsoll.objects.api.workloads import Job

if TYPE_CHECKING:
    from plimsoll.app.tour.world import TourWorld

Json = dict[str, Any]

TEAM: Final = "team"
CLASS: Final = "best-effort-atomic-scale-up.autoscaling.x-k8s.io"
GANG: Final = 12
_STOCK: Final = 1000
_STORES: Final = "app.kubernetes.io/component=tikv"
_IDLE: Final = "seconds, tikv_cores, tidb_cores, storage_gib, hot_instances, hot_share\n0, 1.0, 0.2, 3, 0, 0\n"
_HOT: Final = "seconds, tikv_cores, tidb_cores, storage_gib, hot_instances, hot_share\n0, 2.7, 0.4, 3, 1, 0.6667\n"
_COLD: Final = "seconds, tikv_cores, tidb_cores, storage_gib, hot_instances, hot_share\n0, 0.3, 0.1, 3, 0, 0\n"


class MainSteps:
    """The cluster has one node group, `workers`. Others are made by the node autoscaler."""

    def __init__(self, world: TourWorld, *, sells_again: bool = True) -> None:
        self._world = world
        self._sells_again = sells_again
        self._client = world.connect(MAIN)
        self._first_type = ""

    async def prepare(self) -> None:
        """TiDB first: its metrics count two minutes after its start."""
        for namespace in (TEAM, "tidb"):
            await self._client.create(Namespace, {"metadata": {"name": namespace}})
        load = {"metadata": {"name": "load"}, "data": {"curve.csv": _IDLE}}
        await self._client.create(ConfigMap, load, namespace="tidb")
        await self._client.create(TidbCluster, _TIDB, namespace="tidb")
        await self._client.create(TidbClusterAutoScaler, _AUTOSCALER, namespace="tidb")

    def list_steps(self) -> list[Step]:
        return [
            Step(
                name="gang",
                title=f"{GANG} pods ask for capacity all or nothing: a node group is made that was not configured",
                run=self.provision_a_gang,
            ),
            Step(
                name="stock-out",
                title="The machine type is out of stock: the attempt is taken back, until it is sold again",
                run=self.provision_after_a_stock_out,
            ),
            Step(
                name="tidb-out",
                title="A TiDB store runs hot: a group of small stores is added, with machines for them",
                run=self.let_tidb_grow,
            ),
            Step(
                name="tidb-in",
                title="The load falls: the stores are drained one by one, and go",
                run=self.let_tidb_shrink,
            ),
        ]

    # ---- what is to be seen

    async def list_groups(self) -> dict[str, NodeGroup]:
        return {group.metadata.name: group for group in (await self._client.list(NodeGroup)).items}

    async def list_stores(self) -> list[Json]:
        """Pods of TiKV in groups that the autoscaler made."""
        pods = await self._world.list_items(MAIN, "/api/v1/namespaces/tidb/pods", _STORES)
        return [pod for pod in pods if pod["metadata"]["name"].startswith("auto-")]

    async def describe_stores(self) -> str:
        stores = await self.list_stores()
        running = sum(pod["status"].get("phase") == "Running" for pod in stores)
        machines = len(await SimulatedCloud(self._client, clock=self._world.clock).list_machines())
        return f"{running} of {len(stores)} added stores run, {machines} machines"

    # ---- steps

    async def provision_a_gang(self, stage: Stage) -> None:
        self._first_type = await self._run_gang(stage, "train", await self._request_gang("train"))

    async def provision_after_a_stock_out(self, stage: Stage) -> None:
        """The first attempt is taken back as a whole. When the type is sold again, another attempt succeeds."""
        injector = FaultInjector(self._client)
        cloud = SimulatedCloud(self._client, clock=self._world.clock)
        sold = [machine_type.name for machine_type in await cloud.list_machine_types()]
        # Without an end of the stock-out nothing else may be bought either.
        gone = [self._first_type] if self._sells_again else sold
        for name in gone:
            await injector.limit_stock(name)
        stage.say(f"out of stock: {self._first_type}")
        gang = await self._request_gang("refine")
        taken_back = await stage.find_reason(MAIN, f"request/{TEAM}/refine", "roll-back", within_s=120)
        stage.say(f"taken back as a whole: {taken_back.reason.message}")
        left = [name for name, group in (await self.list_groups()).items() if name not in gang and group.spec.target]
        stage.check(not left, f"machines of the failed attempt are left in {', '.join(left)}")
        if self._sells_again:
            await injector.limit_stock(self._first_type, left=_STOCK)
            stage.say(f"sold again: {self._first_type}")
        await self._run_gang(stage, "refine", gang)

    async def _request_gang(self, name: str) -> set[str]:
        """Ask for capacity; gives the node groups that there were before."""
        before = set(await self.list_groups())
        await self._client.create(PodTemplate, _build_template(name), namespace=TEAM)
        await self._client.create(ProvisioningRequest, _build_request(name), namespace=TEAM)
        return before

    async def _run_gang(self, stage: Stage, name: str, before: set[str]) -> str:
        """Wait for capacity for all pods, and run them; gives the machine type that was bought."""

        async def get_conditions() -> dict[str, str]:
            request = await self._client.get(ProvisioningRequest, name, namespace=TEAM)
            conditions = {condition.type: condition.status for condition in request.status.conditions}
            if conditions.get("Failed") == "True":
                raise StepFailed(f"the request {name} failed: {request.status.conditions}")
            return conditions

        async def is_provisioned() -> bool:
            return (await get_conditions()).get("Provisioned") == "True"

        async def describe() -> str:
            conditions = await get_conditions()
            made = sorted(set(await self.list_groups()) - before)
            true = ", ".join(kind for kind, status in conditions.items() if status == "True") or "not looked at yet"
            return f"request {name}: {true}" + (f"; new groups {', '.join(made)}" if made else "")

        await stage.wait_until(f"{name} is provisioned", is_provisioned, within_s=600, describe=describe)
        await stage.find_reason(MAIN, f"request/{TEAM}/{name}", "provision")
        groups = await self.list_groups()
        made = [group for key, group in groups.items() if key not in before and group.spec.target]
        stage.check(len(made) >= 1, "no node group was made for the gang")
        machines = sum(group.spec.target for group in groups.values())
        await self._run_job(stage, name)
        after = sum(group.spec.target for group in (await self.list_groups()).values())
        stage.check(after <= machines, f"{after - machines} machines were bought for pods that had capacity")
        await self._wait_for_removal(stage, {group.metadata.name for group in made})
        return made[0].spec.machine_type

    async def _wait_for_removal(self, stage: Stage, names: set[str]) -> None:
        """Machines without pods go, and then their groups, because the node autoscaler made them."""

        async def are_gone() -> bool:
            return not names & set(await self.list_groups())

        async def describe() -> str:
            left = [group for name, group in (await self.list_groups()).items() if name in names]
            machines = format_count(sum(group.spec.target for group in left), "machine")
            return f"{machines} in {format_count(len(left), 'group')} left of it"

        await stage.wait_until("machines and groups of the gang go", are_gone, within_s=600, describe=describe)

    async def _run_job(self, stage: Stage, name: str) -> None:
        await self._client.create(Job, _build_job(name), namespace=TEAM)

        async def count_running() -> int:
            pods = await self._world.list_items(MAIN, f"/api/v1/namespaces/{TEAM}/pods", f"job-name={name}")
            return sum(pod["status"].get("phase") == "Running" for pod in pods)

        async def do_all_run() -> bool:
            return await count_running() == GANG

        async def describe() -> str:
            return f"{await count_running()} of {GANG} pods run"

        await stage.wait_until(f"all pods of {name} run", do_all_run, within_s=300, describe=describe)

        async def is_done() -> bool:
            return (await self._client.get(Job, name, namespace=TEAM)).status.succeeded == GANG

        await stage.wait_until(f"all pods of {name} end", is_done, within_s=300)

    async def let_tidb_grow(self, stage: Stage) -> None:
        await self._client.merge_patch(ConfigMap, "load", {"data": {"curve.csv": _HOT}}, namespace="tidb")

        async def do_stores_run() -> bool:
            stores = await self.list_stores()
            return len(stores) == 2 and all(pod["status"].get("phase") == "Running" for pod in stores)

        await stage.wait_until("two stores are added", do_stores_run, within_s=900, describe=self.describe_stores)
        await stage.find_reason(MAIN, "tidbcluster/tidb/db", "create")

    async def let_tidb_shrink(self, stage: Stage) -> None:
        await self._client.merge_patch(ConfigMap, "load", {"data": {"curve.csv": _COLD}}, namespace="tidb")

        async def are_stores_gone() -> bool:
            return not await self.list_stores()

        await stage.wait_until("the added stores go", are_stores_gone, within_s=1800, describe=self.describe_stores)
        await stage.find_reason(MAIN, "tidbcluster/tidb/db", "remove")


_CONTAINER: Final = {
    "name": "worker",
    "image": "registry.example/train:1",
    "resources": {"requests": {"cpu": "2", "memory": "8Gi"}},
}


def _build_template(name: str) -> Json:
    template = {"spec": {"restartPolicy": "Never", "containers": [_CONTAINER]}}
    return {"metadata": {"name": name}, "template": template}


def _build_request(name: str) -> Json:
    pod_sets = [{"count": GANG, "podTemplateRef": {"name": name}}]
    return {"metadata": {"name": name}, "spec": {"provisioningClassName": CLASS, "podSets": pod_sets}}


def _build_job(name: str) -> Json:
    annotations = {
        "autoscaling.x-k8s.io/consume-provisioning-request": name,
        "autoscaling.x-k8s.io/provisioning-class-name": CLASS,
        "plimsoll.io/run-seconds": "30",
    }
    template = {
        "metadata": {"annotations": annotations},
        "spec": {"restartPolicy": "Never", "containers": [_CONTAINER]},
    }
    return {"metadata": {"name": name}, "spec": {"parallelism": GANG, "completions": GANG, "template": template}}


_TIDB: Final[Json] = {
    "metadata": {"name": "db", "annotations": {"simulated.plimsoll.io/load": "load"}},
    "spec": {
        "version": "v8.5.0",
        "pd": {"replicas": 1, "requests": {"cpu": "200m", "memory": "256Mi", "storage": "1Gi"}},
        "tikv": {
            "replicas": 3,
            "requests": {"cpu": "2", "memory": "2Gi", "storage": "10Gi"},
            "affinity": {
                "podAntiAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": [
                        {
                            "topologyKey": "kubernetes.io/hostname",
                            "labelSelector": {"matchLabels": {"app.kubernetes.io/component": "tikv"}},
                        }
                    ]
                }
            },
        },
        "tidb": {"replicas": 1, "requests": {"cpu": "500m", "memory": "512Mi"}},
    },
}
_AUTOSCALER: Final[Json] = {
    "metadata": {"name": "breath"},
    "spec": {
        "cluster": {"name": "db"},
        "tikv": {
            "scaleInIntervalSeconds": 30,
            "scaleOutIntervalSeconds": 30,
            "rules": {"cpu": {"max_threshold": 0.8, "min_threshold": 0.2}},
            "resources": {"small": {"cpu": "1", "memory": "1Gi", "storage": "10Gi", "count": 2}},
        },
    },
}
