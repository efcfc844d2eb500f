"""The role of deploy/nodes-clusterapi lets the provider do what it does to a management cluster, and nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from plimsoll.local.apiserver.auth_types import User
from plimsoll.local.apiserver.authorization.rules import Rule
from plimsoll.local.apiserver.http_types import Request
from plimsoll.local.apiserver.routing import read_attributes
from plimsoll.local.cluster_api.machines import BOOT_S
from plimsoll.nodes.model.call_outcomes import Done
from plimsoll.nodes.providers.values import NodeRef
from plimsoll.objects.api.nodes import Node
from tests.nodes.providers.clusterapi.capi_clusters import CapiCluster
from tests.nodes.providers.clusterapi.capi_objects import INFRASTRUCTURE, scalable
from tests.nodes.providers.clusterapi.test_clusterapi_new_groups import blueprint, template, theoretical
from tests.nodes.providers.clusterapi.test_clusterapi_templates import infrastructure_template, referring

if TYPE_CHECKING:
    from plimsoll.kube.transport import Request as Call
    from plimsoll.kube.transport import Response
    from plimsoll.local.apiserver.auth_types import Attributes

DEPLOY = Path(__file__).parents[4] / "deploy"


class RecordingTransport:
    """A transport that writes down what is asked."""

    def __init__(self) -> None:
        self.asked: list[Attributes] = []

    def __call__(self, transport: Any) -> Any:
        noting = self

        class Through:
            async def send(self, call: Call) -> Response:
                found = read_attributes(User(name="anybody"), Request.build(call.method, call.path))
                noting.asked.append(found)
                reply: Response = await transport.send(call)
                return reply

            async def aclose(self) -> None:
                await transport.aclose()

        return Through()


def rights(overlay: str, role: str) -> list[Rule]:
    documents = yaml.safe_load_all((DEPLOY / overlay / "permissions.yaml").read_text())
    (found,) = [
        document for document in documents if document["kind"] == "ClusterRole" and document["metadata"]["name"] == role
    ]
    return [Rule.from_json(rule) for rule in found["rules"]]


def everything_that_a_provider_does(world: CapiCluster) -> None:
    infrastructure_template(world, capacity={"cpu": "2", "memory": "8Gi"})
    world.deployment("md", replicas=1, template=referring(apiVersion=f"{INFRASTRUCTURE}/v1beta1"))
    world.made(scalable("MachineSet", "ms", replicas=0))
    world.made(scalable("MachinePool", "p", replicas=1, providerIDList=["x/1"]))
    template(world)
    assert isinstance(world.do(world.refreshed().template_node_info()), Node)
    for kind, name, size in (("MachineDeployment", "md", 1), ("MachineSet", "ms", 0), ("MachinePool", "p", 1)):
        assert world.do(world.refreshed(name, kind).increase_size(1, expected=size)) == Done()
    pooled = world.refreshed("p", "MachinePool")
    assert world.do(pooled.delete_nodes([NodeRef(provider_id="x/1", name="x/1")])) == Done()
    world.do(theoretical(world).create())
    world.do(world.provider.refresh())
    assert world.do(world.refreshed(blueprint().id).delete()) == Done()
    world.after(BOOT_S + 5)
    group = world.refreshed()
    node = next(node_ref for node_ref in map(world.node, world.nodes()) if _is_of(world, node=node_ref, group=group.id))
    assert world.do(group.delete_nodes([node])) == Done()


def _is_of(world: CapiCluster, *, node: NodeRef, group: str) -> bool:
    found = world.do(world.provider.node_group_for_node(node))
    return found is not None and found.id == group


def test_no_call_lacks_its_right_and_no_right_is_unused():
    noting = RecordingTransport()
    with CapiCluster(through=noting) as world:
        everything_that_a_provider_does(world)
    own, base = rights("nodes-clusterapi", "plimsoll-nodes-clusterapi"), rights("nodes", "plimsoll-nodes")
    asked = [request for request in noting.asked if request.resource]
    assert {str(request) for request in asked if not any(rule.allows(request) for rule in (*own, *base))} == set()
    single = [single_permission for rule in own for single_permission in rule.split_permissions()]
    assert [rule.text for rule in single if not any(map(rule.allows, asked))] == []
