"""HTTP requests and responses of the API server, as plain values.

The network transport converts them from and to bytes; the in-process transport passes them as they are, so that
controllers under virtual time use the same application without a socket.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

import msgspec

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence

JSON: Final = "application/json"
YAML: Final = "application/yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
TEXT: Final = "text/plain; charset=utf-8"

_ENCODER: Final = msgspec.json.Encoder()


class Request(NamedTuple):
    """One request. Header names are in lower case; a query parameter may stand several times."""

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = {}
    body: bytes = b""

    @classmethod
    def build(cls, method: str, url: str, *, headers: Mapping[str, str] | None = None, body: bytes = b"") -> Request:
        """From a URL as a client writes it: `/api/v1/pods?limit=5`."""
        parts = urlsplit(url)
        query = tuple(parse_qsl(parts.query, keep_blank_values=True))
        lowered = {name.lower(): value for name, value in (headers or {}).items()}
        return cls(method=method, path=unquote(parts.path), query=query, headers=lowered, body=body)

    def get_parameter(self, name: str) -> str | None:
        """The first value of a query parameter, as Kubernetes takes it."""
        for key, value in self.query:
            if key == name:
                return value
        return None

    def get_header(self, name: str) -> str:
        return self.headers.get(name, "")


class Response(NamedTuple):
    """The answer: a whole body, or a stream of chunks (a watch) that the transport closes when the client goes."""

    status: int
    body: bytes | AsyncIterator[bytes]
    content_type: str = JSON
    headers: Sequence[tuple[str, str]] = ()

    @classmethod
    def from_json(cls, value: Any, *, status: int = 200, headers: Sequence[tuple[str, str]] = ()) -> Response:
        return cls(status=status, body=_ENCODER.encode(value) + b"\n", headers=headers)

    @classmethod
    def from_text(cls, text: str, *, status: int = 200) -> Response:
        return cls(status=status, body=text.encode(), content_type=TEXT)
