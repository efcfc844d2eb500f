"""Calls over a real network: a connection to one server each. Only for live use: gRPC has its own threads."""

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


class ChannelCalls:
    """Every call has the same deadline."""

    def __init__(self, channel: grpc.aio.Channel, timeout_s: float) -> None:
        self._channel = channel
        self._timeout_s = timeout_s

    async def call(self, method: Method, request: Any) -> Any:
        call = self._channel.unary_unary(
            method.path,
            request_serializer=method.request.SerializeToString,
            response_deserializer=method.response.FromString,
        )
        try:
            return await call(request, timeout=self._timeout_s)
        except grpc.aio.AioRpcError as error:
            raise RpcFailed(Code(error.code().value[0]), error.details() or "") from error
        except grpc.aio.UsageError as error:
            raise RpcFailed(Code.UNAVAILABLE, "the connection is closed") from error

    async def close(self) -> None:
        await self._channel.close()


class GrpcCalls(ChannelCalls):
    """Connects to a provider on first use, and again when needed, with mutual TLS."""

    def __init__(self, configuration: GrpcConfiguration) -> None:
        identity = configuration.identity
        if identity is None:
            channel = grpc.aio.insecure_channel(configuration.address, options=_OPTIONS)
        else:
            credentials = grpc.ssl_channel_credentials(
                root_certificates=identity.authorities_pem,
                private_key=identity.pair.key_pem,
                certificate_chain=identity.pair.certificate_pem,
            )
            channel = grpc.aio.secure_channel(configuration.address, credentials, options=_OPTIONS)
        super().__init__(channel, configuration.timeout_s)


def open_channel(address: str, authorities_pem: bytes | None, *, timeout_s: float) -> ChannelCalls:
    """Calls to a server that authenticates itself by TLS and needs no client certificate; plain without authorities."""
    if authorities_pem is None:
        return ChannelCalls(grpc.aio.insecure_channel(address, options=_OPTIONS), timeout_s)
    credentials = grpc.ssl_channel_credentials(root_certificates=authorities_pem)
    return ChannelCalls(grpc.aio.secure_channel(address, credentials, options=_OPTIONS), timeout_s)
