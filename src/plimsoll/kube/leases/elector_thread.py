"""An election in a thread of its own, with its own event loop and its own connection: for live processes.

A leader whose event loop is busy (decoding a large list, planning without a yield) must still renew, and a leader that
cannot renew must stop, even if its loop is blocked. So the thread also watches the end: if the granted time is over and
the rest of the process has not confirmed that it stands down, the process is ended at once. A limit: code that keeps
Python's global interpreter lock for longer than the lease lasts also blocks this thread; the guard then still refuses
all later calls, by the clock.
"""

from __future__ import annotations

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Any, Final

import structlog

from plimsoll.core.errors import PlimsollError
from plimsoll.kube.leases.elector import LeaderElector
from plimsoll.kube.leases.lease_lock import LeaseLock
from plimsoll.kube.leases.thread_event import ThreadEvent

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager

    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.leases.lease_holder import LeaseHolder
    from plimsoll.kube.transport import Transport

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

LOST_EXIT_CODE: Final = 4
_SHORTEST_WAIT_S: Final = 0.001


class ElectorThread:
    """`async with ElectorThread(…) as holder`: leaving states that nothing acts any more, and releases the lease.

    `open_transport` is called inside the thread. `end_process` must not return to the caller: `os._exit`.
    """

    def __init__(
        self,
        holder: LeaseHolder,
        open_transport: Callable[[], AbstractAsyncContextManager[Transport]],
        *,
        entropy: Entropy,
        end_process: Callable[[int], Any] = os._exit,  # the plain way out would run what others put on the exit stack
    ) -> None:
        self.holder = holder
        self._open_transport = open_transport
        self._entropy = entropy
        self._end_process = end_process
        self._has_ended = ThreadEvent()
        # A daemon, so that a main thread that ends without standing down is not kept alive by its own lease.
        self._thread = threading.Thread(target=self._run, name=f"lease {holder.settings.name}", daemon=True)

    async def __aenter__(self) -> LeaseHolder:
        self._thread.start()
        return self.holder

    async def __aexit__(self, *_error: object) -> None:
        self.holder.stand_down()
        await self._has_ended.wait()
        self._thread.join()

    def _run(self) -> None:
        try:
            asyncio.run(self._elect_and_watch())
        finally:
            self._has_ended.set()

    async def _elect_and_watch(self) -> None:
        watching = asyncio.create_task(self._watch_the_end(), name="watching the end of the lease")
        try:
            await self._elect()
        except PlimsollError as error:
            log.critical("lease.thread_failed", error=str(error))
            self.holder.lose(str(error))
        finally:
            self.holder.lose("the lease thread failed")
            await watching

    async def _elect(self) -> None:
        async with self._open_transport() as transport:
            port = LeaseLock(transport, self.holder.settings, clock=self.holder.clock)
            await LeaderElector(self.holder, port, entropy=self._entropy).run()

    async def _watch_the_end(self) -> None:
        """Wait for the stand-down, at most until the granted time is over."""
        while not self.holder.has_stood_down:
            left_s = self._compute_remaining_s()
            if left_s <= 0:
                log.critical("lease.process_ended", reason=self.holder.loss_reason or "the lease ran out")
                self._end_process(LOST_EXIT_CODE)
                return
            try:
                async with asyncio.timeout(max(left_s, _SHORTEST_WAIT_S)):
                    await self.holder.wait_until_released()
            except TimeoutError:
                continue

    def _compute_remaining_s(self) -> float:
        """How long the process may continue without a sign of life. Before it leads, the limit is loose."""
        if not self.holder.has_led:
            return self.holder.settings.retry_period_s
        return self.holder.promised_until_s - self.holder.clock.monotonic_s()
