"""The program of a controller process: caches that are always kept, and work that is done only while leading.

A standby keeps its caches warm: its informers list and watch from the start, so that its first act follows the election
and not a list. It writes nothing, because its client has the lease as its guard, and nothing that writes runs.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Protocol

from plimsoll.kube.leases import run_while_leading
from plimsoll.runtime.supervisor import Supervisor

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.types import ASGIApp

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.kube.leases import LeaseHolder
    from plimsoll.runtime.supervisor import Service


class Program(Protocol):
    """What a process runs."""

    @property
    def pages(self) -> ASGIApp: ...

    def list_standby_services(self) -> Sequence[Service]:
        """Services that only read: informers. They run all the time, leading or not."""
        ...

    def list_services(self) -> Sequence[Service]:
        """The services that run while the process leads."""
        ...

    async def leave(self) -> None:
        """A clean exit: called when the services have ended, while the caches still exist."""
        ...


def describe_role(holder: LeaseHolder | None) -> str:
    """Whether the process leads, as health pages show it. Without a holder there is no election."""
    if holder is None:
        return "no leader election"
    if holder.is_leading:
        return "leader"
    leader = holder.observed_holder
    return f"standby: {leader} leads" if leader and leader != holder.identity else "standby"


async def run_program(program: Program, holder: LeaseHolder | None, *, clock: Clock, entropy: Entropy) -> None:
    """Runs a program until cancelled. Raises `LeadershipLost` when it led and does no longer.

    Without a holder it leads at once.
    """
    standby = Supervisor(list(program.list_standby_services()), clock=clock, entropy=entropy)
    leading = Supervisor(list(program.list_services()), clock=clock, entropy=entropy)

    async def lead() -> None:
        try:
            await leading.run()
        finally:
            await program.leave()

    reading = asyncio.create_task(standby.run(), name="standby services")
    try:
        await (lead() if holder is None else run_while_leading(holder, lead))
    finally:
        reading.cancel()
        await asyncio.wait((reading,))
