"""When the next loop iteration starts, in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from plimsoll.kube.informer.events import Updated
from plimsoll.nodes.config.policy import Policy
from plimsoll.nodes.controller import LoopTimer, health_timeouts
from plimsoll.nodes.loop_result import LoopResult
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.pods import Pod, PodCondition, PodStatus
from plimsoll.operator.health import Health
from plimsoll.testing import run_virtual

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.runtime.clocks import VirtualClock

LOOP_S = 5.0
SCAN_S = 10.0


@dataclass
class FakeListers:
    """Pods of a cluster, of which only the handler is used."""

    handlers: list[Callable[[Any], None]] = field(default_factory=list)

    @property
    def pods(self) -> FakeListers:
        return self

    @property
    def nodes(self) -> FakeListers:
        return self

    def add_handler(self, handler: Callable[[Any], None], *, name: str) -> None:
        assert name
        self.handlers.append(handler)


class SlowAutoscaler:
    """Each iteration takes five seconds; `during` is called in the middle of each, with its number."""

    def __init__(self, clock: VirtualClock, during: Callable[[int], None]) -> None:
        self._clock = clock
        self._during = during
        self.starts_s: list[float] = []

    async def wait_until_synced(self) -> None:
        return

    async def run_once(self) -> LoopResult:
        self.starts_s.append(self._clock.monotonic_s())
        await self._clock.sleep(LOOP_S / 2)
        self._during(len(self.starts_s))
        await self._clock.sleep(LOOP_S / 2)
        return LoopResult(number=len(self.starts_s), at=self._clock.now(), policy=Policy())


def find_starts(wakes_in: int) -> list[float]:
    """When the first three iterations start, if a pod becomes unschedulable during one of them."""

    async def run(clock: VirtualClock) -> list[float]:
        listers = FakeListers()

        def become_unschedulable(number: int) -> None:
            if number == wakes_in:
                now = clock.now()
                condition = PodCondition(
                    type="PodScheduled", status="False", reason="Unschedulable", last_transition_time=now
                )
                pod = Pod(metadata=ObjectMeta(name="p", namespace="default"), status=PodStatus(conditions=(condition,)))
                listers.handlers[0](Updated(old=pod, new=pod))

        autoscaler = SlowAutoscaler(clock, become_unschedulable)
        health = Health(health_timeouts(Policy().operation))
        timer = LoopTimer(autoscaler, listers, health, clock=clock)  # type: ignore[arg-type]
        running = asyncio.create_task(timer.run())
        await clock.sleep(3 * (LOOP_S + SCAN_S))
        running.cancel()
        return autoscaler.starts_s[:3]

    return run_virtual(run)


def test_a_pod_that_becomes_unschedulable_during_an_iteration_starts_the_next_one():
    first, second, third = find_starts(wakes_in=1)
    assert second - first == LOOP_S
    assert third - second == LOOP_S + SCAN_S


def test_otherwise_the_scan_interval_is_waited_for():
    first, second, third = find_starts(wakes_in=0)
    assert [second - first, third - second] == [LOOP_S + SCAN_S, LOOP_S + SCAN_S]
