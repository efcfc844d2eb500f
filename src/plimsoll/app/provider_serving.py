"""`plimsoll run provider`: serves one of our providers over Cluster Autoscaler's externalgrpc protocol.

An upstream Cluster Autoscaler, or `plimsoll run nodes --cloud-provider=externalgrpc` elsewhere, is the client.
"""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.client import Client
from plimsoll.kube.http import HttpTransport
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.providers.builder import ProviderDependencies, make_provider
from plimsoll.nodes.providers.cleanup import clean_up
from plimsoll.nodes.providers.externalgrpc.server import serve_provider
from plimsoll.nodes.providers.externalgrpc.service import ProviderService
from plimsoll.nodes.providers.values import EXTERNAL
from plimsoll.objects.custom_kinds import OUR_KINDS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.access import Access
    from plimsoll.nodes.providers.externalgrpc.configuration import GrpcConfiguration
    from plimsoll.nodes.providers.simulated.cloud_ports import CloudPort

NAME: Final = "plimsoll-provider"


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the operator chose. `options` are flags of the node autoscaler that select the provider."""

    access: Access
    options: Mapping[str, Any]
    listen: GrpcConfiguration
    with_extension: bool = True
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)


class ProviderProcess:
    """A served provider and its connections."""

    def __init__(self, settings: Settings, *, clock: Clock, entropy: Entropy) -> None:
        self._settings = settings
        self._clock = clock
        self._entropy = entropy
        self._policy = read_options(settings.options, path="flags")
        if self._policy.operation.provider == EXTERNAL:
            raise InvalidInput("externalgrpc is the served protocol; give another provider", path="cloud-provider")

    async def run(self, on_listening: Callable[[int], None]) -> None:
        """Serves until cancelled. `on_listening` gets the port."""
        await self._settings.access.credentials.get_current()
        async with AsyncExitStack() as stack:

            def connect(access: Access) -> Client:
                transport = HttpTransport(access, user_agent=NAME)
                stack.push_async_exit(transport)
                settings = ClientSettings(user_agent=NAME, field_manager=NAME)
                return Client(transport, clock=self._clock, entropy=self._entropy, settings=settings, kinds=OUR_KINDS)

            workload = connect(self._settings.access)
            await workload.get_json("/api/v1/nodes", [("limit", "1")])
            dependencies = ProviderDependencies(
                workload=workload,
                clock=self._clock,
                simulated_cloud=self._build_simulated_cloud,
                connect=connect,
                environment=self._settings.environment,
            )
            provider = make_provider(self._policy, dependencies)
            stack.push_async_callback(clean_up, provider)
            service = ProviderService(provider)
            listening = serve_provider(service, self._settings.listen, with_extension=self._settings.with_extension)
            async with listening as port:
                on_listening(port)
                await asyncio.Event().wait()

    def _build_simulated_cloud(self, client: Client) -> CloudPort:
        from plimsoll.local.cloud.api import SimulatedCloud  # noqa: PLC0415 - only the simulated provider loads it

        return SimulatedCloud(client, clock=self._clock)
