"""Runs work while, and only while, this process leads.

    async with ElectorThread(holder, open_transport, entropy=entropy):
        await run_while_leading(holder, controllers.run)

It never takes part in the election itself.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

import structlog

from plimsoll.core.errors import PlimsollError

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from plimsoll.kube.leases.lease_holder import LeaseHolder

T = TypeVar("T")

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class LeadershipLost(PlimsollError):
    """The lease could not be renewed, or another process holds it: this process must end and start again."""


async def run_while_leading(holder: LeaseHolder, main: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Wait for leadership, run `main`, and return its result. Raises `LeadershipLost` when it is cancelled by a loss.

    Only when `main` has come to its end, however it does, the holder stands down and the lease may be given back. A
    `main` that does not end when it is cancelled holds the lease until its time is over; then a `ElectorThread` ends
    the process.
    """
    task: asyncio.Task[T] | None = None
    try:
        if not await _happens_first(holder.wait_until_acquired(), holder):
            raise LeadershipLost(f"the election ended: {holder.loss_reason}")
        task = asyncio.create_task(main(), name="main while leading")
        if await _happens_first(_wait_for_end(task), holder):
            return task.result()
        log.error("lease.stopping_main", reason=holder.loss_reason)
        raise LeadershipLost(f"the lease is lost: {holder.loss_reason}")
    finally:
        try:
            await _stop(task)
        finally:
            holder.stand_down()


async def _happens_first(wanted: Coroutine[Any, Any, object], holder: LeaseHolder) -> bool:
    """Whether the awaited event happens before the lease is lost."""
    tasks = (
        asyncio.create_task(wanted, name="waiting while electing"),
        asyncio.create_task(holder.wait_until_lost(), name="waiting for the loss of the lease"),
    )
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        return tasks[0].done()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _wait_for_end(task: asyncio.Task[Any]) -> None:
    await asyncio.wait((task,))


async def _stop(task: asyncio.Task[Any] | None) -> None:
    """Cancel a task and wait for its end. If the caller is cancelled meanwhile, the task is cancelled again."""
    if task is None or task.done():
        return
    interruption: asyncio.CancelledError | None = None
    while not task.done():
        task.cancel()
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as cancelled:
            interruption = cancelled
    if not task.cancelled() and (error := task.exception()) is not None:
        log.warning("lease.main_failed_while_stopping", exc_info=error)
    if interruption is not None:
        raise interruption
