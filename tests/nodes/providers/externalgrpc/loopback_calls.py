"""Client and server of the provider protocol without a network: messages pass as bytes within the process.

A `LoopbackCaller` is the client's `Calls`. It records the calls, can lack methods or whole services as older servers
do, and can lose answers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.nodes.providers.externalgrpc.client import ExternalGrpcProvider
from plimsoll.nodes.providers.externalgrpc.codes import Code, RpcFailed
from plimsoll.nodes.providers.externalgrpc.methods import EXTENSION
from plimsoll.nodes.providers.externalgrpc.service import ProviderService
from tests.nodes.providers.simulated.simulated_clusters import ProviderCluster

if TYPE_CHECKING:
    from collections.abc import Container
    from typing import Self

    from plimsoll.nodes.providers.externalgrpc.methods import Method


class LoopbackCaller:
    def __init__(self, service: ProviderService, *, missing: Container[str] = ()) -> None:
        self._service = service
        self.missing = missing
        self.failing: dict[str, Code] = {}
        """Calls that do nothing and end so."""
        self.losing: dict[str, Code] = {}
        """Calls that are done and end so."""
        self.called: list[str] = []
        self.is_closed = False

    async def call(self, method: Method, request: Any) -> Any:
        self.called.append(method.name)
        if method.name in self.missing or method.service in self.missing:
            raise RpcFailed(Code.UNIMPLEMENTED, "Method not found!")
        if method.name in self.failing:
            raise RpcFailed(self.failing[method.name], "as the test wants it")
        read = method.request.FromString(request.SerializeToString())
        answer = await self._service.answer(method, read)
        if method.name in self.losing:
            raise RpcFailed(self.losing[method.name], "as the test wants it")
        return method.response.FromString(answer.SerializeToString())

    async def close(self) -> None:
        self.is_closed = True


class RemoteProviderCluster(ProviderCluster):
    """A simulated cloud whose provider is behind the protocol: `provider` is the client's end."""

    def __init__(self, *, missing: Container[str] = (), **cloud: Any) -> None:
        super().__init__(**cloud)
        self._missing = missing

    def __enter__(self) -> Self:
        super().__enter__()
        self.near = self.provider
        self.wire = LoopbackCaller(ProviderService(self.near), missing=self._missing)
        self.provider = ExternalGrpcProvider(self.wire)  # type: ignore[assignment]  # both are providers
        return self


WITHOUT_EXTENSION = (EXTENSION,)
