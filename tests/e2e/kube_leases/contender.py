"""A process that wants to lead, and acts as fast as it is allowed while it does. Started by the tests beside it.

Arguments: kubeconfig, lease name, namespace, journal, duration in seconds. Every line of the journal is one write in
append mode, `kind pid seconds allowed`, with seconds of CLOCK_BOOTTIME, which all processes of the machine share. With
CONTENDER_BLOCKS in its environment it blocks its event loop as soon as it leads.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time

from plimsoll.kube.configuration import find_access
from plimsoll.kube.http import HttpTransport
from plimsoll.kube.leases import (
    ElectorThread,
    LeaseHolder,
    LeaseSettings,
    NotLeading,
    SuspendAwareClock,
    generate_identity,
    run_while_leading,
)
from plimsoll.runtime.entropy import SystemEntropy
from plimsoll.runtime.signals import run_until_signalled

CALL_S = 0.02


class Journal:
    def __init__(self, path: str, clock: SuspendAwareClock) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        self._clock = clock

    def write(self, kind: str, allowed_s: float = 0.0) -> None:
        os.write(self._file, f"{kind} {os.getpid()} {self._clock.monotonic_s():.6f} {allowed_s:.6f}\n".encode())


async def act(holder: LeaseHolder, journal: Journal) -> None:
    if "CONTENDER_BLOCKS" in os.environ:
        journal.write("begin", holder.limit_duration_s(CALL_S))
        time.sleep(600)  # noqa: ASYNC251 -- what must not happen in a loop, and does
    while True:
        try:
            allowed_s = holder.limit_duration_s(CALL_S)
            journal.write("begin", allowed_s)
            try:
                await asyncio.sleep(allowed_s / 2)
            finally:
                # After a signal it ends its call before the lease is given back; only a killed one cannot say so.
                journal.write("end")
        except NotLeading:
            journal.write("refused")
            await asyncio.sleep(CALL_S)


async def contend(kubeconfig: str, settings: LeaseSettings, journal_path: str) -> None:
    clock, entropy = SuspendAwareClock(), SystemEntropy()
    journal = Journal(journal_path, clock)
    access = find_access(kubeconfig=kubeconfig, environment=os.environ, clock=clock)
    holder = LeaseHolder(settings, identity=generate_identity("contender", entropy), clock=clock)
    async with ElectorThread(holder, lambda: HttpTransport(access, user_agent="plimsoll-contender"), entropy=entropy):
        journal.write("contends")
        await run_while_leading(holder, lambda: act(holder, journal))


def main() -> None:
    kubeconfig, name, namespace, journal, duration = sys.argv[1:]
    duration_s = int(duration)
    settings = LeaseSettings(
        name=name,
        namespace=namespace,
        duration_s=duration_s,
        renew_deadline_s=duration_s * 0.7,
        retry_period_s=duration_s * 0.15,
    )
    asyncio.run(run_until_signalled(contend(kubeconfig, settings, journal)))


if __name__ == "__main__":
    main()
