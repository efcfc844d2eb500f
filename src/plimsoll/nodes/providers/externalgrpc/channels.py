"""Calls over a real network: `GrpcCalls`, a connection to one server. Only for live use: gRPC has its own threads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import grpc
import grpc.aio

from plimsoll.nodes.providers.externalgrpc.codes import Code, RpcFailed

if TYPE_CHECKING:
    from plimsoll.nodes.providers.externalgrpc.configuration import GrpcConfiguration
    from plimsoll.nodes.providers.externalgrpc.methods import Method

# Of the largest answer: the instances of a group of a hundred thousand. gRPC's own 4 MiB hold some ten thousand.
LARGEST_MESSAGE: Final = 64 << 20
_OPTIONS: Final = (
    ("grpc.max_receive_message_length", LARGEST_MESSAGE),
    ("grpc.max_send_message_length", LARGEST_MESSAGE),
    # A server that was down is found again within a loop or two; gRPC would wait for up to two minutes.
    ("grpc.max_reconnect_backoff_ms", 10_000),
)


class GrpcCalls:
    """Connects when it is first used, and again when it has to. Every call has the configured deadline."""

    def __init__(self, configuration: GrpcConfiguration) -> None:
        self._timeout_s = configuration.timeout_s
        identity = configuration.identity
        if identity is None:
            self._channel = grpc.aio.insecure_channel(configuration.address, options=_OPTIONS)
        else:
            credentials = grpc.ssl_channel_credentials(
                root_certificates=identity.authorities_pem,
                private_key=identity.pair.key_pem,
                certificate_chain=identity.pair.certificate_pem,
            )
            self._channel = grpc.aio.secure_channel(configuration.address, credentials, options=_OPTIONS)

    async def call(self, method: Method, request: Any) -> Any:
        asking = self._channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        try:
            return await asking(request, timeout=self._timeout_s)
        except grpc.aio.AioRpcError as error:
            raise RpcFailed(Code(error.code().value[0]), error.details() or "") from error
        except grpc.aio.UsageError as error:
            raise RpcFailed(Code.UNAVAILABLE, "the connection is closed") from error

    async def close(self) -> None:
        await self._channel.close()
