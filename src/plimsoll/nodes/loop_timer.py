"""The loop timer: when loop iterations run.

An iteration that changed something is followed by the next one at once; otherwise the scan interval is waited for. A
pod that has just become unschedulable ends the wait (`--frequent-loops-enabled`); so does a pod that left its node or a
node that became ready, if ProvisioningRequests wait for capacity. Leader election decides whether the timer runs.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from plimsoll.kube.informer.events import Added, Deleted, Updated
from plimsoll.nodes.model.reasons import PODS_TOO_NEW
from plimsoll.nodes.observing.pod_filters import is_unschedulable
from plimsoll.nodes.scaleup.orchestrator import SETTLING_S
from plimsoll.objects.api.nodes import is_node_ready
from plimsoll.operator.health import HealthTimeouts

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.kube.informer.events import Change
    from plimsoll.nodes.autoscaler import Autoscaler
    from plimsoll.nodes.config.policy import Operation
    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.observing.listers import ClusterListers
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod
    from plimsoll.operator.health import Health

_ENDED: Final = ("Succeeded", "Failed")
_TOGETHER_S: Final = 1.0
_RECENT: Final = timedelta(seconds=10)
"""A pod that became unschedulable longer ago was seen by an earlier iteration."""
_SLOW_AFTER_S: Final = 10.0
"""A loop iteration that takes longer is reported while it is under way: the last status is old by then."""
_PROGRESS_EVERY_S: Final = 30.0
"""Readers take a status for outdated after a minute."""

MOST_AT_ONCE: Final = 20
"""So many iterations that acted follow each other at once; then one scan interval passes. A provider that accepts the
same scale-up again and again, because its sizes are wrong, is not called without a pause."""

ReportProgress = Callable[["datetime"], Awaitable[None]]
"""Receives the start of the loop iteration that is under way."""


def build_health_timeouts(operation: Operation) -> HealthTimeouts:
    return HealthTimeouts(
        inactivity_s=operation.max_inactivity_s,
        failing_s=operation.max_failing_time_s,
        startup_s=operation.max_startup_time_s,
    )


class LoopTimer:
    """Runs loop iterations until cancelled."""

    def __init__(
        self,
        autoscaler: Autoscaler,
        listers: ClusterListers,
        health: Health,
        *,
        clock: Clock,
        report_progress: ReportProgress | None = None,
    ) -> None:
        self._autoscaler = autoscaler
        self._listers = listers
        self._health = health
        self._clock = clock
        self._report_progress = report_progress
        self._wake = asyncio.Event()
        self._at_once = 0
        """Loop iterations that followed each other without a pause."""
        self._requests_wait = False
        """Whether ProvisioningRequests had no capacity in the last iteration."""
        self._freed: asyncio.TimerHandle | None = None
        listers.pods.add_handler(self._on_pod, name="node autoscaler")
        listers.nodes.add_handler(self._on_node, name="node autoscaler")

    async def run(self) -> None:
        self._health.begin(self._clock.monotonic_s())
        try:
            await self._autoscaler.wait_until_synced()
            while True:
                await self._wait(await self._run_loop())
        finally:
            if self._freed is not None:
                self._freed.cancel()
            self._health.end()

    async def _run_loop(self) -> LoopResult:
        self._health.on_loop_started(self._clock.monotonic_s())
        # Cleared before the cluster is read: what changes during the iteration starts the next one.
        self._wake.clear()
        reporting = asyncio.create_task(self._report_slow_loop(self._clock.now()), name="progress of a slow loop")
        try:
            result = await self._autoscaler.run_once()
        finally:
            reporting.cancel()
            await asyncio.wait((reporting,))
        self._requests_wait = any(result.requests.waiting.values())
        self._health.timeouts = build_health_timeouts(result.policy.operation)
        self._health.on_loop_finished(self._clock.monotonic_s(), is_success=result.is_success)
        return result

    async def _report_slow_loop(self, started_at: datetime) -> None:
        """Reports a loop iteration that lasts long, again and again while it does."""
        wait_s = _SLOW_AFTER_S
        while self._report_progress is not None:
            await self._clock.sleep(wait_s)
            await self._report_progress(started_at)
            wait_s = _PROGRESS_EVERY_S

    async def _wait(self, result: LoopResult) -> None:
        operation = result.policy.operation
        self._at_once = self._at_once + 1 if result.did_something else 0
        if result.did_something and self._at_once < MOST_AT_ONCE:
            await asyncio.sleep(0)
            return
        self._at_once = 0
        wait_s = operation.scan_interval_s
        if result.scale_up.skipped is not None and result.scale_up.skipped.code == PODS_TOO_NEW:
            # New pods are only waited for until they have settled, not for a whole scan interval.
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
        if isinstance(change, Deleted) and change.last.spec.node_name:
            self._note_freed()
        if not isinstance(change, (Added, Updated)):
            return
        if change.new.status.phase in _ENDED:
            self._note_freed()
        elif is_unschedulable(change.new):
            since = [
                condition.last_transition_time
                for condition in change.new.status.conditions
                if condition.type == "PodScheduled"
            ]
            now = self._clock.now()
            if any(time is not None and now - time < _RECENT for time in since):
                self._wake.set()

    def _on_node(self, change: Change[Node]) -> None:
        if isinstance(change, (Added, Updated)) and is_node_ready(change.new):
            was_ready = isinstance(change, Updated) and is_node_ready(change.old)
            if not was_ready:
                self._note_freed()

    def _note_freed(self) -> None:
        """Wake the timer if requests wait. Pods often end together, so all within a second count as one."""
        if self._requests_wait and self._freed is None:
            self._freed = asyncio.get_running_loop().call_later(_TOGETHER_S, self._wake_for_freed)

    def _wake_for_freed(self) -> None:
        self._freed = None
        self._wake.set()
