"""Which names of this server a request may use: the guard against DNS rebinding and pages that reach for loopback.

A web page can make a browser connect to 127.0.0.1 under a name of its own, but it cannot choose the Host and Origin
headers. So a request must name us by one of our names, and come from no page but our own.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Final
from urllib.parse import urlsplit

from plimsoll.local.apiserver.status_errors import StatusError, bad_request, failure

if TYPE_CHECKING:
    from collections.abc import Sequence

LOOPBACK_NAMES: Final = ("127.0.0.1", "localhost", "::1")
WILDCARDS: Final = frozenset({"0.0.0.0", "::", ""})  # noqa: S104 -- compared with, not bound to


class HostNames:
    """The names that are ours. Bound to all addresses, every address is; a name never becomes ours by that."""

    def __init__(self, bound_to: str = LOOPBACK_NAMES[0]) -> None:
        self._names = frozenset((*LOOPBACK_NAMES, bound_to.lower()))
        self._any_address = bound_to in WILDCARDS

    def refusal(self, hosts: Sequence[str], origin: str = "") -> StatusError | None:
        """What is wrong with the Host headers and the Origin of a request, if something is."""
        if len(hosts) != 1:
            return bad_request("missing required Host header" if not hosts else "too many Host headers")
        if not self._is_ours(hosts[0]):
            return failure(403, "Forbidden", f"this server is not called {hosts[0]!r}")
        if origin and not self._is_our_origin(origin):
            return failure(403, "Forbidden", f"requests from the origin {origin!r} are not served")
        return None

    def _is_our_origin(self, origin: str) -> bool:
        return origin.startswith("https://") and self._is_ours(origin.removeprefix("https://"))

    def _is_ours(self, authority: str) -> bool:
        name = _host_of(authority)
        return name in self._names or (self._any_address and _is_address(name))


def _host_of(authority: str) -> str:
    """`[::1]:6443` → `::1`; empty if it is no authority at all."""
    try:
        parts = urlsplit(f"//{authority}")
        parts.port  # noqa: B018 -- asks for the check of the port
    except ValueError:
        return ""
    return parts.hostname or "" if parts.netloc == authority and "@" not in authority else ""


def _is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
