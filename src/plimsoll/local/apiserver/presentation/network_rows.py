"""Table rows of services, endpoints and network policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.presentation.durations import format_age
from plimsoll.local.apiserver.presentation.field_access import (
    NONE,
    UNKNOWN,
    UNSET,
    Json,
    format_labels,
    format_selector,
    get_int,
    get_items,
    get_mapping,
    get_name,
    get_text,
    get_texts,
    get_value,
    join_first,
)

if TYPE_CHECKING:
    from datetime import datetime


def build_service_cells(obj: Json, now: datetime) -> list[Any]:
    return [
        get_name(obj),
        get_text(obj, "spec", "type"),
        next(iter(get_texts(obj, "spec", "clusterIPs")), NONE),
        _format_external_address(obj),
        ",".join(_format_service_port(item) for item in get_items(obj, "spec", "ports")) or NONE,
        format_age(obj, now),
        format_labels(get_mapping(obj, "spec", "selector")),
    ]


def _format_external_address(service: Json) -> str:
    kind, given = get_text(service, "spec", "type"), get_texts(service, "spec", "externalIPs")
    if kind in {"ClusterIP", "NodePort"}:
        return ",".join(given) or NONE
    if kind == "LoadBalancer":
        ingress = get_items(service, "status", "loadBalancer", "ingress")
        balanced = sorted({get_text(item, "ip") or get_text(item, "hostname") for item in ingress} - {""})
        return ",".join([*balanced, *given]) or "<pending>"
    return get_text(service, "spec", "externalName") if kind == "ExternalName" else UNKNOWN


def _format_service_port(port: Json) -> str:
    protocol = get_text(port, "protocol")
    node_port = get_int(port, "nodePort")
    number = f"{get_int(port, 'port')}:{node_port}" if node_port > 0 else str(get_int(port, "port"))
    return f"{number}/{protocol}"


def build_endpoints_cells(obj: Json, now: datetime) -> list[Any]:
    return [get_name(obj), _format_endpoints(obj), format_age(obj, now)]


def _format_endpoints(obj: Json) -> str:
    subsets = get_items(obj, "subsets")
    if not subsets:
        return NONE
    shown: list[str] = []
    total = 0
    for subset in subsets:
        addresses, ports = get_items(subset, "addresses"), get_items(subset, "ports")
        total += len(addresses) * max(len(ports), 1)
        if len(shown) < 3:
            shown += (
                [get_text(address, "ip") for address in addresses[:3]]
                if not ports
                else _format_host_ports(addresses, ports)
            )
    return join_first(shown, total=total)


def _format_host_ports(addresses: list[Json], ports: list[Json]) -> list[str]:
    # Three are shown, so more than the first three of either are never needed.
    return [
        _format_host_port(get_text(address, "ip"), get_int(port, "port"))
        for port in ports[:3]
        for address in addresses[:3]
    ]


def _format_host_port(ip: str, port: int) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def build_endpoint_slice_cells(obj: Json, now: datetime) -> list[Any]:
    ports = [_format_slice_port(item) for item in get_items(obj, "ports")]
    addresses = [address for item in get_items(obj, "endpoints") for address in get_texts(item, "addresses")]
    return [
        get_name(obj),
        get_text(obj, "addressType"),
        join_first(ports) or UNSET,
        join_first(addresses) or UNSET,
        format_age(obj, now),
    ]


def _format_slice_port(port: Json) -> str:
    if get_value(port, "port") is not None:
        return str(get_int(port, "port"))
    return "*" if get_value(port, "name") is None else get_text(port, "name")


def build_network_policy_cells(obj: Json, now: datetime) -> list[Any]:
    return [get_name(obj), format_selector(obj, "spec", "podSelector"), format_age(obj, now)]
