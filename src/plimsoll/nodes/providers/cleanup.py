"""The end of a provider: `cleanup` is called when the process exits, as Cluster Autoscaler does."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.errors import PlimsollError

if TYPE_CHECKING:
    from plimsoll.nodes.providers.ports import Provider

log = structlog.get_logger(__name__)

_TIMEOUT_S: Final = 5.0
"""An exiting process does not wait long."""


async def clean_up(provider: Provider) -> None:
    """Call `cleanup`. Failures are logged and never raised: the process exits in any case."""
    try:
        async with asyncio.timeout(_TIMEOUT_S):
            await provider.cleanup()
    except (PlimsollError, TimeoutError) as error:
        log.warning("provider.cleanup_failed", provider=provider.name, problem=str(error) or "no answer in time")
