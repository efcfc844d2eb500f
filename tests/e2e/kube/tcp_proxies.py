"""A network that misbehaves on demand: a TCP proxy before a server, through which TLS passes untouched."""

from __future__ import annotations

import asyncio
import dataclasses
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tests.e2e.kube.clusters import until_so

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from plimsoll.kube.access import Access

    Pair = tuple[asyncio.StreamWriter, asyncio.StreamWriter]

_CHUNK_BYTES = 65_536


class TcpProxy:
    """Forwards every connection until the test stops it."""

    def __init__(self, host: str, port: int) -> None:
        self._upstream = (host, port)
        self._moving = asyncio.Event()
        self._moving.set()
        self._refuses = False
        self._pairs: set[Pair] = set()
        self._silent: set[Pair] = set()

    @property
    def open_connections(self) -> int:
        return len(self._pairs)

    def cut(self) -> int:
        """Every connection ends at once, without goodbye; how many there were."""
        pairs = list(self._pairs)
        for pair in pairs:
            for writer in pair:
                writer.transport.abort()
        return len(pairs)

    def half_close(self) -> None:
        """The client learns that nothing more comes, in the middle of whatever it was reading."""
        for downstream, _ in self._pairs:
            with suppress(OSError):
                downstream.write_eof()

    def swallow(self) -> None:
        """Connections that are open stay so, and say nothing any more, ever; new ones work."""
        self._silent.update(self._pairs)

    def stall(self) -> None:
        """Connections stay open and nothing moves on them any more, in neither direction."""
        self._moving.clear()

    def move(self) -> None:
        self._moving.set()

    def refuse(self) -> None:
        """New connections are dropped as soon as they are made."""
        self._refuses = True

    def accept(self) -> None:
        self._refuses = False

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            writer.transport.abort()
            return
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection(*self._upstream)
        except OSError:
            writer.transport.abort()
            return
        pair = (writer, upstream_writer)
        self._pairs.add(pair)
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._forward(reader, upstream_writer, pair))
                group.create_task(self._forward(upstream_reader, writer, pair))
        finally:
            self._pairs.discard(pair)
            self._silent.discard(pair)
            for stream_writer in pair:
                stream_writer.transport.abort()

    async def _forward(self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, pair: Pair) -> None:
        with suppress(OSError):
            while data := await source.read(_CHUNK_BYTES):
                await self._moving.wait()
                if pair in self._silent:
                    continue
                sink.write(data)
                await sink.drain()
            if sink.can_write_eof():
                sink.write_eof()


@asynccontextmanager
async def proxied(access: Access) -> AsyncIterator[tuple[TcpProxy, Access]]:
    """A proxy before the server, and how the server is reached through it: under its own name for TLS."""
    where = urlsplit(access.server)
    host = where.hostname or ""
    proxy = TcpProxy(host, where.port or 443)
    listener = await asyncio.start_server(proxy.serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    tls = dataclasses.replace(access.tls, server_name=access.tls.server_name or host)
    server = where._replace(netloc=f"127.0.0.1:{port}").geturl()
    try:
        yield proxy, dataclasses.replace(access, server=server, tls=tls)
    finally:
        listener.close()
        proxy.move()
        proxy.cut()
        await until_so(lambda: not proxy.open_connections)
