"""A cluster in virtual time whose autoscaler reads through falsified answers, and an audit of what it deletes.

Everything else in the cluster sees the truth. The audit judges each request by the true state at that moment: an
instance with a running pod that is no daemon pod, a Ready node that was not drained, a target below the machines that
run, a group that has machines, and an eviction from a node that is not underutilized are wrongful.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from plimsoll.core.plans import Ref
from plimsoll.core.resources import CPU, ResourceVector
from plimsoll.journal.entries import Query
from plimsoll.local.apiserver.storage.store import Put
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.local.components import Components
from plimsoll.nodes.reporting.log_line import build_log_line
from plimsoll.objects.api.simulated_cloud import GROUP_LABEL
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.simulation.ports import Plugins
from plimsoll.simulation.runner import ScenarioRun
from plimsoll.simulation.worlds.autoscaler import ScenarioLoop
from plimsoll.simulation.worlds.crashes import CrashingTransport
from plimsoll.simulation.worlds.world import World
from tests.faults.faulty_provider import FaultyProvider
from tests.faults.faulty_transport import FaultyTransport, TransportFaults
from tests.kube.leases.stolen_leases import StolenLease
from tests.nodes.autoscaler.faulty_clusters import AdjustableClock, FaultyLoop
from tests.nodes.autoscaler.loop_scenarios import AUTOSCALER, containers, group, scenario_of, steps_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import timedelta

    from plimsoll.kube.client import Client
    from plimsoll.kube.transport import Request, Response, Transport
    from plimsoll.local.apiserver.storage.objects import Key, Stored
    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.providers.ports import Provider
    from plimsoll.nodes.providers.simulated.provider import SimulatedProvider
    from plimsoll.nodes.providers.values import NodeRef
    from plimsoll.simulation.ports import LoopDependencies
    from tests.nodes.autoscaler.loop_scenarios import Json

OPTIONS = {
    "scale-down-unneeded-time": "1m",
    "scale-down-unready-time": "2m",
    "scale-down-delay-after-add": "1s",
    "max-node-provision-time": "2m",
    "force-delete-unregistered-nodes": True,
    "node-autoprovisioning": True,
}
_TAINT = "ToBeDeletedByClusterAutoscaler"
_ENDED = ("Succeeded", "Failed")
_NEEDED_CPU = 2000
"""Millicores of four cores: a node whose pods request more is not underutilized."""


def owned(name: str, replicas: int, *, cpu: str) -> Json:
    """A ReplicaSet whose pods run in group g only."""
    labels = {"app": name}
    spec = {**containers(cpu), "nodeSelector": {GROUP_LABEL: "g"}}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": name},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec},
        },
    }


def bare_pods(count: int) -> Json:
    """Pods without a controller, in group bare only."""
    spec = {**containers("3"), "nodeSelector": {GROUP_LABEL: "bare"}}
    return {"name": "bare", "namespace": "default", "count": count, "template": {"spec": spec}}


@dataclass(slots=True)
class Audit:
    """Collects wrongful requests."""

    client: Client
    wrongful: list[str] = field(default_factory=list)
    booked: frozenset[str] = frozenset()
    """Nodes that a ProvisioningRequest has booked."""
    requests: int = 0

    async def deletes(self, group: str, nodes: Sequence[NodeRef]) -> None:
        self.requests += 1
        listed = (await self.client.get_json("/api/v1/nodes"))["items"]
        pods = (await self.client.get_json("/api/v1/pods"))["items"]
        for ref in nodes:
            node = next((node for node in listed if _is_of(node, ref)), None)
            name = ref.name if node is None else node["metadata"]["name"]
            running = [pod["metadata"]["name"] for pod in pods if pod["spec"].get("nodeName") == name and _runs(pod)]
            if name in self.booked:
                self.wrongful.append(f"{group}: {name} was deleted and is booked")
            elif running:
                self.wrongful.append(f"{group}: {name} was deleted with {running}")
            elif node is not None and _is_ready(node) and not _is_tainted(node):
                self.wrongful.append(f"{group}: {name} was deleted while Ready and not drained")

    async def lowers(self, group: str, after: int) -> None:
        self.requests += 1
        running = [machine for machine in await self._machines(group) if machine["status"].get("state") == "running"]
        if after < len(running):
            self.wrongful.append(f"{group}: lowered to {after} with {len(running)} machines")

    async def deletes_group(self, group: str) -> None:
        self.requests += 1
        if machines := await self._machines(group):
            self.wrongful.append(f"{group}: deleted with {len(machines)} machines")

    async def evicts(self, name: str) -> None:
        self.requests += 1
        pods = (await self.client.get_json("/api/v1/pods"))["items"]
        node = next((pod["spec"]["nodeName"] for pod in pods if pod["metadata"]["name"] == name), "")
        used = sum(_cpu_of(pod) for pod in pods if pod["spec"].get("nodeName") == node and _runs(pod))
        if used > _NEEDED_CPU:
            self.wrongful.append(f"evicted {name} from {node}, where {used} millicores are requested")

    async def _machines(self, group: str) -> list[Json]:
        listed = await self.client.get_json("/apis/cloud.plimsoll.io/v1alpha1/machines")
        return [machine for machine in listed["items"] if machine["spec"]["group"] == group]


def _is_of(node: Json, ref: NodeRef) -> bool:
    provider_id = node["spec"].get("providerID", "")
    return node["metadata"]["name"] == ref.name or (bool(provider_id) and provider_id == ref.provider_id)


def _runs(pod: Json) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return pod["status"].get("phase") not in _ENDED and all(owner["kind"] != "DaemonSet" for owner in owners)


def _cpu_of(pod: Json) -> int:
    requests = (container["resources"]["requests"] for container in pod["spec"]["containers"])
    return sum(ResourceVector.from_quantities(request)[CPU] for request in requests)


def _is_ready(node: Json) -> bool:
    conditions = node.get("status", {}).get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _is_tainted(node: Json) -> bool:
    return any(taint["key"] == _TAINT for taint in node["spec"].get("taints") or ())


class EvictionLog:
    """Counts the evictions that a transport carries."""

    def __init__(self, transport: Transport, audit: Audit) -> None:
        self._transport = transport
        self._audit = audit

    async def send(self, call: Request) -> Response:
        if call.method == "POST" and call.path.endswith("/eviction"):
            await self._audit.evicts(call.path.split("/")[-2])
        return await self._transport.send(call)

    async def aclose(self) -> None:
        await self._transport.aclose()


class RecordedLoop(ScenarioLoop):
    """An autoscaler whose log lines are kept."""

    def __init__(
        self, tools: LoopDependencies, lines: list[str], *, through: Callable[[SimulatedProvider], Provider]
    ) -> None:
        self._lines = lines
        super().__init__(tools, through=through)

    def _report(self, loop: LoopResult) -> None:
        self._lines.append(build_log_line(loop))
        super()._report(loop)


class AuditedCluster(World):
    """`with AuditedCluster() as cluster:`, then `cluster.minutes(3)` and `cluster.faults.start(…)`."""

    def __init__(self, **options: Any) -> None:
        plugs = Plugins(make_loop=self._make_loop)
        scenario = {
            "world": "live",
            "nodeGroups": [group("g", target=4), group("bare", target=2), group("spare", target=1)],
            "pods": [bare_pods(2)],
            "objects": [owned("web", 8, cpu="1300m")],
            "options": {**OPTIONS, **options},
        }
        super().__init__(scenario_of((), scenario), plugs=plugs)
        self.clock = AdjustableClock(self.run.clock)
        self.faults = TransportFaults(self.run.clock)
        self.lease = StolenLease(self.run.clock)
        self._lines: list[str] = []
        self.audit = Audit(self.client)
        self._scenario_run = ScenarioRun(self, plugs)

    def take(self, *steps: Json) -> None:
        for step in steps_of(steps, world=self.scenario.world):
            self._scenario_run.take_step(step, path="test")

    def minutes(self, count: float) -> None:
        self.take({"advance": f"{int(count * 60)}s"})

    def outcome(self) -> Json:
        return self._scenario_run.finish().outcome

    def placed_pods(self) -> dict[str, str]:
        """The uids of pods that have a node, and their nodes."""
        pods = self.run_now(self.client.get_json("/api/v1/pods"))["items"]
        return {pod["metadata"]["uid"]: pod["spec"]["nodeName"] for pod in pods if pod["spec"].get("nodeName")}

    def list_empty_nodes(self, group: str) -> frozenset[str]:
        """The nodes of a group on which no pod runs."""
        nodes = self.run_now(self.client.get_json("/api/v1/nodes"))["items"]
        used = set(self.placed_pods().values())
        names = (node["metadata"]["name"] for node in nodes if node["metadata"]["labels"].get(GROUP_LABEL) == group)
        return frozenset(name for name in names if name not in used)

    def summaries(self) -> list[str]:
        """The sentences of all loops so far."""
        return self._lines

    def events(self) -> list[Json]:
        found: list[Json] = self.run_now(self.client.get_json("/api/v1/events"))["items"]
        return found

    def metric(self, name: str) -> float:
        assert self.loop is not None
        return sum(value for key, value in self.loop.get_metrics().items() if name in key)

    def find_reasons(self, ref: str) -> list[str]:
        """What `plimsoll why` says about an object: why something was not done."""
        entries = self.run_now(self._recorded.journal.list_entries(Query(ref=Ref.parse(ref))))
        found = (not_done for entry in entries for not_done in entry.plan.not_done)
        return [not_done.reason.message for not_done in found if Ref.parse(ref) in not_done.about]

    def change_body(self, key: Key, change: Callable[[Json], None]) -> None:
        """Write past the API server's checks."""

        def decide(found: Stored | None) -> Put:
            assert found is not None
            body = found.decode_body()
            change(body)
            return Put(body)

        self.run_now(self._application.server.store.update(key, decide))

    def set_clock(self, by: timedelta) -> None:
        self.clock.ahead += by

    def _make_loop(self, tools: LoopDependencies) -> FaultyLoop:
        entropy = SeededEntropy("audited")
        components = Components(self._faulty, clock=tools.clock, entropy=entropy)
        cloud = SimulatedCloud(self._faulty(AUTOSCALER), clock=tools.clock, log=self.log)
        tools = replace(tools, components=components, cloud=cloud, clock=self.clock)
        self._recorded = RecordedLoop(
            tools,
            self._lines,
            through=lambda provider: FaultyProvider(provider, self.faults, self.audit, clock=tools.clock),
        )
        return FaultyLoop(self._recorded, components)

    def _faulty(self, manager: str) -> Client:
        mortal = CrashingTransport(
            EmbeddedTransport(self._application, token=self._token), component=manager, life=self._life
        )
        transport = EvictionLog(FaultyTransport(mortal, self.faults), self.audit)
        return self._build_client(transport, manager).with_guard(self.lease)  # type: ignore[arg-type]
