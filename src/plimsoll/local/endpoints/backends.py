"""The backends of a Service: its pods with their ports and states. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.kube.informer.events import get_key
from plimsoll.objects.api.pods import is_pod_ready

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from plimsoll.kube.informer.events import Key
    from plimsoll.objects.api.pods import Container, Pod
    from plimsoll.objects.api.services import Service, ServicePort

TRIGGER_TIME: Final = "endpoints.kubernetes.io/last-change-trigger-time"
HEADLESS: Final = "service.kubernetes.io/headless"
ZONE: Final = "topology.kubernetes.io/zone"

_ENDED: Final = frozenset({"Succeeded", "Failed"})


class Port(Value, frozen=True):
    """A port of a Service as one pod has it. Pods may give one name different numbers."""

    name: str
    protocol: str
    number: int
    app_protocol: str = ""


class Backend(Value, frozen=True):
    """A pod behind a Service, as endpoints describe it."""

    pod: str
    uid: str
    address: str
    node: str
    hostname: str
    ports: tuple[Port, ...]
    is_serving: bool
    is_terminating: bool
    publishes: bool
    """Whether it is to be found in any state."""

    @property
    def is_ready(self) -> bool:
        return self.publishes or (self.is_serving and not self.is_terminating)


def list_backends(service: Service, pods: Iterable[Pod], *, family: str) -> list[Backend]:
    """Every pod with an address of the family that has not ended, in the order of their names."""
    found = (_build_backend(service, pod, family) for pod in pods if pod.status.phase not in _ENDED)
    return sorted((backend for backend in found if backend is not None), key=lambda item: item.pod)


def _build_backend(service: Service, pod: Pod, family: str) -> Backend | None:
    address = _find_address(pod, family)
    if not address:
        return None
    return Backend(
        pod=pod.metadata.name,
        uid=pod.metadata.uid,
        address=address,
        node=pod.spec.node_name,
        hostname=pod.spec.hostname if pod.spec.subdomain == service.metadata.name else "",
        ports=list_ports(service, pod),
        is_serving=is_pod_ready(pod),
        is_terminating=pod.metadata.deletion_timestamp is not None,
        publishes=service.spec.publish_not_ready_addresses,
    )


def list_families(service: Service) -> tuple[str, ...]:
    """The address families of a Service; the cluster's, if it names none."""
    return service.spec.ip_families or ("IPv4",)


def _find_address(pod: Pod, family: str) -> str:
    addresses = [pod_ip.ip for pod_ip in pod.status.pod_ips] or [pod.status.pod_ip]
    return next((address for address in addresses if address and (":" in address) == (family == "IPv6")), "")


def list_ports(service: Service, pod: Pod) -> tuple[Port, ...]:
    """The ports of the Service that the pod has: a port that is only named may be missing in it."""
    found = ((service_port, _resolve_port_number(service_port, pod)) for service_port in service.spec.ports)
    return tuple(
        Port(
            name=service_port.name,
            protocol=service_port.protocol or "TCP",
            number=number,
            app_protocol=service_port.app_protocol,
        )
        for service_port, number in found
        if number is not None
    )


def _resolve_port_number(port: ServicePort, pod: Pod) -> int | None:
    target = port.target_port
    if target is None or target in {0, ""}:
        return port.port
    if isinstance(target, int):
        return target
    protocol = port.protocol or "TCP"
    for container in _list_serving_containers(pod):
        for container_port in container.ports:
            if container_port.name == target and (container_port.protocol or "TCP") == protocol:
                return container_port.container_port
    return None


def _list_serving_containers(pod: Pod) -> Iterable[Container]:
    sidecars = (container for container in pod.spec.init_containers if container.restart_policy == "Always")
    return (*pod.spec.containers, *sidecars)


def is_headless(service: Service) -> bool:
    return service.spec.cluster_ip in {"", "None"}


class TriggerTimes:
    """The times of changes for `last-change-trigger-time`, by which latency is measured.

    Memory only. After a restart the next change of each Service counts from its oldest pod, as it does in Kubernetes.
    """

    def __init__(self) -> None:
        self._known: dict[Key, dict[str, datetime]] = {}

    def trigger(self, service: Service, pods: Iterable[Pod]) -> datetime | None:
        """The oldest change since this was last asked; None if nothing that has a time changed."""
        times = {pod.metadata.uid: at for pod in pods if (at := _get_ready_transition(pod)) is not None}
        if service.metadata.creation_timestamp is not None:
            times[""] = service.metadata.creation_timestamp
        before = self._known.get(get_key(service), {})
        self._known[get_key(service)] = times
        return min((at for uid, at in times.items() if uid not in before or at > before[uid]), default=None)

    def forget(self, key: Key) -> None:
        """The Service does not exist any more."""
        self._known.pop(key, None)


def _get_ready_transition(pod: Pod) -> datetime | None:
    ready = next((condition for condition in pod.status.conditions if condition.type == "Ready"), None)
    return None if ready is None else ready.last_transition_time
