"""Runs a scenario with a fleet: its steps one after the other. Steps about objects name a cluster."""

from __future__ import annotations

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.errors import ApiError, NotFound
from plimsoll.simulation.document import Problems
from plimsoll.simulation.expectations import find_unmet
from plimsoll.simulation.fleet_worlds.outcome import read_fleet_outcome
from plimsoll.simulation.fleet_worlds.world import FleetWorld
from plimsoll.simulation.results import FailedExpectation, ScenarioResult
from plimsoll.simulation.scenario import AdvanceStep, ApplyStep, AtStep, DeleteStep, ExpectStep, OcmStep, RequestStep
from plimsoll.simulation.times import format_time
from plimsoll.simulation.worlds.seeding import SCENARIO, Seeder, build_plain_resource

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.app.fleet.embedded_clusters import RunningCluster
    from plimsoll.simulation.scenario import FleetEntry, Scenario, Step

Json = dict[str, Any]
_PLACEHOLDER: Final = re.compile(r"\{([^{}/]+)\}")


def run_fleet_scenario(
    scenario: Scenario, fleet: FleetEntry, *, on_step: Callable[[str], None] = lambda _: None
) -> ScenarioResult:
    """Raises `InvalidInput` with the path of what cannot be done."""
    on_step("building the fleet")
    with FleetWorld(scenario, fleet) as world:
        running = FleetRun(world)
        for number, step in enumerate(scenario.steps):
            on_step(f"steps[{number}] {type(step).__name__.removesuffix('Step').lower()}")
            running.take_step(step, path=f"steps[{number}]")
        on_step("reading the outcome")
        return running.finish()


class FleetRun:
    """A run in progress."""

    def __init__(self, world: FleetWorld) -> None:
        self._world = world
        self._requests: list[Json] = []
        self._failed: list[FailedExpectation] = []
        self._expectations = 0

    def take_step(self, step: Step, *, path: str) -> None:
        world = self._world
        if not isinstance(step, OcmStep):  # What is prepared at the OCM is so for the first pass of the workers.
            world.start()
        match step:
            case AdvanceStep(seconds=seconds):
                world.run.advance_by(seconds)
            case AtStep(moment=moment):
                self._advance_to(moment, path=path)
            case RequestStep():
                world.run_now(self._request(step, path=path))
            case OcmStep():
                world.fleet.ocm.clusters.fail_creations(step.fail_creations, step.message)
            case ApplyStep():
                world.run_now(self._apply(step, path=path))
            case DeleteStep():
                world.run_now(self._delete(step, path=path))
            case ExpectStep():
                self._expect(step, path=path)
            case _:
                raise AssertionError(f"the reader lets no {type(step).__name__} through")
        world.run.settle()

    def finish(self) -> ScenarioResult:
        self._world.start()
        return ScenarioResult(outcome=self._read_outcome(), failed=tuple(self._failed), expectations=self._expectations)

    def _read_outcome(self) -> Json:
        return self._world.run_now(read_fleet_outcome(self._world, self._requests))

    def _advance_to(self, moment: float | datetime, *, path: str) -> None:
        run = self._world.run
        when = moment if isinstance(moment, datetime) else self._world.scenario.start + timedelta(seconds=moment)
        if when < run.clock.now():
            problem = f"{format_time(when)} is in the past: it is {format_time(run.clock.now())}"
            raise InvalidInput(problem, path=f"{path}.at")
        run.advance_to(when)

    async def _request(self, step: RequestStep, *, path: str) -> None:
        _, kafkas = await self._world.database.transfer.export_rows()
        ids = {kafka.name: kafka.id for kafka in kafkas}
        unknown = [name for name in _PLACEHOLDER.findall(step.path) if name not in ids]
        if unknown:
            raise InvalidInput(f"there is no Kafka {unknown[0]}", path=f"{path}.request.path")
        named = _PLACEHOLDER.sub(lambda found: ids[found[1]], step.path)
        status, document = await self._world.ask(step, named)
        entry = {"time": format_time(self._world.run.clock.now()), "method": step.method, "path": step.path}
        self._requests.append({**entry, "status": status, "answer": document})

    # ---- objects of a cluster

    def _find(self, name: str, *, path: str) -> RunningCluster:
        running = self._world.find_running(name)
        if running is None:
            known = ", ".join(self._world.list_provided()) or "none yet"
            raise InvalidInput(f"there is no cluster {name}; there are: {known}", path=f"{path}.cluster")
        return running

    async def _apply(self, step: ApplyStep, *, path: str) -> None:
        running = self._find(step.cluster, path=path)
        server = running.server.application.server
        entropy = running.host.dependencies.entropy
        seeder = Seeder(server, running.cluster.connect(SCENARIO), entropy=entropy)
        problems = Problems()
        for index, manifest in enumerate(step.manifests):
            with problems.collect_errors():
                await seeder.put(
                    manifest, path=f"{path}.apply[{index}]" if len(step.manifests) > 1 else f"{path}.apply"
                )
        problems.raise_if_any()

    async def _delete(self, step: DeleteStep, *, path: str) -> None:
        running = self._find(step.cluster, path=path)
        registry = running.server.application.server.registry
        resource = next(
            (
                served
                for served in registry
                if served.kind == step.kind and step.api_version in {"", served.api_version}
            ),
            None,
        )
        if resource is None:
            raise InvalidInput(f"{step.kind} is not served here", path=f"{path}.delete.kind")
        namespace = step.namespace if resource.namespaced else ""
        try:
            client = running.cluster.connect(SCENARIO)
            await client.delete(build_plain_resource(resource), step.name, namespace=namespace)
        except NotFound as error:
            raise InvalidInput(f"there is no {step.kind} {step.name} to delete", path=f"{path}.delete") from error
        except ApiError as error:
            raise InvalidInput(str(error), path=f"{path}.delete") from error

    # ---- expectations

    def _expect(self, step: ExpectStep, *, path: str) -> None:
        outcome = self._read_outcome()
        if step.cluster:
            self._find(step.cluster, path=path)
            outcome = outcome["clusters"][step.cluster]
        self._expectations += len(step.expectations)
        now = self._world.run.clock.now()
        for expectation in step.expectations:
            missed = find_unmet(expectation, outcome)
            if missed is not None:
                self._failed.append(FailedExpectation(step=path, time=now, unmet=missed))
