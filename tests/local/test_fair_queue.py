"""Bursts wait before the door, where parts take turns; watches pass it, and events come last."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from plimsoll.kube.transport import Request, Response
from plimsoll.local.fair_queue import FairQueue, FairQueueTransport
from plimsoll.testing import run_virtual

if TYPE_CHECKING:
    from plimsoll.runtime.clocks import VirtualClock

PODS = Request("POST", "/api/v1/namespaces/default/pods")
LEASE = Request("PATCH", "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/n")
BINDING = Request("POST", "/api/v1/namespaces/default/pods/p/binding")
EVENT = Request("POST", "/api/v1/namespaces/default/events")
WATCH = Request("GET", "/api/v1/pods", is_stream=True)


class SlowTransport:
    """Takes a second for each call, and knows how many it had at once."""

    def __init__(self, clock: VirtualClock) -> None:
        self._clock = clock
        self._under_way = 0
        self.most = 0
        self.order: list[str] = []

    async def send(self, call: Request) -> Response:
        self._under_way += 1
        self.most = max(self.most, self._under_way)
        try:
            await self._clock.sleep(1)
        finally:
            self._under_way -= 1
        self.order.append(call.path)
        return Response(status=200)

    async def aclose(self) -> None:
        """Nothing to let go of."""


def test_no_more_than_so_many_calls_are_under_way():
    async def story(clock: VirtualClock) -> tuple[int, float]:
        slow = SlowTransport(clock)
        door = FairQueue(at_once=3)
        parts = [FairQueueTransport(slow, door, part=str(number)) for number in range(2)]
        began_s = clock.monotonic_s()
        await asyncio.gather(*(parts[number % 2].send(PODS) for number in range(9)))
        return slow.most, clock.monotonic_s() - began_s

    assert run_virtual(story) == (3, 3.0)


def test_watches_pass_a_full_door():
    async def story(clock: VirtualClock) -> list[str]:
        slow = SlowTransport(clock)
        part = FairQueueTransport(slow, FairQueue(at_once=1), part="a")
        await asyncio.gather(*(part.send(call) for call in (PODS, PODS, WATCH)))
        return slow.order

    assert run_virtual(story) == [PODS.path, WATCH.path, PODS.path]


def test_parts_take_turns_and_a_lease_is_not_behind_a_burst_of_its_own_part():
    async def story(clock: VirtualClock) -> list[str]:
        slow = SlowTransport(clock)
        door = FairQueue(at_once=1)
        first, second = (FairQueueTransport(slow, door, part=part) for part in "ab")
        burst = [first.send(PODS) for _ in range(4)]
        await asyncio.gather(*burst, first.send(LEASE), second.send(BINDING))
        return slow.order

    assert run_virtual(story) == [PODS.path, PODS.path, LEASE.path, BINDING.path, PODS.path, PODS.path]


def test_events_are_written_last():
    async def story(clock: VirtualClock) -> list[str]:
        slow = SlowTransport(clock)
        part = FairQueueTransport(slow, FairQueue(at_once=1), part="a")
        await asyncio.gather(*(part.send(call) for call in (PODS, EVENT, PODS, PODS)))
        return slow.order

    assert run_virtual(story) == [PODS.path, PODS.path, PODS.path, EVENT.path]


def test_a_namespace_may_be_called_events():
    inside = Request("POST", "/api/v1/namespaces/events/pods")
    itself = Request("GET", "/api/v1/namespaces/events")
    of_another_group = Request("POST", "/apis/events.k8s.io/v1/namespaces/default/events")

    async def story(clock: VirtualClock) -> list[str]:
        slow = SlowTransport(clock)
        part = FairQueueTransport(slow, FairQueue(at_once=1), part="a")
        await asyncio.gather(*(part.send(call) for call in (PODS, of_another_group, inside, itself)))
        return slow.order

    assert run_virtual(story) == [PODS.path, inside.path, itself.path, of_another_group.path]


def test_events_are_not_kept_waiting_for_ever():
    async def story(clock: VirtualClock) -> int:
        slow = SlowTransport(clock)
        part = FairQueueTransport(slow, FairQueue(at_once=1), part="a")
        await asyncio.gather(*(part.send(call) for call in (*[PODS] * 30, EVENT, EVENT)))
        return slow.order.index(EVENT.path)

    assert run_virtual(story) < 12


def test_a_call_that_is_cut_off_gives_its_turn_back():
    async def story(clock: VirtualClock) -> int:
        part = FairQueueTransport(SlowTransport(clock), FairQueue(at_once=1), part="a")
        cut_off = asyncio.create_task(part.send(PODS))
        await clock.sleep(0.5)
        cut_off.cancel()
        return (await part.send(PODS)).status

    assert run_virtual(story) == 200


def test_a_call_that_is_cut_off_while_it_waits_takes_no_other_turn():
    async def story(clock: VirtualClock) -> list[int]:
        part = FairQueueTransport(SlowTransport(clock), FairQueue(at_once=1), part="a")
        calls = [asyncio.create_task(part.send(PODS)) for _ in range(3)]
        await clock.sleep(0.5)
        calls[1].cancel()
        done = await asyncio.gather(*calls, return_exceptions=True)
        return [item.status for item in done if isinstance(item, Response)]

    assert run_virtual(story) == [200, 200]


def test_one_that_is_cut_off_in_the_moment_of_its_turn_hands_it_on():
    async def story(clock: VirtualClock) -> int:
        slow = SlowTransport(clock)
        part = FairQueueTransport(slow, FairQueue(at_once=1), part="a")
        first, second, third = (asyncio.create_task(part.send(PODS)) for _ in range(3))
        first.add_done_callback(lambda _: second.cancel())
        await asyncio.wait((first, second))
        return (await third).status

    assert run_virtual(story) == 200
