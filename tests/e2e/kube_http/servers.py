"""Servers and proxies of a few lines, over real sockets, that do to a client what a network can do to it."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
import tempfile
import threading
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from plimsoll.kube.access import Access, Credential, Tls
from plimsoll.kube.http import HttpTransport
from plimsoll.kube.transport import Request, Response, Stream
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping

    from tests.kube.http.authorities import KeyPair

    Script = Callable[["ServerConnection"], Awaitable[None]]

OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


class ReceivedRequest(NamedTuple):
    """A request as it came off the wire."""

    line: str
    fields: tuple[tuple[str, str], ...]
    body: bytes = b""

    def values(self, name: str) -> list[str]:
        return [value for known, value in self.fields if known == name]

    @property
    def target(self) -> str:
        return self.line.split()[1]


class ServerConnection(NamedTuple):
    """One connection, seen from the server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def request(self) -> ReceivedRequest:
        """Raises `IncompleteReadError` when the client hangs up."""
        line, *rest = (await self.reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
        fields = tuple((name.lower(), value.strip()) for name, _, value in (line.partition(":") for line in rest))
        size = next((int(value) for name, value in fields if name == "content-length"), 0)
        return ReceivedRequest(line, fields, await self.reader.readexactly(size))

    async def say(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def chunk(self, data: bytes) -> None:
        await self.say(b"%x\r\n%s\r\n" % (len(data), data))

    def reset(self) -> None:
        """End the connection as a machine does that lost its memory of it."""
        raw = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


@asynccontextmanager
async def serving(script: Script, *, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Run `script` for each connection; gives the port."""
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            with suppress(asyncio.IncompleteReadError, ConnectionError, ssl.SSLError, asyncio.CancelledError):
                await script(ServerConnection(reader, writer))
        finally:
            writer.transport.abort() if task.cancelling() else writer.close()
            connections.discard(task)

    server = await asyncio.start_server(connected, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in tuple(connections):
            task.cancel()
        if connections:
            await asyncio.wait(tuple(connections))
            await asyncio.sleep(0)  # connections that were aborted close their sockets in the loop's next round


def server_tls(pair: KeyPair, *, clients: bytes = b"", version: ssl.TLSVersion | None = None) -> ssl.SSLContext:
    """`clients`: the authority whose certificates are asked for."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "pair.pem"
        file.write_bytes(pair.certificate_pem + pair.key_pem)
        context.load_cert_chain(file)
    if clients:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=clients.decode())
    if version is not None:
        context.maximum_version = version
    return context


@contextmanager
def demanding_client_certificates(tls: ssl.SSLContext) -> Iterator[int]:
    """A server in a thread: unlike asyncio's, the ssl module's own sockets send the client a reason when they close."""
    listening = socket.create_server(("127.0.0.1", 0))

    def accept() -> None:
        with suppress(OSError):
            while True:
                connection, _ = listening.accept()
                # The second handle keeps the connection open until the client has read why.
                with connection.dup() as kept:
                    with suppress(OSError):
                        tls.wrap_socket(connection, server_side=True).close()
                    while kept.recv(65_536):
                        pass

    thread = threading.Thread(target=accept)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join()


class ScriptedServer:
    """A server that answers every request with the next of its answers, the last one for ever."""

    def __init__(self, *answers: bytes) -> None:
        self._answers = list(answers or (OK,))
        self.heads: list[ReceivedRequest] = []
        self.connections = 0

    async def __call__(self, peer: ServerConnection) -> None:
        self.connections += 1
        while True:
            self.heads.append(await peer.request())
            await peer.say(self._answers.pop(0) if len(self._answers) > 1 else self._answers[0])


class ConnectProxy:
    """A proxy that joins a client with the server it asks for; with `authorization`, only who sends that."""

    def __init__(self, authorization: str = "") -> None:
        self._authorization = authorization
        self.heads: list[ReceivedRequest] = []

    async def __call__(self, peer: ServerConnection) -> None:
        head = await peer.request()
        self.heads.append(head)
        if self._authorization and head.values("proxy-authorization") != [self._authorization]:
            await peer.say(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            return
        if not head.line.startswith("CONNECT "):
            await peer.say(OK)
            return
        host, _, port = head.target.rpartition(":")
        reader, writer = await asyncio.open_connection(host, int(port))
        await peer.say(b"HTTP/1.1 200 Connection established\r\n\r\n")
        try:
            async with asyncio.TaskGroup() as both_ways:
                both_ways.create_task(_copy(peer.reader, writer))
                both_ways.create_task(_copy(reader, peer.writer))
        finally:
            writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
    writer.close()


class TokenCredentials:
    """Credentials from a list of tokens, of which a refused one is not given again."""

    def __init__(self, *tokens: str) -> None:
        self._tokens = list(tokens)
        self.refusals = 0

    async def get_current(self) -> Credential:
        return Credential(headers={"Authorization": f"Bearer {self._tokens[0]}"} if self._tokens else {})

    def invalidate(self, _credential: Credential) -> None:
        self.refusals += 1
        if len(self._tokens) > 1:
            self._tokens.pop(0)


class StaticCredentials:
    """One credential for ever."""

    def __init__(self, credential: Credential) -> None:
        self._credential = credential

    async def get_current(self) -> Credential:
        return self._credential

    def invalidate(self, _credential: Credential) -> None:
        pass


def plain(port: int, *tokens: str, path: str = "") -> Access:
    return Access(server=f"http://127.0.0.1:{port}{path}", credentials=TokenCredentials(*tokens))


def secure(port: int, tls: Tls, *, credential: Credential | None = None, proxy_url: str = "") -> Access:
    shown = StaticCredentials(credential or Credential())
    return Access(server=f"https://127.0.0.1:{port}", credentials=shown, tls=tls, proxy_url=proxy_url)


def reaching(access: Access, environment: Mapping[str, str] | None = None) -> HttpTransport:
    """A transport that knows nothing of the proxies of the machine the tests run on."""
    return HttpTransport(access, environment=environment or {})


async def sent(access: Access, path: str = "/version", *, timeout_s: float = PATIENCE_S) -> Response:
    async with reaching(access) as transport:
        return await transport.send(Request("GET", path, timeout_s=timeout_s))


async def opened(transport: HttpTransport) -> Stream:
    reply = await transport.send(Request("GET", "/watch", is_stream=True))
    assert reply.stream is not None
    return reply.stream
