"""The allocation of cluster IPs and node ports to services.

Deterministic: a cluster IP is the next free address after a place derived from the service's name; a node port is the
lowest free one. What is taken is read from the store, including pending writes, so nothing has to be remembered or
released. The result holds for the instant only: handlers allocate once for what they validate and return, and once more
inside the write itself, where no other writer can interfere.
"""

from __future__ import annotations

import ipaddress
from itertools import chain
from typing import TYPE_CHECKING, Any, Final
from zlib import crc32

import msgspec

from plimsoll.local.apiserver import status_errors
from plimsoll.objects.schema import field_errors as fields

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.local.apiserver.storage import Store, Stored

Json = dict[str, Any]

SERVICES: Final = "services"
ADDRESSES: Final = ipaddress.ip_network("10.96.0.0/12")
NODE_PORTS: Final = range(30000, 32768)
_KEPT_FREE: Final = 10  # the first addresses are for the cluster's own services
_WITH_NODE_PORTS: Final = frozenset({"NodePort", "LoadBalancer"})


def allocate(obj: Json, old: Json | None, store: Store) -> Json:
    """The service with its addresses; those it had stay. Raises `StatusError` if a requested one is not available."""
    spec = dict(obj["spec"])
    result = {**obj, "spec": spec}
    if spec.get("type") == "ExternalName":
        for name in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy", "internalTrafficPolicy"):
            spec.pop(name, None)
        return result
    before = (old or {}).get("spec", {})
    if not spec.get("clusterIP"):
        spec["clusterIP"] = before.get("clusterIP") or _choose_free_address(obj["metadata"], store)
    elif spec["clusterIP"] not in ("None", before.get("clusterIP")):
        _check_address(obj, store)
    spec.setdefault("clusterIPs", [spec["clusterIP"]])
    spec.setdefault("ipFamilies", before.get("ipFamilies") or ["IPv4"])
    spec.setdefault("ipFamilyPolicy", before.get("ipFamilyPolicy") or "SingleStack")
    if spec.get("type") in _WITH_NODE_PORTS and spec.get("ports"):
        spec["ports"] = _allocate_node_ports(obj, old, store)
    return result


def _list_services(store: Store) -> Iterator[Stored]:
    return chain(store.list(SERVICES).items, store.iterate_pending_writes(SERVICES))


# ---- addresses


def _list_used_addresses(store: Store) -> set[str]:
    return {stored.fields.get("spec.clusterIP", "") for stored in _list_services(store)}


def _choose_free_address(metadata: Json, store: Store) -> str:
    used = _list_used_addresses(store)
    usable = ADDRESSES.num_addresses - _KEPT_FREE - 1
    start = crc32(f"{metadata.get('namespace', '')}/{metadata.get('name', '')}".encode()) % usable
    for step in range(usable):
        address = str(ADDRESSES[_KEPT_FREE + (start + step) % usable])
        if address not in used:
            return address
    raise status_errors.internal_error("failed to allocate a serviceIP: range is full")


def _check_address(obj: Json, store: Store) -> None:
    address = obj["spec"]["clusterIP"]
    try:
        inside = ipaddress.ip_address(address) in ADDRESSES
    except ValueError:
        return  # validation says so
    if not inside:
        problem = f"failed to allocate IP {address}: the provided IP ({address}) is not in the valid range. "
        problem += f"The range of valid IPs is {ADDRESSES}"
    elif address in _list_used_addresses(store):
        problem = f"failed to allocate IP {address}: provided IP is already allocated"
    else:
        return
    raise _invalid(obj, fields.invalid("spec.clusterIPs", [address], problem))


def _invalid(obj: Json, error: fields.FieldError) -> status_errors.StatusError:
    return status_errors.invalid(obj["metadata"].get("name", ""), group="", kind="Service", errors=[error])


# ---- node ports


class _Port(msgspec.Struct):
    nodePort: int = 0  # noqa: N815 -- the name on the wire


class _Spec(msgspec.Struct):
    ports: list[_Port] | None = None


class _Exposed(msgspec.Struct):
    spec: _Spec


_exposed: Final = msgspec.json.Decoder(_Exposed)


def _list_used_ports(store: Store) -> set[int]:
    exposed = (stored for stored in _list_services(store) if stored.fields.get("spec.type") in _WITH_NODE_PORTS)
    return {port.nodePort for stored in exposed for port in _exposed.decode(stored.data).spec.ports or ()}


def _allocate_node_ports(obj: Json, old: Json | None, store: Store) -> list[Json]:
    """The ports of a service, each with its node port: the one it had, the one asked for, or a free one."""
    before = ((old or {}).get("spec") or {}).get("ports") or ()
    kept = {_get_identity(port): port["nodePort"] for port in before if port.get("nodePort")}
    ports = [dict(port) for port in obj["spec"]["ports"]]
    for port in ports:
        if not port.get("nodePort") and _get_identity(port) in kept:
            port["nodePort"] = kept[_get_identity(port)]
    own = set(kept.values())
    if all(port.get("nodePort") in own for port in ports):
        return ports
    used = _list_used_ports(store)
    _check_ports(obj, ports, taken=used - own, is_new=old is None)
    if obj["spec"]["type"] == "NodePort" or obj["spec"].get("allocateLoadBalancerNodePorts") is not False:
        _give_ports(ports, used=used | own, is_new=old is None)
    return ports


def _get_identity(port: Json) -> tuple[Any, Any]:
    return port.get("protocol"), port.get("port")


def _check_ports(obj: Json, ports: list[Json], *, taken: set[int], is_new: bool) -> None:
    holders: dict[int, Any] = {}
    for index, port in enumerate(ports):
        requested = port.get("nodePort")
        if not requested:
            continue
        if requested not in NODE_PORTS:
            problem = "provided port is not in the valid range. "
            problem += f"The range of valid ports is {NODE_PORTS[0]}-{NODE_PORTS[-1]}"
        elif requested in taken or (is_new and holders.setdefault(requested, port.get("port")) != port.get("port")):
            problem = "provided port is already allocated"
        else:
            continue
        raise _invalid(obj, fields.invalid(f"spec.ports[{index}].nodePort", requested, problem))


def _give_ports(ports: list[Json], *, used: set[int], is_new: bool) -> None:
    """In a new service one port number is one node port whatever the protocol, as for DNS over TCP and UDP."""
    requested = {port["nodePort"]: port.get("port") for port in reversed(ports) if port.get("nodePort")}
    shared = {number: node_port for node_port, number in requested.items()} if is_new else {}
    free = (node_port for node_port in NODE_PORTS if node_port not in used and node_port not in requested)
    for port in ports:
        if port.get("nodePort"):
            continue
        given = shared.get(port.get("port")) or next(free, None)
        if given is None:
            raise status_errors.internal_error("failed to allocate a nodePort: range is full")
        port["nodePort"] = given
        if is_new:
            shared[port.get("port")] = given
