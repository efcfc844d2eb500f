"""The node autoscaler in a scenario: run by `{loop: …}` steps, or by itself in a live world.

It has the same parts as against a real cluster, over the simulated cloud. Planners run inline, because nothing may
leave virtual time. After every crash a new one is built from the world alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.journal.memory import MemoryJournal
from plimsoll.nodes.builder import Dependencies, NodeAutoscaler
from plimsoll.nodes.config.price_overlays import read_overlay_file
from plimsoll.nodes.config.scheduler_profiles import load_profiles
from plimsoll.nodes.config.source import ConfigMapConfig
from plimsoll.nodes.plan_runner import run_inline
from plimsoll.nodes.providers.simulated.provider import SimulatedProvider
from plimsoll.nodes.reporting.plan_json import build_loop_entry
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.kernel_warmup import load_kernels
from plimsoll.simulation.times import format_time

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.providers.ports import Provider
    from plimsoll.runtime.supervisor import Service
    from plimsoll.simulation.ports import LoopDependencies

NAME: Final = "cluster-autoscaler"


class ScenarioLoop:
    """A `simulation.ports.Loop`. `through` may put something between the autoscaler and its provider."""

    def __init__(
        self, tools: LoopDependencies, *, through: Callable[[SimulatedProvider], Provider] | None = None
    ) -> None:
        component = tools.components.build_component(NAME, manager=NAME)
        simulated = SimulatedProvider(tools.cloud)
        provider: Provider = simulated if through is None else through(simulated)
        self._is_timed = tools.is_timed
        if tools.is_timed:
            load_kernels()
        self._on_loop = tools.on_loop
        self.journal = MemoryJournal()
        self._parts = NodeAutoscaler(
            Dependencies(
                client=component.client,
                informers=component.informers,
                recorder=component.recorder,
                provider=provider,
                configuration=ConfigMapConfig(
                    tools.options,
                    component.informers,
                    naming=provider.naming,
                    overlay=read_overlay_file(
                        str(tools.options.get("price-overlay") or ""), path="options.price-overlay"
                    ),
                ),
                clock=tools.clock,
                run_planner=run_inline,
                profiles=load_profiles(
                    str(tools.options.get("scheduler-config-file") or ""), path="options.scheduler-config-file"
                ),
                journal=self.journal,
                stopwatch_clock=RealClock() if tools.is_timed else None,
                stepped=not tools.is_live,
                knows_owner=tools.knows_owner,
            )
        )
        if tools.is_live:
            self._parts.reporter.on_result = self._report

    def list_services(self) -> Sequence[Service]:
        return self._parts.list_services()

    async def run_loop(self) -> dict[str, Any]:
        await self._parts.autoscaler.wait_until_synced()
        return build_loop_entry(await self._parts.autoscaler.run_once(), is_timed=self._is_timed)

    def _report(self, loop: LoopResult) -> None:
        self._on_loop(format_time(loop.at), build_loop_entry(loop, is_timed=self._is_timed))

    def get_metrics(self) -> dict[str, float]:
        return self._parts.reporter.metrics.collect_samples()
