"""Clusters known by a context of a kubeconfig: applied to, never made, never deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.model.provided import Absent, CallFailed, DeletionState, FailureKind, ProvidedCluster, ProviderState
from plimsoll.fleet.model.statuses import ProviderType
from plimsoll.fleet.providers.standalone.contexts import KubeconfigContexts
from plimsoll.fleet.providers.standalone.provider import StandaloneProvider
from plimsoll.kube.access import Access
from plimsoll.kube.configuration.credentials import ANONYMOUS
from plimsoll.kube.errors import Status, TimedOut, build_error
from plimsoll.local.apiserver.application import Application
from plimsoll.objects.api.core import Namespace, Secret
from plimsoll.objects.api.workloads import Deployment
from plimsoll.runtime.clocks import RealClock
from plimsoll.testing import run_virtual
from tests.faults import Answer5xx, LoseAnswers, sweep_crashes, sweep_faults
from tests.fleet.providers.capi_worlds import (
    ADDONS,
    POOL,
    MemoryClients,
    MemoryDataPlanes,
    build_kubeconfig,
    make_order,
    make_row,
    make_setup,
    untouched,
)
from tests.local.apiserver.builders import new_server

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.runtime.clocks import VirtualClock

CONTEXT = "edge"


class FixedContexts:
    """One context."""

    def find(self, context: str) -> Access:
        if context != CONTEXT:
            raise InvalidInput(f'there is no context "{context}"', path="--context")
        return Access(server=f"https://{CONTEXT}.example", credentials=ANONYMOUS)


class StandaloneWorld:
    """A cluster that its owner made."""

    def __init__(self, clock: VirtualClock) -> None:
        self.clock = clock
        self.data_planes = MemoryDataPlanes(clock)
        self.data_planes.applications[CONTEXT] = Application(new_server(clock))
        self.client = self.data_planes.open(CONTEXT)

    @classmethod
    async def build(cls, clock: VirtualClock) -> StandaloneWorld:
        world = cls(clock)
        for name in ("default", "kube-system"):
            await world.client.apply(Namespace, name, {"metadata": {"name": name}}, force=True)
        return world

    def build_provider(self, through: Callable[[Any], Any] = untouched) -> StandaloneProvider:
        return StandaloneProvider(FixedContexts(), MemoryClients(self.data_planes, through), ADDONS)


def make_standalone_row(context: str = CONTEXT) -> Cluster:
    return make_row(
        "edge-1",
        provider_type=ProviderType.STANDALONE,
        provider_spec={"name": context},
        cluster_dns="apps.edge.example.com",
    )


def test_it_is_ready_from_the_start_and_gone_at_once_and_stays_in_the_world():
    async def story(clock: VirtualClock) -> None:
        world = await StandaloneWorld.build(clock)
        provider, row = world.build_provider(), make_standalone_row()
        found = await provider.read_cluster(row)
        assert isinstance(found, ProvidedCluster)
        assert (found.cluster_id, found.state) == ("edge-1", ProviderState.READY)
        assert (await provider.list_clusters(), await provider.find_cluster("mk-1", region="r")) == ((), Absent())
        refused = await provider.create_cluster(make_order())
        assert isinstance(refused, CallFailed)
        assert (refused.kind, "register one that exists" in refused.problem) == (FailureKind.REFUSED, True)
        await live((world, provider))
        assert await provider.delete_cluster(row) is DeletionState.GONE
        assert len((await world.client.list(Deployment)).items) == 3

    run_virtual(story)


def test_pools_are_the_owners_and_keep_the_most_nodes_of_the_row():
    async def story(clock: VirtualClock) -> None:
        world = await StandaloneWorld.build(clock)
        held = await world.build_provider().ensure_pools(make_standalone_row(), (POOL,))
        assert not isinstance(held, CallFailed)
        assert [(pool.id, pool.min_replicas, pool.max_replicas) for pool in held] == [("kafka-standard", 18, 18)]

    run_virtual(story)


@pytest.mark.parametrize(("context", "stated"), [("away", 'no context "away"'), ("", "it has no context")])
def test_a_context_that_is_missing_is_named(context: str, stated: str):
    async def story(clock: VirtualClock) -> None:
        world = await StandaloneWorld.build(clock)
        answer = await world.build_provider().read_setup(make_standalone_row(context), make_setup())
        assert isinstance(answer, CallFailed)
        assert (answer.kind, stated in answer.problem) == (FailureKind.REFUSED, True)

    run_virtual(story)


def test_the_kubeconfig_is_read_for_each_use(tmp_path: Path):
    file = tmp_path / "kubeconfig"
    contexts = KubeconfigContexts(str(file), environment={}, clock=RealClock())
    with pytest.raises(InvalidInput, match="no such file"):
        contexts.find("admin")
    file.write_text(build_kubeconfig("one"))
    assert contexts.find("admin").server == "https://one.example"
    file.write_text(build_kubeconfig("two"))
    assert contexts.find("admin").server == "https://two.example"


# ---- faults


def start(world: StandaloneWorld, through: Callable[[Any], Any]) -> tuple[StandaloneWorld, StandaloneProvider]:
    return world, world.build_provider(through)


async def live(running: tuple[StandaloneWorld, StandaloneProvider]) -> None:
    """Until the cluster has everything; what fails is repeated."""
    world, provider = running
    row, order = make_standalone_row(), make_setup()
    for _ in range(10):
        await provider.ensure_resources(row, order)
        await provider.ensure_addons(row, order.addons)
        await world.data_planes.mark_deployments_available()
        setup = await provider.read_setup(row, order)
        if isinstance(setup, CallFailed):
            continue
        if setup.has_resources and [addon.is_ready for addon in setup.addons] == [True, True]:
            return
        await world.clock.sleep(30)
    raise AssertionError("the cluster never has everything")


async def check(world: StandaloneWorld) -> None:
    names = {deployment.metadata.name for deployment in (await world.client.list(Deployment)).items}
    assert names == {"plimsoll-kafka", "plimsoll-nodes", "plimsoll-agent"}
    assert (await world.client.get(Secret, "plimsoll-agent-parameters", namespace="kube-system")).data[
        "sso-secret"
    ] == b"hush"


def test_a_crash_after_any_kubernetes_call_leaves_what_the_next_process_completes():
    assert sweep_crashes(build_world=StandaloneWorld.build, build_instance=start, run=live, check=check) > 20


@pytest.mark.parametrize(
    "fault",
    [
        lambda number: LoseAnswers(number, error=lambda: TimedOut("lost")),
        lambda number: Answer5xx(number, error=lambda status: build_error(Status(code=status, message="later"))),
    ],
    ids=["lost answers", "5xx"],
)
def test_a_fault_at_any_kubernetes_call_is_repeated(fault: Callable[[int], Any]):
    swept = sweep_faults(fault, build_world=StandaloneWorld.build, build_instance=start, run=live, check=check)
    assert swept > 20
