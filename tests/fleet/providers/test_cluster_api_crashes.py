"""A process crashes after, loses the answer of, or is refused at each Kubernetes call of a cluster's life.

One cluster is made, each pool once, everything is deleted at the end, and nothing is deleted before it was asked for.
The sweeps strike every call to the management cluster and to the data plane, reads as well as writes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.fleet.model.provided import CallFailed, DeletionState, ProvidedCluster, ProviderState
from plimsoll.kube.errors import Status, TimedOut, build_error
from tests.effort import choose_calls
from tests.faults import Answer5xx, LoseAnswers, sweep_crashes, sweep_faults
from tests.fleet.providers.capi_worlds import DEFAULT_POOL, NAME, POOL, CapiWorld, make_order, make_row, make_setup

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.providers.cluster_api.provider import ClusterApiProvider

_CALLS = 300
_TICKS = 60


class Process:
    """Calls the provider as workers do, and keeps the row: a failed call is repeated in the next tick."""

    def __init__(self, world: CapiWorld, provider: ClusterApiProvider) -> None:
        self.world, self.provider = world, provider

    @property
    def row(self) -> Cluster:
        return self.world.row

    async def make(self) -> bool:
        if not self.row.cluster_id:
            answer = await self.provider.create_cluster(make_order())
            if isinstance(answer, ProvidedCluster):
                self.world.row = make_row(answer.cluster_id)
            return False
        found = await self.provider.read_cluster(self.row)
        if not isinstance(found, ProvidedCluster) or found.state is not ProviderState.READY:
            return False
        order = make_setup()
        if isinstance(await self.provider.ensure_pools(self.row, order.pools), CallFailed):
            return False
        setup = await self.provider.read_setup(self.row, order)
        if isinstance(setup, CallFailed):
            return False
        if not setup.has_resources:
            await self.provider.ensure_resources(self.row, order)
        if len(setup.addons) < len(order.addons):
            await self.provider.ensure_addons(self.row, order.addons)
        return setup.has_resources and [addon.is_ready for addon in setup.addons] == [True, True]

    async def remove(self) -> bool:
        return await self.provider.delete_cluster(self.row) is DeletionState.GONE


def start(world: CapiWorld, through: Callable[[Any], Any]) -> Process:
    return Process(world, world.build_provider(through))


async def live(process: Process) -> None:
    """From nothing to a cluster with pools and add-ons, and to nothing again."""
    world = process.world
    for step, check in ((process.make, check_made), (process.remove, check_removed)):
        for _ in range(_TICKS):
            is_done = await step()
            await world.advance(30)
            if is_done:
                break
        else:
            raise AssertionError(f"{step.__name__} did not end")
        await check(world)
        if step == process.make:
            world.is_made = True


async def check_made(world: CapiWorld) -> None:
    if world.is_made:
        return  # Another process came as far, and may have begun the deletion.
    assert len(world.uids) == len(world.data_planes.made) == 1
    [body] = await world.list_clusters()
    assert body["metadata"]["uid"] == world.row.cluster_id
    names = [item["name"] for item in body["spec"]["topology"]["workers"]["machineDeployments"]]
    assert sorted(names) == ["default", *(f"kafka-standard-{zone}" for zone in "abc")]
    sizes = {name: found["spec"]["replicas"] for name, found in (await world.list_deployments()).items()}
    assert sum(sizes.values()) == DEFAULT_POOL.min_replicas + POOL.min_replicas


async def check_removed(world: CapiWorld) -> None:
    assert (await world.list_clusters(), await world.list_deployments(), world.data_planes.applications) == ([], {}, {})
    assert not await world.has_kubeconfig(), NAME


async def check(world: CapiWorld) -> None:
    assert len(world.uids) == len(world.data_planes.made) == 1, "one cluster, whatever happened"
    await check_removed(world)


async def finish(process: Process) -> None:
    """The next process goes on where the row says: it deletes a cluster that was made already."""
    if process.world.is_made:
        for _ in range(_TICKS):
            if await process.remove():
                return
            await process.world.advance(30)
        raise AssertionError("the deletion did not end")
    await live(process)


def test_f13_f25_a_crash_after_any_kubernetes_call_makes_one_cluster_and_leaves_none():
    swept = sweep_crashes(
        build_world=CapiWorld.build, build_instance=start, run=finish, check=check, calls=choose_calls(_CALLS)
    )
    assert swept > 40


def test_f13_f25_a_lost_answer_to_any_kubernetes_call_makes_one_cluster_and_leaves_none():
    swept = sweep_faults(
        lambda number: LoseAnswers(number, error=lambda: TimedOut("lost")),
        build_world=CapiWorld.build,
        build_instance=start,
        run=finish,
        check=check,
        calls=choose_calls(_CALLS, 2),
    )
    assert swept > 40


def test_f13_f25_a_refusal_of_any_kubernetes_call_makes_one_cluster_and_leaves_none():
    swept = sweep_faults(
        lambda number: Answer5xx(number, error=lambda status: build_error(Status(code=status, message="later"))),
        build_world=CapiWorld.build,
        build_instance=start,
        run=finish,
        check=check,
        calls=choose_calls(_CALLS, 3),
    )
    assert swept > 40
