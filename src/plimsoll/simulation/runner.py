"""Runs a scenario: takes its steps one after the other and returns the outcome.

An error in the file that shows only during the run ends it, with the path of its step. An expectation that does not
hold is recorded, and the run continues.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.errors import ApiError, NotFound
from plimsoll.simulation.document import Problems
from plimsoll.simulation.expectations import find_unmet
from plimsoll.simulation.ports import Plugins
from plimsoll.simulation.results import FailedExpectation, ScenarioResult
from plimsoll.simulation.scenario import (
    AdvanceStep,
    ApplyStep,
    AtStep,
    CrashStep,
    DeleteStep,
    ExpectStep,
    LoopStep,
    ProviderStep,
    ReconcileStep,
    ScheduleStep,
    SetStep,
)
from plimsoll.simulation.times import format_time
from plimsoll.simulation.worlds.autoscaler import ScenarioLoop
from plimsoll.simulation.worlds.outcome import read_outcome
from plimsoll.simulation.worlds.provider_steps import apply_provider_step
from plimsoll.simulation.worlds.seeding import build_plain_resource
from plimsoll.simulation.worlds.world import COMPONENTS, World

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.cluster import LocalCluster
    from plimsoll.objects.api.resource import Resource
    from plimsoll.simulation.ports import Loop
    from plimsoll.simulation.scenario import Scenario, Step

Json = dict[str, Any]

NO_AUTOSCALER: Final = "there is no node autoscaler in this build: loops only advance the clock"


def run_scenario(
    scenario: Scenario,
    *,
    plugs: Plugins | None = None,
    is_timed: bool = False,
    on_step: Callable[[str], None] = lambda _: None,
) -> ScenarioResult:
    """Run a scenario. Raises `InvalidInput` with the path of what cannot be done. `on_step` precedes every step.

    Without `plugs` the controllers of this build run.
    """
    if scenario.fleet is not None:
        from plimsoll.simulation.fleet_worlds.runner import run_fleet_scenario  # noqa: PLC0415 - other scenarios need no SQL

        return run_fleet_scenario(scenario, scenario.fleet, on_step=on_step)
    on_step("building the world")
    plugs = plugs or Plugins(make_loop=ScenarioLoop)
    with World(scenario, plugs=plugs, is_timed=is_timed) as world:
        scenario_run = ScenarioRun(world, plugs)
        for number, step in enumerate(scenario.steps):
            on_step(f"steps[{number}] {type(step).__name__.removesuffix('Step').lower()}")
            scenario_run.take_step(step, path=f"steps[{number}]")
        on_step("reading the outcome")
        return scenario_run.finish()


class ScenarioRun:
    """A run in progress."""

    def __init__(self, world: World, plugs: Plugins) -> None:
        self._world = world
        self._plugs = plugs
        self._loops: list[Json] = []
        self._failed: list[FailedExpectation] = []
        self._expectations = 0
        self._warnings: dict[str, None] = {}

    def take_step(self, step: Step, *, path: str) -> None:
        world = self._world
        match step:
            case LoopStep():
                self._run_loop(step)
            case AdvanceStep(seconds=seconds):
                world.run.advance_by(seconds)
            case AtStep(moment=moment):
                self._advance_to(moment, path=path)
            case ApplyStep(manifests=manifests):
                world.run_now(self._apply(manifests, path=path))
            case DeleteStep():
                world.run_now(self._delete(step, path=path))
            case ScheduleStep():
                self._schedule()
            case ProviderStep():
                apply_provider_step(world, step, path=f"{path}.provider")
            case SetStep(options=options):
                world.options.update(options)
            case CrashStep():
                self._crash(step, path=path)
            case ReconcileStep():
                self._reconcile(step, path=path)
            case ExpectStep():
                self._expect(step, path=path)
            case _:
                raise AssertionError(f"the reader lets no {type(step).__name__} through")
        world.run.settle()

    def finish(self) -> ScenarioResult:
        for crash in self._world.planned_crashes.waiting:
            message = f"{crash.path}.crash did not happen: {crash.component} had {crash.writes_left} writes left"
            self._warnings[message] = None
        return ScenarioResult(
            outcome=self._build_outcome(),
            failed=tuple(self._failed),
            expectations=self._expectations,
            warnings=tuple(self._warnings),
        )

    def _build_outcome(self) -> Json:
        """The outcome. Loops were requested by steps, or run by an autoscaler with its own timer."""
        loops = [*self._loops, *self._world.loop_log.list_entries()]
        return self._world.run_now(read_outcome(self._world, loops))

    # ---- time

    def _run_loop(self, step: LoopStep) -> None:
        world = self._world
        for _ in range(step.times):
            now = world.run.clock.now()
            entry: Json = {"time": format_time(now)}
            if world.loop is None:
                self._warnings[NO_AUTOSCALER] = None
            else:
                world.run_now(_end(world.spawn_inside(_print_loop(world.loop, entry), name="loop")))
            self._loops.append(entry)
            world.run.settle()
            world.run.advance_by(step.every_s)

    def _advance_to(self, moment: float | datetime, *, path: str) -> None:
        world = self._world
        start = world.scenario.start
        when = moment if isinstance(moment, datetime) else start + timedelta(seconds=moment)
        if when < world.run.clock.now():
            raise InvalidInput(
                f"{format_time(when)} is in the past: it is {format_time(world.run.clock.now())}", path=f"{path}.at"
            )
        world.run.advance_to(when)

    # ---- objects

    async def _apply(self, manifests: tuple[Json, ...], *, path: str) -> None:
        problems = Problems()
        for index, manifest in enumerate(manifests):
            with problems.collect_errors():
                place = f"{path}.apply[{index}]" if len(manifests) > 1 else f"{path}.apply"
                await self._world.seeder.put(manifest, path=place)
        problems.raise_if_any()

    async def _delete(self, step: DeleteStep, *, path: str) -> None:
        resource = self._find_resource(step, path=path)
        namespace = step.namespace if resource.namespaced else ""
        try:
            await self._world.client.delete(resource, step.name, namespace=namespace)
        except NotFound as error:
            raise InvalidInput(f"there is no {step.kind} {step.name} to delete", path=f"{path}.delete") from error
        except ApiError as error:
            raise InvalidInput(str(error), path=f"{path}.delete") from error
        except InvalidInput as error:
            raise error.with_parent(f"{path}.delete") from error

    def _find_resource(self, step: DeleteStep, *, path: str) -> Resource:
        served = self._world.find_resource(step.kind, api_version=step.api_version)
        if served is None:
            raise InvalidInput(f"{step.kind} is not served here", path=f"{path}.delete.kind")
        return build_plain_resource(served)

    # ---- controllers

    def _schedule(self) -> None:
        """Schedule all pending pods once. If the scheduler crashes meanwhile, the next step continues."""
        world = self._world
        assert world.cluster is not None
        scheduling = world.spawn_inside(_schedule_once(world.cluster), name="schedule once")
        world.run.settle()
        if not scheduling.done():
            scheduling.cancel()

    def _crash(self, step: CrashStep, *, path: str) -> None:
        if step.component not in COMPONENTS:
            known = ", ".join(COMPONENTS)
            raise InvalidInput(f"there is no {step.component}; known are {known}", path=f"{path}.crash.component")
        self._world.crash(step.component, after_calls=step.after_calls, path=path)

    def _reconcile(self, step: ReconcileStep, *, path: str) -> None:
        reconcile = self._plugs.reconcilers.get(step.kind)
        if reconcile is None:
            raise InvalidInput(f"nothing reconciles {step.kind} in this build", path=f"{path}.reconcile.kind")
        for _ in range(step.times):
            self._world.run_now(_await(reconcile(step.namespace, step.name)))
            self._world.run.settle()

    # ---- expectations

    def _expect(self, step: ExpectStep, *, path: str) -> None:
        outcome = self._build_outcome()
        now = self._world.run.clock.now()
        self._expectations += len(step.expectations)
        for expectation in step.expectations:
            missed = find_unmet(expectation, outcome)
            if missed is not None:
                self._failed.append(FailedExpectation(step=path, time=now, unmet=missed))


async def _print_loop(loop: Loop, entry: Json) -> None:
    entry |= await loop.run_loop()


async def _end(task: asyncio.Task[None]) -> None:
    await asyncio.wait((task,))


async def _schedule_once(cluster: LocalCluster) -> None:
    await cluster.scheduler.schedule_once()


async def _await(awaitable: Any) -> None:
    await awaitable
