"""The subsets of an Endpoints object: the addresses of a Service grouped by port. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Wire
from plimsoll.local.endpoints.backends import HEADLESS, is_headless
from plimsoll.objects.api.meta import WireObject
from plimsoll.objects.api.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.local.endpoints.backends import Backend, Port
    from plimsoll.objects.api.services import Service

MANAGED_BY: Final = "endpoints.kubernetes.io/managed-by"
MANAGER: Final = "endpoint-controller"
MOST_ADDRESSES: Final = 1_000
OVER_CAPACITY: Final = "endpoints.kubernetes.io/over-capacity"


class TargetReference(Wire):
    """The pod behind an address."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class EndpointAddress(Wire):
    """The address of one pod."""

    ip: str = ""
    hostname: str = ""
    node_name: str = ""
    target_ref: TargetReference | None = None


class SubsetPort(Wire):
    """A port that all addresses of the subset have."""

    name: str = ""
    port: int = 0
    protocol: str = ""
    app_protocol: str = ""


class EndpointSubset(Wire):
    """Addresses with the same ports."""

    addresses: tuple[EndpointAddress, ...] = ()
    not_ready_addresses: tuple[EndpointAddress, ...] = ()
    ports: tuple[SubsetPort, ...] = ()


class Endpoints(WireObject):
    """The deprecated Endpoints object; only this package reads it, so it is in no table of kinds."""

    subsets: tuple[EndpointSubset, ...] = ()


ENDPOINTS: Final = Resource(
    group="",
    version="v1",
    kind="Endpoints",
    plural="endpoints",
    singular="endpoints",
    namespaced=True,
    struct=Endpoints,
    short_names=("ep",),
)


def build_subsets(service: Service, backends: Sequence[Backend]) -> tuple[EndpointSubset, ...]:
    """A terminating pod is left out, unless the Service publishes everything."""
    shown = [item for item in backends if item.publishes or not item.is_terminating]
    shown.sort(key=lambda item: (not item.is_ready, item.address, item.uid))
    by_ports: dict[tuple[Port, ...], list[Backend]] = {}
    for backend in shown[:MOST_ADDRESSES]:
        if backend.ports or (is_headless(service) and not service.spec.ports):
            by_ports.setdefault(backend.ports, []).append(backend)
    groups = sorted(by_ports.items(), key=lambda item: [(port.number, port.protocol, port.name) for port in item[0]])
    return tuple(_build_subset(service.metadata.namespace, ports, group) for ports, group in groups)


def _build_subset(namespace: str, ports: Sequence[Port], group: Sequence[Backend]) -> EndpointSubset:
    return EndpointSubset(
        addresses=tuple(_build_address(namespace, backend) for backend in group if backend.is_ready),
        not_ready_addresses=tuple(_build_address(namespace, backend) for backend in group if not backend.is_ready),
        ports=tuple(
            SubsetPort(name=port.name, port=port.number, protocol=port.protocol, app_protocol=port.app_protocol)
            for port in sorted(ports, key=lambda item: (item.number, item.protocol, item.name))
        ),
    )


def _build_address(namespace: str, backend: Backend) -> EndpointAddress:
    reference = TargetReference(kind="Pod", namespace=namespace, name=backend.pod, uid=backend.uid)
    return EndpointAddress(ip=backend.address, hostname=backend.hostname, node_name=backend.node, target_ref=reference)


def build_labels(service: Service) -> dict[str, str]:
    labels = {**service.metadata.labels, MANAGED_BY: MANAGER}
    if is_headless(service):
        return {**labels, HEADLESS: ""}
    labels.pop(HEADLESS, None)
    return labels


def build_annotations(backends: Sequence[Backend]) -> dict[str, Any]:
    """Annotations that follow from the addresses; null takes one away."""
    return {OVER_CAPACITY: "truncated" if len(backends) > MOST_ADDRESSES else None}
