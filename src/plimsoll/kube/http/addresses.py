"""The address of an API server, parsed once."""

from __future__ import annotations

from ipaddress import ip_address
from typing import NamedTuple, Self

from yarl import URL

from plimsoll.core.errors import InvalidInput


class ServerAddress(NamedTuple):
    """`base` is the address in escaped form, without a slash at the end: a call's own URL is appended as it is."""

    base: str
    host: str
    port: int
    is_tls: bool

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raises `InvalidInput`; the message does not show a user or password of the address."""
        try:
            url = URL(text.rstrip("/"))
            port = url.port
        except ValueError:
            raise InvalidInput("is not a URL", path="server") from None
        if url.user is not None or url.password is not None:
            raise InvalidInput("holds a user or password; they belong into the user's entry", path="server")
        if url.scheme not in {"http", "https"} or not url.host or port is None:
            raise InvalidInput(f"{text!r} is not an http or https URL", path="server")
        if url.query_string or url.fragment:
            raise InvalidInput(f"{text!r} has a query or fragment; only a path may follow the host", path="server")
        return cls(base=str(url).rstrip("/"), host=url.host, port=port, is_tls=url.scheme == "https")

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)

    def build_url(self, call_url: str) -> URL:
        """The whole URL of a call, whose escapes stay exactly as they are."""
        return URL(self.base + call_url, encoded=True)


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False
