"""Lets clients of a cluster's TiDB Service reach the servers of its groups, through an EndpointSlice of ours.

The Service `<cluster>-tidb` selects only pods of its own TidbCluster, so added servers would get no traffic. Slices are
synchronised in every reconcile, and before a server is removed: it leaves the slice first. The Service owns the slice,
so the slice is deleted with it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.values import Value
from plimsoll.kube.errors import NotFound
from plimsoll.kube.requests.options import DeleteOptions, Selection
from plimsoll.objects.api.pods import Pod, is_pod_ready
from plimsoll.objects.api.services import EndpointSlice, Service
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.wire.annotations import FIELD_MANAGER

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.kube.client import Client
    from plimsoll.objects.api.services import ServicePort

MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
MANAGER: Final = FIELD_MANAGER
SERVICE_NAME: Final = "kubernetes.io/service-name"
INSTANCE_LABEL: Final = "app.kubernetes.io/instance"
COMPONENT_LABEL: Final = "app.kubernetes.io/component"
MOST_IN_A_SLICE: Final = 1000
"""The limit of the API. One slice is enough for any realistic number of servers."""
_NAMES: Final = {"IPv4": "autoscaled", "IPv6": "autoscaled-ipv6"}


class ServedGroups(Value):
    """The group servers that the Service should reach: of each TidbCluster, the servers with the lowest ordinals.

    A group that is to be removed has 0; a group that is to shrink has its future count.
    """

    namespace: str
    base: str
    replicas: dict[str, int] = {}

    @property
    def service(self) -> str:
        return f"{self.base}-{Component.TIDB}"

    def serves(self, pod: Pod) -> bool:
        cluster = pod.metadata.labels.get(INSTANCE_LABEL, "")
        stem, _, ordinal = pod.metadata.name.rpartition("-")
        is_server = stem == f"{cluster}-{Component.TIDB}" and ordinal.isdecimal()
        return is_server and int(ordinal) < self.replicas.get(cluster, 0) and _is_ready(pod)


class SliceSync(Value):
    """The number of group servers in the slices, and whether anything was written."""

    servers: int
    wrote: bool


async def sync_endpoint_slices(client: Client, serving: ServedGroups) -> SliceSync:
    """Update the slices of the cluster's Service. Errors of the API server are raised."""
    existing = {endpoint_slice.metadata.name: endpoint_slice for endpoint_slice in await _list_slices(client, serving)}
    is_needed = bool(existing) or any(serving.replicas.values())
    service = await _find_service(client, serving) if is_needed else None
    if service is None:
        return SliceSync(servers=0, wrote=False)
    pods = await _list_pods(client, serving)
    wanted = build_slices(service, pods)
    wrote = False
    for name, body in wanted.items():
        wrote |= await _write_slice(client, body, existing.get(name), namespace=serving.namespace)
    for name in sorted(existing.keys() - wanted.keys()):
        await _delete_slice(client, existing[name])
        wrote = True
    return SliceSync(servers=len(pods), wrote=wrote)


# ---- manifests


def build_slices(service: Service, pods: Sequence[Pod]) -> dict[str, dict[str, Any]]:
    """Slices by name, one per address family that pods have and the Service serves; none without pods."""
    families = service.spec.ip_families or ("IPv4",)
    bodies: dict[str, dict[str, Any]] = {}
    for family in families:
        endpoints = [
            _build_endpoint(pod, address)
            for pod in sorted(pods, key=lambda pod: pod.metadata.name)
            if (address := _find_address(pod, family))
        ]
        if endpoints and family in _NAMES:
            name = f"{service.metadata.name}-{_NAMES[family]}"
            bodies[name] = _build_body(service, name, family=family, endpoints=endpoints[:MOST_IN_A_SLICE]) | {
                "ports": [_build_port(service_port, pods) for service_port in service.spec.ports]
            }
    return bodies


def _build_body(service: Service, name: str, *, family: str, endpoints: list[dict[str, Any]]) -> dict[str, Any]:
    owner = {
        "apiVersion": "v1",
        "kind": "Service",
        "name": service.metadata.name,
        "uid": service.metadata.uid,
        "controller": False,
        "blockOwnerDeletion": False,
    }
    return {
        "metadata": {
            "name": name,
            "namespace": service.metadata.namespace,
            "labels": {SERVICE_NAME: service.metadata.name, MANAGED_BY: MANAGER},
            "ownerReferences": [owner],
        },
        "addressType": family,
        "endpoints": endpoints,
    }


def _build_endpoint(pod: Pod, address: str) -> dict[str, Any]:
    metadata = pod.metadata
    endpoint: dict[str, Any] = {
        "addresses": [address],
        "conditions": {"ready": True, "serving": True, "terminating": False},
        "targetRef": {"kind": "Pod", "namespace": metadata.namespace, "name": metadata.name, "uid": metadata.uid},
    }
    return endpoint | ({"nodeName": pod.spec.node_name} if pod.spec.node_name else {})


def _build_port(port: ServicePort, pods: Iterable[Pod]) -> dict[str, Any]:
    """The port of a slice.

    A named target port is looked up in the pods; without a target the Service's own port is used.
    """
    target = port.target_port or port.port
    if isinstance(target, str) and not target.isdecimal():
        ports = [
            container_port for pod in pods for container in pod.spec.containers for container_port in container.ports
        ]
        target = next(
            (container_port.container_port for container_port in ports if container_port.name == target), port.port
        )
    slice_port: dict[str, Any] = {"name": port.name, "protocol": port.protocol or "TCP", "port": int(target)}
    return slice_port | ({"appProtocol": port.app_protocol} if port.app_protocol else {})


def _find_address(pod: Pod, family: str) -> str:
    addresses = [pod_ip.ip for pod_ip in pod.status.pod_ips] or [pod.status.pod_ip]
    return next((address for address in addresses if address and (":" in address) == (family == "IPv6")), "")


def _is_ready(pod: Pod) -> bool:
    return is_pod_ready(pod) and pod.metadata.deletion_timestamp is None


# ---- reading and writing


async def _find_service(client: Client, serving: ServedGroups) -> Service | None:
    try:
        return await client.get(Service, serving.service, namespace=serving.namespace)
    except NotFound:
        return None


async def _list_pods(client: Client, serving: ServedGroups) -> list[Pod]:
    clusters = sorted(name for name, replicas in serving.replicas.items() if replicas > 0)
    if not clusters:
        return []
    labels = f"{COMPONENT_LABEL}={Component.TIDB},{INSTANCE_LABEL} in ({','.join(clusters)})"
    listed = await client.list(Pod, Selection(namespace=serving.namespace, labels=labels))
    return [pod for pod in listed.items if serving.serves(pod)]


async def _list_slices(client: Client, serving: ServedGroups) -> list[EndpointSlice]:
    labels = f"{SERVICE_NAME}={serving.service},{MANAGED_BY}={MANAGER}"
    listed = await client.list(EndpointSlice, Selection(namespace=serving.namespace, labels=labels))
    return list(listed.items)


async def _write_slice(client: Client, body: dict[str, Any], existing: EndpointSlice | None, *, namespace: str) -> bool:
    if existing is None:
        await client.create(EndpointSlice, body, namespace=namespace)
        return True
    if _get_comparison_key(msgspec.convert(body, EndpointSlice, strict=False)) == _get_comparison_key(existing):
        return False
    change = {key: body[key] for key in ("endpoints", "ports")}
    await client.merge_patch(EndpointSlice, existing.metadata.name, change, namespace=namespace)
    return True


def _get_comparison_key(endpoint_slice: EndpointSlice) -> tuple[object, ...]:
    return endpoint_slice.endpoints, endpoint_slice.ports


async def _delete_slice(client: Client, endpoint_slice: EndpointSlice) -> None:
    metadata = endpoint_slice.metadata
    try:
        options = DeleteOptions(uid=metadata.uid)
        await client.delete(EndpointSlice, metadata.name, namespace=metadata.namespace, options=options)
    except NotFound:
        return
