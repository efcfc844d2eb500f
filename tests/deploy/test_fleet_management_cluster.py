"""The role of deploy/fleet lets the fleet manager do what it does to a management cluster, and nothing else."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.fleet.model.provided import DeletionState, ProvidedCluster
from plimsoll.fleet.providers.cluster_api.provider import ClusterApiProvider
from plimsoll.fleet.providers.cluster_api.settings import ClusterApiProviderSettings
from plimsoll.local.apiserver.authorization.rules import Rule
from plimsoll.testing import run_virtual
from tests.deploy.manifests import documents
from tests.fleet.providers.capi_worlds import (
    ADDONS,
    POOL,
    CapiWorld,
    MemoryClients,
    make_order,
    make_row,
    make_setup,
    untouched,
)
from tests.nodes.providers.clusterapi.test_clusterapi_rights import RecordingTransport

if TYPE_CHECKING:
    from plimsoll.runtime.clocks import VirtualClock

APPLIES = {
    '{APIGroups:[""], Resources:["namespaces"], Verbs:["create"]}',
    '{APIGroups:["cluster.x-k8s.io"], Resources:["clusters"], Verbs:["create"]}',
}
"""A server asks for `create`, too, where a server-side apply makes the object."""


def test_no_call_lacks_its_right_and_no_right_is_unused():
    recording = RecordingTransport()

    async def do_everything(clock: VirtualClock) -> None:
        world = await CapiWorld.build(clock)
        provider = ClusterApiProvider(
            world.open_management(recording),
            MemoryClients(world.data_planes, untouched),
            ClusterApiProviderSettings(cluster_class="classes/data-plane", kubernetes_version="v1.34.0", addons=ADDONS),
            clock=clock,
        )
        made = await provider.create_cluster(make_order())
        assert isinstance(made, ProvidedCluster)
        row, order = make_row(made.cluster_id), make_setup()
        await world.advance(180)
        assert await provider.ensure_pools(row, (POOL,)) == (POOL,)
        assert await provider.ensure_addons(row, order.addons) is None
        assert isinstance(await provider.list_clusters(), tuple)
        assert await provider.delete_cluster(row) is DeletionState.GOING

    run_virtual(do_everything)
    [role] = [item for item in documents("fleet/management-cluster.yaml") if item["kind"] == "ClusterRole"]
    rules = [Rule.from_json(rule) for rule in role["rules"]]
    asked = [request for request in recording.asked if request.resource]
    assert {str(request) for request in asked if not any(rule.allows(request) for rule in rules)} == set()
    single = [permission for rule in rules for permission in rule.split_permissions()]
    unused = {permission.text for permission in single if not any(map(permission.allows, asked))}
    assert unused == APPLIES
