"""The autoscaler dies after every write of a removal, or loses the answer to it; the next one knows only the world.

No node is lost that was not to go, none is marked for ever, none is deleted twice.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from plimsoll.kube.errors import TimedOut
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.local.cloud.faults.call_log import CallLog
from plimsoll.nodes.actuation.cleanup import TaintCleaner
from plimsoll.nodes.actuation.deletion_controller import ActuationDependencies, NodeDeletionController
from plimsoll.nodes.actuation.deletion_guard import DeletionGuard
from plimsoll.nodes.actuation.instance_deleter import InstanceDeleter
from plimsoll.nodes.actuation.node_pods import ListedPods
from plimsoll.nodes.actuation.node_writer import NodeWriter
from plimsoll.nodes.actuation.timing import Pacing
from plimsoll.nodes.config.policy import Policy
from plimsoll.nodes.planning.scaledown.drainability import DrainRules
from plimsoll.nodes.providers.simulated.provider import SimulatedProvider
from plimsoll.objects.api.apiextensions import CustomResourceDefinition
from plimsoll.objects.api.core import Namespace
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.rbac import ServiceAccount
from plimsoll.objects.api.simulated_cloud import Cloud, NodeGroup
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.supervisor import Supervisor
from tests.faults import CrashAfter, LoseAnswers, sweep_crashes, sweep_faults
from tests.local.cloud.builders import cloud_body, cloud_definitions, group_body
from tests.local.cloud.test_controller_crashes import CrashingCloudCluster
from tests.narrowing import instance_of
from tests.nodes.actuation.builders import NAMESPACE, cluster_services, pod_body, removal

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.runtime.clocks import VirtualClock

POLICY = Policy()
GOING = {"g-0": removal("g-0"), "g-1": removal("g-1", is_empty=True)}


class CrashingDeletionCluster(CrashingCloudCluster):
    """Three nodes, of which the first has a pod; everything but the autoscaler runs."""

    def __init__(self, clock: VirtualClock) -> None:
        super().__init__(clock)
        self.log = CallLog()

    async def begin(self) -> None:
        for body in cloud_definitions():
            await self.client.create(CustomResourceDefinition, body)
        await self.client.create(Namespace, {"metadata": {"name": NAMESPACE}})
        await self.client.create(ServiceAccount, {"metadata": {"name": "default"}}, namespace=NAMESPACE)
        await self.clock.sleep(0.1)
        await self.client.create(Cloud, cloud_body())
        await self.client.create(NodeGroup, group_body("g", target=3))
        services = cluster_services(lambda: self.client, clock=self.clock, stop_s=3.0)
        supervisor = Supervisor(services, clock=self.clock, entropy=SeededEntropy("cluster"))
        self.running = asyncio.create_task(supervisor.run())
        await self.clock.sleep(1)
        await self.client.create(Pod, pod_body("web-0", node="g-0"), namespace=NAMESPACE)
        await self.clock.sleep(1)

    async def nodes(self) -> dict[str, Node]:
        return {node.metadata.name: node for node in (await self.client.list(Node)).items}


class DeletionProcess:
    """A remover and a cleaner, built from the world alone."""

    def __init__(self, world: CrashingDeletionCluster, through: Callable[[Any], Any], *, removes: bool = True) -> None:
        self.world = world
        self.removes = removes
        clock, client = world.clock, world.client_through(through)
        self.provider = SimulatedProvider(SimulatedCloud(client, clock=clock, log=world.log))
        pacing = Pacing.from_policy(POLICY)
        tools = ActuationDependencies(
            client=client,
            provider=self.provider,
            deleter=InstanceDeleter(DeletionGuard(client, ListedPods(client), clock=clock)),
            pods=ListedPods(client),
            rules=lambda: DrainRules(options=POLICY.scale_down, now=clock.now()),
            clock=clock,
        )
        self.remover = NodeDeletionController(tools, pacing)
        self.cleaner = TaintCleaner(NodeWriter(client, clock=clock, pacing=pacing), self.provider, clock=clock)

    async def turn(self) -> None:
        await self.provider.refresh()
        nodes = await self.world.nodes()
        self.remover.forget_deleted(nodes, {})
        leaving = self.remover.in_progress.nodes
        await self.cleaner.remove_deletion_taints(nodes.values(), POLICY.scale_down, leaving=leaving)
        if self.removes:
            nodes = await self.world.nodes()
            wanted = [node_removal for name, node_removal in GOING.items() if name in nodes and name not in leaving]
            self.remover.start(wanted, nodes, self.world.clock.now())

    async def run(self) -> None:
        """Turns for a while."""
        async with asyncio.TaskGroup() as group:
            running = group.create_task(self.remover.run())
            for _ in range(8):
                await self.turn()
                await self.world.clock.sleep(60)
            running.cancel()


async def build_world(clock: VirtualClock) -> CrashingDeletionCluster:
    world = CrashingDeletionCluster(clock)
    await world.begin()
    return world


async def check_removed(world: CrashingDeletionCluster) -> None:
    nodes = await world.nodes()
    group = await world.client.get(NodeGroup, "g")
    assert sorted(nodes) == ["g-2"]
    assert group.spec.target == 1
    assert nodes["g-2"].spec.taints == ()
    await check_once(world)


async def check_kept_or_removed(world: CrashingDeletionCluster) -> None:
    """What was not handed over before the crash is in use again; what was is gone."""
    nodes = await world.nodes()
    group = await world.client.get(NodeGroup, "g")
    assert "g-2" in nodes
    assert group.spec.target == len(nodes)
    assert {(node.spec.taints, node.spec.unschedulable) for node in nodes.values()} == {((), False)}
    await check_once(world)


async def check_once(world: CrashingDeletionCluster) -> None:
    handed = [
        name
        for call_record in world.log
        if call_record.call == "DeleteNodes" and call_record.ok
        for name in instance_of(tuple, call_record.arg or ())
    ]
    assert len(handed) == len(set(handed))
    assert "g-2" not in handed
    world.running.cancel()


def only_cleans_after_a_crash(world: CrashingDeletionCluster, through: Callable[[Any], Any]) -> DeletionProcess:
    is_first = isinstance(getattr(through, "__self__", None), CrashAfter)
    return DeletionProcess(world, through, removes=is_first)


def test_a_crash_after_any_write_neither_loses_nor_doubles_a_removal():
    points = sweep_crashes(
        build_world=build_world, build_instance=DeletionProcess, run=DeletionProcess.run, check=check_removed
    )
    assert points >= 5


def test_after_a_crash_nodes_that_are_needed_again_come_back_to_use():
    points = sweep_crashes(
        build_world=build_world,
        build_instance=only_cleans_after_a_crash,
        run=DeletionProcess.run,
        check=check_kept_or_removed,
    )
    assert points >= 5


def test_a_lost_answer_to_any_write_neither_loses_nor_doubles_a_removal():
    points = sweep_faults(
        lambda number: LoseAnswers(number, error=lambda: TimedOut("lost")),
        build_world=build_world,
        build_instance=DeletionProcess,
        run=DeletionProcess.run,
        check=check_removed,
    )
    assert points >= 5
