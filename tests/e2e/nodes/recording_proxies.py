"""A proxy in front of an API server that writes down what was asked for and how it was answered.

Whoever calls through it brings his own token; the proxy adds nothing. So the calls of a process can be told on any
server, a real one too, without its audit log.
"""

from __future__ import annotations

import asyncio
import ssl
import threading
from collections.abc import Callable
from contextlib import contextmanager
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from aiohttp import ClientError, ClientSession, ClientTimeout, TCPConnector, web

from plimsoll.local.apiserver.auth_types import User
from plimsoll.local.apiserver.http_types import Request
from plimsoll.local.apiserver.routing import read_attributes
from tests.e2e.externalgrpc.authorities import CertificateAuthority
from tests.e2e.kubeconfigs import read_access
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plimsoll.local.apiserver.auth_types import Attributes

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
    """What came by. `url` is where the proxy listens."""

    def __init__(self) -> None:
        self.url = ""
        self.asked: list[ProxiedRequest] = []
        self.falsify: Falsify | None = None
        """What to send in place of an answer that is no watch."""
        self.falsified = 0

    @property
    def refused(self) -> list[ProxiedRequest]:
        return [asked for asked in self.asked if asked.status in {401, 403}]

    @property
    def writes(self) -> list[ProxiedRequest]:
        reviews = ("tokenreviews", "subjectaccessreviews")
        return [asked for asked in self.asked if asked.method != "GET" and not asked.path.endswith(reviews)]


@contextmanager
def recording(kubeconfig: Path, folder: Path) -> Iterator[ProxyRecording]:
    """In a thread of its own, for as long as the block lasts."""
    seen = ProxyRecording()
    is_up, ended = threading.Event(), threading.Event()
    thread = threading.Thread(
        target=lambda: asyncio.run(_serve(seen, kubeconfig, folder, is_up=is_up, ended=ended)), name="recording proxy"
    )
    thread.start()
    try:
        assert is_up.wait(PATIENCE_S)
        yield seen
    finally:
        ended.set()
        thread.join(PATIENCE_S)


async def _serve(
    seen: ProxyRecording, kubeconfig: Path, folder: Path, *, is_up: threading.Event, ended: threading.Event
) -> None:
    access = read_access(kubeconfig)
    files = CertificateAuthority(folder, "proxy-authority").files("proxy")
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    serving.load_cert_chain(files["cert"], files["key"])
    trusting = ssl.create_default_context(cadata=access.authority)
    connector = TCPConnector(ssl=trusting, limit=0)
    async with ClientSession(connector=connector, auto_decompress=False, timeout=ClientTimeout(total=None)) as session:

        async def forward(request: web.Request) -> web.StreamResponse:
            return await _forwarded(request, session, access.server, seen)

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
