"""A management cluster in memory, in virtual time, and a provider over it.

with CapiCluster() as world:
    world.deployment("md", replicas=1)
    world.after(BOOT_S + 5)
    group = world.refreshed("md")
    assert world.do(group.increase_size(2, expected=1)) == Done()
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self, TypeVar

from plimsoll.local.cluster_api.definitions import KINDS, build_definition
from plimsoll.local.cluster_api.machines import MACHINES, MachineControllers
from plimsoll.nodes.providers.clusterapi.provider import ClusterApiProvider
from plimsoll.nodes.providers.clusterapi.settings import ClusterApiSettings
from plimsoll.nodes.providers.values import NodeRef
from plimsoll.objects.api.nodes import Node
from tests.kube.embedded_api import EmbeddedApi, unchanged
from tests.nodes.providers.clusterapi.capi_objects import HERE, collection, scalable

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from plimsoll.nodes.providers.ports import Group
    from plimsoll.objects.api.cluster_api import ClusterMachine

T = TypeVar("T")
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class CapiCluster:
    """`runs=False`: nothing acts on the objects but the test. `through` lies between the provider and the server."""

    def __init__(
        self, *, runs: bool = True, through: Any = unchanged, kinds: tuple[str, ...] = KINDS, **settings: Any
    ) -> None:
        self.kube = EmbeddedApi()
        self.run, self.clock, self.client = self.kube.run, self.kube.clock, self.kube.client
        self.capi = MachineControllers(self.client, clock=self.clock)
        self._runs, self._kinds = runs, kinds
        self._through, self._settings = through, ClusterApiSettings(**settings)

    def __enter__(self) -> Self:
        self.kube.__enter__()
        self.kube.namespace(HERE)
        for kind in self._kinds:
            self.kube.made(DEFINITIONS, build_definition(kind))
        self.run.settle()
        self.provider = self.restarted()
        if self._runs:
            self.run.spawn(self.capi.run())
        return self

    def __exit__(self, *error: object) -> None:
        self.kube.__exit__(*error)

    def restarted(self) -> ClusterApiProvider:
        """The provider of the next process."""
        client = self.kube.new_client(through=self._through)
        return ClusterApiProvider(client, client, self._settings)

    # ---- time

    def after(self, seconds: float) -> None:
        self.run.advance_by(seconds)

    def do(self, call: Awaitable[T]) -> T:
        return self.kube.do(call)

    # ---- building

    def made(self, body: dict[str, Any]) -> None:
        status = body.pop("status", None)
        url = collection(body["kind"], namespace=body["metadata"]["namespace"])
        self.kube.made(url, body)
        if status:
            name = body["metadata"]["name"]
            content = "application/merge-patch+json"
            self.kube.ask("PATCH", f"{url}/{name}/status", {"status": status}, content=content)

    def deployment(self, name: str = "md", **spec: Any) -> None:
        self.made(scalable("MachineDeployment", name, **spec))

    # ---- looking

    def refreshed(self, name: str = "md", kind: str = "MachineDeployment") -> Group:
        self.do(self.provider.refresh())
        return self.groups()[f"{kind}/{HERE}/{name}"]

    def groups(self) -> dict[str, Group]:
        return {group.id: group for group in self.do(self.provider.node_groups())}

    def replicas(self, name: str = "md", kind: str = "MachineDeployment") -> int:
        return int(self.kube.ask("GET", f"{collection(kind)}/{name}")["spec"]["replicas"])

    def sizes(self) -> dict[str, int]:
        """Of all deployments."""
        listed = self.kube.ask("GET", collection("MachineDeployment"))["items"]
        return {item["metadata"]["name"]: item["spec"]["replicas"] for item in listed}

    def machines(self) -> dict[str, ClusterMachine]:
        listed: tuple[ClusterMachine, ...] = self.do(self.client.list(MACHINES)).items
        return {
            cluster_machine.metadata.name: cluster_machine
            for cluster_machine in sorted(listed, key=lambda machine: machine.metadata.name)
        }

    def marked(self, mark: str) -> list[str]:
        return [
            name for name, cluster_machine in self.machines().items() if mark in cluster_machine.metadata.annotations
        ]

    def nodes(self) -> list[str]:
        return sorted(node.metadata.name for node in self.do(self.client.list(Node)).items)

    def node(self, name: str) -> NodeRef:
        return NodeRef.from_node(self.do(self.client.get(Node, name)))
