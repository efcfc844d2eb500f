"""A transport whose reads can be falsified: lists and watches that miss, repeat, garble, withhold or refuse.

    faults = TransportFaults(clock)
    client = Client(FaultyTransport(transport, faults), ...)
    faults.start(Read("list", "pods"), Lie.HALF)
    ...
    faults.stop()

Writes pass. A fault of a list breaks the watches of the kind and lets them expire, so that
an informer lists again while the fault holds.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec

from plimsoll.kube.errors import AnswerLost, TimedOut
from plimsoll.kube.transport import Response
from tests.faults.lies import STATUS_CODES, Lie, change_document, garble

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.core.clock import Clock
    from plimsoll.kube.transport import Request, Stream, Transport

_MINUTE_S = 60.0


class Read(NamedTuple):
    """A read: `list`, `watch` or `get` of a plural, or a call of a provider."""

    verb: str
    resource: str

    def __str__(self) -> str:
        return f"{self.verb} {self.resource}"


class TransportFaults:
    """The fault that holds now, if any, for all transports that share it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._read: Read | None = None
        self._lie: Lie | None = None
        self._began_s = 0.0
        self._broken = asyncio.Event()
        self._may_expire: set[str] = set()
        self._recorded: dict[str, bytes] = {}
        self.struck = 0
        """How many answers were falsified."""
        self.seen: set[Read] = set()
        """Every read that was made, falsified or not."""

    def start(self, read: Read, lie: Lie) -> None:
        self._read, self._lie = read, lie
        self._began_s = self._clock.monotonic_s()
        self.struck = 0
        if read.verb == "list" or lie in STATUS_CODES:
            self._may_expire = {read.resource} if read.verb == "list" else set()
            broken, self._broken = self._broken, asyncio.Event()
            broken.set()

    def stop(self) -> None:
        self._read = self._lie = None
        broken, self._broken = self._broken, asyncio.Event()
        broken.set()

    def record_anew(self) -> None:
        """Let stale answers be the next ones, not the first ones."""
        self._recorded.clear()

    def lie_about(self, verb: str, resource: str) -> Lie | None:
        if self._read != (verb, resource) or self._lie is None:
            return None
        if self._lie in STATUS_CODES and self._clock.monotonic_s() - self._began_s >= _MINUTE_S:
            return None
        return self._lie

    def refuses_version(self, resource: str) -> bool:
        """Whether the version that a watch wants to resume from is gone; once per fault."""
        if resource in self._may_expire:
            self._may_expire.discard(resource)
            return True
        return False

    async def wait_broken(self, resource: str) -> None:
        """Return when watches of the resource break."""
        while True:
            broken = self._broken
            await broken.wait()
            if self._read is None or self._read.resource == resource:
                return

    async def answer_read(self, call: Request, reply: Response, read: Read) -> Response:
        """The answer to a list or to the read of one object."""
        lie = self.lie_about(*read)
        if lie is None or (lie not in STATUS_CODES and not reply.is_success):
            if reply.is_success:
                self._recorded.setdefault(call.url, reply.body)
            return reply
        self.struck += 1
        if lie in STATUS_CODES:
            return Response(status=STATUS_CODES[lie], headers={"retry-after": "1"}, body=b"{}")
        if lie is Lie.STALLED:
            await self._clock.sleep(call.timeout_s)
            raise TimedOut("no answer in time")
        if lie is Lie.TRUNCATED:
            return reply._replace(body=reply.body[: len(reply.body) // 2])
        if lie is Lie.STALE:
            return reply._replace(body=self._recorded.get(call.url, reply.body))
        changed = change_document(lie, reply.body)
        return Response(status=404, body=_NOT_FOUND) if changed is None else reply._replace(body=changed)

    async def watch_frames(self, frame: bytes, resource: str, earlier: list[bytes], number: int) -> list[bytes]:
        """What a watch sends in place of a frame."""
        lie = self.lie_about("watch", resource)
        if lie is None:
            earlier.append(frame)
            return [frame]
        self.struck += 1
        match lie:
            case Lie.EMPTY | Lie.STALLED:
                return []
            case Lie.HALF | Lie.OTHER_HALF:
                return [frame] if number % 2 == (lie is Lie.HALF) else []
            case Lie.DUPLICATED:
                return [frame, frame]
            case Lie.STALE:
                return [frame, *earlier[-3:]]
            case Lie.TRUNCATED:
                return [frame[: len(frame) // 2] + b"\n"]
            case _:
                return [_garble_event(frame)]


def _garble_event(frame: bytes) -> bytes:
    event = msgspec.json.decode(frame)
    if isinstance(event, dict) and isinstance(event.get("object"), dict) and event.get("type") != "BOOKMARK":
        event["object"] = garble(event["object"])
    return msgspec.json.encode(event) + b"\n"


class FaultyTransport:
    """Calls pass through `faults`."""

    def __init__(self, transport: Transport, faults: TransportFaults) -> None:
        self._transport = transport
        self._faults = faults

    async def send(self, call: Request) -> Response:
        read = find_read(call)
        if read is None:
            return await self._transport.send(call)
        self._faults.seen.add(Read("watch", read.resource) if call.is_stream else read)
        if not call.is_stream:
            return await self._faults.answer_read(call, await self._transport.send(call), read)
        resource = read.resource
        lie = self._faults.lie_about("watch", resource)
        if lie in STATUS_CODES:
            self._faults.struck += 1
            return Response(status=STATUS_CODES[lie], body=b"{}")
        if self._faults.refuses_version(resource):
            return Response(status=410, body=_EXPIRED)
        reply = await self._transport.send(call)
        if reply.stream is None:
            return reply
        return reply._replace(stream=FaultyStream(reply.stream, self._faults, resource))

    async def aclose(self) -> None:
        await self._transport.aclose()


_NOT_FOUND = msgspec.json.encode({"kind": "Status", "status": "Failure", "reason": "NotFound", "code": 404})
_EXPIRED = msgspec.json.encode({"kind": "Status", "status": "Failure", "reason": "Expired", "code": 410})


class FaultyStream:
    """A watch, frame by frame, that breaks when its faults say so."""

    def __init__(self, stream: Stream, faults: TransportFaults, resource: str) -> None:
        self._stream = stream
        self._faults = faults
        self._resource = resource
        self._earlier: list[bytes] = []
        self._number = 0
        self._rest = b""

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        while True:
            chunk = await self._next_chunk()
            frames: list[bytes] = []
            for frame in self._frames(chunk):
                self._number += 1
                frames += await self._faults.watch_frames(frame, self._resource, self._earlier, self._number)
            if frames:
                return b"".join(frames)

    def _frames(self, chunk: bytes) -> Iterator[bytes]:
        *whole, self._rest = (self._rest + chunk).split(b"\n")
        return (frame + b"\n" for frame in whole)

    async def _next_chunk(self) -> bytes:
        chunk = asyncio.ensure_future(_next_of(self._stream))
        broken = asyncio.ensure_future(self._faults.wait_broken(self._resource))
        try:
            await asyncio.wait((chunk, broken), return_when=asyncio.FIRST_COMPLETED)
        finally:
            broken.cancel()
            if not chunk.done():
                chunk.cancel()
        if not chunk.done():
            raise AnswerLost("the connection broke")
        found = chunk.result()
        if found is None:
            raise StopAsyncIteration
        return found

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _next_of(stream: Stream) -> bytes | None:
    return await anext(stream, None)


def find_read(call: Request) -> Read | None:
    """The list, watch or object that is asked for; None for other calls."""
    if call.method != "GET":
        return None
    parts = call.path.strip("/").split("/")
    rest = parts[2:] if parts[0] == "api" else parts[3:] if parts[0] == "apis" else []
    if len(rest) > 2 and rest[0] == "namespaces":
        rest = rest[2:]
    if len(rest) == 2:
        return Read("get", rest[0])
    return Read("list", rest[0]) if len(rest) == 1 else None
