"""A request to an API server and its response, as plain values, and the port that carries them.

The client uses only `Transport`, so that the same controllers run over the network (`kube.http`) and in one process
with the embedded server under virtual time (`local.apiserver`). A transport adds credentials and nothing else: it
neither retries nor limits rates nor interprets what it carries.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, Protocol, Self
from urllib.parse import quote, urlencode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

JSON: Final = "application/json"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"
STRATEGIC_MERGE_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"

SAFE_METHODS: Final = frozenset({"GET", "HEAD", "OPTIONS"})


class Request(NamedTuple):
    """One request. `path` is plain text from the server's root on; the transport escapes it.

    `timeout_s` bounds the whole exchange; of a stream only the time to the first bytes of the reply, its headers.
    """

    method: str
    path: str
    query: Sequence[tuple[str, str]] = ()
    headers: Mapping[str, str] = {}
    body: bytes = b""
    timeout_s: float = 30.0
    is_stream: bool = False

    @property
    def url(self) -> str:
        """Path and query, escaped."""
        path = quote(self.path, safe="/:@!$&'()*+,;=~")
        return f"{path}?{urlencode(self.query, quote_via=quote)}" if self.query else path

    @property
    def is_safe(self) -> bool:
        """Whether it changes nothing, so that it may be sent again whatever became of it."""
        return self.method in SAFE_METHODS


class Stream(Protocol):
    """The body of a watch: chunks as they arrive, cut anywhere. Raises `AnswerLost` when the connection breaks."""

    def __aiter__(self) -> Self: ...

    async def __anext__(self) -> bytes: ...

    async def aclose(self) -> None:
        """Release the connection. Harmless when repeated, and while a reader waits for a chunk."""
        ...


class Response(NamedTuple):
    """The answer. Header names are in lower case. Of a successful call for a stream `stream` is set, else `body`."""

    status: int
    headers: Mapping[str, str] = {}
    body: bytes = b""
    stream: Stream | None = None

    @property
    def is_success(self) -> bool:
        return 200 <= self.status < 300


class Transport(Protocol):
    """Carries calls to one server."""

    async def send(self, call: Request) -> Response:
        """The reply, whatever its status. Raises `NotSent`, `AnswerLost` or one of their kinds (`kube.errors`)."""
        ...

    async def aclose(self) -> None:
        """End every exchange; later calls are refused with `Closed`."""
        ...


class Guard(Protocol):
    """Asked at the last moment before a call that changes something: the leader's lease, or a pause."""

    def limit_duration_s(self, wanted_s: float) -> float:
        """How long the call may take, at most `wanted_s`. Raises a `NotAllowed` if it may not be made at all."""
        ...

    async def confirm(self) -> None:
        """Make sure, by a read, that calls are still allowed. Asked before something is removed.

        Raises a `NotAllowed` if they are not, and what the read raises.
        """
        ...
