"""The cloud is killed after every single write it makes, and a new one goes on: nothing is lost, nothing doubled."""

from __future__ import annotations

import asyncio
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from plimsoll.kube.client import Client
from plimsoll.kube.errors import TimedOut
from plimsoll.local.apiserver.application import Application
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.local.cloud.controller import CloudSettings
from plimsoll.objects.api.apiextensions import CustomResourceDefinition
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.simulated_cloud import THE_CLOUD, Cloud, Machine, NodeGroup
from plimsoll.runtime.entropy import SeededEntropy
from tests.effort import choose_calls
from tests.faults import LoseAnswers, sweep_crashes, sweep_faults
from tests.kube.embedded_api import UNLIMITED
from tests.local.apiserver.builders import ADMIN, new_server
from tests.local.cloud.builders import KNOWN, cloud_body, cloud_definitions, group_body, running_cloud

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.runtime.clocks import VirtualClock

STOCK = [{"name": "s", "machineType": "small", "machines": 2}]
DELETED_AT_S = 100.0


class WriteFaultsOnly:
    """Lets reads pass by: only what changes the world is a crash point."""

    def __init__(self, transport: EmbeddedTransport, faulty: Any) -> None:
        self._transport, self._faulty = transport, faulty

    async def send(self, call: Any) -> Any:
        return await (self._transport if call.method == "GET" else self._faulty).send(call)

    async def aclose(self) -> None:
        """Nothing is held."""


class CrashingCloudCluster:
    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.began_s = clock.monotonic_s()
        self.application = Application(new_server(clock))
        self.client = self.client_through(lambda port: port)

    def client_through(self, through: Callable[[Any], Any]) -> Client:
        transport = EmbeddedTransport(self.application, token=ADMIN)
        reads = WriteFaultsOnly(transport, through(EmbeddedTransport(self.application, token=ADMIN)))
        return Client(reads, clock=self.clock, entropy=SeededEntropy("crash"), settings=UNLIMITED, kinds=KNOWN)


async def build_world(clock: VirtualClock) -> CrashingCloudCluster:
    world = CrashingCloudCluster(clock)
    for body in cloud_definitions():
        await world.client.create(CustomResourceDefinition, body)
    await clock.sleep(0.1)
    await world.client.create(Cloud, cloud_body(stock=STOCK))
    await world.client.create(NodeGroup, group_body("g", bootSeconds=5))
    return world


def build_instance(world: CrashingCloudCluster, through: Callable[[Any], Any]) -> tuple[CrashingCloudCluster, Client]:
    return world, world.client_through(through)


async def run(instance: tuple[CrashingCloudCluster, Client]) -> None:
    """Three machines are wanted and two are to be had; then one is given back, and the third comes."""
    world, client = instance
    _, running = running_cloud(client, clock=world.clock, settings=CloudSettings(nodes_come_ready=True))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_run(running))
        cloud = SimulatedCloud(client, clock=world.clock)
        known = await cloud.get_node_group("g")
        if known.status.next_number == 0 and known.spec.target == 0:
            await cloud.increase_size("g", 3)
        await world.clock.sleep(max(0.0, world.began_s + DELETED_AT_S - world.clock.monotonic_s()))
        if any(machine.metadata.name == "g-0" for machine in await cloud.list_machines("g")):
            await cloud.delete_nodes("g", ["g-0"])
        await world.clock.sleep(100)
        task.cancel()


async def _run(running: Callable[[], Any]) -> None:
    await running()


async def check(world: CrashingCloudCluster) -> None:
    client = world.client
    machines = {machine.metadata.name: machine for machine in (await client.list(Machine)).items}
    assert sorted(machines) == ["g-1", "g-2"]
    assert {machine.status.state for machine in machines.values()} == {"running"}
    assert sorted(node.metadata.name for node in (await client.list(Node)).items) == ["g-1", "g-2"]
    group = await client.get(NodeGroup, "g")
    assert (group.spec.target, group.spec.deletions, group.status.running) == (2, (), 2)
    (spent,) = (await client.get(Cloud, THE_CLOUD)).status.spent
    # g-0 lived from the start until it was deleted, give or take the time a restart takes: once, not twice.
    assert abs(Decimal(spent.machine_seconds) - Decimal(DELETED_AT_S)) < 15


def test_a_crash_after_any_write_loses_and_doubles_nothing():
    points = sweep_crashes(
        build_world=build_world, build_instance=build_instance, run=run, check=check, calls=choose_calls(1000)
    )
    assert points > 15


def test_a_lost_answer_to_any_write_loses_and_doubles_nothing():
    points = sweep_faults(
        lambda n: LoseAnswers(n, error=lambda: TimedOut("no answer")),
        build_world=build_world,
        build_instance=build_instance,
        run=patient_run,
        check=check,
        calls=choose_calls(1000, first=2),
    )
    assert points > 15


async def patient_run(instance: tuple[CrashingCloudCluster, Client]) -> None:
    """The caller looks again when a call to the cloud was not answered; the controller does so by itself."""
    world, client = instance
    calm = world.client_through(lambda port: port)
    _, running = running_cloud(client, clock=world.clock, settings=CloudSettings(nodes_come_ready=True))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(_run(running))
        cloud = SimulatedCloud(calm, clock=world.clock)
        await cloud.increase_size("g", 3)
        await world.clock.sleep(DELETED_AT_S)
        await cloud.delete_nodes("g", ["g-0"])
        await world.clock.sleep(400)
        task.cancel()
