"""The methods of the services by name: their path on the wire, request and response messages.

Taken from the descriptors of the generated code, so that a call cannot be spelled differently at the two ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol

from google.protobuf.message_factory import GetMessageClass

from plimsoll.nodes.providers.externalgrpc.generated import expander_pb2, extension_pb2, externalgrpc_pb2

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

CLOUD_PROVIDER: Final = "clusterautoscaler.cloudprovider.v1.externalgrpc.CloudProvider"
EXTENSION: Final = "plimsoll.cloudprovider.v1.CloudProviderExt"


@dataclass(frozen=True, slots=True, kw_only=True)
class Method:
    """A unary call of the protocol."""

    name: str
    service: str
    request: Any
    """The class of its message."""
    response: Any

    @property
    def path(self) -> str:
        return f"/{self.service}/{self.name}"


class Calls(Protocol):
    """The port through which a client calls a server."""

    async def call(self, method: Method, request: Any) -> Any:
        """The answer; raises `RpcFailed`."""
        ...

    async def close(self) -> None: ...


def _list_methods(*services: Any) -> Iterator[Method]:
    for service in services:
        for method in service.methods:
            yield Method(
                name=method.name,
                service=service.full_name,
                request=GetMessageClass(method.input_type),
                response=GetMessageClass(method.output_type),
            )


METHODS: Final[Mapping[str, Method]] = {
    method.name: method
    for method in _list_methods(
        externalgrpc_pb2.DESCRIPTOR.services_by_name["CloudProvider"],
        extension_pb2.DESCRIPTOR.services_by_name["CloudProviderExt"],
    )
}
"""The calls of a provider by name; names are unique across both services."""
(BEST_OPTIONS,) = _list_methods(expander_pb2.DESCRIPTOR.services_by_name["Expander"])
"""The call of an expander."""
