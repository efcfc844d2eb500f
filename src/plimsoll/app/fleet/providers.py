"""The providers of clusters that a user configured, opened together."""

from __future__ import annotations

from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plimsoll.app.fleet.kubernetes_providers import KubernetesProviderOptions, open_kubernetes_providers
from plimsoll.app.fleet.ocm_providers import OcmOptions, build_ocm_provider
from plimsoll.fleet.providers.ocm.settings import TIMEOUT_S
from plimsoll.web.client import AiohttpClient

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.fleet.providers.port import ClusterProvider


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderOptions:
    """What a user chose. Without any provider clusters are registered, and nothing makes them."""

    ocm: OcmOptions = field(default_factory=OcmOptions)
    kubernetes: KubernetesProviderOptions = field(default_factory=KubernetesProviderOptions)


@asynccontextmanager
async def open_providers(
    options: ProviderOptions, *, environment: Mapping[str, str], clock: Clock, entropy: Entropy
) -> AsyncIterator[tuple[ClusterProvider, ...]]:
    """For as long as the block lasts. Raises `InvalidInput`, naming the option."""
    async with AsyncExitStack() as opened:
        # OCM may take longer to answer than other servers.
        web = await opened.enter_async_context(AiohttpClient(timeout_s=TIMEOUT_S))
        ocm = build_ocm_provider(options.ocm, web=web, clock=clock)
        kubernetes = await opened.enter_async_context(
            open_kubernetes_providers(options.kubernetes, environment=environment, clock=clock, entropy=entropy)
        )
        yield (*(() if ocm is None else (ocm,)), *kubernetes)
