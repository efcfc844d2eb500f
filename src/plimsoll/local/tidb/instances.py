"""The members of a TiDB cluster: its TidbClusters, and their pods as instances that PD and Prometheus know. Pure.

A cluster is a base TidbCluster, which has the PD, and those that join it (`spec.cluster`), in any namespace. Everything
else in this package uses `TidbInstance`.
"""

from __future__ import annotations

import tomllib
from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.quantity import Quantity
from plimsoll.core.values import Value
from plimsoll.kube.controlled_objects.pod_readiness import get_ready_since
from plimsoll.kube.informer.events import Key
from plimsoll.objects.api.pods import is_pod_ready

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.tidb import TidbCluster, TidbComponent

PD: Final = "pd"
TIKV: Final = "tikv"
TIDB: Final = "tidb"
COMPONENTS: Final = (PD, TIKV, TIDB)

INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"
MANAGED_BY_LABEL: Final = "app.kubernetes.io/managed-by"
NAME_LABEL: Final = "app.kubernetes.io/name"
OPERATOR: Final = "tidb-operator"
NAME: Final = "tidb-cluster"

CLIENT_PORTS: Final = {PD: 2379, TIKV: 20160, TIDB: 4000}
SPECIAL_USE: Final = "specialUse"


class TidbInstance(Value):
    """A server: a pod of a TidbCluster. `cpu_cores` is its quota, `capacity_bytes` the disk of a store."""

    component: str
    namespace: str
    cluster: str
    pod: str
    uid: str
    address: str
    is_base: bool
    is_ready: bool
    since: datetime | None = None
    """When it became ready."""
    labels: dict[str, str] = {}
    cpu_cores: float = 0.0
    capacity_bytes: int = 0


def build_component_labels(cluster: str, component: str) -> dict[str, str]:
    """By which pods and services of a component are found."""
    return {
        NAME_LABEL: NAME,
        INSTANCE_LABEL: cluster,
        COMPONENT_LABEL: component,
        MANAGED_BY_LABEL: OPERATOR,
    }


def set_name(cluster: str, component: str) -> str:
    return f"{cluster}-{component}"


def get_base_key(cluster: TidbCluster) -> Key:
    """Return the key of the TidbCluster whose PD it uses: its own, or the one it joins."""
    joined = cluster.spec.cluster
    if joined is None or not joined.name:
        return Key(cluster.metadata.namespace, cluster.metadata.name)
    return Key(joined.namespace or cluster.metadata.namespace, joined.name)


def read_cluster_key(pod: Pod) -> Key | None:
    """Read the key of the TidbCluster that the pod's labels name."""
    labels = pod.metadata.labels
    if labels.get(MANAGED_BY_LABEL) != OPERATOR or INSTANCE_LABEL not in labels:
        return None
    return Key(pod.metadata.namespace, labels[INSTANCE_LABEL])


def find_component(cluster: TidbCluster, component: str) -> TidbComponent | None:
    return {PD: cluster.spec.pd, TIKV: cluster.spec.tikv, TIDB: cluster.spec.tidb}[component]


def list_instances(cluster: TidbCluster, pods: Iterable[Pod]) -> tuple[TidbInstance, ...]:
    """The servers of one TidbCluster, in the order of their pods; those that do not run yet are among them."""
    found = []
    for pod in sorted(pods, key=lambda pod_object: (len(pod_object.metadata.name), pod_object.metadata.name)):
        component = pod.metadata.labels.get(COMPONENT_LABEL, "")
        spec = find_component(cluster, component) if component in COMPONENTS else None
        if spec is not None and read_cluster_key(pod) == Key(cluster.metadata.namespace, cluster.metadata.name):
            found.append(_build_instance(cluster, spec, pod, component))
    return tuple(found)


def read_server_labels(component: str, config: Any) -> dict[str, str]:
    """The labels that a server registers with PD: TiKV's `server.labels`, TiDB's `labels`.

    The config is absent, TOML text or a map. An unreadable config has no labels.
    """
    read = _as_map(config)
    place = read.get("server") if component == TIKV else read
    labels = place.get("labels") if isinstance(place, dict) else None
    return {str(key): str(value) for key, value in labels.items()} if isinstance(labels, dict) else {}


def _as_map(config: Any) -> dict[str, Any]:
    if isinstance(config, str):
        try:
            return tomllib.loads(config)
        except tomllib.TOMLDecodeError:
            return {}
    return config if isinstance(config, dict) else {}


def _build_instance(cluster: TidbCluster, spec: TidbComponent, pod: Pod, component: str) -> TidbInstance:
    namespace, name = cluster.metadata.namespace, cluster.metadata.name
    is_leaving = pod.metadata.deletion_timestamp is not None
    host = f"{pod.metadata.name}.{set_name(name, component)}-peer.{namespace}.svc"
    return TidbInstance(
        component=component,
        namespace=namespace,
        cluster=name,
        pod=pod.metadata.name,
        uid=pod.metadata.uid,
        address=f"{host}:{CLIENT_PORTS[component]}",
        is_base=not cluster.is_heterogeneous,
        is_ready=is_pod_ready(pod) and not is_leaving,
        since=get_ready_since(pod),
        labels=read_server_labels(component, spec.config),
        cpu_cores=_read_amount(spec, "cpu"),
        capacity_bytes=int(_read_amount(spec, "storage")),
    )


def _read_amount(spec: TidbComponent, resource: str) -> float:
    """Read its limit, or else its request; 0 if it is absent or cannot be read."""
    written = spec.limits.get(resource, spec.requests.get(resource))
    try:
        return 0.0 if written is None else Quantity.parse(written).to_milli() / 1000
    except InvalidInput:
        return 0.0
