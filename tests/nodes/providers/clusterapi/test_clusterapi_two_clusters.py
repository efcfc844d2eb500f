"""Cluster API in one cluster, its nodes in another."""

from __future__ import annotations

from plimsoll.kube.client import Client
from plimsoll.local.apiserver.application import Application
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.nodes.providers.clusterapi.provider import ClusterApiProvider
from plimsoll.nodes.providers.values import Instance
from plimsoll.objects.api.nodes import Node
from plimsoll.runtime.entropy import SeededEntropy
from tests.kube.embedded_api import UNLIMITED
from tests.local.apiserver.builders import ADMIN, new_server
from tests.nodes.providers.clusterapi.capi_clusters import CapiCluster
from tests.nodes.providers.clusterapi.capi_objects import LARGE_ENOUGH, bounds, machine, scalable


def test_machines_are_of_the_management_cluster_and_nodes_of_the_workload_cluster():
    with CapiCluster(runs=False) as world:
        node = {
            "metadata": {"name": "n", "labels": {"topology.kubernetes.io/zone": "a"}},
            "spec": {"providerID": "bare://7"},
        }
        workload = EmbeddedTransport(Application(new_server(world.clock)), token=ADMIN)
        client = Client(workload, clock=world.clock, entropy=SeededEntropy("workload"), settings=UNLIMITED)
        world.do(client.create(Node, node))
        world.made(scalable("MachineSet", "ms", replicas=1, annotations={**bounds(), **LARGE_ENOUGH}))
        world.made(machine("m", ("MachineSet", "ms"), status={"nodeRef": {"kind": "Node", "name": "n"}}))
        provider = ClusterApiProvider(world.client, client)
        world.do(provider.refresh())
        (group,) = world.do(provider.node_groups())
        assert world.do(group.nodes()) == (Instance(id="bare://7", name="n"),)
        template = world.do(group.template_node_info())
        assert isinstance(template, Node)
        assert template.metadata.labels["topology.kubernetes.io/zone"] == "a"
