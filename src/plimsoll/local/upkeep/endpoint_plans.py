"""Which pods a service leads to, in the form of endpoint slices and of the older Endpoints object. Pure.

A pod counts once it has an address and until it has finished. Slices hold at most a hundred endpoints, all with the
same port numbers; a slice is called after its service and a number made from the service's uid, so it is never made
twice.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value
from plimsoll.local.upkeep.pod_notices import is_finished, is_ready

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.objects.pods import Pod
    from plimsoll.objects.services import Service, ServicePort

LARGEST_SLICE: Final = 100
SERVICE_NAME: Final = "kubernetes.io/service-name"
MANAGED_BY: Final = "endpointslice.kubernetes.io/managed-by"
SLICE_CONTROLLER: Final = "endpointslice-controller.k8s.io"

# Letters that make no words, as in generated names.
_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"


class SlicePlan(Value):
    """One slice as it should be; `endpoints` and `ports` as they stand in JSON."""

    name: str
    endpoints: list[dict[str, Any]]
    ports: list[dict[str, Any]]


def counted(pods: Sequence[Pod]) -> list[Pod]:
    """Those with an address that have not finished."""
    return [pod for pod in pods if pod.status.pod_ip and not is_finished(pod)]


def slices(service: Service, pods: Sequence[Pod], zones: Mapping[str, str]) -> list[SlicePlan]:
    """All slices of a service, at least one; `zones` by node."""
    groups: dict[tuple[int | None, ...], list[Pod]] = {}
    for pod in counted(pods):
        groups.setdefault(_numbers(service, pod), []).append(pod)
    planned: list[SlicePlan] = []
    for numbers, same in sorted(groups.items(), key=lambda one: str(one[0])):
        for start in range(0, len(same), LARGEST_SLICE):
            chunk = same[start : start + LARGEST_SLICE]
            planned.append(
                SlicePlan(
                    name=_slice_name(service, len(planned)),
                    endpoints=[_endpoint(service, pod, zones) for pod in chunk],
                    ports=_slice_ports(service, numbers),
                )
            )
    return planned or [SlicePlan(name=_slice_name(service, 0), endpoints=[], ports=[])]


def subsets(service: Service, pods: Sequence[Pod]) -> list[dict[str, Any]]:
    """The same for the Endpoints object; pods that terminate are not in it."""
    groups: dict[tuple[int | None, ...], dict[str, list[dict[str, Any]]]] = {}
    for pod in counted(pods):
        if pod.metadata.deletion_timestamp is None:
            is_up = is_ready(pod) or service.spec.publish_not_ready_addresses
            kind = "addresses" if is_up else "notReadyAddresses"
            groups.setdefault(_numbers(service, pod), {}).setdefault(kind, []).append(_address(pod))
    found: list[dict[str, Any]] = []
    for numbers, kinds in sorted(groups.items(), key=lambda one: str(one[0])):
        ports = [
            {**({"name": one["name"]} if one["name"] else {}), "port": one["port"], "protocol": one["protocol"]}
            for one in _slice_ports(service, numbers)
        ]
        found.append({**kinds, **({"ports": ports} if ports else {})})
    return found


def _endpoint(service: Service, pod: Pod, zones: Mapping[str, str]) -> dict[str, Any]:
    is_leaving = pod.metadata.deletion_timestamp is not None
    serving = is_ready(pod)
    ready = service.spec.publish_not_ready_addresses or (serving and not is_leaving)
    node = pod.spec.node_name
    return {
        "addresses": [pod.status.pod_ip],
        "conditions": {"ready": ready, "serving": serving, "terminating": is_leaving},
        **_hostname(pod, service),
        "targetRef": _target(pod),
        **({"nodeName": node} if node else {}),
        **({"zone": zones[node]} if node in zones else {}),
    }


def _hostname(pod: Pod, service: Service) -> dict[str, str]:
    is_named = pod.spec.hostname and pod.spec.subdomain == service.metadata.name
    return {"hostname": pod.spec.hostname} if is_named else {}


def _address(pod: Pod) -> dict[str, Any]:
    node = {"nodeName": pod.spec.node_name} if pod.spec.node_name else {}
    return {"ip": pod.status.pod_ip, **node, "targetRef": _target(pod)}


def _target(pod: Pod) -> dict[str, str]:
    metadata = pod.metadata
    return {"kind": "Pod", "namespace": metadata.namespace, "name": metadata.name, "uid": metadata.uid}


def _numbers(service: Service, pod: Pod) -> tuple[int | None, ...]:
    return tuple(_number(one, pod) for one in service.spec.ports)


def _number(port: ServicePort, pod: Pod) -> int | None:
    """The port of the pod behind one of the service; None if the pod has none of that name."""
    target = port.target_port
    if isinstance(target, str) and target:
        named = (one for container in pod.spec.containers for one in container.ports)
        wanted = (target, port.protocol or "TCP")
        return next((one.container_port for one in named if (one.name, one.protocol or "TCP") == wanted), None)
    return target if isinstance(target, int) and target else port.port


def _slice_ports(service: Service, numbers: tuple[int | None, ...]) -> list[dict[str, Any]]:
    return [
        {"name": one.name, "protocol": one.protocol or "TCP", "port": number}
        for one, number in zip(service.spec.ports, numbers, strict=True)
        if number is not None
    ]


def _slice_name(service: Service, number: int) -> str:
    digest = hashlib.sha256(f"{service.metadata.uid}/{number}".encode()).digest()
    suffix = "".join(_LETTERS[byte % len(_LETTERS)] for byte in digest[:5])
    return f"{service.metadata.name[:57]}-{suffix}"
