"""Two controllers of one cluster while the lease changes hands: only one of them grows for a request."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from plimsoll.kube.errors import AnswerLost
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.local.components import Components
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.simulation.ports import Plugins
from plimsoll.simulation.runner import ScenarioRun
from plimsoll.simulation.worlds.autoscaler import ScenarioLoop
from plimsoll.simulation.worlds.world import World
from tests.nodes.autoscaler.loop_scenarios import AUTOSCALER, group, scenario_of, steps_of
from tests.nodes.requests.request_scenarios import ON, request, template

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from plimsoll.kube.client import Client
    from plimsoll.kube.transport import Request, Response, Transport
    from plimsoll.runtime.supervisor import Service
    from plimsoll.simulation.ports import Loop, LoopDependencies
    from tests.nodes.autoscaler.loop_scenarios import Json

    Meeting = Callable[[Loop, Loop], Any]


class ControllerLink:
    """The calls of one controller: `hold` keeps those that change node groups until it is let go."""

    def __init__(self) -> None:
        self.free = asyncio.Event()
        self.free.set()
        self.reached = asyncio.Event()
        self.lose: Callable[[Request], bool] = lambda _call: False

    def hold(self) -> None:
        self.free.clear()


class HoldingTransport:
    def __init__(self, transport: Transport, wire: ControllerLink) -> None:
        self._transport = transport
        self._wire = wire

    async def send(self, call: Request) -> Response:
        if not call.is_safe and "/nodegroups" in call.path:
            self._wire.reached.set()
            await self._wire.free.wait()
        reply = await self._transport.send(call)
        if self._wire.lose(call):
            raise AnswerLost("nobody heard the answer")
        return reply

    async def aclose(self) -> None:
        await self._transport.aclose()


class TwoControllers(World):
    """`{loop: …}` has both take a turn, as `meeting` says."""

    def __init__(self, meeting: Meeting, **scenario: Any) -> None:
        self.wires = (ControllerLink(), ControllerLink())
        self._meeting = meeting
        self._plugged = Plugins(make_loop=self._make_loop)
        super().__init__(
            scenario_of((), {**scenario, "options": {**ON, **scenario.get("options", {})}}), plugs=self._plugged
        )
        self._scenario_run = ScenarioRun(self, self._plugged)

    def take(self, *steps: Json) -> Json:
        for step in steps_of(steps, world=self.scenario.world):
            self._scenario_run.take_step(step, path="test")
        return self._scenario_run.finish().outcome

    def _make_loop(self, tools: LoopDependencies) -> Loop:
        return PairedAutoscalers(tuple(self._controller(tools, number) for number in (0, 1)), self._meeting)

    def _controller(self, tools: LoopDependencies, number: int) -> tuple[ScenarioLoop, Components]:
        components = Components(
            lambda name: self._wired(name, number), clock=tools.clock, entropy=SeededEntropy(f"controller {number}")
        )
        cloud = SimulatedCloud(self._wired(AUTOSCALER, number), clock=tools.clock, log=self.log)
        return ScenarioLoop(replace(tools, components=components, cloud=cloud)), components

    def _wired(self, manager: str, number: int) -> Client:
        transport = EmbeddedTransport(self._application, token=self._token)
        return self._build_client(HoldingTransport(transport, self.wires[number]), manager)  # type: ignore[arg-type]


class PairedAutoscalers:
    """Two autoscalers as one."""

    def __init__(self, controllers: tuple[tuple[ScenarioLoop, Components], ...], meeting: Meeting) -> None:
        self._controllers = controllers
        self._meeting = meeting

    def list_services(self) -> Sequence[Service]:
        return [
            replace(service, name=f"{service.name} of controller {number}")
            for number, (_, components) in enumerate(self._controllers)
            for service in components.list_services(whose=f"controller {number}")
        ]

    async def run_loop(self) -> dict[str, Any]:
        first, second = (loop for loop, _ in self._controllers)
        entry: dict[str, Any] = await self._meeting(first, second)
        return entry

    def get_metrics(self) -> dict[str, float]:
        return {}


async def at_the_same_time(first: Loop, second: Loop) -> Any:
    async with asyncio.TaskGroup() as tasks:
        one, _other = tasks.create_task(first.run_loop()), tasks.create_task(second.run_loop())
    return one.result()


SCENE: Json = {
    "nodeGroups": [group("g", template={"labels": {"pool": "g"}})],
    "objects": [template("t", cpu="3500m"), request("r", {"t": 3})],
}


def sizes(outcome: Json) -> int:
    return sum(group["target"] for group in outcome["nodeGroups"].values())


def increases(outcome: Json) -> list[Json]:
    return [call for call in outcome["providerCalls"] if call["call"] == "IncreaseSize" and call["ok"]]


def test_of_two_that_see_the_same_request_one_grows():
    with TwoControllers(at_the_same_time, **SCENE) as world:
        outcome = world.take({"loop": 3})
    assert sizes(outcome) == 3
    assert len(increases(outcome)) == 1
    assert [(change["type"], change["reason"]) for change in outcome["requests"]["default/r"]["history"]] == [
        ("Accepted", "Accepted"),
        ("Provisioned", "WaitingForNodes"),
        ("Provisioned", "CapacityIsProvisioned"),
    ]


def test_of_two_that_would_make_a_group_one_does():
    scene = {**SCENE, "nodeGroups": [], "options": {"node-autoprovisioning": True}}
    with TwoControllers(at_the_same_time, **scene) as world:
        outcome = world.take({"loop": 3})
    assert len(outcome["nodeGroups"]) == 1
    assert len(increases(outcome)) == 1


def test_a_controller_that_stalled_after_its_intent_does_not_repeat_the_scale_up_of_the_next():
    async def stalled(first: Loop, second: Loop) -> Any:
        """The first one is stopped right before its call; the second takes over, and then the first one goes on."""
        wire = world.wires[0]
        wire.hold()
        async with asyncio.TaskGroup() as tasks:
            late = tasks.create_task(first.run_loop())
            await wire.reached.wait()
            entry = await second.run_loop()
            wire.free.set()
            await late
        return entry

    with TwoControllers(stalled, **SCENE) as world:
        outcome = world.take({"loop": 1}, {"loop": 1})
    assert sizes(outcome) == 3
    assert outcome["requests"]["default/r"]["conditions"][-1]["reason"] == "CapacityIsProvisioned"


def test_a_write_whose_answer_is_lost_causes_no_second_scale_up():
    """Each write to the request in turn: it took effect, and its answer was lost."""
    for number in range(1, 20):
        left = [number]

        def lose(call: Request, left: list[int] = left) -> bool:
            if call.is_safe or "/provisioningrequests/" not in call.path:
                return False
            left[0] -= 1
            return left[0] == 0

        with TwoControllers(first_alone, **SCENE) as world:
            world.wires[0].lose = lose
            outcome = world.take({"loop": 4})
        assert sizes(outcome) == 3, f"write {number}"
        assert len(increases(outcome)) == 1, f"write {number}"
        reported = outcome["requests"]["default/r"]["conditions"][-1]
        assert (reported["type"], reported["reason"]) == ("Provisioned", "CapacityIsProvisioned"), f"write {number}"
        if left[0] > 0:
            assert number > 2
            return
    raise AssertionError("is there an end to these writes?")


async def first_alone(first: Loop, _second: Loop) -> Any:
    return await first.run_loop()
