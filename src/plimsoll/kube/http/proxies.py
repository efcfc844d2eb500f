"""The proxy of a connection: that of the kubeconfig, else that of the environment.

The environment is read as Go programs read it, because people set it for kubectl: HTTPS_PROXY for https, HTTP_PROXY for
http, the lower-case names where the upper-case ones are unset, and NO_PROXY as a list of names, suffixes, addresses and
networks. `proxy-url` of a kubeconfig has no exceptions, neither NO_PROXY nor loopback; the environment never applies to
loopback. Pure: nothing here connects.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from typing import TYPE_CHECKING, Final, Self
from urllib.parse import unquote, urlsplit

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.http.addresses import is_loopback

if TYPE_CHECKING:
    from collections.abc import Mapping
    from urllib.parse import SplitResult

    from plimsoll.kube.http.addresses import ServerAddress

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
AUTHORIZATION: Final = "Proxy-Authorization"


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """An http or https proxy. `url` holds no password and may be shown."""

    url: str
    authorization: str = field(default="", repr=False)

    @property
    def headers(self) -> dict[str, str]:
        return {AUTHORIZATION: self.authorization} if self.authorization else {}

    @classmethod
    def parse(cls, text: str, *, path: str) -> Self:
        """Raises `InvalidInput` that names where the proxy was set, and shows neither user nor password."""
        try:
            parts = urlsplit(text)
            host, port = parts.hostname, parts.port
        except ValueError:
            raise InvalidInput("is not a URL", path=path) from None
        if parts.scheme in {"socks5", "socks5h"}:
            raise InvalidInput("SOCKS proxies are not supported; give an http or https proxy", path=path)
        if parts.scheme not in _DEFAULT_PORTS:
            raise InvalidInput(f"unsupported scheme {parts.scheme!r}, must be http or https", path=path)
        if not host:
            raise InvalidInput("names no host", path=path)
        shown = f"[{host}]" if ":" in host else host
        return cls(
            url=f"{parts.scheme}://{shown}:{port or _DEFAULT_PORTS[parts.scheme]}",
            authorization=_build_authorization(parts),
        )


def _build_authorization(parts: SplitResult) -> str:
    if parts.username is None:
        return ""
    pair = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
    return f"Basic {base64.b64encode(pair.encode()).decode()}"


def choose_proxy(address: ServerAddress, *, proxy_url: str, environment: Mapping[str, str]) -> Proxy | None:
    """The proxy to use for `address`, None to connect directly."""
    if proxy_url:
        return Proxy.parse(proxy_url, path="proxy-url")
    name = "HTTPS_PROXY" if address.is_tls else "HTTP_PROXY"
    text = _get_variable(environment, name)
    if not text or is_loopback(address.host):
        return None
    if is_exempt(address.host, port=address.port, no_proxy=_get_variable(environment, "NO_PROXY")):
        return None
    has_scheme = "://" in text
    return Proxy.parse(text if has_scheme else f"http://{text}", path=name)


def _get_variable(environment: Mapping[str, str], name: str) -> str:
    return environment.get(name) or environment.get(name.lower()) or ""


def is_exempt(host: str, *, port: int, no_proxy: str) -> bool:
    """Whether a NO_PROXY list names the host."""
    lowered = host.strip().lower()
    return any(_matches(entry.strip().lower(), lowered, port) for entry in no_proxy.split(","))


def _matches(entry: str, host: str, port: int) -> bool:
    if not entry:
        return False
    if entry == "*":
        return True
    if "/" in entry:
        return _is_in_network(host, entry)
    name, wanted_port = _split_port(entry)
    if not name or wanted_port not in {"", str(port)}:
        return False
    if _is_address(name):
        return _is_address(host) and ip_address(name) == ip_address(host)
    # `x.com` means it and what lies below it; `.x.com` and `*.x.com` only what lies below; so with addresses.
    suffix = name.removeprefix("*")
    if suffix.startswith("."):
        return host.endswith(suffix)
    return host == suffix or host.endswith(f".{suffix}")


def _is_in_network(host: str, entry: str) -> bool:
    try:
        return ip_address(host) in ip_network(entry, strict=False)
    except ValueError:
        return False


def _split_port(entry: str) -> tuple[str, str]:
    """Host and port of `x.com:8443`, `[::1]:6443`, `::1` and `[::1]`."""
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, rest.removeprefix(":")
    if entry.count(":") == 1:
        name, _, port = entry.partition(":")
        return name, port
    return entry, ""


def _is_address(text: str) -> bool:
    try:
        ip_address(text)
    except ValueError:
        return False
    return True
