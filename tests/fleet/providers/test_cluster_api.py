"""The provider for Cluster API against a simulated one, in both versions: what it writes, and what it reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.fleet.model.pools import PoolBounds
from plimsoll.fleet.model.provided import (
    Absent,
    CallFailed,
    DeletionState,
    FailureKind,
    ProvidedCluster,
    ProviderState,
)
from plimsoll.local.cluster_api.clusters import FAILURE_ANNOTATION
from plimsoll.local.cluster_api.definitions import V1BETA1, V1BETA2
from plimsoll.objects.api.core import Secret
from plimsoll.testing import run_virtual
from tests.fleet.providers.capi_worlds import (
    NAME,
    NAMESPACE,
    POOL,
    CapiWorld,
    build_kubeconfig,
    make_order,
    make_row,
    make_setup,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.runtime.clocks import VirtualClock

VERSIONS = (V1BETA1, V1BETA2)
LABEL = "bf2.org/kafkaInstanceProfileType"
MIN, MAX = (f"cluster.x-k8s.io/cluster-api-autoscaler-node-group-{side}-size" for side in ("min", "max"))


def played(story: Callable[[CapiWorld], Awaitable[None]], *, version: str = V1BETA2) -> None:
    async def play(clock: VirtualClock) -> None:
        await story(await CapiWorld.build(clock, version=version))

    run_virtual(play)


async def created(world: CapiWorld, **order: Any) -> Cluster:
    answer = await world.build_provider().create_cluster(make_order(**order))
    assert isinstance(answer, ProvidedCluster), answer
    return make_row(answer.cluster_id)


async def ready(world: CapiWorld) -> Cluster:
    row = await created(world)
    await world.advance(180)
    return row


@pytest.mark.parametrize("version", VERSIONS)
def test_f13_a_cluster_is_a_topology_of_the_class_with_its_default_pool(version: str):
    async def story(world: CapiWorld) -> None:
        await created(world)
        body = await world.get_cluster()
        topology = body["spec"]["topology"]
        wanted = {"name": "data-plane", "namespace": "classes"}
        if version == V1BETA2:
            assert topology["classRef"] == wanted
        else:
            assert {"name": topology["class"], "namespace": topology["classNamespace"]} == wanted
        assert (topology["version"], topology["controlPlane"]) == ("v1.34.0", {"replicas": 3})
        [pool] = topology["workers"]["machineDeployments"]
        assert (pool["name"], "replicas" in pool) == ("default", False)
        assert {key: pool["metadata"]["annotations"][key] for key in (MIN, MAX)} == {MIN: "3", MAX: "18"}

    played(story, version=version)


@pytest.mark.parametrize("version", VERSIONS)
def test_f13_a_pool_is_one_machine_deployment_per_zone_with_a_third_of_the_bounds(version: str):
    async def story(world: CapiWorld) -> None:
        row = await ready(world)
        assert await world.build_provider().ensure_pools(row, (POOL,)) == (POOL,)
        items = {
            item["name"]: item
            for item in (await world.get_cluster())["spec"]["topology"]["workers"]["machineDeployments"]
        }
        assert sorted(items) == ["default", "kafka-standard-a", "kafka-standard-b", "kafka-standard-c"]
        item = items["kafka-standard-b"]
        assert (item["failureDomain"], "replicas" in item) == ("b", False)
        assert {key: item["metadata"]["annotations"][key] for key in (MIN, MAX)} == {MIN: "1", MAX: "6"}
        variables = {override["name"]: override["value"] for override in item["variables"]["overrides"]}
        assert variables == {
            "machineType": "r5.xlarge",
            "nodeLabels": {LABEL: "standard"},
            "nodeTaints": [{"key": LABEL, "value": "standard", "effect": "NoExecute"}],
        }
        await world.advance(30)
        sizes = {name: found["spec"]["replicas"] for name, found in (await world.list_deployments()).items()}
        assert sizes == {f"{NAME}-default": 3, **{f"{NAME}-kafka-standard-{zone}": 1 for zone in "abc"}}

    played(story, version=version)


def test_bounds_that_were_changed_by_hand_are_set_again_and_sizes_are_left_to_the_autoscaler():
    async def story(world: CapiWorld) -> None:
        row, provider = await ready(world), world.build_provider()
        await provider.ensure_pools(row, (POOL,))
        await world.advance(30)
        grown = {"spec": {"replicas": 5}}
        path = world.get_path("machinedeployments", f"{NAME}-kafka-standard-a")
        await world.patch(path, grown)
        setup = await provider.read_setup(row, make_setup())
        assert not isinstance(setup, CallFailed)
        assert setup.pools == (POOL,)
        wider = PoolBounds(id=POOL.id, machine_type=POOL.machine_type, min_replicas=6, max_replicas=30)
        assert await provider.ensure_pools(row, (wider,)) == (wider,)
        await world.advance(30)
        deployment = (await world.list_deployments())[f"{NAME}-kafka-standard-a"]
        assert deployment["metadata"]["annotations"][MAX] == "10"
        assert deployment["spec"]["replicas"] == 5

    played(story)


def test_machine_deployments_of_others_stay():
    async def story(world: CapiWorld) -> None:
        row = await ready(world)
        body = await world.get_cluster()
        mine = {"name": "gpu", "class": "gpu-worker", "replicas": 2}
        items = [*body["spec"]["topology"]["workers"]["machineDeployments"], mine]
        await world.patch(world.get_path(name=NAME), {"spec": {"topology": {"workers": {"machineDeployments": items}}}})
        await world.build_provider().ensure_pools(row, (POOL,))
        found = (await world.get_cluster())["spec"]["topology"]["workers"]["machineDeployments"]
        assert mine in found
        assert len(found) == 5

    played(story)


@pytest.mark.parametrize("version", VERSIONS)
def test_states_follow_the_conditions_until_the_cluster_is_gone(version: str):
    async def story(world: CapiWorld) -> None:
        row, provider = await created(world), world.build_provider()
        await world.advance(1)
        assert await read_state(world, row) == ProviderState.PROVISIONING
        await world.advance(180)
        assert await read_state(world, row) == ProviderState.READY
        assert await provider.delete_cluster(row) == DeletionState.GOING
        assert await read_state(world, row) == ProviderState.DELETING
        assert await provider.delete_cluster(row) == DeletionState.GOING
        await world.advance(120)
        assert await provider.delete_cluster(row) == DeletionState.GONE
        assert await provider.read_cluster(row) == Absent()
        assert (await world.list_clusters(), world.data_planes.applications) == ([], {})

    played(story, version=version)


async def read_state(world: CapiWorld, row: Cluster) -> ProviderState:
    found = await world.build_provider().read_cluster(row)
    assert isinstance(found, ProvidedCluster), found
    return found.state


@pytest.mark.parametrize("version", VERSIONS)
def test_f14_a_step_that_fails_for_thirty_minutes_fails_the_cluster(version: str):
    async def story(world: CapiWorld) -> None:
        row = await created(world)
        reason = {"metadata": {"annotations": {FAILURE_ANNOTATION: "quota of m5.2xlarge is 0"}}}
        await world.patch(world.get_path(name=NAME), reason)
        await world.advance(29 * 60)
        assert await read_state(world, row) == ProviderState.PROVISIONING
        await world.advance(2 * 60)
        found = await world.build_provider().read_cluster(row)
        assert isinstance(found, ProvidedCluster)
        assert found.state == ProviderState.FAILED
        assert "InfrastructureReady" in found.details
        assert "quota of m5.2xlarge is 0" in found.details

    played(story, version=version)


def test_a_created_cluster_is_found_by_its_name_and_made_once():
    async def story(world: CapiWorld) -> None:
        provider = world.build_provider()
        assert await provider.find_cluster(NAME, region="us-east-1") == Absent()
        row = await created(world)
        again = await provider.create_cluster(make_order())
        found = await provider.find_cluster(NAME, region="us-east-1")
        assert isinstance(again, ProvidedCluster)
        assert isinstance(found, ProvidedCluster)
        assert again.cluster_id == found.cluster_id == row.cluster_id
        assert await provider.list_clusters() == (found,)

    played(story)


def test_a_cluster_of_another_row_is_neither_taken_nor_deleted():
    async def story(world: CapiWorld) -> None:
        await created(world)
        provider = world.build_provider()
        taken = await provider.create_cluster(make_order(row_id="abcdefghijklZ"))
        assert isinstance(taken, CallFailed)
        assert (taken.kind, "belongs to another row" in taken.problem) == (FailureKind.REFUSED, True)
        other = make_row(provider_spec={"name": NAME}, id="another")
        assert isinstance(await provider.delete_cluster(other), CallFailed)
        [body] = await world.list_clusters()
        assert "deletionTimestamp" not in body["metadata"]

    played(story)


def test_a_cluster_made_again_under_the_name_is_not_the_one_of_the_row():
    async def story(world: CapiWorld) -> None:
        await created(world)
        stale = make_row("another-uid")
        provider = world.build_provider()
        for answer in (
            await provider.read_cluster(stale),
            await provider.delete_cluster(stale),
            await provider.ensure_pools(stale, (POOL,)),
        ):
            assert isinstance(answer, CallFailed)
            assert "another Cluster has its name" in answer.problem

    played(story)


def test_without_definitions_nothing_counts_as_absent_or_gone():
    async def story(world: CapiWorld) -> None:
        row, provider = await created(world), world.build_provider()
        await provider.read_cluster(row)
        definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/clusters.cluster.x-k8s.io"
        await world.delete(definition)
        await world.advance_clock(5)
        for answer in (await provider.read_cluster(row), await provider.delete_cluster(row)):
            assert isinstance(answer, CallFailed)
            assert "is Cluster API installed?" in answer.problem

    played(story)


def test_a_multi_zone_cluster_needs_three_failure_domains():
    async def story(world: CapiWorld) -> None:
        row = await created(world)
        answer = await world.build_provider().ensure_pools(row, (POOL,))
        assert isinstance(answer, CallFailed)
        assert "fewer than three failure domains" in answer.problem
        single = make_row(row.cluster_id, multi_az=False)
        assert await world.build_provider().ensure_pools(single, (POOL,)) == (POOL,)
        names = [
            item["name"] for item in (await world.get_cluster())["spec"]["topology"]["workers"]["machineDeployments"]
        ]
        assert names == ["default", "kafka-standard"]

    played(story)


def test_resources_and_add_ons_are_applied_in_the_cluster_and_ready_when_available():
    async def story(world: CapiWorld) -> None:
        row, provider, order = await ready(world), world.build_provider(), make_setup()
        await provider.ensure_pools(row, order.pools)
        before = await provider.read_setup(row, order)
        assert not isinstance(before, CallFailed)
        assert (before.has_resources, before.addons, before.dns) == (False, (), f"{NAME}.kafka.bf2.dev")
        assert await provider.ensure_resources(row, order) is None
        assert await provider.ensure_addons(row, order.addons) is None
        waiting = await provider.read_setup(row, order)
        assert not isinstance(waiting, CallFailed)
        assert [(addon.is_ready, addon.is_current) for addon in waiting.addons] == [(False, True)] * 2
        await world.advance(30)
        done = await provider.read_setup(row, order)
        assert not isinstance(done, CallFailed)
        assert all(addon.is_ready for addon in done.addons)
        assert (done.has_resources, done.problems) == (True, ())
        data_plane = world.data_planes.open(next(iter(world.data_planes.applications)))
        secret = await data_plane.get(Secret, "plimsoll-agent-parameters", namespace="kube-system")
        assert secret.data["sso-secret"] == b"hush"

    played(story)


def test_changed_parameters_are_not_current_and_are_applied_again():
    async def story(world: CapiWorld) -> None:
        row, provider, order = await ready(world), world.build_provider(), make_setup()
        await provider.ensure_addons(row, order.addons)
        await world.advance(30)
        agent = type(order.addons[1])(kind=order.addons[1].kind, parameters={"sso-secret": "new"})
        changed = type(order)(pools=order.pools, resources=order.resources, addons=(order.addons[0], agent))
        setup = await provider.read_setup(row, changed)
        assert not isinstance(setup, CallFailed)
        assert [addon.is_current for addon in setup.addons] == [True, False]
        await provider.ensure_addons(row, changed.addons)
        setup = await provider.read_setup(row, changed)
        assert not isinstance(setup, CallFailed)
        assert all(addon.is_ready for addon in setup.addons)

    played(story)


def test_nodes_without_label_or_taint_of_their_pool_are_named():
    async def story(world: CapiWorld) -> None:
        world.data_planes.nodes_are_marked = False
        row, provider = await ready(world), world.build_provider()
        await provider.ensure_pools(row, (POOL,))
        await world.advance(30)
        setup = await provider.read_setup(row, make_setup())
        assert not isinstance(setup, CallFailed)
        assert setup.problems == (
            f"3 nodes of pool kafka-standard without its label {LABEL}",
            f"3 nodes of pool kafka-standard without its taint {LABEL}",
        )

    played(story)


@pytest.mark.parametrize(
    ("text", "stated"),
    [
        ("<html>", "is text"),
        ("", "has no kubeconfig"),
        ("{apiVersion: v1, kind: Config", "line 1"),
        (build_kubeconfig("c", exec={"command": "rm", "apiVersion": "client.authentication.k8s.io/v1"}), "exec"),
        (build_kubeconfig("c", tokenFile="/etc/passwd"), "tokenFile"),
        (build_kubeconfig("c") + "current-context: other\n", "occurs twice"),
    ],
)
def test_a_kubeconfig_that_cannot_be_used_is_named_and_reads_no_file(text: str, stated: str):
    async def story(world: CapiWorld) -> None:
        row = await ready(world)
        await world.set_kubeconfig(text)
        answer = await world.build_provider().read_setup(row, make_setup())
        assert isinstance(answer, CallFailed)
        assert f"{NAMESPACE}/{NAME}-kubeconfig" in answer.problem
        assert stated in answer.problem
        assert "hush" not in answer.problem

    played(story)


def test_an_order_that_cannot_be_carried_out_is_refused_with_its_cause():
    async def story(world: CapiWorld) -> None:
        for provider, stated in (
            (world.build_provider(cluster_class=""), "--cluster-class"),
            (world.build_provider(kubernetes_version=""), "--cluster-version"),
        ):
            answer = await provider.create_cluster(make_order())
            assert isinstance(answer, CallFailed)
            assert (answer.kind, stated in answer.problem) == (FailureKind.REFUSED, True)
        assert await world.list_clusters() == []

    played(story)
