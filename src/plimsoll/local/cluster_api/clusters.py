"""Clusters with a topology in the simulated Cluster API: infrastructure, control plane, pools, kubeconfig, deletion.

All state is in the objects, so controllers continue after a restart where they were. A Cluster takes as long as the
settings say; one whose annotation `simulated.plimsoll.io/failure` gives a reason never becomes ready. What the cluster
is, the port `ClusterDataPlane` knows: it makes the cluster once the time is over, and bounds its pools as the topology
says.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec
import structlog

from plimsoll.core.value_parsing import read_whole_number
from plimsoll.core.values import Value
from plimsoll.kube.discovery import ServedResource, build_metadata_resource
from plimsoll.kube.errors import AlreadyExists, Conflict, NotFound, ServerTrouble
from plimsoll.kube.requests.options import Selection
from plimsoll.local.cluster_api.definitions import V1BETA2
from plimsoll.local.cluster_api.machines import TOPOLOGY_OWNED
from plimsoll.local.cluster_api.statuses import ClusterProgress, build_status
from plimsoll.local.ocm.ports import ClusterSpec, DataPlaneFailed, PoolSpec, PoolTaint
from plimsoll.objects.api.cluster_api import (
    CLUSTER_API_GROUP,
    MAX_SIZE,
    MIN_SIZE,
    MachineDeployment,
    WorkloadCluster,
    build_cluster_api_resource,
)
from plimsoll.objects.api.core import Secret

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.kube.requests.paging import RawPage
    from plimsoll.local.cluster_api.ports import ClusterDataPlane
    from plimsoll.objects.codec.decoding import DecodedList

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

Json = dict[str, Any]
FAILURE_ANNOTATION: Final = "simulated.plimsoll.io/failure"
FINALIZER: Final = f"cluster.{CLUSTER_API_GROUP}"
CLUSTER_NAME: Final = f"{CLUSTER_API_GROUP}/cluster-name"
_DEPLOYMENT_NAME: Final = f"topology.{CLUSTER_API_GROUP}/deployment-name"
_MIN: Final = f"{CLUSTER_API_GROUP}/{MIN_SIZE}"
_MAX: Final = f"{CLUSTER_API_GROUP}/{MAX_SIZE}"


class SimulatedClusterSettings(Value):
    """Times of a cluster, the zones of its infrastructure, and the version of the API that is served."""

    version: str = V1BETA2
    infrastructure_s: float = 300.0
    provision_s: float = 600.0
    delete_s: float = 120.0
    zones: tuple[str, ...] = ("a", "b", "c")
    cloud_provider: str = "aws"
    step_s: float = 5.0


class ClusterControllers:
    """The controllers of one management cluster."""

    def __init__(
        self, client: Client, data_plane: ClusterDataPlane, settings: SimulatedClusterSettings, *, clock: Clock
    ) -> None:
        self._client = client
        self._data_plane = data_plane
        self._settings = settings
        self._clock = clock
        group, version = CLUSTER_API_GROUP, settings.version
        self._clusters = build_cluster_api_resource(WorkloadCluster, group=group, version=version)
        self._deployments = build_cluster_api_resource(MachineDeployment, group=group, version=version)
        self._classes = build_metadata_resource(
            f"{group}/{version}", ServedResource(name="clusterclasses", kind="ClusterClass", namespaced=True)
        )

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self.step()
            await self._clock.sleep(self._settings.step_s)

    async def step(self) -> None:
        """Look once, and do what is due. A cluster that fails does not affect others."""
        pages: AsyncIterator[RawPage[WorkloadCluster]] = self._client.iterate_raw_pages(self._clusters)
        async for page in pages:
            for raw in page.raws:
                body: Json = msgspec.json.decode(raw)
                try:
                    await self._keep(body)
                except (ServerTrouble, DataPlaneFailed) as error:
                    log.warning("cluster_api.cluster_failed", cluster=body["metadata"]["name"], problem=str(error))

    async def _keep(self, body: Json) -> None:
        metadata = body["metadata"]
        if metadata.get("deletionTimestamp"):
            await self._delete(body)
            return
        if FINALIZER not in (metadata.get("finalizers") or ()):
            await self._patch(body, {"metadata": {"finalizers": [*(metadata.get("finalizers") or ()), FINALIZER]}})
        progress = await self._find_progress(body)
        if progress.is_ready:
            await self._make(body, progress)
        await self._write_status(body, progress)

    async def _find_progress(self, body: Json) -> ClusterProgress:
        """What is due by the age of the Cluster."""
        settings, metadata = self._settings, body["metadata"]
        failure = str((metadata.get("annotations") or {}).get(FAILURE_ANNOTATION, ""))
        if failure:
            return ClusterProgress(phase="Provisioning", failed_step="InfrastructureReady", failure=failure)
        if missing := await self._find_missing_class(body):
            return ClusterProgress(phase="Pending", failed_step="TopologyReconciled", failure=missing)
        age_s = self._measure_age_s(metadata["creationTimestamp"])
        has_infrastructure, is_ready = age_s >= settings.infrastructure_s, age_s >= settings.provision_s
        replicas = (_get_topology(body).get("controlPlane") or {}).get("replicas", 1)
        return ClusterProgress(
            phase="Provisioned" if is_ready else "Provisioning",
            has_infrastructure=has_infrastructure,
            is_ready=is_ready,
            zones=settings.zones if has_infrastructure else (),
            workers=sum(_read_bound(item, _MIN) for item in _list_pools(body)),
            control_planes=replicas if is_ready else 0,
        )

    async def _find_missing_class(self, body: Json) -> str:
        topology = _get_topology(body)
        reference = topology.get("classRef") or {
            "name": topology.get("class"),
            "namespace": topology.get("classNamespace"),
        }
        name, namespace = str(reference.get("name")), reference.get("namespace") or body["metadata"]["namespace"]
        try:
            await self._client.get(self._classes, name, namespace=namespace)
        except NotFound:
            return f"ClusterClass {namespace}/{name} is not there"
        return ""

    async def _make(self, body: Json, progress: ClusterProgress) -> None:
        """The cluster, its pools and its kubeconfig; nothing is done twice."""
        metadata = body["metadata"]
        pools = _build_pools(body, progress.zones)
        default = next((pool for pool in pools if pool.id == "default"), None)
        if default is None:
            return
        cluster_id = _name_data_plane(metadata["uid"])
        topology = _get_topology(body)
        await self._data_plane.make(
            ClusterSpec(
                id=cluster_id,
                name=metadata["name"],
                cloud_provider=self._settings.cloud_provider,
                region=metadata["namespace"].removeprefix("plimsoll-"),
                zones=progress.zones,
                version=str(topology.get("version", "")),
                dns=f"apps.{metadata['name']}.example.com",
                default_pool=default,
            )
        )
        await self._data_plane.set_pools(cluster_id, pools)
        await self._keep_deployments(body)
        await self._keep_kubeconfig(body, cluster_id)

    async def _keep_kubeconfig(self, body: Json, cluster_id: str) -> None:
        metadata = body["metadata"]
        name, namespace = f"{metadata['name']}-kubeconfig", metadata["namespace"]
        secret = {
            "metadata": {"name": name, "labels": {CLUSTER_NAME: metadata["name"]}},
            "type": f"{CLUSTER_API_GROUP}/secret",
            "stringData": {"value": self._data_plane.build_kubeconfig(cluster_id)},
        }
        with suppress(AlreadyExists):
            await self._client.create(Secret, secret, namespace=namespace)

    async def _keep_deployments(self, body: Json) -> None:
        """One MachineDeployment per item of the topology, with its labels and annotations; others are deleted."""
        metadata = body["metadata"]
        namespace, owned = metadata["namespace"], f"{CLUSTER_NAME}={metadata['name']},{TOPOLOGY_OWNED}"
        listed: DecodedList[MachineDeployment] = await self._client.list(
            self._deployments, Selection(namespace=namespace, labels=owned)
        )
        there = {deployment.metadata.name: deployment for deployment in listed.items}
        wanted = {f"{metadata['name']}-{item['name']}": item for item in _list_pools(body)}
        for name, item in wanted.items():
            annotations = _get_metadata(item, "annotations")
            known = there.get(name)
            if known is None:
                manifest = _build_deployment(name, item, body, version=self._settings.version)
                await self._client.create(self._deployments, manifest, namespace=namespace)
            elif not annotations.items() <= known.metadata.annotations.items():
                changed = {"metadata": {"annotations": annotations}}
                await self._client.merge_patch(self._deployments, name, changed, namespace=namespace)
        for name in there.keys() - wanted.keys():
            await self._client.delete(self._deployments, name, namespace=namespace)

    async def _delete(self, body: Json) -> None:
        metadata = body["metadata"]
        if FINALIZER not in (metadata.get("finalizers") or ()):
            return
        await self._data_plane.delete(_name_data_plane(metadata["uid"]))
        await self._keep_deployments({"metadata": metadata})
        if self._measure_age_s(metadata["deletionTimestamp"]) < self._settings.delete_s:
            await self._write_status(body, ClusterProgress(phase="Deleting"))
            return
        with suppress(NotFound):
            await self._client.delete(Secret, f"{metadata['name']}-kubeconfig", namespace=metadata["namespace"])
        left = [finalizer for finalizer in metadata["finalizers"] if finalizer != FINALIZER]
        await self._patch(body, {"metadata": {"finalizers": left}})

    async def _write_status(self, body: Json, progress: ClusterProgress) -> None:
        before = body.get("status") or {}
        status = build_status(progress, before, version=self._settings.version, now=self._clock.now())
        if {**before, **status} != before:
            await self._patch(body, {"status": status}, subresource="status")

    async def _patch(self, body: Json, changes: Json, *, subresource: str = "") -> None:
        metadata = body["metadata"]
        with suppress(Conflict, NotFound):
            await self._client.merge_patch(
                self._clusters, metadata["name"], changes, namespace=metadata["namespace"], subresource=subresource
            )

    def _measure_age_s(self, written: str) -> float:
        since = msgspec.convert(written, type(self._clock.now()))
        return (self._clock.now() - since).total_seconds()


def _name_data_plane(uid: str) -> str:
    """The id of a cluster in the data plane: letters and digits of the Cluster's uid."""
    return "".join(letter for letter in uid.lower() if letter.isalnum())[:32]


def _get_topology(body: Json) -> Json:
    found = (body.get("spec") or {}).get("topology")
    return found if isinstance(found, dict) else {}


def _list_pools(body: Json) -> list[Json]:
    return list((_get_topology(body).get("workers") or {}).get("machineDeployments") or ())


def _get_metadata(item: Json, field: str) -> dict[str, str]:
    return dict((item.get("metadata") or {}).get(field) or {})


def _read_bound(item: Json, key: str) -> int:
    return read_whole_number(_get_metadata(item, "annotations").get(key, "")) or 0


def _build_pools(body: Json, zones: tuple[str, ...]) -> tuple[PoolSpec, ...]:
    """One pool per item, in its zone, or over all zones of the infrastructure."""
    found = []
    for item in _list_pools(body):
        values = {
            override.get("name"): override.get("value")
            for override in (item.get("variables") or {}).get("overrides") or ()
        }
        zone = item.get("failureDomain")
        taints = [
            PoolTaint(key=taint["key"], value=taint.get("value", ""), effect=taint["effect"])
            for taint in values.get("nodeTaints") or ()
        ]
        labels = {**_get_metadata(item, "labels"), **(values.get("nodeLabels") or {})}
        found.append(
            PoolSpec(
                id=str(item["name"]),
                machine_type=str(values.get("machineType", "")),
                min_replicas=_read_bound(item, _MIN),
                max_replicas=_read_bound(item, _MAX),
                zones=(zone,) if zone else zones,
                labels=labels,
                taints=tuple(taints),
            )
        )
    return tuple(sorted(found, key=lambda pool: pool.id))


def _build_deployment(name: str, item: Json, body: Json, *, version: str) -> Json:
    """Without `replicas` in the topology it starts with its least size, as Cluster API makes it."""
    metadata = body["metadata"]
    owner = {
        "apiVersion": f"{CLUSTER_API_GROUP}/{version}",
        "kind": "Cluster",
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }
    labels = {CLUSTER_NAME: metadata["name"], TOPOLOGY_OWNED: "", _DEPLOYMENT_NAME: item["name"]}
    zone = item.get("failureDomain")
    return {
        "metadata": {
            "name": name,
            "labels": {**_get_metadata(item, "labels"), **labels},
            "annotations": _get_metadata(item, "annotations"),
            "ownerReferences": [owner],
        },
        "spec": {
            "clusterName": metadata["name"],
            "replicas": item.get("replicas", _read_bound(item, _MIN)),
            "selector": {},
            "template": {"spec": {"failureDomain": zone} if zone else {}},
        },
    }
