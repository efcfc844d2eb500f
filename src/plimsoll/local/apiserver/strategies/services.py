"""What a service is given from a common stock: a cluster IP, and node ports.

Taken deterministically: from a place that the service's name decides, the next one that is free. Used addresses are
read from the store's index of fields, so nothing has to be remembered or given back.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

from plimsoll.local.apiserver import refusals
from plimsoll.objects.schema import field_errors as fields

if TYPE_CHECKING:
    from plimsoll.local.apiserver.storage import Store

Json = dict[str, Any]

SERVICES: Final = "services"
ADDRESSES: Final = ipaddress.ip_network("10.96.0.0/12")
NODE_PORTS: Final = range(30000, 32768)
_KEPT_FREE: Final = 10  # the first addresses are for the cluster's own services
_WITH_NODE_PORTS: Final = frozenset({"NodePort", "LoadBalancer"})


def allocated(obj: Json, old: Json | None, store: Store) -> Json:
    """The service with its addresses; those it had stay."""
    spec = dict(obj["spec"])
    result = {**obj, "spec": spec}
    if spec.get("type") == "ExternalName":
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"):
            spec.pop(name, None)
        return result
    before = (old or {}).get("spec", {})
    if not spec.get("clusterIP"):
        spec["clusterIP"] = before.get("clusterIP") or _free_address(obj["metadata"], store)
    elif spec["clusterIP"] not in ("None", before.get("clusterIP")):
        _check_asked_for(obj, store)
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilies", before.get("ipFamilies") or ["IPv4"])
    spec.setdefault("ipFamilyPolicy", before.get("ipFamilyPolicy") or "SingleStack")
    _allocate_ports(spec, before, store)
    return result


def _used_addresses(store: Store) -> set[str]:
    return {one.fields.get("spec.clusterIP", "") for one in store.list(SERVICES).items}


def _free_address(metadata: Json, store: Store) -> str:
    used = _used_addresses(store)
    usable = ADDRESSES.num_addresses - _KEPT_FREE - 1
    start = crc32(f"{metadata.get('namespace', '')}/{metadata.get('name', '')}".encode()) % usable
    for step in range(usable):
        address = str(ADDRESSES[_KEPT_FREE + (start + step) % usable])
        if address not in used:
            return address
    raise refusals.failure(500, "InternalError", "failed to allocate a serviceIP: range is full")


def _check_asked_for(obj: Json, store: Store) -> None:
    address = obj["spec"]["clusterIP"]
    try:
        inside = ipaddress.ip_address(address) in ADDRESSES
    except ValueError:
        return  # validation says so
    if not inside:
        problem = f"failed to allocate IP {address}: the provided IP ({address}) is not in the valid range. "
        problem += f"The range of valid IPs is {ADDRESSES}"
    elif address in _used_addresses(store):
        problem = f"failed to allocate IP {address}: provided IP is already allocated"
    else:
        return
    error = fields.invalid("spec.clusterIPs", [address], problem)
    raise refusals.invalid(obj["metadata"].get("name", ""), group="", kind="Service", errors=[error])


def _allocate_ports(spec: Json, before: Json, store: Store) -> None:
    ports = [dict(port) for port in spec.get("ports", ())]
    if not ports or spec.get("type") not in _WITH_NODE_PORTS:
        return
    if spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
        return
    kept = {_identity(port): port.get("nodePort") for port in before.get("ports", ())}
    used = _used_ports(store)
    for port in ports:
        if not port.get("nodePort"):
            port["nodePort"] = kept.get(_identity(port)) or next(one for one in NODE_PORTS if one not in used)
        used.add(port["nodePort"])
    spec["ports"] = ports


def _identity(port: Json) -> tuple[Any, Any]:
    return port.get("protocol"), port.get("port")


def _used_ports(store: Store) -> set[int]:
    exposed = (one for one in store.list(SERVICES).items if one.fields.get("spec.type") in _WITH_NODE_PORTS)
    return {port.get("nodePort", 0) for one in exposed for port in one.body()["spec"].get("ports", ())}
