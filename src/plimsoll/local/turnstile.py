"""Lets calls to an API server of the same process through, so many at a time.

There is one event loop for the server, the cluster and everybody who asks: a controller that makes five hundred pods at
once would keep people waiting for a `get`, and kubelets from renewing their leases until their nodes count as lost.
Here the rest of a burst waits before the door instead. `app.py` gives one to each part of the cluster. Watches pass, as
they take no turns, and so do leases.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from plimsoll.kube.exchange import Call, Reply, Transport

_LEASES = "/apis/coordination.k8s.io/"


class Turnstile:
    """A transport before another one. Closing is the business of whoever made the other."""

    def __init__(self, inner: Transport, *, at_once: int) -> None:
        self._inner = inner
        self._turns = asyncio.Semaphore(at_once)

    async def send(self, call: Call) -> Reply:
        if call.is_stream or call.path.startswith(_LEASES):
            return await self._inner.send(call)
        async with self._turns:
            return await self._inner.send(call)

    async def aclose(self) -> None:
        """Nothing of our own."""
