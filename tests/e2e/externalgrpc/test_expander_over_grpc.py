"""The expander protocol over real sockets: TLS by the certificate of the flag, a deadline, servers that misbehave."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest

from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.providers.externalgrpc.channels import open_channel
from plimsoll.nodes.providers.externalgrpc.generated import expander_pb2 as wire
from plimsoll.nodes.providers.externalgrpc.methods import BEST_OPTIONS
from plimsoll.nodes.scaleup.grpc_expander import GrpcExpander
from plimsoll.nodes.scaleup.grpc_expander_builder import make_expander
from tests.e2e.externalgrpc.authorities import CertificateAuthority
from tests.nodes.planning.scaleup.test_expanders import option

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

pytestmark = pytest.mark.asyncio

OPTIONS = [option("A", nodes=3), option("B", nodes=1)]


@contextlib.asynccontextmanager
async def expander(
    behaviour: Callable[[Any, Any], Awaitable[Any]], files: dict[str, str] | None = None
) -> AsyncIterator[int]:
    server = grpc.aio.server()
    handler = grpc.unary_unary_rpc_method_handler(
        behaviour,
        request_deserializer=BEST_OPTIONS.request.FromString,
        response_serializer=BEST_OPTIONS.response.SerializeToString,
    )
    server.add_generic_rpc_handlers(
        [grpc.method_handlers_generic_handler("grpcplugin.Expander", {"BestOptions": handler})]
    )
    if files is None:
        port = server.add_insecure_port("127.0.0.1:0")
    else:
        pair = _read(files["key"]), _read(files["cert"])
        port = server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([pair]))
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0)


def _read(path: str) -> bytes:
    with open(path, "rb") as file:  # noqa: PTH123 - a path of a configuration is a text
        return file.read()


async def prefers_few_nodes(request: Any, _context: Any) -> Any:
    best = min(request.options, key=lambda option: option.nodeCount)
    return wire.BestOptionsResponse(options=[best])


def asking(port: int, cert: str = "") -> GrpcExpander:
    flags = {"expander": "grpc", "grpc-expander-url": f"localhost:{port}", "grpc-expander-cert": cert}
    found = make_expander(read_options(flags).planning)
    assert found is not None
    return found


async def best(asked: GrpcExpander) -> tuple[str, ...]:
    try:
        return await asked.choose_best(OPTIONS)
    finally:
        await asked.close()


async def test_an_expander_is_asked_over_tls(tmp_path: Path):
    files = CertificateAuthority(tmp_path, "authority").files("expander")
    async with expander(prefers_few_nodes, files) as port:
        assert await best(asking(port, files["cacert"])) == ("B",)


async def test_an_expander_that_the_certificate_does_not_vouch_for_is_not_believed(tmp_path: Path):
    files, other = (
        CertificateAuthority(tmp_path, "real").files("expander"),
        CertificateAuthority(tmp_path, "false").files("other"),
    )
    async with expander(prefers_few_nodes, files) as port:
        assert await best(asking(port, other["cacert"])) == ()


async def test_on_this_machine_no_certificate_is_needed():
    async with expander(prefers_few_nodes) as port:
        assert await best(asking(port)) == ("B",)


async def test_an_expander_that_hangs_or_fails_or_is_not_there_changes_nothing():
    async def hangs(_request: Any, _context: Any) -> Any:
        await asyncio.Event().wait()

    async def fails(_request: Any, context: Any) -> Any:
        await context.abort(grpc.StatusCode.INTERNAL, "broken")

    async with expander(hangs) as port:
        assert await best(GrpcExpander(open_channel(f"127.0.0.1:{port}", None, timeout_s=0.2), max_pods=1)) == ()
    async with expander(fails) as port:
        assert await best(asking(port)) == ()
    assert await best(asking(port)) == ()
