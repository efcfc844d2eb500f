"""Runs work while, and only while, this process leads.

    async with ElectorThread(holder, open_transport, entropy=entropy):
        await run_while_leading(holder, controllers.run)

It never takes part in the election itself.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, TypeVar

import structlog

from plimsoll.core.errors import PlimsollError
from plimsoll.kube.leases.lease_holder import Phase

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from plimsoll.kube.leases.lease_holder import LeaseHolder
    from plimsoll.kube.leases.lease_record import LeaseRecord

T = TypeVar("T")

_LOOK_S: Final = 0.1

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class LeadershipLost(PlimsollError):
    """The lease could not be renewed, or another process holds it: this process must end and start again."""


class LeaseNotAcquired(PlimsollError):
    """Another process holds the lease, or it could not be read or written in time."""

    hint = "--dry-run needs no lease"


async def run_while_leading(
    holder: LeaseHolder, main: Callable[[], Coroutine[Any, Any, T]], *, waits: bool = True
) -> T:
    """Wait for leadership, run `main`, and return its result. Raises `LeadershipLost` when it is cancelled by a loss.

    With `waits` False it raises `LeaseNotAcquired` as soon as another leader is seen to be alive. It waits for the end
    of the lease of a dead one.

    Only when `main` has come to its end, however it does, the holder stands down and the lease may be given back. A
    `main` that does not end when it is cancelled holds the lease until its time is over; then a `ElectorThread` ends
    the process.
    """
    task: asyncio.Task[T] | None = None
    try:
        if not waits:
            await _wait_unless_held(holder)
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


async def _wait_unless_held(holder: LeaseHolder) -> None:
    """Wait until this process leads, or has lost. A lease that is renewed is held by a process that is alive."""
    lease, settings = f"{holder.settings.namespace}/{holder.settings.name}", holder.settings
    first: LeaseRecord | None = None
    until_s = holder.clock.monotonic_s() + settings.duration_s + settings.renew_deadline_s
    while holder.phase is Phase.CONTENDING:
        record, now_s = holder.observed_record, holder.clock.monotonic_s()
        if record is not None and record.holder and record.holder != holder.identity:
            if first is None:
                first, until_s = record, now_s + record.duration_s + settings.renew_deadline_s
                problem = f"{_describe_held(lease, record)} unless it renews it"
                log.warning("lease.waiting", problem=problem)
            elif record.stamp != first.stamp:
                described = _describe_held(lease, record)
                raise LeaseNotAcquired(f"nothing is done: {described}, and renews it; stop it first")
        if now_s >= until_s:
            problem = f": {holder.last_error}" if holder.last_error else ""
            raise LeaseNotAcquired(f"nothing is done: lease {lease} could not be acquired in time{problem}")
        await holder.clock.sleep(_LOOK_S)


def _describe_held(lease: str, record: LeaseRecord) -> str:
    until = f" until {record.expiry:%Y-%m-%dT%H:%M:%SZ}" if record.expiry is not None else ""
    return f"{record.holder} holds lease {lease}{until}"


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
