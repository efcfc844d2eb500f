"""A simulated cluster whose nodes are removed, in virtual time: what tests of removals start from.

with DeletionCluster() as world:
    world.group("g", target=2)
    world.pod("web-0", node="g-0")
    world.remove(world.removal("g-0"), world.removal("g-1", is_empty=True))
    world.after(60)
    assert world.results() == {"g-0": "removed", "g-1": "removed"}
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

from plimsoll.core.plans import Reason
from plimsoll.kube.informer import Informer
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.local.cloud.controller import CloudSettings, build_controllers
from plimsoll.local.components import KUBELET, Components
from plimsoll.local.controller_manager.services import build_disruption_services
from plimsoll.local.kubelet import Kubelet, KubeletSettings
from plimsoll.local.liveness import ReportedLiveness
from plimsoll.nodes.actuation.cleanup import TaintCleaner
from plimsoll.nodes.actuation.deletion_controller import ActuationDependencies, NodeDeletionController
from plimsoll.nodes.actuation.deletion_guard import DeletionGuard
from plimsoll.nodes.actuation.instance_deleter import InstanceDeleter
from plimsoll.nodes.actuation.node_pods import CachedPods, ListedPods
from plimsoll.nodes.actuation.node_writer import NodeWriter
from plimsoll.nodes.actuation.timing import Pacing
from plimsoll.nodes.config.policy import Policy
from plimsoll.nodes.model.scale_down_plan import NodeRemoval
from plimsoll.nodes.planning.scaledown.drainability import DrainRules
from plimsoll.nodes.planning.scaledown.pdbs import RemainingPdbs
from plimsoll.nodes.providers.simulated.provider import SimulatedProvider
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.supervisor import Service, Supervisor
from tests.kube.embedded_api import unchanged
from tests.local.cloud.builders import CloudCluster
from tests.narrowing import instance_of

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.nodes.model.results import FinishedRemoval
    from plimsoll.objects.api.policy import PodDisruptionBudget

NAMESPACE = "here"
DELETED = "ToBeDeletedByClusterAutoscaler"
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "absent", "controller": True}
DAEMON = {**OWNER, "kind": "DaemonSet", "name": "agent"}


def policy(**scale_down: Any) -> Policy:
    plain = Policy()
    return replace(plain, scale_down=replace(plain.scale_down, **scale_down))


def removal(node: str, *, group: str = "g", is_empty: bool = False, goes_whole: bool = False) -> NodeRemoval:
    reason = Reason(code="Empty" if is_empty else "Underutilized", message="not needed")
    return NodeRemoval(node=node, group=group, is_empty=is_empty, atomic=goes_whole, reason=reason)


def cluster_services(connect: Callable[[], Client], *, clock: Clock, stop_s: float = 0.0) -> list[Service]:
    """A kubelet for the pods, the cloud, and the controller of disruption budgets."""
    parts = Components(lambda _: connect(), clock=clock, entropy=SeededEntropy("cluster"))
    settings = KubeletSettings(selector="", start_s=0.0, stop_s=stop_s, emits_events=False, resync_s=0.0)
    reported = ReportedLiveness(clock=clock)
    kubelet = Kubelet(parts.build_component("kubelet", manager=KUBELET), settings=settings, liveness=reported)
    clouds = build_controllers(parts.build_component("cloud"), CloudSettings(nodes_come_ready=True))
    listed: tuple[Any, ...] = (kubelet.pods.controller, *clouds)
    working = [Service(name=controller.name, run=controller.run) for controller in listed]
    budgets = build_disruption_services(parts)
    return [*parts.list_services(), *working, *budgets]


def pod_body(name: str, *, node: str, owner: dict[str, Any] | None = OWNER, **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "labels": spec.pop("labels", {}), "annotations": spec.pop("annotations", {})}
    owners = {} if owner is None else {"ownerReferences": [owner]}
    container = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "100m"}}}
    return {
        "metadata": {**metadata, **owners},
        "spec": {"nodeName": node, "serviceAccountName": "default", "containers": [container], **spec},
    }


class DeletionCluster(CloudCluster):
    """`through` wraps what the remover reaches the API server with, `over_cloud` what it reaches the cloud with."""

    def __init__(
        self,
        *,
        through: Callable[[Any], Any] = unchanged,
        over_cloud: Callable[[Any], Any] = unchanged,
        stop_s: float = 0.0,
        runs: bool = True,
        pacing: Pacing | None = None,
        **scale_down: Any,
    ) -> None:
        super().__init__(started=False)
        self.policy = policy(**scale_down)
        self.pacing = pacing or Pacing.from_policy(self.policy)
        self._through, self._over_cloud, self._stop_s, self._runs = through, over_cloud, stop_s, runs
        self.ended: list[FinishedRemoval] = []
        self.running: asyncio.Task[None] | None = None

    def __enter__(self) -> Self:
        super().__enter__()
        self.kube.namespace(NAMESPACE)
        self._start_cluster()
        self.budgets: tuple[PodDisruptionBudget, ...] = ()
        self.new_process()
        return self

    def _start_cluster(self) -> None:
        services = cluster_services(self.kube.new_client, clock=self.clock, stop_s=self._stop_s)
        supervisor = Supervisor(services, clock=self.clock, entropy=SeededEntropy("cluster"))
        self.run.spawn(supervisor.run(), name="cluster")
        self.run.settle()

    def new_process(self, *, is_faultless: bool = False) -> None:
        """A remover and a cleaner that know nothing but the world."""
        through, over_cloud = (unchanged, unchanged) if is_faultless else (self._through, self._over_cloud)
        client = self.kube.new_client(through=through)
        cloud = SimulatedCloud(self.kube.new_client(), clock=self.clock, log=self.log)
        self.provider = SimulatedProvider(over_cloud(cloud))  # type: ignore[arg-type]
        pods = ListedPods(client) if self._runs else self._cached_pods()
        deleter = InstanceDeleter(DeletionGuard(client, pods, clock=self.clock))
        tools = ActuationDependencies(
            client=client, provider=self.provider, deleter=deleter, pods=pods, rules=self.rules, clock=self.clock
        )
        self.remover = NodeDeletionController(tools, self.pacing)
        self.remover.policy = self.policy
        self.cleaner = TaintCleaner(
            NodeWriter(client, clock=self.clock, pacing=self.pacing), self.provider, clock=self.clock
        )
        if self._runs:
            self.running = self.run.spawn(self.remover.run(), name="remover")

    def _cached_pods(self) -> CachedPods:
        informer = Informer(self.kube.new_client(), Pod, clock=self.clock, entropy=SeededEntropy("pods"))
        pods = CachedPods(informer)
        self.run.spawn(informer.run(), name="pods of the remover")
        self.run.settle()
        return pods

    def rules(self) -> DrainRules:
        return DrainRules(options=self.policy.scale_down, now=self.clock.now(), pdbs=RemainingPdbs(self.budgets))

    def stop_process(self) -> None:
        assert self.running is not None
        self.running.cancel()

    # ---- building

    def pod(self, name: str, *, node: str, owner: dict[str, Any] | None = OWNER, **spec: Any) -> None:
        body = pod_body(name, node=node, owner=owner, **spec)
        self.kube.made(f"/api/v1/namespaces/{NAMESPACE}/pods", body)
        self.run.settle()

    def budget(self, name: str = "pdb", **spec: Any) -> None:
        body = {"metadata": {"name": name}, "spec": spec}
        self.kube.made(f"/apis/policy/v1/namespaces/{NAMESPACE}/poddisruptionbudgets", body)
        self.run.settle()

    def annotate(self, node: str, **annotations: str | None) -> None:
        named = {key.replace("__", "/").replace("_", "-"): value for key, value in annotations.items()}
        self.kube.do(self.client.merge_patch(Node, node, {"metadata": {"annotations": named}}))

    # ---- acting and looking

    def remove(self, *removals: NodeRemoval) -> None:
        nodes = {node.metadata.name: node for node in self.kube.do(self.client.list(Node)).items}
        self.remover.start(removals, nodes, self.clock.now())

    def results(self) -> dict[str, str]:
        self.ended += self.remover.take_finished()
        return {finished.removal.node: finished.result.value for finished in self.ended}

    def end_of(self, node: str) -> FinishedRemoval:
        self.results()
        return next(finished for finished in self.ended if finished.removal.node == node)

    def pods(self) -> list[str]:
        return sorted(pod.metadata.name for pod in self.kube.do(self.client.list(Pod)).items)

    def marks(self, node: str) -> tuple[list[str], bool]:
        """Keys of its taints, and whether it is cordoned."""
        found = self.node(node)
        return [taint.key for taint in found.spec.taints], found.spec.unschedulable

    def deletions(self) -> list[list[str]]:
        return [
            list(instance_of(tuple, call_record.arg))
            for call_record in self.log
            if call_record.call == "DeleteNodes" and call_record.ok
        ]
