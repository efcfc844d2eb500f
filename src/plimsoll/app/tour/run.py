"""Runs the tour: in virtual time, or in a loop whose time is faster than the machine's, with the console beside it."""

from __future__ import annotations

import asyncio
import tempfile
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from plimsoll.app.console import Console, ConsoleDependencies, format_address
from plimsoll.app.tour.accelerated_loop import AcceleratedLoop
from plimsoll.app.tour.story import Tour
from plimsoll.app.tour.world import FLEET, MAIN, TourDependencies, TourWorld
from plimsoll.console.costs.cloud_prices import CloudPrices
from plimsoll.console.views.decision_sources import CombinedDecisions, JournalDecisions
from plimsoll.console.views.fleet import FleetView
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.nodes.plan_runner import run_inline
from plimsoll.runtime.entropy import SeededEntropy, SystemEntropy
from plimsoll.runtime.supervisor import Service, Supervisor
from plimsoll.runtime.virtual_run import VirtualRun
from plimsoll.web.serving import bind_socket, serve_on_socket

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from plimsoll.app.tour.story import Audience, StepResult
    from plimsoll.core.entropy import Entropy

_HOST: Final = "127.0.0.1"


@dataclass(frozen=True, slots=True, kw_only=True)
class TourSettings:
    """`speed`: of the live tour. The two switches break the story, so that the tour has to notice."""

    speed: float = 10.0
    seed: int = 1
    console_port: int = 0
    has_kafka_operator: bool = True
    sells_again: bool = True


def run_fast(settings: TourSettings, audience: Audience) -> tuple[StepResult, ...]:
    """In virtual time: seconds of work instead of minutes of waiting."""
    with tempfile.TemporaryDirectory(prefix="plimsoll-tour-") as folder, VirtualRun() as run:
        entropy = SeededEntropy(settings.seed)
        world = TourWorld(
            TourDependencies(
                clock=run.clock,
                entropy=entropy,
                run_planner=run_inline,
                folder=Path(folder),
                has_kafka_operator=settings.has_kafka_operator,
            )
        )
        return run.run_until(_run(world, settings, audience, entropy, []))


async def run_live(
    settings: TourSettings, audience: Audience, *, on_console: Callable[[str], None]
) -> tuple[StepResult, ...]:
    """Inside an `AcceleratedLoop`. `on_console` gets the address of the console."""
    loop, entropy = asyncio.get_running_loop(), SystemEntropy()
    assert isinstance(loop, AcceleratedLoop), "threads and other loops have another time"
    clock = loop.clock
    with tempfile.TemporaryDirectory(prefix="plimsoll-tour-") as folder:
        world = TourWorld(
            TourDependencies(
                clock=clock,
                entropy=entropy,
                run_planner=run_inline,
                folder=Path(folder),
                has_kafka_operator=settings.has_kafka_operator,
            )
        )
        services = _build_console(world, entropy, settings.console_port, on_console)
        return await _run(world, settings, audience, entropy, services)


async def _run(
    world: TourWorld, settings: TourSettings, audience: Audience, entropy: Entropy, beside: Sequence[Service]
) -> tuple[StepResult, ...]:
    async with _run_world(world, entropy, beside):
        return await Tour(world, audience, sells_again=settings.sells_again).run()


@asynccontextmanager
async def _run_world(world: TourWorld, entropy: Entropy, beside: Sequence[Service]) -> AsyncIterator[None]:
    await world.prepare()
    supervisor = Supervisor([*world.list_services(), *beside], clock=world.clock, entropy=entropy)
    running = asyncio.create_task(supervisor.run(), name="tour")
    try:
        yield
    finally:
        running.cancel()
        await asyncio.wait((running,))
        await world.aclose()


def _build_console(world: TourWorld, entropy: Entropy, port: int, on_console: Callable[[str], None]) -> list[Service]:
    """The console of the main cluster, with the decisions of the fleet."""
    listening = bind_socket(_HOST, port)
    journals = (world.journals[MAIN], world.journals[FLEET])
    console = Console(
        ConsoleDependencies(
            client=world.connect(MAIN),
            informers=world.main.local.components.informers,
            decisions=CombinedDecisions([JournalDecisions(journal) for journal in journals]),
            clock=world.clock,
            entropy=entropy,
            running=("nodes", "requests", "tidb", "fleet"),
            fleet=FleetView(world.database.transfer, world.database.journal),
            prices=CloudPrices(SimulatedCloud(world.connect(MAIN), clock=world.clock)),
            run_planner=run_inline,
        )
    )
    bound: int = listening.getsockname()[1]
    on_console(format_address(bound, console.sessions.issue_code()))
    application = console.build_application(port=bound)
    return [
        *console.list_services(),
        Service(name="console", run=partial(serve_on_socket, application, listening)),
    ]
