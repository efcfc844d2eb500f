"""Serving an ASGI application on a checked address, with uvicorn: over plain HTTP, or TLS with given files.

Signals are left to the process: its supervisor decides when a server stops.
"""

from __future__ import annotations

import asyncio
import errno
import math
import socket
import ssl
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any, ClassVar, Final

from uvicorn import Config, Server

from plimsoll.core.errors import InvalidInput, PlimsollError
from plimsoll.core.values import Value
from plimsoll.runtime.supervisor import Service, Supervisor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy

_BACKLOG: Final = 1_024


class CannotListen(PlimsollError):
    """The address cannot be bound."""

    exit_code: ClassVar[int] = 2


class TlsFiles(Value):
    """The files of a server's certificate chain and its key (PEM)."""

    certificate: str
    key: str

    def check(self) -> None:
        """Raises `InvalidInput` unless both can be read and belong together."""
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certificate, self.key)
        except (OSError, ssl.SSLError) as error:
            problem = error.strerror or error.reason if isinstance(error, ssl.SSLError) else error.strerror
            raise InvalidInput(
                f"certificate {self.certificate} and key {self.key} cannot be used: {problem}", path="tls"
            ) from error


async def serve(application: Any, address: str, *, tls: TlsFiles | None = None, drain_s: float = 0.0) -> None:
    """Serves until cancelled. `address` is HOST:PORT; without a host, all addresses of this machine.

    `drain_s`: how long requests that are under way then have to be answered. Without it their connections are dropped.
    """
    host, port = parse_address(address)
    files = {} if tls is None else {"ssl_certfile": tls.certificate, "ssl_keyfile": tls.key}
    server = _Server(_build_config(application, host=host, port=port, **files))
    try:
        await server.serve_and_drain(drain_s)
    except SystemExit as error:
        # uvicorn ends the process when an address is taken; here the supervisor decides.
        raise InvalidInput(f"cannot listen on {address}", path="address") from error
    finally:
        server.stop_listening()


async def serve_on_socket(application: Any, listening: socket.socket, *, drain_s: float = 0.0) -> None:
    """Serves until cancelled on a socket that listens already and stays open. `drain_s` as of `serve`."""
    server = _Server(_build_config(application))
    try:
        await server.serve_and_drain(drain_s, sockets=[listening.dup()])
    finally:
        server.stop_listening()


@asynccontextmanager
async def serve_in_background(application: Any, address: str, *, clock: Clock, entropy: Entropy) -> AsyncIterator[None]:
    """Serves for as long as the block lasts; a server that fails is started again and does not end the block."""
    service = Service(name="pages", run=lambda: serve(application, address))
    serving = asyncio.create_task(Supervisor([service], clock=clock, entropy=entropy).run())
    try:
        yield
    finally:
        serving.cancel()
        await asyncio.wait((serving,))


class _Server(Server):
    """A server that leaves signals alone."""

    async def serve_and_drain(self, drain_s: float, sockets: list[socket.socket] | None = None) -> None:
        """Serves until cancelled, and then answers what is under way: new connections and idle ones are closed."""
        try:
            await self.serve(sockets=sockets)
        except asyncio.CancelledError:
            if drain_s and self.started:
                self.config.timeout_graceful_shutdown = math.ceil(drain_s)
                await self.shutdown(sockets=sockets)
            raise

    def stop_listening(self) -> None:
        """Closes the sockets: a server that is cancelled does not get to its own shutdown."""
        self.should_exit = True
        for listener in getattr(self, "servers", ()):
            listener.close()

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


def _build_config(application: Any, **address: Any) -> Config:
    return Config(
        application,
        interface="asgi3",
        lifespan="off",
        ws="none",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        **address,
    )


# ---- addresses


def check_address(address: str, *, example: str = "--address=:8086") -> None:
    """Raises `InvalidInput` unless a server can listen on the address now. `example` is a flag that chooses another."""
    try:
        bind_socket(*parse_address(address)).close()
    except CannotListen as error:
        problem = f"cannot listen on {address}: another program uses it; choose another, e.g. {example}"
        raise InvalidInput(problem, path="address") from error


def parse_address(address: str) -> tuple[str, int]:
    """Host and port of HOST:PORT. Raises `InvalidInput`."""
    host, _, port = address.rpartition(":")
    if not port.isdigit() or int(port) > 65_535:
        raise InvalidInput(f"{address!r} is not HOST:PORT", path="address")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - probes come from other machines


def bind_socket(host: str, port: int) -> socket.socket:
    """A listening socket. Raises `CannotListen` with what to do about it."""
    try:
        (family, kind, protocol, _, address), *_ = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except OSError as error:
        raise CannotListen(f"cannot listen on {host!r}: {error.strerror}; choose an address by --host") from error
    listening = socket.socket(family, kind, protocol)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        raise _explain(error, host, port) from error
    listening.settimeout(0)
    return listening


def _explain(error: OSError, host: str, port: int) -> CannotListen:
    match error.errno:
        case errno.EADDRINUSE:
            return CannotListen(f"port {port} of {host} is in use by another program; choose another one by --port")
        case errno.EACCES:
            return CannotListen(f"port {port} of {host} needs more rights; choose one above 1023 by --port")
        case _:
            why = error.strerror
            return CannotListen(f"cannot listen on {host} port {port}: {why}; choose another --host or --port")
