"""Serves a `ProviderService` on a port. Only for live use: gRPC has its own threads.

With TLS, only clients whose certificates the authorities signed are served. Without TLS the address must be on this
machine.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, Final

import grpc
import grpc.aio
import structlog

from plimsoll.core.errors import InvalidInput
from plimsoll.nodes.providers.externalgrpc.channels import LARGEST_MESSAGE
from plimsoll.nodes.providers.externalgrpc.codes import RpcFailed
from plimsoll.nodes.providers.externalgrpc.configuration import is_this_machine
from plimsoll.nodes.providers.externalgrpc.methods import CLOUD_PROVIDER, EXTENSION, METHODS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from plimsoll.nodes.providers.externalgrpc.configuration import GrpcConfiguration
    from plimsoll.nodes.providers.externalgrpc.methods import Method
    from plimsoll.nodes.providers.externalgrpc.service import ProviderService

log = structlog.get_logger(__name__)

_OPTIONS: Final = (
    ("grpc.max_receive_message_length", LARGEST_MESSAGE),
    ("grpc.max_send_message_length", LARGEST_MESSAGE),
    # A second server on the same port is an error.
    ("grpc.so_reuseport", 0),
)
_CODES: Final = {code.value[0]: code for code in grpc.StatusCode}
_GRACE_S: Final = 5.0


@contextlib.asynccontextmanager
async def serve_provider(
    service: ProviderService, configuration: GrpcConfiguration, *, with_extension: bool = True
) -> AsyncIterator[int]:
    """Serve while the block runs; yields the port, which is chosen if 0 is given. Running calls may finish."""
    server = grpc.aio.server(options=_OPTIONS)
    names = (CLOUD_PROVIDER, EXTENSION) if with_extension else (CLOUD_PROVIDER,)
    server.add_generic_rpc_handlers([_build_handlers(service, name) for name in names])
    port = _bind(server, configuration)
    await server.start()
    log.info("provider.listening", address=configuration.address, port=port, tls=configuration.identity is not None)
    try:
        yield port
    finally:
        await server.stop(_GRACE_S)


def _bind(server: Any, configuration: GrpcConfiguration) -> int:
    identity = configuration.identity
    if identity is None and not is_this_machine(configuration.address):
        problem = f"{configuration.address} can be reached by others: give cert, key and cacert, or listen on 127.0.0.1"
        raise InvalidInput(problem, path="address")
    try:
        if identity is None:
            return int(server.add_insecure_port(configuration.address))
        pair = (identity.pair.key_pem, identity.pair.certificate_pem)
        credentials = grpc.ssl_server_credentials(
            [pair], root_certificates=identity.authorities_pem, require_client_auth=True
        )
        return int(server.add_secure_port(configuration.address, credentials))
    except RuntimeError as error:
        raise InvalidInput(f"cannot listen on {configuration.address}: {error}", path="address") from error


def _build_handlers(service: ProviderService, name: str) -> Any:
    methods = [method for method in METHODS.values() if method.service == name]
    return grpc.method_handlers_generic_handler(
        name, {method.name: _build_handler(service, method) for method in methods}
    )


def _build_handler(service: ProviderService, method: Method) -> Any:
    return grpc.unary_unary_rpc_method_handler(
        _build_behaviour(service, method),
        request_deserializer=method.request.FromString,
        response_serializer=method.response.SerializeToString,
    )


def _build_behaviour(service: ProviderService, method: Method) -> Callable[[Any, Any], Awaitable[Any]]:
    async def answer(request: Any, context: Any) -> Any:
        try:
            return await service.answer(method, request)
        except RpcFailed as error:
            log.info("provider.call_failed", call=method.name, code=error.code.name, problem=error.message)
            return await context.abort(_CODES[error.code.value], error.message)

    return answer
