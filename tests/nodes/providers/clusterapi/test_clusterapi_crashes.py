"""The autoscaler dies after every write, or loses its answer: the right node goes, once; one group is made, once."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.kube.client import Client
from plimsoll.kube.errors import NotFound, TimedOut
from plimsoll.local.apiserver.application import Application
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.cluster_api.definitions import KINDS, build_definition
from plimsoll.local.cluster_api.machines import BOOT_S, DEPLOYMENTS, MachineControllers
from plimsoll.nodes.model.call_outcomes import CallFailed, FailureKind
from plimsoll.nodes.providers.clusterapi.provider import ClusterApiProvider
from plimsoll.nodes.providers.values import NodeRef
from plimsoll.objects.api.apiextensions import CustomResourceDefinition
from plimsoll.objects.api.core import Namespace
from plimsoll.objects.api.nodes import Node
from plimsoll.runtime.entropy import SeededEntropy
from tests.faults import LoseAnswers, sweep_crashes, sweep_faults
from tests.kube.embedded_api import UNLIMITED
from tests.local.apiserver.builders import ADMIN, new_server
from tests.local.cloud.test_controller_crashes import WriteFaultsOnly
from tests.nodes.providers.clusterapi.capi_objects import HERE, LARGE_ENOUGH, scalable
from tests.nodes.providers.clusterapi.test_clusterapi_new_groups import TEMPLATE, blueprint

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.objects.api.cluster_api import MachineDeployment
    from plimsoll.runtime.clocks import VirtualClock

_TRIES = 4
_VICTIM = "node-md-s-002"


class CrashingCapiCluster:
    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.application = Application(new_server(clock))
        self.client = self.client_through(lambda port: port)
        self.capi = MachineControllers(self.client, clock=clock)

    def client_through(self, through: Callable[[Any], Any]) -> Client:
        transport = EmbeddedTransport(self.application, token=ADMIN)
        reads = WriteFaultsOnly(transport, through(EmbeddedTransport(self.application, token=ADMIN)))
        return Client(reads, clock=self.clock, entropy=SeededEntropy("crash"), settings=UNLIMITED)


async def build_world(clock: VirtualClock) -> CrashingCapiCluster:
    """Three nodes are up, and there is a machine type."""
    world = CrashingCapiCluster(clock)
    await world.client.create(Namespace, {"metadata": {"name": HERE}})
    for kind in KINDS:
        await world.client.create(CustomResourceDefinition, build_definition(kind))
    await clock.sleep(0.1)
    await world.client.create(DEPLOYMENTS, scalable(name="md", replicas=3))
    await world.client.create(DEPLOYMENTS, scalable(name="large", annotations={TEMPLATE: "true", **LARGE_ENOUGH}))
    for _ in range(3):
        await world.capi.step()
        await clock.sleep(BOOT_S)
    return world


def instance(
    world: CrashingCapiCluster, through: Callable[[Any], Any]
) -> tuple[CrashingCapiCluster, ClusterApiProvider]:
    client = world.client_through(through)
    return world, ClusterApiProvider(client, client)


async def turn(running: tuple[CrashingCapiCluster, ClusterApiProvider]) -> None:
    """What a plan says: one node away, a new group with two nodes. Repeated until all of it is done."""
    world, provider = running
    await provider.refresh()
    victim = NodeRef(provider_id="test:///zone/md-s-002", name=_VICTIM)
    groups = {group.id: group for group in await provider.node_groups()}
    await _done(lambda: groups[f"MachineDeployment/{HERE}/md"].delete_nodes([victim]), provider)
    wanted: Any = await provider.new_node_group(blueprint(taints=()))
    await _done(wanted.create, provider)
    groups = {group.id: group for group in await provider.node_groups()}
    await _done(lambda: groups[f"MachineDeployment/{HERE}/nap-large-1"].increase_size(2, expected=0), provider)
    await world.capi.step()


async def _done(act: Callable[[], Awaitable[Any]], provider: ClusterApiProvider) -> None:
    for _ in range(_TRIES):
        outcome = await act()
        if not isinstance(outcome, CallFailed):
            return
        assert outcome.kind is FailureKind.UNKNOWN, outcome
        await provider.refresh()
    raise AssertionError("tried too often")


async def check(world: CrashingCapiCluster) -> None:
    await world.capi.step()
    names = sorted(node.metadata.name for node in (await world.client.list(Node)).items)
    assert names == ["node-md-s-001", "node-md-s-003"]
    sizes = {name: await replicas_of(world.client, name, namespace=HERE) for name in ("md", "nap-large-1", "large")}
    assert sizes == {"md": 2, "nap-large-1": 2, "large": 0}


def test_a_crash_after_any_write_removes_the_right_node_once_and_makes_one_group():
    assert sweep_crashes(build_world=build_world, build_instance=instance, run=turn, check=check) >= 4


def test_a_lost_answer_to_any_write_removes_the_right_node_once_and_makes_one_group():
    lost = sweep_faults(
        lambda number: LoseAnswers(number, error=lambda: TimedOut("lost")),
        build_world=build_world,
        build_instance=instance,
        run=turn,
        check=check,
    )
    assert lost >= 4


async def replicas_of(client: Client, name: str, *, namespace: str) -> int | None:
    try:
        found: MachineDeployment = await client.get(DEPLOYMENTS, name, namespace=namespace)
    except NotFound:
        return None
    return found.spec.replicas
