"""An election as a task of the current event loop: for virtual time and for tests.

Live processes use `elector_thread`: a task cannot renew while another task keeps the loop busy.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from plimsoll.kube.leases.elector import LeaderElector
    from plimsoll.kube.leases.lease_holder import LeaseHolder


@asynccontextmanager
async def start_elector(elector: LeaderElector) -> AsyncIterator[LeaseHolder]:
    """Take part in the election. Leaving the block states that nothing acts any more, and releases the lease."""
    task = asyncio.create_task(elector.run(), name=f"elector {elector.holder.identity}")
    try:
        yield elector.holder
    finally:
        elector.holder.stand_down()
        await task
