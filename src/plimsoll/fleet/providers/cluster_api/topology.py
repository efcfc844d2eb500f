"""`Cluster` objects with a topology: what is written, and what of our pools one has. Pure.

A pool of a cluster in one zone is one machine deployment; of a cluster over several zones one per zone, each with its
part of the bounds, because a group over several zones cannot be grown where pods need it. `replicas` is never written:
the node autoscaler of the cluster owns it within the bounds, which are annotations. Cluster API passes only labels of
its own domains on to nodes, so the label and the taint of a pool go through variables that the ClusterClass uses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.value_parsing import read_whole_number
from plimsoll.fleet.model.pools import TAINT_EFFECT, TYPE_KEY, PoolBounds
from plimsoll.fleet.providers.data_planes.setup import POOL_LABEL
from plimsoll.objects.api.cluster_api import CLUSTER_API_GROUP, MAX_SIZE, MIN_SIZE

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.fleet.model.provided import ClusterOrder
    from plimsoll.fleet.providers.cluster_api.settings import ClassReference

ROW_LABEL: Final = "fleet.plimsoll.io/cluster"
"""On a Cluster: the id of its row. A Cluster of our name with another row's id is not touched."""
MANAGED_BY: Final = "app.kubernetes.io/managed-by"
US: Final = "plimsoll"
V1BETA1: Final = "v1beta1"
V1BETA2: Final = "v1beta2"
VERSIONS: Final = (V1BETA2, V1BETA1)
"""The versions that we write, the preferred one first."""
_MIN: Final = f"{CLUSTER_API_GROUP}/{MIN_SIZE}"
_MAX: Final = f"{CLUSTER_API_GROUP}/{MAX_SIZE}"
_MACHINE_TYPE: Final = "machineType"
_NODE_LABELS: Final = "nodeLabels"
_NODE_TAINTS: Final = "nodeTaints"
_ZONES: Final = 3
"""The zones of a cluster over several zones: bounds of its pools are multiples of this."""

Json = dict[str, Any]


def build_cluster(
    order: ClusterOrder, *, version: str, namespace: str, cluster_class: ClassReference, worker_class: str
) -> Json:
    """A new Cluster with its cluster-wide pool; `version` is of the API. `order.version` is one of Kubernetes."""
    topology: Json = {
        **_build_class(cluster_class, version=version),
        "version": order.version,
        "controlPlane": {"replicas": 3 if order.multi_az else 1},
        "workers": {"machineDeployments": [_build_deployment(order.default_pool, worker_class=worker_class)]},
    }
    return {
        "apiVersion": f"{CLUSTER_API_GROUP}/{version}",
        "kind": "Cluster",
        "metadata": {
            "name": order.name,
            "namespace": namespace,
            "labels": {ROW_LABEL: order.row_id.lower(), MANAGED_BY: US},
        },
        "spec": {"topology": topology},
    }


def choose_zones(failure_domains: Any, *, multi_az: bool) -> tuple[str, ...] | None:
    """The zones of the pools of a cluster; None if it should lie in several zones and its infrastructure has too few.

    `failure_domains` is of its status, in the form of either version.
    """
    if not multi_az:
        return ("",)
    if isinstance(failure_domains, dict):
        names = [name for name in failure_domains if isinstance(name, str)]
    else:
        listed = failure_domains if isinstance(failure_domains, list) else []
        found = (item.get("name") for item in listed if isinstance(item, dict))
        names = [name for name in found if isinstance(name, str)]
    zones = tuple(sorted({name for name in names if name}))
    return zones[:_ZONES] if len(zones) >= _ZONES else None


def merge_pools(
    deployments: Sequence[Json], pools: Iterable[PoolBounds], *, zones: tuple[str, ...], worker_class: str
) -> list[Json]:
    """The machine deployments of a Cluster with these pools made or bounded; all others stay as they are."""
    merged = {str(item.get("name")): item for item in deployments}
    for pool in pools:
        for zone in zones:
            share = _share(pool, len(zones))
            wanted = _build_deployment(share, zone=zone, worker_class=worker_class)
            known = merged.get(wanted["name"])
            merged[wanted["name"]] = wanted if known is None else _set_bounds(known, share)
    return [*merged.values()]


def build_pools_patch(live: Json, deployments: Sequence[Json]) -> Json:
    """What a server-side apply sends for the pools: everything that we own, on condition of the version that was read.

    A field that is left out would be given up, and removed where no other writer owns it.
    """
    metadata = live["metadata"]
    topology = read_topology(live)
    ours: Json = {
        name: topology[name] for name in ("class", "classNamespace", "classRef", "version") if name in topology
    }
    if isinstance(control_plane := topology.get("controlPlane"), dict) and "replicas" in control_plane:
        ours["controlPlane"] = {"replicas": control_plane["replicas"]}
    labels = {name: text for name, text in (metadata.get("labels") or {}).items() if name in {ROW_LABEL, MANAGED_BY}}
    return {
        "apiVersion": live["apiVersion"],
        "kind": "Cluster",
        "metadata": {
            "name": metadata["name"],
            "namespace": metadata["namespace"],
            "labels": labels,
            "resourceVersion": metadata["resourceVersion"],
        },
        "spec": {
            "topology": {**ours, "workers": {"machineDeployments": [_drop_replicas(item) for item in deployments]}}
        },
    }


def read_topology(live: Json) -> Json:
    spec = live.get("spec")
    topology = spec.get("topology") if isinstance(spec, dict) else None
    return topology if isinstance(topology, dict) else {}


def list_deployments(live: Json) -> list[Json]:
    """The machine deployments of a Cluster's topology."""
    workers = read_topology(live).get("workers")
    listed = workers.get("machineDeployments") if isinstance(workers, dict) else None
    return [item for item in listed if isinstance(item, dict)] if isinstance(listed, list) else []


def read_pools(deployments: Iterable[Json]) -> tuple[tuple[PoolBounds, ...], tuple[str, ...]]:
    """The pools for Kafkas by id, and what is wrong with those whose bounds cannot be read."""
    found: dict[str, PoolBounds] = {}
    problems: list[str] = []
    for item in deployments:
        pool = _read_metadata(item, "labels").get(POOL_LABEL, "")
        if not isinstance(pool, str) or not pool.startswith("kafka-"):
            continue
        annotations = _read_metadata(item, "annotations")
        least, most = (read_whole_number(str(annotations.get(key, ""))) for key in (_MIN, _MAX))
        if least is None or most is None:
            problems.append(f"pool {pool}: the bounds of machine deployment {item.get('name')} cannot be read")
            continue
        known = found.get(pool)
        found[pool] = PoolBounds(
            id=pool,
            machine_type=_read_machine_type(item) if known is None else known.machine_type,
            min_replicas=least + (0 if known is None else known.min_replicas),
            max_replicas=most + (0 if known is None else known.max_replicas),
        )
    return tuple(found[name] for name in sorted(found)), tuple(problems)


def _build_class(cluster_class: ClassReference, *, version: str) -> Json:
    namespace = cluster_class.namespace
    if version == V1BETA1:
        return {"class": cluster_class.name, **({"classNamespace": namespace} if namespace else {})}
    return {"classRef": {"name": cluster_class.name, **({"namespace": namespace} if namespace else {})}}


def _share(pool: PoolBounds, zones: int) -> PoolBounds:
    """The part of one zone. Bounds of a cluster over several zones are multiples of their number."""
    return PoolBounds(
        id=pool.id,
        machine_type=pool.machine_type,
        min_replicas=pool.min_replicas // zones,
        max_replicas=pool.max_replicas // zones,
    )


def _build_deployment(pool: PoolBounds, *, worker_class: str, zone: str = "") -> Json:
    overrides: list[Json] = [{"name": _MACHINE_TYPE, "value": pool.machine_type}]
    if pool.instance_type:
        taint = {"key": TYPE_KEY, "value": pool.instance_type, "effect": TAINT_EFFECT}
        overrides += [
            {"name": _NODE_LABELS, "value": {TYPE_KEY: pool.instance_type}},
            {"name": _NODE_TAINTS, "value": [taint]},
        ]
    return {
        "class": worker_class,
        "name": f"{pool.id}-{zone}" if zone else pool.id,
        **({"failureDomain": zone} if zone else {}),
        "metadata": {"labels": {POOL_LABEL: pool.id}, "annotations": _build_bounds(pool)},
        "variables": {"overrides": overrides},
    }


def _build_bounds(pool: PoolBounds) -> dict[str, str]:
    return {_MIN: str(pool.min_replicas), _MAX: str(pool.max_replicas)}


def _set_bounds(item: Json, pool: PoolBounds) -> Json:
    annotations = {**_read_metadata(item, "annotations"), **_build_bounds(pool)}
    return {**item, "metadata": {**(item.get("metadata") or {}), "annotations": annotations}}


def _drop_replicas(item: Json) -> Json:
    """Leave `replicas` out of our own pools: the autoscaler owns that field. Other pools are written unchanged."""
    is_ours = POOL_LABEL in _read_metadata(item, "labels")
    return {name: value for name, value in item.items() if name != "replicas"} if is_ours else item


def _read_metadata(item: Json, field: str) -> Json:
    """Labels or annotations of a machine deployment; whatever else is written there counts as none."""
    metadata = item.get("metadata")
    found = metadata.get(field) if isinstance(metadata, dict) else None
    return found if isinstance(found, dict) else {}


def _read_machine_type(item: Json) -> str:
    variables = item.get("variables")
    overrides = variables.get("overrides") if isinstance(variables, dict) else None
    for override in overrides if isinstance(overrides, list) else []:
        if isinstance(override, dict) and override.get("name") == _MACHINE_TYPE:
            return str(override.get("value", ""))[:253]
    return ""
