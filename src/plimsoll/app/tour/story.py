"""Plays the tour, step by step: what each did to machines and cost, until the end or the first step that fails."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from plimsoll.app.tour.costs import CostMeter
from plimsoll.app.tour.fleet_steps import FleetSteps
from plimsoll.app.tour.main_steps import MainSteps
from plimsoll.app.tour.steps import Stage, StepFailed
from plimsoll.app.tour.world import Refused
from plimsoll.kube.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.app.tour.costs import MachineCosts
    from plimsoll.app.tour.steps import Evidence, Step
    from plimsoll.app.tour.world import TourWorld


@dataclass(frozen=True, slots=True, kw_only=True)
class StepResult:
    """`problem` empty: it happened. `costs` are at its end; `added` and `removed` count machines."""

    name: str
    title: str
    seconds: float
    added: int
    removed: int
    costs: MachineCosts
    evidence: tuple[Evidence, ...]
    problem: str = ""


class Audience(Protocol):
    """Shows the tour."""

    def show_step(self, number: int, of: int, step: Step) -> None: ...

    def show_progress(self, seconds: float, text: str) -> None:
        """`seconds` since the tour began."""
        ...

    def show_end(self, result: StepResult) -> None: ...


class Tour:
    """The steps in order. `sells_again` False: in the step about the stock-out nothing can be bought, for ever."""

    def __init__(self, world: TourWorld, audience: Audience, *, sells_again: bool = True) -> None:
        self._world = world
        self._audience = audience
        self._main = MainSteps(world, sells_again=sells_again)
        fleet = FleetSteps(world)
        first, *others = fleet.list_steps()
        self._steps = [first, *self._main.list_steps(), *others]
        self._meter = CostMeter(world)

    async def run(self) -> tuple[StepResult, ...]:
        """The steps that were run; only the last one may have a problem."""
        began_s = self._world.clock.monotonic_s()

        def show(text: str) -> None:
            self._audience.show_progress(self._world.clock.monotonic_s() - began_s, text)

        await self._main.prepare()
        results: list[StepResult] = []
        for number, step in enumerate(self._steps, start=1):
            self._audience.show_step(number, len(self._steps), step)
            results.append(await self._run_step(step, show))
            self._audience.show_end(results[-1])
            if results[-1].problem:
                break
        return tuple(results)

    async def _run_step(self, step: Step, say: Callable[[str], None]) -> StepResult:
        clock = self._world.clock
        began_s, before = clock.monotonic_s(), await self._meter.measure()
        stage = Stage(world=self._world, say=say, began=clock.now(), look=self._meter.look)
        problem = ""
        try:
            await step.run(stage)
        except (StepFailed, Refused, ApiError) as error:
            problem = str(error)
        after = await self._meter.measure()
        return StepResult(
            name=step.name,
            title=step.title,
            seconds=clock.monotonic_s() - began_s,
            added=after.added - before.added,
            removed=after.removed - before.removed,
            costs=after,
            evidence=tuple(stage.evidence),
            problem=problem,
        )
