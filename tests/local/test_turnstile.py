"""Bursts wait before the door; heartbeats and watches do not."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from plimsoll.kube.exchange import Call, Reply
from plimsoll.local.turnstile import Turnstile
from plimsoll.runtime.virtual_runs import run_virtual

if TYPE_CHECKING:
    from plimsoll.runtime.clocks import VirtualClock

PODS = Call("POST", "/api/v1/namespaces/default/pods")
LEASE = Call("PATCH", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n")
WATCH = Call("GET", "/api/v1/pods", is_stream=True)


class Slow:
    """Takes a second for each call, and knows how many it had at once."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._under_way = 0
        self.most = 0
        self.order: list[str] = []

    async def send(self, call: Call) -> Reply:
        self._under_way += 1
        self.most = max(self.most, self._under_way)
        try:
            await self._clock.sleep(1)
        finally:
            self._under_way -= 1
        self.order.append(call.path)
        return Reply(status=200)

    async def aclose(self) -> None:
        """Nothing to let go of."""


def test_no_more_than_so_many_calls_are_under_way():
    async def story(clock: VirtualClock) -> tuple[int, float]:
        slow = Slow(clock)
        door = Turnstile(slow, at_once=3)
        began_s = clock.monotonic_s()
        await asyncio.gather(*(door.send(PODS) for _ in range(9)))
        return slow.most, clock.monotonic_s() - began_s

    assert run_virtual(story) == (3, 3.0)


def test_leases_and_watches_pass_a_full_door():
    async def story(clock: VirtualClock) -> list[str]:
        slow = Slow(clock)
        door = Turnstile(slow, at_once=1)
        await asyncio.gather(*(door.send(call) for call in (PODS, PODS, LEASE, WATCH)))
        return slow.order

    assert run_virtual(story) == [PODS.path, LEASE.path, WATCH.path, PODS.path]


def test_a_call_that_is_cut_off_gives_its_turn_back():
    async def story(clock: VirtualClock) -> int:
        door = Turnstile(Slow(clock), at_once=1)
        cut_off = asyncio.create_task(door.send(PODS))
        await clock.sleep(0.5)
        cut_off.cancel()
        return (await door.send(PODS)).status

    assert run_virtual(story) == 200
