"""Which addresses the external service of an autoscaler may have.

Whoever may create an autoscaler chooses a host that our controller calls, from inside the cluster and with its network
rights. So nothing is called that only we can reach: ourselves, the machine's neighbours on its link, and the metadata
service of the cloud, which hands out credentials. Addresses inside the cluster are ordinary: that is where such a
service runs. The operator may except hosts and networks (`--external-allow`). Asked by `external` after every
resolution.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterable

# Those of clouds that are not link-local: AWS over IPv6, Alibaba Cloud, Azure's host, Oracle Cloud.
_METADATA: Final = frozenset(
    map(ip_address, ("fd00:ec2::254", "fd20:ce::254", "100.100.100.200", "168.63.129.16", "192.0.0.192"))
)
_NAT64: Final = IPv6Network("64:ff9b::/96")
_NOWHERE: Final = IPv6Network("::/128")
_THIS_NETWORK: Final = IPv4Network("0.0.0.0/8")
"""Linux takes any of them for the machine itself."""


class AddressExceptions(Value):
    """Hosts, and networks, that may be called whatever they are."""

    hosts: frozenset[str] = frozenset()
    networks: tuple[str, ...] = ()

    def admit(self, host: str, address: IPv4Address | IPv6Address) -> bool:
        return _plain(host) in self.hosts or any(address in ip_network(network) for network in self.networks)


NO_EXCEPTIONS: Final = AddressExceptions()


def parse_exceptions(written: Iterable[str], *, path: str = "--external-allow") -> AddressExceptions:
    """From host names, addresses and networks such as `10.0.0.0/8`. Raises `InvalidInput`."""
    hosts: set[str] = set()
    networks: list[str] = []
    for one in written:
        text = one.strip()
        try:
            networks.append(str(ip_network(text)))
        except ValueError as error:
            if not text or "/" in text:
                raise InvalidInput(f"{one!r} is neither a host nor a network: {error}", path=path) from error
            hosts.add(_plain(text))
    return AddressExceptions(hosts=frozenset(hosts), networks=tuple(networks))


def find_refusal(host: str, address: str, exceptions: AddressExceptions = NO_EXCEPTIONS) -> str:
    """What speaks against calling an address that a host resolved to; empty if nothing does."""
    try:
        found = ip_address(address)
    except ValueError:
        return f"{address!r} is no address"
    real = _inner(found)
    kind = _kind(real)
    if not kind or exceptions.admit(host, found) or exceptions.admit(host, real):
        return ""
    return f"{address} is {kind}"


def _kind(address: IPv4Address | IPv6Address) -> str:
    """What makes an address one that is not called; empty for an ordinary one."""
    if address.is_loopback:
        return "a loopback address"
    if address in _METADATA:
        return "the metadata service of a cloud"
    if address.is_link_local:
        return "a link-local address"
    if address.is_multicast or address.is_reserved or address in (_NOWHERE if address.version == 6 else _THIS_NETWORK):
        return "not the address of one host"
    return ""


def _inner(address: IPv4Address | IPv6Address) -> IPv4Address | IPv6Address:
    """The IPv4 address that an IPv6 address stands for, if it does: the kernel or a gateway unwraps it."""
    if isinstance(address, IPv4Address):
        return address
    if address in _NAT64:
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or (address.teredo[1] if address.teredo else address)


def _plain(host: str) -> str:
    return host.lower().rstrip(".")
