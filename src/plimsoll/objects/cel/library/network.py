"""Kubernetes' libraries of addresses: `ip`, `cidr` and `url`."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import SplitResult, parse_qs, quote, urlsplit

from plimsoll.objects.cel.errors import CelEvaluationError
from plimsoll.objects.cel.types.signatures import Library
from plimsoll.objects.cel.values.values import Opaque

if TYPE_CHECKING:
    from collections.abc import Callable

LIBRARY = Library()

_LONGEST_ADDRESS = 64
_SCHEME = re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]*:")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_BAD_ESCAPE = re.compile(r"%(?![0-9a-fA-F]{2})")


@dataclass(frozen=True, slots=True)
class Ip(Opaque):
    """An address; equal however it was written."""

    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    type_name = "net.IP"

    def __str__(self) -> str:
        return str(self.address)


@dataclass(frozen=True, slots=True)
class Cidr(Opaque):
    """A network with the address it was written with: 10.1.2.3/8 is not 10.0.0.0/8."""

    interface: ipaddress.IPv4Interface | ipaddress.IPv6Interface
    type_name = "net.CIDR"

    def __str__(self) -> str:
        return str(self.interface)


@dataclass(frozen=True, slots=True)
class Url(Opaque):
    """An absolute address or an absolute path."""

    parts: SplitResult
    type_name = "kubernetes.URL"


def _parse_ip(text: str) -> Ip | str:
    """The address, or why it is none."""
    if len(text) > _LONGEST_ADDRESS:
        return "unable to parse IP"
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return "unable to parse IP"
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id is not None:
            return "IP address with zone value is not allowed"
        if address.ipv4_mapped is not None:
            return "IPv4-mapped IPv6 address is not allowed"
    return Ip(address)


def _parse_cidr(text: str) -> Cidr | str:
    address, slash, length = text.partition("/")
    ip = _parse_ip(address)
    if isinstance(ip, str):
        return ip
    if not slash or not length.isdecimal() or not length.isascii() or len(length) > 3 or length != str(int(length)):
        return "bad prefix length"
    try:
        return Cidr(ipaddress.ip_interface(text))
    except ValueError:
        return "prefix length out of range"


@LIBRARY.function("ip(string) -> ip")
def to_ip(text: str) -> Ip:
    ip = _parse_ip(text)
    if isinstance(ip, str):
        raise CelEvaluationError(f'IP Address "{text}" parse error during conversion from string: {ip}')
    return ip


@LIBRARY.function("isIP(string) -> bool")
def is_ip(text: str) -> bool:
    return isinstance(_parse_ip(text), Ip)


@LIBRARY.function("ip.isCanonical(string) -> bool")
def is_canonical(text: str) -> bool:
    return str(to_ip(text)) == text


@LIBRARY.function("<ip>.family() -> int")
def family(ip: Ip) -> int:
    return ip.address.version


def _declare(name: str, holds: Callable[[ipaddress.IPv4Address | ipaddress.IPv6Address], bool]) -> None:
    @LIBRARY.function(f"<ip>.{name}() -> bool")
    def accessor(ip: Ip) -> bool:
        return holds(ip.address)


def _is_global_unicast(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Private networks included: Go's notion, not Python's."""
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address.is_link_local
        or str(address) == "255.255.255.255"
    )


_declare("isUnspecified", lambda address: address.is_unspecified)
_declare("isLoopback", lambda address: address.is_loopback)
_declare("isLinkLocalUnicast", lambda address: address.is_link_local)
_declare("isGlobalUnicast", _is_global_unicast)
_LINK_LOCAL_MULTICAST = (ipaddress.ip_network("224.0.0.0/24"), ipaddress.ip_network("ff02::/16"))
_declare("isLinkLocalMulticast", lambda address: any(address in network for network in _LINK_LOCAL_MULTICAST))


@LIBRARY.function("cidr(string) -> cidr")
def to_cidr(text: str) -> Cidr:
    cidr = _parse_cidr(text)
    if isinstance(cidr, str):
        raise CelEvaluationError(f"network address parse error during conversion from string: {cidr}")
    return cidr


@LIBRARY.function("isCIDR(string) -> bool")
def is_cidr(text: str) -> bool:
    return isinstance(_parse_cidr(text), Cidr)


@LIBRARY.function("<cidr>.containsIP(ip) -> bool", "<cidr>.containsIP(string) -> bool")
def contains_ip(cidr: Cidr, ip: Ip | str) -> bool:
    return (to_ip(ip) if isinstance(ip, str) else ip).address in cidr.interface.network


@LIBRARY.function("<cidr>.containsCIDR(cidr) -> bool", "<cidr>.containsCIDR(string) -> bool")
def contains_cidr(cidr: Cidr, other: Cidr | str) -> bool:
    inner = (to_cidr(other) if isinstance(other, str) else other).interface
    outer = cidr.interface.network
    return inner.ip in outer and outer.prefixlen <= inner.network.prefixlen


@LIBRARY.function("<cidr>.ip() -> ip")
def cidr_ip(cidr: Cidr) -> Ip:
    return Ip(cidr.interface.ip)


@LIBRARY.function("<cidr>.masked() -> cidr")
def mask(cidr: Cidr) -> Cidr:
    return Cidr(ipaddress.ip_interface(str(cidr.interface.network)))


@LIBRARY.function("<cidr>.prefixLength() -> int")
def prefix_length(cidr: Cidr) -> int:
    return cidr.interface.network.prefixlen


def _parse_url(text: str) -> Url | str:
    if not text:
        return "empty url"
    if _CONTROL.search(text):
        return "net/url: invalid control character in URL"
    if not text.startswith("/") and not _SCHEME.match(text):
        return "invalid URI for request"
    try:
        parts = urlsplit(text)
        port = parts.netloc.rpartition("@")[2].rpartition(":")[2] if parts.port is None else ""
    except ValueError as error:
        return str(error)
    if parts.scheme and not parts.netloc and not parts.path.startswith("/"):
        return "invalid URI for request"
    if _BAD_ESCAPE.search(parts.path + parts.netloc):
        return "invalid URL escape"
    if " " in parts.netloc or (port and not port.endswith("]") and ":" in parts.netloc.rpartition("@")[2]):
        return "invalid character in host name"
    return Url(parts)


@LIBRARY.function("url(string) -> url")
def to_url(text: str) -> Url:
    url = _parse_url(text)
    if isinstance(url, str):
        raise CelEvaluationError(f'URL parse error during conversion from string: parse "{text}": {url}')
    return url


@LIBRARY.function("isURL(string) -> bool")
def is_url(text: str) -> bool:
    return isinstance(_parse_url(text), Url)


@LIBRARY.function("<url>.getScheme() -> string")
def get_scheme(url: Url) -> str:
    return url.parts.scheme


@LIBRARY.function("<url>.getHost() -> string")
def get_host(url: Url) -> str:
    return url.parts.netloc.rpartition("@")[2]


@LIBRARY.function("<url>.getHostname() -> string")
def get_hostname(url: Url) -> str:
    host = get_host(url)
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]


@LIBRARY.function("<url>.getPort() -> string")
def get_port(url: Url) -> str:
    return get_host(url).rpartition("]")[2].partition(":")[2]


@LIBRARY.function("<url>.getEscapedPath() -> string")
def get_escaped_path(url: Url) -> str:
    return quote(url.parts.path, safe="/%:@&=+$,;~!'()*-._", errors="replace")


@LIBRARY.function("<url>.getQuery() -> map(string, list(string))")
def get_query(url: Url) -> dict[str, list[str]]:
    return parse_qs(url.parts.query, keep_blank_values=True)
