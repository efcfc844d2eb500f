"""When the next loop iteration starts, in virtual time."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from plimsoll.kube.informer.events import Deleted, Updated
from plimsoll.nodes.config.policy import Policy
from plimsoll.nodes.loop_result import LoopResult
from plimsoll.nodes.loop_timer import LoopTimer, build_health_timeouts
from plimsoll.nodes.requests.model import RequestsPart
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.nodes import Node, NodeCondition, NodeStatus
from plimsoll.objects.api.pods import Pod, PodCondition, PodSpec, PodStatus
from plimsoll.operator.health import Health
from plimsoll.testing import run_virtual

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

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

    def __init__(self, clock: VirtualClock, during: Callable[[int], None], waiting: int) -> None:
        self._clock = clock
        self._during = during
        self._requests = RequestsPart(waiting={"some class": waiting})
        self.starts_s: list[float] = []

    async def wait_until_synced(self) -> None:
        return

    async def run_once(self) -> LoopResult:
        self.starts_s.append(self._clock.monotonic_s())
        await self._clock.sleep(LOOP_S / 2)
        self._during(len(self.starts_s))
        await self._clock.sleep(LOOP_S / 2)
        return LoopResult(number=len(self.starts_s), at=self._clock.now(), policy=Policy(), requests=self._requests)


def find_starts(
    wakes_in: int, build_change: Callable[[datetime], Any], *, handler: int = 0, waiting: int = 0
) -> list[float]:
    """When the first three iterations start, if a change comes during one of them. `waiting`: requests that wait."""

    async def run(clock: VirtualClock) -> list[float]:
        listers = FakeListers()

        def change_cluster(number: int) -> None:
            if number == wakes_in:
                listers.handlers[handler](build_change(clock.now()))

        autoscaler = SlowAutoscaler(clock, change_cluster, waiting)
        health = Health(build_health_timeouts(Policy().operation))
        timer = LoopTimer(autoscaler, listers, health, clock=clock)  # type: ignore[arg-type]
        running = asyncio.create_task(timer.run())
        await clock.sleep(3 * (LOOP_S + SCAN_S))
        running.cancel()
        return autoscaler.starts_s[:3]

    return run_virtual(run)


def become_unschedulable(now: datetime) -> Updated[Pod]:
    condition = PodCondition(type="PodScheduled", status="False", reason="Unschedulable", last_transition_time=now)
    pod = Pod(metadata=ObjectMeta(name="p", namespace="default"), status=PodStatus(conditions=(condition,)))
    return Updated(old=pod, new=pod)


def leave_node(_now: datetime) -> Deleted[Pod]:
    return Deleted(last=Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=PodSpec(node_name="n")))


def end(_now: datetime) -> Updated[Pod]:
    pod = Pod(metadata=ObjectMeta(name="p", namespace="default"), spec=PodSpec(node_name="n"))
    return Updated(old=pod, new=structs.replace(pod, status=PodStatus(phase="Succeeded")))


def become_ready(_now: datetime) -> Updated[Node]:
    node = Node(metadata=ObjectMeta(name="n"))
    ready = NodeStatus(conditions=(NodeCondition(type="Ready", status="True"),))
    return Updated(old=node, new=structs.replace(node, status=ready))


def test_a_pod_that_becomes_unschedulable_during_an_iteration_starts_the_next_one():
    first, second, third = find_starts(1, become_unschedulable)
    assert second - first == LOOP_S
    assert third - second == LOOP_S + SCAN_S


def test_otherwise_the_scan_interval_is_waited_for():
    first, second, third = find_starts(0, become_unschedulable)
    assert [second - first, third - second] == [LOOP_S + SCAN_S, LOOP_S + SCAN_S]


@pytest.mark.parametrize(("build_change", "handler"), [(leave_node, 0), (end, 0), (become_ready, 1)])
@pytest.mark.parametrize(("waiting", "wait_s"), [(1, 0.0), (0, SCAN_S)])
def test_freed_capacity_starts_the_next_iteration_if_requests_wait_for_it(
    build_change: Callable[[datetime], Any], handler: int, waiting: int, wait_s: float
):
    _, second, third = find_starts(2, build_change, handler=handler, waiting=waiting)
    assert third - second == LOOP_S + wait_s
