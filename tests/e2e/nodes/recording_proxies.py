"""A proxy in front of an API server that writes down what was asked for and how it was answered.

Each caller brings its own token; the proxy adds nothing. So the calls of a process can be identified on any
server, a real one too, without its audit log.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
import time
from collections.abc import Callable
from contextlib import aclosing, contextmanager, suppress
from typing import TYPE_CHECKING, NamedTuple, Self
from urllib.parse import urlsplit

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web

from plimsoll.kube.errors import AnswerLost, TimedOut
from plimsoll.kube.transport import Request as Call
from plimsoll.kube.transport import Response as Reply
from plimsoll.local.apiserver.auth_types import User
from plimsoll.local.apiserver.http_types import Request
from plimsoll.local.apiserver.routing import read_attributes
from plimsoll.runtime.clocks import RealClock
from tests.e2e.externalgrpc.authorities import CertificateAuthority
from tests.e2e.kubeconfigs import read_access
from tests.e2e.timeouts import PATIENCE_S
from tests.faults.faulty_transport import FaultyTransport, TransportFaults

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from aiohttp import ClientResponse

    from plimsoll.local.apiserver.auth_types import Attributes
    from tests.faults.faulty_transport import Read
    from tests.faults.lies import Lie

_STALL_S = 3.0
_LIE_S, _SETTLE_S, _ENOUGH = 5.0, 1.0, 3
_OURS = frozenset({"host", "content-length", "transfer-encoding", "connection"})


class ProxiedRequest(NamedTuple):
    method: str
    url: str
    status: int

    @property
    def path(self) -> str:
        return urlsplit(self.url).path

    @property
    def attributes(self) -> Attributes:
        """What rules are asked about."""
        return read_attributes(User(name="anybody"), Request.build(self.method, self.url))


class Answer(NamedTuple):
    status: int
    body: bytes


Falsify = Callable[[str, Answer], Answer]
"""Given the path of a GET and its answer; the same answer if it is not to be falsified."""


class ProxyRecording:
    """What came by. `url` is where the proxy listens. Its loop runs in another thread."""

    def __init__(self) -> None:
        self.url = ""
        self.loop: asyncio.AbstractEventLoop | None = None
        self.faults: TransportFaults | None = None
        self.asked: list[ProxiedRequest] = []
        self.falsify: Falsify | None = None
        """What to send in place of an answer that is no watch."""
        self.falsified = 0
        self.has_faults = False
        """Whether lists and watches pass through `faults`."""

    @property
    def struck(self) -> int:
        """How many answers were false since the last `start_lie`."""
        return 0 if self.faults is None else self.faults.struck

    def start_lie(self, read: Read, lie: Lie) -> None:
        """Falsify a list or a watch from now on."""
        self._call(lambda faults: faults.start(read, lie))

    def stop_lie(self) -> None:
        self._call(lambda faults: faults.stop())

    def _call(self, change: Callable[[TransportFaults], None]) -> None:
        faults, loop = self.faults, self.loop
        assert faults is not None
        assert loop is not None
        done = threading.Event()

        def change_now() -> None:
            change(faults)
            done.set()

        loop.call_soon_threadsafe(change_now)
        assert done.wait(PATIENCE_S)

    @property
    def refused(self) -> list[ProxiedRequest]:
        return [asked for asked in self.asked if asked.status in {401, 403}]

    @property
    def writes(self) -> list[ProxiedRequest]:
        reviews = ("tokenreviews", "subjectaccessreviews")
        return [asked for asked in self.asked if asked.method != "GET" and not asked.path.endswith(reviews)]


@contextmanager
def recording(kubeconfig: Path, folder: Path, *, as_owner: bool = False) -> Iterator[ProxyRecording]:
    """In a thread of its own, for as long as the block lasts. `as_owner`: with the certificate of the kubeconfig."""
    seen = ProxyRecording()
    is_up, ended = threading.Event(), threading.Event()
    thread = threading.Thread(
        target=lambda: asyncio.run(_serve(seen, kubeconfig, folder, is_up=is_up, ended=ended, as_owner=as_owner)),
        name="recording proxy",
    )
    thread.start()
    try:
        assert is_up.wait(PATIENCE_S)
        yield seen
    finally:
        ended.set()
        thread.join(PATIENCE_S)


def run_with_lie(proxy: ProxyRecording, read: Read, lie: Lie) -> bool:
    """Lie until a few answers were false, and a moment longer; whether any was. Reads that are rare end the wait."""
    proxy.start_lie(read, lie)
    deadline = time.monotonic() + _LIE_S
    while proxy.struck < _ENOUGH and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(_SETTLE_S)
    has_struck = proxy.struck > 0
    proxy.stop_lie()
    time.sleep(_SETTLE_S)
    return has_struck


async def _serve(
    seen: ProxyRecording,
    kubeconfig: Path,
    folder: Path,
    *,
    is_up: threading.Event,
    ended: threading.Event,
    as_owner: bool,
) -> None:
    access = read_access(kubeconfig)
    seen.loop, seen.faults = asyncio.get_running_loop(), TransportFaults(RealClock())
    files = CertificateAuthority(folder, "proxy-authority").files("proxy")
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(files["cert"], files["key"])
    trusting = access.tls_context() if as_owner else ssl.create_default_context(cadata=access.authority)
    connector = TCPConnector(ssl=trusting, limit=0)
    async with ClientSession(connector=connector, auto_decompress=False, timeout=ClientTimeout(total=None)) as session:

        async def forward(request: web.Request) -> web.StreamResponse:
            may_be_false = request.method == "GET" and seen.falsify is None
            answer = _read_falsified if may_be_false and seen.has_faults else _forwarded
            return await answer(request, session, access.server, seen)

        application = web.Application(client_max_size=1 << 26)
        application.router.add_route("*", "/{rest:.*}", forward)
        runner = web.AppRunner(application, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=serving)
        await site.start()
        port = runner.addresses[0][1]
        seen.url = f"https://127.0.0.1:{port}"
        is_up.set()
        await asyncio.to_thread(ended.wait)
        await runner.cleanup()


async def _forwarded(
    request: web.Request, session: ClientSession, server: str, seen: ProxyRecording
) -> web.StreamResponse:
    headers = {name: value for name, value in request.headers.items() if name.lower() not in _OURS}
    may_falsify = seen.falsify is not None and request.method == "GET" and "watch" not in request.query
    if may_falsify:
        headers = {name: value for name, value in headers.items() if name.lower() != "accept-encoding"}
    url = f"{server}{request.raw_path}"
    try:
        async with session.request(request.method, url, headers=headers, data=await request.read()) as answer:
            seen.asked.append(ProxiedRequest(request.method, request.raw_path, answer.status))
            if may_falsify and seen.falsify is not None:
                true = Answer(answer.status, await answer.read())
                sent = seen.falsify(request.path, true)
                seen.falsified += sent != true
                return web.Response(status=sent.status, body=sent.body, content_type="application/json")
            back = web.StreamResponse(status=answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in _OURS:
                    back.headers.add(name, value)
            await back.prepare(request)
            async for piece in answer.content.iter_any():
                await back.write(piece)
            return back
    except (ClientError, ConnectionError):
        raise web.HTTPBadGateway from None


async def _read_falsified(
    request: web.Request, session: ClientSession, server: str, seen: ProxyRecording
) -> web.StreamResponse:
    """A list or a watch as the faults let it appear."""
    assert seen.faults is not None
    unwanted = _OURS | {"accept-encoding"}
    call = Call(
        "GET",
        request.path,
        query=[*request.query.items()],
        headers={name: value for name, value in request.headers.items() if name.lower() not in unwanted},
        timeout_s=_STALL_S,
        is_stream="watch" in request.query,
    )
    try:
        reply = await FaultyTransport(_ServerTransport(session, server), seen.faults).send(call)
        seen.asked.append(ProxiedRequest("GET", request.raw_path, reply.status))
        if reply.stream is None:
            return web.Response(status=reply.status, body=reply.body, content_type="application/json")
        async with aclosing(reply.stream):
            back = web.StreamResponse(status=reply.status, headers={"content-type": "application/json"})
            await back.prepare(request)
            with suppress(AnswerLost):
                async for piece in reply.stream:
                    await back.write(piece)
    except (ClientError, ConnectionError, AnswerLost, TimedOut):
        raise web.HTTPBadGateway from None
    return back


class _ServerTransport:
    """The connection of the proxy to the server."""

    def __init__(self, session: ClientSession, server: str) -> None:
        self._session = session
        self._server = server

    async def send(self, call: Call) -> Reply:
        answer = await self._session.get(f"{self._server}{call.url}", headers=call.headers)
        if call.is_stream and answer.status == 200:
            return Reply(status=200, stream=_ServerStream(answer))
        async with answer:
            return Reply(status=answer.status, body=await answer.read())

    async def aclose(self) -> None:
        """The session is closed by the proxy."""


class _ServerStream:
    """A watch of the server."""

    def __init__(self, answer: ClientResponse) -> None:
        self._answer = answer
        self._pieces = answer.content.iter_any()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        return await anext(self._pieces)

    async def aclose(self) -> None:
        self._answer.close()
