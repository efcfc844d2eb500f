"""Table rows of services, endpoints and network policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.presentation.durations import age
from plimsoll.local.apiserver.presentation.field_access import (
    NONE,
    UNKNOWN,
    UNSET,
    Json,
    first_few,
    items,
    labels,
    mapping,
    name_of,
    selector,
    text,
    texts,
    value,
    whole,
)

if TYPE_CHECKING:
    from datetime import datetime


def service_cells(obj: Json, now: datetime) -> list[Any]:
    return [
        name_of(obj),
        text(obj, "spec", "type"),
        next(iter(texts(obj, "spec", "clusterIPs")), NONE),
        _external_address(obj),
        ",".join(_service_port(item) for item in items(obj, "spec", "ports")) or NONE,
        age(obj, now),
        labels(mapping(obj, "spec", "selector")),
    ]


def _external_address(service: Json) -> str:
    kind, given = text(service, "spec", "type"), texts(service, "spec", "externalIPs")
    if kind in {"ClusterIP", "NodePort"}:
        return ",".join(given) or NONE
    if kind == "LoadBalancer":
        ingress = items(service, "status", "loadBalancer", "ingress")
        balanced = sorted({text(item, "ip") or text(item, "hostname") for item in ingress} - {""})
        return ",".join([*balanced, *given]) or "<pending>"
    return text(service, "spec", "externalName") if kind == "ExternalName" else UNKNOWN


def _service_port(port: Json) -> str:
    protocol = text(port, "protocol")
    node_port = whole(port, "nodePort")
    number = f"{whole(port, 'port')}:{node_port}" if node_port > 0 else str(whole(port, "port"))
    return f"{number}/{protocol}"


def endpoints_cells(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), _endpoints(obj), age(obj, now)]


def _endpoints(obj: Json) -> str:
    subsets = items(obj, "subsets")
    if not subsets:
        return NONE
    shown: list[str] = []
    total = 0
    for subset in subsets:
        addresses, ports = items(subset, "addresses"), items(subset, "ports")
        total += len(addresses) * max(len(ports), 1)
        if len(shown) < 3:
            shown += [text(address, "ip") for address in addresses[:3]] if not ports else _host_ports(addresses, ports)
    return first_few(shown, total=total)


def _host_ports(addresses: list[Json], ports: list[Json]) -> list[str]:
    # Three are shown, so more than the first three of either are never needed.
    return [_host_port(text(address, "ip"), whole(port, "port")) for port in ports[:3] for address in addresses[:3]]


def _host_port(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def endpoint_slice_cells(obj: Json, now: datetime) -> list[Any]:
    ports = [_slice_port(item) for item in items(obj, "ports")]
    addresses = [address for item in items(obj, "endpoints") for address in texts(item, "addresses")]
    return [
        name_of(obj),
        text(obj, "addressType"),
        first_few(ports) or UNSET,
        first_few(addresses) or UNSET,
        age(obj, now),
    ]


def _slice_port(port: Json) -> str:
    if value(port, "port") is not None:
        return str(whole(port, "port"))
    return "*" if value(port, "name") is None else text(port, "name")


def network_policy_cells(obj: Json, now: datetime) -> list[Any]:
    return [name_of(obj), selector(obj, "spec", "podSelector"), age(obj, now)]
