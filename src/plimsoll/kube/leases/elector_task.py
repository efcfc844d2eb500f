"""An election as a task beside everything else: for virtual time, and for tests.

Live processes use `threads`: a task cannot renew while another one keeps the loop busy.
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
    """Take part in the election; leaving says that nothing acts any more, and gives the lease back."""
    task = asyncio.create_task(elector.run(), name=f"elector {elector.holder.identity}")
    try:
        yield elector.holder
    finally:
        elector.holder.stand_down()
        await task
