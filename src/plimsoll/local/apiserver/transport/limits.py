"""Limits per client: request sizes, held bodies and requests in flight.

Counts are per credential, so that a client without a valid one, or a faulty controller, uses up only its own share.
Nothing here waits: a request over a limit is rejected at once.
"""

from __future__ import annotations

from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Protocol

from plimsoll.core.values import Value
from plimsoll.local.apiserver.routing import is_watch
from plimsoll.local.apiserver.status_errors import StatusError, failure

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.local.apiserver.http_types import Request, Response

MIB = 1024 * 1024
RETRY_AFTER_S = 1


class Handler(Protocol):
    """What a transport serves: `plimsoll.local.apiserver.application.Application`."""

    async def handle(self, request: Request) -> Response: ...


class Limits(Value):
    """All of them. The numbers that kube-apiserver has too are its defaults."""

    max_body_bytes: int = 3 * MIB
    max_bodies_bytes: int = 256 * MIB
    """The most bytes of all requests that are received or handled at a time."""
    mutating: int = 200
    reading: int = 400
    watches: int = 500

    max_connections: int = 1_024
    """A connection costs Python's TLS a buffer of 256 KiB."""
    max_head_bytes: int = 256 * 1024
    max_discarded_bytes: int = 16 * MIB
    """What is still read of a request that has its answer already, so that the client gets to read it."""
    handshake_s: float = 10.0
    head_s: float = 32.0
    body_s: float = 60.0
    idle_s: float = 120.0
    """Longer than the 90 s of Go's clients, so that they hang up first and no request meets a closing door."""
    write_stall_s: float = 30.0
    grace_s: float = 10.0


class PriorityLevel(StrEnum):
    """Kinds of requests that are counted apart."""

    MUTATING = "mutating"
    READING = "reading"
    WATCHES = "watches"


def find_priority_level(request: Request) -> PriorityLevel:
    if request.method not in ("GET", "HEAD", "OPTIONS"):
        return PriorityLevel.MUTATING
    return PriorityLevel.WATCHES if is_watch(request) else PriorityLevel.READING


class InFlight:
    """The requests under way."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._counts: dict[tuple[str, PriorityLevel], int] = {}
        self._bodies_bytes = 0

    @contextmanager
    def admit(self, request: Request) -> Iterator[None]:
        """Count a request as long as the block lasts. Raises the 429 if its credential has too many."""
        lane = find_priority_level(request)
        caller = (request.get_header("authorization"), lane)
        count = self._counts.get(caller, 0)
        if count >= self._get_limit(lane):
            raise too_many_requests()
        self._counts[caller] = count + 1
        try:
            yield
        finally:
            left = self._counts[caller] - 1
            if left:
                self._counts[caller] = left
            else:
                del self._counts[caller]

    def _get_limit(self, lane: PriorityLevel) -> int:
        limits = self._limits
        return {
            PriorityLevel.MUTATING: limits.mutating,
            PriorityLevel.READING: limits.reading,
            PriorityLevel.WATCHES: limits.watches,
        }[lane]

    @contextmanager
    def reserve_body(self) -> Iterator[HeldBody]:
        """Memory for one body, given back when the block ends."""
        held = HeldBody(self)
        try:
            yield held
        finally:
            self._bodies_bytes -= held.size_bytes

    def hold(self, size_bytes: int) -> None:
        if self._bodies_bytes + size_bytes > self._limits.max_bodies_bytes:
            raise too_many_requests()
        self._bodies_bytes += size_bytes


class HeldBody:
    """The size of a body that is being received."""

    def __init__(self, requests: InFlight) -> None:
        self._requests = requests
        self.size_bytes = 0

    def grow(self, size_bytes: int) -> None:
        """Raises the 429 if all bodies together are too large."""
        self._requests.hold(size_bytes)
        self.size_bytes += size_bytes


def body_too_large(limits: Limits) -> StatusError:
    message = f"Request entity too large: limit is {limits.max_body_bytes}"
    return failure(413, "RequestEntityTooLarge", message)


def too_many_requests() -> StatusError:
    message = "Too many requests, please try again later."
    details = {"retryAfterSeconds": RETRY_AFTER_S}
    headers = (("Retry-After", str(RETRY_AFTER_S)),)
    return failure(429, "TooManyRequests", message, details=details, headers=headers)


def body_too_slow() -> StatusError:
    return failure(408, "Timeout", "the body of the request did not arrive in time")
