"""A cluster entry of a kubeconfig: the address of the server, and how its certificate is verified.

Also the form of addresses given by hand (`--server`). Nothing here opens a connection.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import SplitResult, urlsplit

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.access import Tls
from plimsoll.kube.configuration.certificates import read_authorities
from plimsoll.kube.configuration.kubeconfig import read_referenced

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.kube.configuration.sections import Section

EXEC_EXTENSION: Final = "client.authentication.k8s.io/exec"
_PROXY_SCHEMES: Final = ("http", "https")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """The server of a cluster entry."""

    server: str
    tls: Tls = field(default_factory=Tls)
    proxy_url: str = field(default="", repr=False)
    plugin_config: Any = field(default=None, repr=False)
    """What the entry has to say to exec plugins (its extension of that name); may hold anything."""

    @property
    def is_https(self) -> bool:
        return self.server.startswith("https://")

    def to_exec_cluster(self) -> Mapping[str, Any]:
        """`spec.cluster` of an ExecCredential, under the names it has there; empty fields are left out."""
        fields = {
            "server": self.server,
            "tls-server-name": self.tls.server_name,
            "insecure-skip-tls-verify": self.tls.is_insecure,
            "certificate-authority-data": base64.b64encode(self.tls.ca_pem).decode("ascii"),
            "proxy-url": self.proxy_url,
            "config": self.plugin_config,
        }
        return {name: value for name, value in fields.items() if value or (name == "config" and value is not None)}


def read_cluster(entry: Section, *, server: str = "") -> Cluster:
    """Read and validate the entry; `server` is an address that replaces its own."""
    written = server or entry.get_text("server")
    if not written:
        raise entry.build_error("server", "must be given: the address of the API server")
    try:
        address = normalize_server_address(written)
    except InvalidInput as error:
        raise InvalidInput(error.problem, path="--server" if server else entry.get_path("server")) from None
    return Cluster(
        server=address,
        tls=_read_tls(entry) if address.startswith("https://") else Tls(),
        proxy_url=_read_proxy_url(entry),
        plugin_config=_read_plugin_config(entry),
    )


def normalize_server_address(written: str) -> str:
    """`https://host[:port][/path]` without a slash at the end. Without a scheme it is http, as for kubectl."""
    has_scheme = "://" in written
    url = _split(written if has_scheme else f"http://{written}")
    if url.scheme not in {"http", "https"}:
        raise InvalidInput(f'must start with https:// or http://, not "{url.scheme}://"')
    if not url.hostname or (not has_scheme and url.path not in {"", "/"}):
        raise InvalidInput("must be an address like https://host:6443, or host and port")
    if "@" in url.netloc:
        raise InvalidInput("must not hold a user name or password; those belong to an entry of `users`")
    if any(letter.isspace() or not letter.isprintable() for letter in url.netloc + url.path):
        raise InvalidInput("holds a space or a control character")
    return f"{url.scheme}://{url.netloc}{url.path.rstrip('/')}"


def _split(written: str) -> SplitResult:
    try:
        url = urlsplit(written)
        port = url.port
    except ValueError:
        raise InvalidInput("is not an address: host or port cannot be understood") from None
    if port == 0:
        raise InvalidInput("is not an address: port 0")
    return url


def _read_tls(entry: Section) -> Tls:
    data, file = entry.get_data("certificate-authority-data"), entry.get_file_path("certificate-authority")
    if data and file:
        raise entry.build_error("certificate-authority-data", "only one may be given, this or certificate-authority")
    is_insecure = entry.get_flag("insecure-skip-tls-verify")
    name = "certificate-authority-data" if data else "certificate-authority"
    if is_insecure and (data or file):
        raise entry.build_error(
            "insecure-skip-tls-verify", f"specifying a root certificates file ({name}) with this flag is not allowed"
        )
    ca_pem = b""
    if data or file:
        try:
            ca_pem = read_authorities(data or read_referenced(entry, "certificate-authority"))
        except InvalidInput as error:
            raise error if error.path else entry.build_error(name, f"{file} {error.problem}".strip()) from None
    return Tls(
        ca_pem=ca_pem,
        ca_file="" if data else file,
        server_name=entry.get_text("tls-server-name"),
        is_insecure=is_insecure,
    )


def _read_proxy_url(entry: Section) -> str:
    written = entry.get_text("proxy-url")
    if not written:
        return ""
    try:
        url = urlsplit(written)
        if url.scheme.startswith("socks"):
            raise entry.build_error("proxy-url", "SOCKS proxies are not supported; give an http or https proxy")
        is_usable = url.scheme in _PROXY_SCHEMES and bool(url.hostname) and url.port != 0
    except ValueError:
        is_usable = False
    if not is_usable:  # the address itself may contain a password
        raise entry.build_error("proxy-url", f"must be an address with the scheme {' or '.join(_PROXY_SCHEMES)}")
    return written


def _read_plugin_config(entry: Section) -> Any:
    for extension in entry.list_sections("extensions"):
        if extension.get_text("name") == EXEC_EXTENSION:
            return extension.get_raw("extension")
    return None
