"""A simulated cloud on an API server in memory, in virtual time: what every test of `local.cloud` starts from.

with CloudCluster() as world:
    world.group("g", target=2, bootSeconds=10)
    world.after(10)
    assert world.nodes() == ["g-0", "g-1"]
"""

from __future__ import annotations

import asyncio
import json
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Self, TypeVar

from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.local.cloud.controller import CloudSettings, build_controllers
from plimsoll.local.cloud.faults.call_log import CallLog
from plimsoll.local.cloud.faults.injection import FaultInjector
from plimsoll.local.components import Components
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.simulated_cloud import CLOUD_RESOURCES, THE_CLOUD, Cloud, Machine, NodeGroup
from plimsoll.objects.registry import KINDS
from plimsoll.objects.validation import list_shipped_definitions
from plimsoll.runtime.entropy import SeededEntropy
from tests.kube.embedded_api import EmbeddedApi, unchanged
from tests.local.apiserver.builders import START

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from datetime import datetime

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.local.components import Components as ComponentsType

T = TypeVar("T")

KNOWN = KINDS.extend(CLOUD_RESOURCES)
SMALL = {"name": "small", "cpu": 2, "memory": "8Gi", "price": 0.1, "family": "s"}
LARGE = {"name": "large", "cpu": 8, "memory": "32Gi", "price": 0.4, "family": "l"}
TYPES = [SMALL, LARGE]


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def text_of(moment: datetime) -> str:
    return moment.isoformat().replace("+00:00", "Z")


def cloud_definitions() -> list[dict[str, Any]]:
    return [
        manifest.body
        for manifest in list_shipped_definitions()
        if manifest.body["spec"]["group"] == "cloud.plimsoll.io"
    ]


def group_body(name: str = "g", **spec: Any) -> dict[str, Any]:
    whole = {"max": 10, "machineType": "small", "bootSeconds": 0, **spec}
    return {"apiVersion": "cloud.plimsoll.io/v1alpha1", "kind": "NodeGroup", "metadata": {"name": name}, "spec": whole}


def cloud_body(**spec: Any) -> dict[str, Any]:
    whole = {"machineTypes": TYPES, "zones": ["a", "b"], **spec}
    return {"apiVersion": "cloud.plimsoll.io/v1alpha1", "kind": "Cloud", "metadata": {"name": "cloud"}, "spec": whole}


def running_cloud(
    client: Client, *, clock: Clock, settings: CloudSettings
) -> tuple[ComponentsType, Callable[[], Awaitable[None]]]:
    components = Components(lambda _name: client, clock=clock, entropy=SeededEntropy("cloud"))
    working = build_controllers(components.build_component("cloud"), settings)

    async def run() -> None:
        async with asyncio.TaskGroup() as group:
            for service in components.list_services():
                group.create_task(_run(service.run), name=service.name)
            for controller in working:
                group.create_task(controller.run(), name=controller.name)

    return components, run


async def _run(run: Callable[[], Awaitable[None]]) -> None:
    await run()


class CloudCluster:
    """A server with our definitions and a `Cloud`; `started=False`: the controller does not run yet."""

    def __init__(
        self, *, settings: CloudSettings | None = None, started: bool = True, through: Any = unchanged, **cloud: Any
    ) -> None:
        self._settings = settings or CloudSettings(nodes_come_ready=True)
        self.kube = EmbeddedApi(kinds=KNOWN)
        self.run, self.clock, self.client = self.kube.run, self.kube.clock, self.kube.client
        self.log = CallLog()
        self.cloud = SimulatedCloud(self.kube.new_client(through=through), clock=self.clock, log=self.log)
        self.hand = FaultInjector(self.client)
        self._cloud, self._started = cloud, started
        self._task: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        self.kube.__enter__()
        for body in cloud_definitions():
            self.kube.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body)
        self.run.settle()
        self.kube.made("/apis/cloud.plimsoll.io/v1alpha1/clouds", cloud_body(**self._cloud))
        if self._started:
            self.start()
        return self

    def __exit__(self, *error: object) -> None:
        self.kube.__exit__(*error)

    # ---- the controller

    def start(self) -> None:
        _, run = running_cloud(self.kube.new_client(), clock=self.clock, settings=self._settings)
        self._task = self.run.spawn(run())  # type: ignore[arg-type]
        self.run.settle()

    def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        self.run.advance_by(0.001)

    def after(self, seconds: float) -> None:
        self.run.advance_by(seconds)

    def do(self, call: Awaitable[T]) -> T:
        """Make a call and let everything happen that needs no time."""
        result = self.kube.do(call)
        self.run.settle()
        return result

    # ---- building

    def group(self, name: str = "g", **spec: Any) -> None:
        self.kube.made("/apis/cloud.plimsoll.io/v1alpha1/nodegroups", group_body(name, **spec))
        self.run.settle()

    def patch_cloud(self, **spec: Any) -> None:
        self.do(self.client.merge_patch(Cloud, THE_CLOUD, {"spec": spec}))

    # ---- looking

    def nodes(self) -> list[str]:
        return sorted(node.metadata.name for node in self.kube.do(self.client.list(Node)).items)

    def node(self, name: str) -> Node:
        return self.kube.do(self.client.get(Node, name))

    def machines(self) -> dict[str, Machine]:
        listed = self.kube.do(self.client.list(Machine)).items
        return {machine.metadata.name: machine for machine in sorted(listed, key=lambda item: item.metadata.name)}

    def states(self) -> dict[str, str]:
        return {name: machine.status.state for name, machine in self.machines().items()}

    def get_group(self, name: str = "g") -> NodeGroup:
        return self.kube.do(self.client.get(NodeGroup, name))

    def get_cloud(self) -> Cloud:
        return self.kube.do(self.client.get(Cloud, THE_CLOUD))

    def everything(self) -> str:
        """All that the cloud has made, byte for byte comparable."""
        urls = [f"/apis/cloud.plimsoll.io/v1alpha1/{kind}" for kind in ("clouds", "nodegroups", "machines")]
        return json.dumps([self.kube.ask("GET", url)["items"] for url in [*urls, "/api/v1/nodes"]], sort_keys=True)
