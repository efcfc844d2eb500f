"""The guard against server-side request forgery: which addresses a controller may call on behalf of a user.

A user who may create an object chooses a host that the controller calls, from inside the cluster and with the
controller's network rights. So addresses that only the controller can reach are refused: loopback, the link of its
machine, and the cloud's metadata service, which hands out credentials. Addresses inside the cluster are allowed: such
services run there. The operator may make exceptions for hosts and networks (`--external-allow`).
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

# Metadata services that are not link-local: AWS over IPv6, Alibaba Cloud, Azure's host, Oracle Cloud.
_METADATA: Final = frozenset(
    map(ip_address, ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"))
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_UNSPECIFIED: Final = IPv6Network("::/128")
_THIS_NETWORK: Final = IPv4Network("0.0.0.0/8")
"""Linux treats all of them as the machine itself."""


class AddressExceptions(Value):
    """Hosts and networks that may be called although they would be refused."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[str, ...] = ()

    def allow(self, host: str, address: IPv4Address | IPv6Address) -> bool:
        return _normalize(host) in self.hosts or any(address in ip_network(network) for network in self.networks)


NO_EXCEPTIONS: Final = AddressExceptions()


def parse_exceptions(written: Iterable[str], *, path: str = "--external-allow") -> AddressExceptions:
    """Reads host names, addresses and networks such as `10.0.0.0/8`. Raises `InvalidInput`."""
    hosts: set[str] = set()
    networks: list[str] = []
    for exception in written:
        text = exception.strip()
        try:
            networks.append(str(ip_network(text)))
        except ValueError as error:
            if not text or "/" in text:
                raise InvalidInput(f"{exception!r} is neither a host nor a network: {error}", path=path) from error
            hosts.add(_normalize(text))
    return AddressExceptions(hosts=frozenset(hosts), networks=tuple(networks))


def find_refusal(host: str, address: str, exceptions: AddressExceptions = NO_EXCEPTIONS) -> str:
    """Why an address that a host resolved to is not called; empty: it may be called."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return f"{address!r} is not an address"
    target = _find_embedded_ipv4(parsed)
    kind = _find_refused_kind(target)
    if not kind or exceptions.allow(host, parsed) or exceptions.allow(host, target):
        return ""
    return f"{address} is {kind}"


def _find_refused_kind(address: IPv4Address | IPv6Address) -> str:
    """The kind of an address that is refused; empty for an ordinary one."""
    if address.is_loopback:
        return "a loopback address"
    if address in _METADATA:
        return "the metadata service of a cloud"
    if address.is_link_local:
        return "a link-local address"
    if (
        address.is_multicast
        or address.is_reserved
        or address in (_UNSPECIFIED if address.version == 6 else _THIS_NETWORK)
    ):
        return "not the address of one host"
    return ""


def _find_embedded_ipv4(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address inside an IPv6 address, which the kernel or a gateway unwraps; any other address as it is."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else address)


def _normalize(host: str) -> str:
    return host.lower().rstrip(".")
