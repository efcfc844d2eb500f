"""The TLS socket: accepts a limited number of connections, and on cancellation lets running requests finish.

Accepting is our own loop instead of asyncio's server, because a client that never finishes its handshake is a
connection too, and asyncio's server does not count it.
"""

from __future__ import annotations

import asyncio
import errno
import resource
from typing import TYPE_CHECKING, Final

import structlog
from uvicorn.config import Config
from uvicorn.server import ServerState

from plimsoll.local.apiserver.transport.asgi import AsgiApplication
from plimsoll.local.apiserver.transport.connections import Connection, IdleConnections
from plimsoll.web.guards import HostNames
from plimsoll.web.serving import bind_socket

if TYPE_CHECKING:
    import socket
    import ssl

    from plimsoll.core.clock import Clock
    from plimsoll.local.apiserver.transport.limits import Handler, Limits

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

# Descriptors that are not for connections: the store, the journal, whatever the rest of the process has open.
_RESERVED_DESCRIPTORS: Final = 128
_OUT_OF_DESCRIPTORS: Final = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})
_RETRY_S: Final = 0.05
_CLOSE_S: Final = 1.0


def raise_descriptor_limit() -> None:
    """Raise the soft limit of open files to the hard limit: many systems start programs with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


class Listener:
    """Serves one application on one address."""

    def __init__(
        self, handler: Handler, *, host: str, port: int, tls: ssl.SSLContext, limits: Limits, clock: Clock
    ) -> None:
        self._host = host
        self._port = port
        self._tls = tls
        self._limits = limits
        self._application = AsgiApplication(handler, limits=limits, hosts=HostNames(host), clock=clock)
        self._config = Config(
            self._application,
            interface="asgi3",
            lifespan="off",
            ws="none",
            log_config=None,
            log_level="error",  # a malformed request is its client's business
            access_log=False,
            proxy_headers=False,
        )
        self._state = ServerState()
        self._waiting = IdleConnections()
        self._handshakes: set[asyncio.Task[None]] = set()
        self._socket: socket.socket | None = None
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        self._most = max(1, min(limits.max_connections, soft - _RESERVED_DESCRIPTORS))

    @property
    def connections(self) -> int:
        return len(self._state.connections) + len(self._handshakes)

    def listen(self) -> int:
        """Take the address; clients queue up until `serve`. Gives the port, also the one found for port 0."""
        if self._socket is None:
            self._socket = bind_socket(self._host, self._port)
            self._port = self._socket.getsockname()[1]
        return self._port

    def close(self) -> None:
        """Give the address back."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    async def serve(self) -> None:
        """Until cancelled; then idle connections end at once, watches cleanly, other requests within the grace."""
        self.listen()
        self._config.load()
        async with asyncio.TaskGroup() as handshakes:
            try:
                await self._accept(handshakes)
            finally:
                self.close()
                await self._drain()

    async def _accept(self, handshakes: asyncio.TaskGroup) -> None:
        loop = asyncio.get_running_loop()
        assert self._socket is not None
        while True:
            try:
                accepted, _ = await loop.sock_accept(self._socket)
            except OSError as error:
                if error.errno in _OUT_OF_DESCRIPTORS:
                    log.warning("connections.out_of_descriptors", connections=self.connections)
                    self._waiting.disconnect_one()
                await asyncio.sleep(_RETRY_S)
                continue
            if self.connections >= self._most and not self._waiting.disconnect_one():
                log.warning("connections.refused", connections=self.connections)
                accepted.close()
            else:
                self._begin(accepted, handshakes)
            await asyncio.sleep(0)  # accepting never has to wait while clients queue up; others want to run too

    def _begin(self, accepted: socket.socket, handshakes: asyncio.TaskGroup) -> None:
        def on_end(task: asyncio.Task[None]) -> None:
            self._handshakes.discard(task)
            self._waiting.end(task)
            if task.cancelled():  # perhaps before it began
                accepted.close()

        task = handshakes.create_task(self._accept_connection(accepted))
        self._handshakes.add(task)
        self._waiting.begin(task, task.cancel)
        task.add_done_callback(on_end)

    async def _accept_connection(self, accepted: socket.socket) -> None:
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                self._build_connection,
                accepted,
                ssl=self._tls,
                ssl_handshake_timeout=self._limits.handshake_s,
                ssl_shutdown_timeout=_CLOSE_S,
            )
        except OSError:  # what clients of another certificate, another protocol or little patience leave behind
            accepted.close()

    def _build_connection(self) -> Connection:
        return Connection(self._config, self._state, limits=self._limits, waiting=self._waiting)

    # ---- stopping

    async def _drain(self) -> None:
        for handshake in self._handshakes:
            handshake.cancel()
        self._application.end_streams()
        for connection in self._list_connections():
            connection.shutdown()
        try:
            async with asyncio.timeout(self._limits.grace_s):
                while tasks := tuple(self._state.tasks):
                    await asyncio.wait(tasks)
            if left := self._list_connections():
                await asyncio.wait([connection.lost for connection in left], timeout=_CLOSE_S)
        except TimeoutError:
            log.warning("requests.cut_off", requests=len(self._state.tasks))
        finally:
            await self._abort_connections()

    async def _abort_connections(self) -> None:
        """Connections first: a request whose client is gone ends without complaint."""
        if left := self._list_connections():
            for connection in left:
                connection.abort()
            await asyncio.wait([connection.lost for connection in left], timeout=_CLOSE_S)
        if tasks := tuple(self._state.tasks):
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks, timeout=_CLOSE_S)

    def _list_connections(self) -> list[Connection]:
        return [connection for connection in self._state.connections if isinstance(connection, Connection)]
