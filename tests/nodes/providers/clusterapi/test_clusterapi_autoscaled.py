"""The whole node autoscaler over Cluster API: pods wait, machines come; they become unneeded, the right ones go."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.kube.informer.factory import SharedInformerFactory
from plimsoll.kube.recorder import EventRecorder
from plimsoll.local.cluster_api.machines import BOOT_S
from plimsoll.nodes.builder import Dependencies, NodeAutoscaler
from plimsoll.nodes.config.source import ConfigMapConfig
from plimsoll.objects.api.events import EventSource
from plimsoll.objects.api.nodes import Node
from plimsoll.runtime.entropy import SeededEntropy
from tests.nodes.providers.clusterapi.capi_clusters import CapiCluster
from tests.nodes.providers.clusterapi.capi_objects import HERE, LARGE_ENOUGH, bounds
from tests.nodes.providers.clusterapi.test_clusterapi_new_groups import TEMPLATE

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.nodes.loop_result import LoopResult

AT_ONCE = {
    "scale-down-unneeded-time": "0s",
    "scale-down-delay-after-add": "0s",
    "max-scale-down-parallelism": 10,
    "scan-interval": "10s",
}


class AutoscaledCapiCluster(CapiCluster):
    """`turn()` is one turn of the autoscaler."""

    def start(self, **options: Any) -> None:
        entropy = SeededEntropy("autoscaler")
        informers = SharedInformerFactory(self.client, clock=self.clock, entropy=entropy)
        source = EventSource(component="cluster-autoscaler")
        recorder = EventRecorder(self.client, source, clock=self.clock, entropy=entropy)
        flags = {**AT_ONCE, **{name.replace("_", "-"): value for name, value in options.items()}}
        self.parts = NodeAutoscaler(
            Dependencies(
                client=self.client,
                informers=informers,
                recorder=recorder,
                provider=self.provider,
                configuration=ConfigMapConfig(flags, informers, naming=self.provider.naming),
                clock=self.clock,
                run_planner=_inline,
                stepped=True,
            )
        )
        for service in informers.list_services():
            self.run.spawn(_run(service.run))
        self.run.settle()

    def turn(self) -> LoopResult:
        self.run.settle()
        return self.do(self.parts.autoscaler.run_once())

    def pods(self, count: int, *, cpu: str, **spec: Any) -> None:
        """That no scheduler found a place for."""
        reason = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        for number in range(count):
            body = {
                "metadata": {"name": f"p{number}"},
                "spec": {"containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": cpu}}}], **spec},
            }
            self.kube.made(f"/api/v1/namespaces/{HERE}/pods", body)
            url = f"/api/v1/namespaces/{HERE}/pods/p{number}/status"
            content = "application/merge-patch+json"
            self.kube.ask("PATCH", url, {"status": {"conditions": [reason]}}, content=content)

    def no_pods(self) -> None:
        listed = self.kube.ask("GET", f"/api/v1/namespaces/{HERE}/pods")["items"]
        for pod in listed:
            self.kube.ask("DELETE", f"/api/v1/namespaces/{HERE}/pods/{pod['metadata']['name']}")

    def nodes_become_ready(self) -> None:
        status = {
            "capacity": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "allocatable": {"cpu": "4", "memory": "16Gi", "pods": "110"},
            "conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }
        for name in self.nodes():
            self.do(self.client.merge_patch(Node, name, {"status": status}, subresource="status"))
            self.do(self.client.merge_patch(Node, name, {"spec": {"taints": None}}))
        self.run.settle()


async def _inline(plan: Callable[[], Any]) -> Any:
    return plan()


async def _run(run: Callable[[], Any]) -> None:
    await run()


def test_pods_that_wait_get_machines_from_zero_and_idle_machines_go():
    with AutoscaledCapiCluster() as world:
        world.deployment("md", annotations={**bounds(0, 5), **LARGE_ENOUGH})
        world.start()
        world.pods(4, cpu="1500m")
        world.after(10)
        world.turn()
        assert world.replicas() == 2
        world.after(BOOT_S + 5)
        world.nodes_become_ready()
        world.turn()
        assert world.replicas() == 2
        world.no_pods()
        for _ in range(6):
            world.after(120)
            world.turn()
        world.after(5)
        assert (world.replicas(), world.nodes()) == (0, [])


def test_auto_provisioning_makes_a_group_of_a_template_and_deletes_it_when_empty():
    with AutoscaledCapiCluster() as world:
        world.deployment("large", annotations={TEMPLATE: "true", **LARGE_ENOUGH})
        world.start(node_autoprovisioning=True, autoprovisioning_prefix="nap")
        world.pods(1, cpu="3")
        world.after(10)
        world.turn()
        (made,) = [name for name in world.sizes() if name != "large"]
        assert made.startswith("nap-large-")
        assert world.sizes() == {"large": 0, made: 1}
        world.after(BOOT_S + 5)
        world.nodes_become_ready()
        world.no_pods()
        for _ in range(8):
            world.after(120)
            world.turn()
        assert world.sizes() == {"large": 0}
