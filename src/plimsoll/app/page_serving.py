"""A few pages over plain HTTP, for probes and Prometheus: uvicorn without its own idea of signals."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING, Any

from uvicorn import Config, Server

from plimsoll.core.errors import InvalidInput
from plimsoll.local.apiserver.transport.listening import CannotListen, bound
from plimsoll.runtime.services import Service
from plimsoll.runtime.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from socket import socket

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy


class _Quiet(Server):
    """Who supervises us decides when we stop."""

    @contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


async def serve_pages(application: Any, address: str) -> None:
    """Until cancelled. `address` is HOST:PORT; without a host, all addresses of this machine."""
    host, port = read_address(address)
    server = _Quiet(_config(application, host=host, port=port))
    try:
        await server.serve()
    except SystemExit as error:
        # uvicorn ends the process when an address cannot be had; here that is the supervisor's business.
        raise InvalidInput(f"{address} cannot be listened on", path="address") from error
    finally:
        server.should_exit = True


@asynccontextmanager
async def pages_beside(application: Any, address: str, *, clock: Clock, entropy: Entropy) -> AsyncIterator[None]:
    """Serve pages for as long as the block lasts, whatever becomes of them: who waits to lead is well, too."""
    service = Service(name="pages", run=lambda: serve_pages(application, address))
    serving = asyncio.create_task(Supervisor([service], clock=clock, entropy=entropy).run())
    try:
        yield
    finally:
        serving.cancel()
        await asyncio.wait((serving,))


async def serve_on(application: Any, listening: socket) -> None:
    """Until cancelled, on a socket that listens already and stays open."""
    server = _Quiet(_config(application))
    try:
        await server.serve(sockets=[listening.dup()])
    finally:
        server.should_exit = True


def _config(application: Any, **address: Any) -> Config:
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


def check_address(address: str) -> None:
    """Raises `InvalidInput` unless it can be listened on now."""
    try:
        bound(*read_address(address)).close()
    except CannotListen as error:
        problem = f"{address} cannot be listened on: another program uses it; choose another, e.g. --address=:8086"
        raise InvalidInput(problem, path="address") from error


def read_address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    if not port.isdigit() or int(port) > 65_535:
        raise InvalidInput(f"{address!r} is not HOST:PORT", path="address")
    return host.strip("[]") or "0.0.0.0", int(port)  # noqa: S104 - as the flag says: probes come from elsewhere
