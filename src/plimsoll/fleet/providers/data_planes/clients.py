"""Clients of data-plane clusters: opened for one call of a provider, closed after it.

A cluster may be made, deleted and replaced at any time, with other certificates: no connection outlives a call.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final, Protocol

from plimsoll.kube.client import Client
from plimsoll.kube.http import HttpLimits, HttpTransport
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.objects.custom_kinds import OUR_KINDS
from plimsoll.runtime.backoff import Backoff

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.access import Access

FIELD_MANAGER: Final = "plimsoll-fleet"
CALL_SETTINGS: Final = ClientSettings(
    field_manager=FIELD_MANAGER, timeout_s=5.0, deadline_s=10.0, qps=0, retry=Backoff(initial_s=0.5, max_attempts=2)
)
"""A pass repeats what failed, so one exchange ends soon: the lease of a worker leaves a margin of 20 s."""
_LIMITS: Final = HttpLimits(max_answer_bytes=32 * 1024 * 1024, calls_at_once=8)


class DataPlaneClients(Protocol):
    """Opens clients of data-plane clusters."""

    def open(self, access: Access) -> AbstractAsyncContextManager[Client]:
        """Raises `InvalidInput` for an address or a proxy that cannot be used."""
        ...


class HttpDataPlaneClients:
    """Over the network."""

    def __init__(self, *, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy

    @asynccontextmanager
    async def open(self, access: Access) -> AsyncIterator[Client]:
        async with HttpTransport(access, user_agent=CALL_SETTINGS.user_agent, limits=_LIMITS) as transport:
            yield Client(transport, clock=self._clock, entropy=self._entropy, settings=CALL_SETTINGS, kinds=OUR_KINDS)
