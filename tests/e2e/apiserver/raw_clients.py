"""A server with the real TLS transport, and clients that write bytes as they like."""

from __future__ import annotations

import asyncio
import ssl
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from plimsoll.local.apiserver.data_directory import DataDirectory
from plimsoll.local.apiserver.transport.certificates import load_server_certificates
from plimsoll.local.apiserver.transport.limits import Limits
from plimsoll.local.apiserver.transport.listener import Listener
from plimsoll.runtime.clocks import RealClock
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path
    from typing import Any

    from plimsoll.local.apiserver.transport.limits import Handler


async def until(condition: Callable[[], object]) -> None:
    while not condition():  # noqa: ASYNC110 -- the other end of a socket causes no event
        await asyncio.sleep(0.001)


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)


class Client(NamedTuple):
    """One connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def ask(self, head: str, body: bytes = b"", *, host: str = "localhost") -> Response:
        """A whole request: `head` is the request line and further headers, one a line."""
        line, *headers = head.splitlines()
        lines = [f"{line} HTTP/1.1", f"Host: {host}", *headers]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        await self.send("\r\n".join([*lines, "", ""]).encode() + body)
        return await self.response()

    async def response_head(self) -> tuple[int, dict[str, str]]:
        head = (await self.reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        return int(head[0].split()[1]), headers

    async def response(self) -> Response:
        status, headers = await self.response_head()
        if headers.get("transfer-encoding") == "chunked":
            return Response(status, headers, b"".join([chunk async for chunk in self.chunks()]))
        return Response(status, headers, await self.reader.readexactly(int(headers["content-length"])))

    async def chunks(self) -> AsyncIterator[bytes]:
        """Until the last one, which says that the answer is whole."""
        while (chunk := await self.chunk()) is not None:
            yield chunk

    async def chunk(self) -> bytes | None:
        size = int((await self.reader.readuntil(b"\r\n")).strip(), 16)
        data = await self.reader.readexactly(size + 2)
        return data[:-2] if size else None

    async def is_cut_off(self) -> bool:
        """Wait for the server to end the connection; False if it says something before."""
        try:
            return await self.reader.read(1) == b""
        except (ConnectionError, ssl.SSLError):
            return True

    async def close(self) -> None:
        self.writer.close()
        try:
            await self.writer.wait_closed()
        except (ConnectionError, ssl.SSLError):
            return


class RunningServer(NamedTuple):
    listener: Listener
    port: int
    ca_pem: bytes
    serving: asyncio.Task[None]

    @asynccontextmanager
    async def client(self) -> AsyncIterator[Client]:
        client = await self.connected()
        try:
            yield client
        finally:
            await client.close()

    async def connected(self) -> Client:
        trusting = ssl.create_default_context(cadata=self.ca_pem.decode())
        reader, writer = await asyncio.open_connection(
            "127.0.0.1", self.port, ssl=trusting, server_hostname="localhost", limit=2**22
        )
        return Client(reader, writer)

    async def stop(self) -> None:
        self.serving.cancel()
        await asyncio.wait((self.serving,))
        self.listener.close()  # in case it was stopped before it began


@asynccontextmanager
async def serving(application: Handler, directory: Path, limits: Limits | None = None) -> AsyncIterator[RunningServer]:
    clock = RealClock()
    certificates = load_server_certificates(DataDirectory(directory), host="127.0.0.1", now=clock.now())
    listener = Listener(
        application,
        host="127.0.0.1",
        port=0,
        tls=certificates.build_ssl_context(),
        limits=limits or Limits(),
        clock=clock,
    )
    port = listener.listen()
    task = asyncio.create_task(listener.serve())
    server = RunningServer(listener, port, certificates.ca_pem, task)
    try:
        async with asyncio.timeout(PATIENCE_S):
            yield server
    finally:
        await server.stop()
