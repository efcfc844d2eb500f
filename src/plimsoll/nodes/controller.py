"""When turns happen: one after another, at once after one that changed something, else by the scan interval.

A pod that the scheduler has just given up on ends the wait (`--frequent-loops-enabled`). The supervisor owns `run`;
leader election decides whether it is called at all. Nothing is decided here.
"""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from plimsoll.kube.informer.events import Added, Updated
from plimsoll.nodes.model.reasons import PODS_TOO_NEW
from plimsoll.nodes.observing.pod_filters import is_unschedulable
from plimsoll.nodes.scaleup.orchestrator import SETTLING_S
from plimsoll.operator.health import HealthTimeouts

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.kube.informer.events import Change
    from plimsoll.nodes.autoscaler import Autoscaler
    from plimsoll.nodes.config.policy import Operation
    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.observing.listers import ClusterListers
    from plimsoll.objects.api.pods import Pod
    from plimsoll.operator.health import Health

_FRESH: Final = timedelta(seconds=10)
"""Who has waited longer has been seen by a turn already."""


def health_timeouts(operation: Operation) -> HealthTimeouts:
    return HealthTimeouts(
        inactivity_s=operation.max_inactivity_s,
        failing_s=operation.max_failing_time_s,
        startup_s=operation.max_startup_time_s,
    )


class LoopTimer:
    """Runs turns until cancelled."""

    def __init__(self, autoscaler: Autoscaler, watching: ClusterListers, health: Health, *, clock: Clock) -> None:
        self._autoscaler = autoscaler
        self._watching = watching
        self._health = health
        self._clock = clock
        self._wake = asyncio.Event()
        watching.pods.add_handler(self._on_pod, name="node autoscaler")

    async def run(self) -> None:
        self._health.begin(self._clock.monotonic_s())
        try:
            await self._autoscaler.synced()
            while True:
                await self._wait(await self._turn())
        finally:
            self._health.end()

    async def _turn(self) -> LoopResult:
        self._health.loop_started(self._clock.monotonic_s())
        turn = await self._autoscaler.run_once()
        self._health.timeouts = health_timeouts(turn.policy.operation)
        self._health.loop_finished(self._clock.monotonic_s(), is_success=turn.is_success)
        return turn

    async def _wait(self, turn: LoopResult) -> None:
        self._wake.clear()
        operation = turn.policy.operation
        if turn.did_something:
            await asyncio.sleep(0)
            return
        wait_s = operation.scan_interval_s
        if turn.scale_up.skipped is not None and turn.scale_up.skipped.code == PODS_TOO_NEW:
            # They were let settle; they need not wait for a whole interval on top of it.
            wait_s = min(wait_s, SETTLING_S)
        if not operation.frequent_loops:
            await self._clock.sleep(wait_s)
            return
        try:
            async with asyncio.timeout(wait_s):
                await self._wake.wait()
        except TimeoutError:
            return

    def _on_pod(self, change: Change[Pod]) -> None:
        if isinstance(change, (Added, Updated)) and is_unschedulable(change.new):
            since = [
                condition.last_transition_time
                for condition in change.new.status.conditions
                if condition.type == "PodScheduled"
            ]
            now = self._clock.now()
            if any(time is not None and now - time < _FRESH for time in since):
                self._wake.set()
