"""A cluster and a cloud in memory for `benchmarks.autoscaler`: what informers and a provider would show, and no server.

The autoscaler is the real one, from its reads to its reports. Informers are caches that are filled by hand; the
provider answers from tables; writes to the cluster (status, events) get an empty answer.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from benchmarks.planning_clusters import Shape, n1_shapes, synthetic_shapes
from plimsoll.journal.memory import MemoryJournal
from plimsoll.kube.client import Client
from plimsoll.kube.informer.store.cache import WritableCache
from plimsoll.kube.recorder import EventRecorder
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.kube.transport import Response
from plimsoll.nodes.builder import Dependencies, NodeAutoscaler
from plimsoll.nodes.config.source import ConfigMapConfig
from plimsoll.nodes.model.call_outcomes import Done, NotImplementedByProvider
from plimsoll.nodes.model.group_names import Naming
from plimsoll.nodes.model.snapshot import MachineType
from plimsoll.nodes.providers.ports import Created, NodeOwner
from plimsoll.nodes.providers.theoretical import build_expected_node as planned_node
from plimsoll.nodes.providers.values import Instance
from plimsoll.objects.api.events import EventSource
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.workloads import ReplicaSet
from plimsoll.runtime.entropy import SeededEntropy

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from plimsoll.kube.transport import Request
    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.model.call_outcomes import Outcome
    from plimsoll.nodes.providers.ports import Group
    from plimsoll.nodes.providers.values import Blueprint, GroupOptions, NodeRef, Span

START = datetime(2026, 1, 1, 12, tzinfo=UTC)
_OLD = "2026-01-01T00:00:00Z"
_READY = [{"type": "Ready", "status": "True", "lastTransitionTime": _OLD, "lastHeartbeatTime": _OLD}]
_UNSCHEDULABLE = [{"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": _OLD}]
DEPLOYMENTS = 200
"""The controllers of a `SteadyCluster`."""


class ManualClock:
    """Continues when the benchmark says so."""

    def __init__(self) -> None:
        self.passed_s = 0.0

    def now(self) -> datetime:
        return START + timedelta(seconds=self.passed_s)

    def monotonic_s(self) -> float:
        return self.passed_s

    async def sleep(self, seconds: float) -> None:
        self.passed_s += seconds


class FilledInformer:
    """An informer whose cache is filled by hand."""

    resource = "filled by hand"
    has_synced = True
    status = SimpleNamespace(trouble="", contradiction="")

    def __init__(self) -> None:
        self.cache: Any = WritableCache()

    def get_age_s(self) -> float:
        return 0.0

    async def wait_until_synced(self) -> None:
        """At once."""

    def add_handler(self, _handler: Any, *, name: str) -> None:
        """No change of `name` is delivered."""

    def add_index(self, name: str, keys_of: Any) -> None:
        self.cache.add_index(name, keys_of)

    def put(self, *objects: Any) -> None:
        for item in objects:
            self.cache.put((item.metadata.namespace, item.metadata.name), item)

    def remove(self, *objects: Any) -> None:
        for item in objects:
            self.cache.remove((item.metadata.namespace, item.metadata.name))


class FilledInformers:
    """One object of each kind."""

    def __init__(self) -> None:
        self._known: dict[type, FilledInformer] = {}

    def get_informer(self, kind: type, *_selection: Any) -> Any:
        return self._known.setdefault(kind, FilledInformer())

    def list_bad(self) -> tuple[Any, ...]:
        return ()

    def set_aside(self, _uid: Any, _problem: str) -> None:
        """Every object can be judged."""


class EmptyAnswers:
    """A transport whose server takes everything."""

    async def send(self, call: Request) -> Response:
        name = call.path.rpartition("/")[2]
        return Response(200, body=msgspec.json.encode({"metadata": {"name": name, "uid": name}}))

    async def aclose(self) -> None:
        """Nothing to close."""


@dataclass(slots=True, kw_only=True)
class TableGroup:
    """A group of the cloud: a row."""

    id: str
    shape: Shape
    target: int
    instances: tuple[Instance, ...] = ()
    max_size: int = 100_000
    min_size: int = 0
    debug: str = ""
    exists: bool = True
    autoprovisioned: bool | None = False
    autoscaled: bool = True
    grown: int = 0
    calls: int = 0

    async def target_size(self) -> int:
        return self.target

    async def can_increase_atomically(self) -> bool:
        return False

    async def increase_size(self, delta: int, *, expected: int) -> Outcome:
        self.target = expected + delta
        self.grown += delta
        self.calls += 1
        return Done()

    async def nodes(self) -> tuple[Instance, ...]:
        return self.instances

    async def template_node_info(self) -> Node | NotImplementedByProvider:
        return node_of(f"template-of-{self.id}", self)

    async def get_options(self, defaults: GroupOptions) -> GroupOptions | NotImplementedByProvider:
        return defaults


class TableProvider:
    """A cloud that answers from its tables."""

    name = "tables"
    naming = Naming(underscores=False, longest=54)

    def __init__(self, groups: Iterable[TableGroup]) -> None:
        self.groups = {table_group.id: table_group for table_group in groups}
        self.home = {instance.id: group for group in self.groups.values() for instance in group.instances}

    async def refresh(self) -> None:
        """Nothing is out of date."""

    async def node_groups(self) -> tuple[Group, ...]:
        return tuple(self.groups.values())  # type: ignore[arg-type]  # deletions never come here

    async def node_group_for_node(self, node: NodeRef) -> Any:
        return self.home.get(node.provider_id)

    async def find_owners(self, nodes: Sequence[NodeRef]) -> Mapping[str, NodeOwner]:
        home = self.home
        return {
            node_ref.name: NodeOwner(group=home[node_ref.provider_id].id, has_instance=True)
            for node_ref in nodes
            if node_ref.provider_id in home
        }

    async def has_instance(self, node: NodeRef) -> bool:
        return node.provider_id in self.home

    async def node_price(self, node: NodeRef, _span: Span) -> float:
        return self.groups[node.labels["group"]].shape.price

    async def get_machine_types(self) -> NotImplementedByProvider:
        return NotImplementedByProvider(call="GetAvailableMachineTypes")

    async def gpu_label(self) -> str:
        return "accelerator"


class ProvisionedGroup(TableGroup):
    """A group that auto-provisioning wants, and after `create` has."""

    def __init__(self, wanted: Blueprint, kind: MachineType, provider: ProvisioningProvider) -> None:
        super().__init__(id=wanted.id, shape=provider.shapes[kind.name], target=0, max_size=wanted.max_size)
        self.autoprovisioned = True
        self._node = planned_node(wanted, kind, group=wanted.id)
        self._provider = provider

    async def create(self) -> Created:
        self._provider.groups[self.id] = self
        return Created(id=self.id)

    async def template_node_info(self) -> Node:
        return self._node


class ProvisioningProvider(TableProvider):
    """A cloud without groups, that makes them of whatever it sells."""

    def __init__(self, shapes: Iterable[Shape]) -> None:
        super().__init__(())
        self.shapes = {shape.name: shape for shape in shapes}
        self._sold = {
            shape.name: MachineType(
                name=shape.name,
                capacity=shape.capacity,
                allocatable=shape.allocatable,
                price_per_hour=shape.price,
                zones=("zone-a",),
            )
            for shape in self.shapes.values()
        }

    async def get_machine_types(self) -> tuple[MachineType, ...]:  # type: ignore[override]  # the base sells none
        return tuple(self._sold.values())

    async def new_node_group(self, wanted: Blueprint) -> ProvisionedGroup:
        return ProvisionedGroup(wanted, self._sold[wanted.machine_type], self)

    async def node_price(self, node: NodeRef, _span: Span) -> float:
        return self.shapes[node.labels["node.kubernetes.io/instance-type"]].price


def node_of(name: str, group: TableGroup, *, zone: str = "zone-a") -> Node:
    shape = group.shape
    labels = {
        "kubernetes.io/hostname": name,
        "group": group.id,
        "node.kubernetes.io/instance-type": shape.name,
        "topology.kubernetes.io/zone": zone,
    }
    return msgspec.convert(
        {
            "metadata": {"name": name, "uid": name, "labels": labels, "creationTimestamp": _OLD},
            "spec": {"providerID": name},
            "status": {
                "capacity": {**shape.capacity.to_json()},
                "allocatable": {**shape.allocatable.to_json()},
                "conditions": _READY,
            },
        },
        Node,
    )


def replica_set(name: str, replicas: int) -> ReplicaSet:
    body = {"metadata": {"name": name, "namespace": "default", "uid": name}, "spec": {"replicas": replicas}}
    return msgspec.convert(body, ReplicaSet)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Pods of so many controllers, each with a shape of its own."""

    requests: Sequence[Mapping[str, str]] = field(default_factory=list)
    pools: int = 0
    """Controllers take turns in asking for one of so many kinds of nodes; 0: for none."""
    rules: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    """By controller: what the spec of its pods says about other pods."""

    @classmethod
    def of(cls, controllers: int, *, seed: int, rules: Mapping[int, Mapping[str, Any]] | None = None) -> Workload:
        random = np.random.default_rng(seed)
        cpu = random.integers(2, 10, controllers) * 50
        memory = random.integers(2, 14, controllers) * 64
        return cls(
            requests=[
                {"cpu": f"{millis}m", "memory": f"{mebis}Mi"}
                for millis, mebis in zip(cpu.tolist(), memory.tolist(), strict=True)
            ],
            rules=rules or {},
        )

    def pod(self, number: int, node: str) -> Pod:
        owner = number % len(self.requests)
        name = f"web-{owner}"
        reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name, "uid": name, "controller": True}
        return msgspec.convert(
            {
                "metadata": {
                    "name": f"{name}-{number}",
                    "namespace": "default",
                    "uid": str(number),
                    "labels": {"app": name},
                    "creationTimestamp": _OLD,
                    "ownerReferences": [reference],
                },
                "spec": {
                    "nodeName": node,
                    "nodeSelector": {"pool": f"p{owner % self.pools}"} if self.pools else {},
                    "containers": [{"name": "c", "resources": {"requests": self.requests[owner]}}],
                    **self.rules.get(owner, {}),
                },
                "status": {"phase": "Running" if node else "Pending", "conditions": [] if node else _UNSCHEDULABLE},
            },
            Pod,
        )


class AutoscalerBenchmark:
    """An autoscaler in such a world; `turn` takes one."""

    def __init__(self, provider: TableProvider, **options: Any) -> None:
        self.clock = ManualClock()
        self.provider = provider
        self._loop = asyncio.new_event_loop()
        self.informers: Any = FilledInformers()
        entropy = SeededEntropy("bench")
        client = Client(EmptyAnswers(), clock=self.clock, entropy=entropy, settings=ClientSettings(qps=0))
        given = {"max-bulk-soft-taint-count": 0, **{name.replace("_", "-"): value for name, value in options.items()}}
        self._parts = NodeAutoscaler(
            Dependencies(
                client=client,
                informers=self.informers,  # type: ignore[arg-type]
                recorder=EventRecorder(client, EventSource(component="bench"), clock=self.clock, entropy=entropy),
                provider=provider,  # type: ignore[arg-type]  # what it lacks is never asked
                configuration=ConfigMapConfig(given, self.informers, naming=provider.naming),  # type: ignore[arg-type]
                clock=self.clock,
                run_planner=_inline,
                journal=MemoryJournal(),
            )
        )

    def turn(self) -> LoopResult:
        self.clock.passed_s += 10
        return self._loop.run_until_complete(self._parts.autoscaler.run_once())


async def _inline(plan: Callable[[], Any]) -> Any:
    return plan()


class SteadyCluster:
    """So many nodes in twenty groups, full by two thirds, and a Bench on it.

    `rules`: what the pods of some controllers say about other pods. No node holds two pods of one controller.
    """

    def __init__(
        self,
        *,
        nodes: int,
        pods_each: int,
        seed: int = 1,
        zones: int = 1,
        rules: Mapping[int, Mapping[str, Any]] | None = None,
    ) -> None:
        shape = next(n1_shape for n1_shape in n1_shapes() if n1_shape.name == "n1-standard-16")
        names = [f"node-{number}" for number in range(nodes)]
        groups = [
            TableGroup(
                id=f"group-{index}",
                shape=shape,
                target=len(names[index::20]),
                instances=tuple(Instance(id=name, name=name) for name in names[index::20]),
            )
            for index in range(20)
        ]
        self.bench = AutoscalerBenchmark(TableProvider(groups))
        self._random = np.random.default_rng(seed)
        self._work = Workload.of(DEPLOYMENTS, seed=seed, rules=rules)
        self._zones = zones
        self._nodes = self.bench.informers.get_informer(Node)
        self._pods = self.bench.informers.get_informer(Pod)
        self.names = names
        self.groups = groups
        self._numbers = iter(range(10**9))
        self._nodes.put(*(self._node(index) for index in range(nodes)))
        self._pods.put(*(self._made(name) for name in names for _ in range(pods_each)))
        sets = self.bench.informers.get_informer(ReplicaSet)
        sets.put(*(replica_set(f"web-{index}", nodes * pods_each // DEPLOYMENTS) for index in range(DEPLOYMENTS)))

    def _node(self, index: int) -> Node:
        return node_of(self.names[index], self.groups[index % 20], zone=f"zone-{'abc'[index % self._zones]}")

    def _made(self, node: str) -> Pod:
        return self._work.pod(next(self._numbers), node)

    def replace_pods(self, count: int) -> None:
        """So many pods go, and another one of the same controller comes to the same node for each."""
        pods = self._pods.cache.list()
        for index in self._random.choice(len(pods), size=count, replace=False).tolist():
            gone = pods[index]
            owner = int(gone.metadata.labels["app"].removeprefix("web-"))
            number = (next(self._numbers) // DEPLOYMENTS + 1) * DEPLOYMENTS + owner
            self._numbers = iter(range(number + 1, 10**9))
            self._pods.remove(gone)
            self._pods.put(self._work.pod(number, gone.spec.node_name))

    def add_pending(self) -> Pod:
        """One more pod, which finds no place yet."""
        pod = self._made("")
        self._pods.put(pod)
        return pod

    def remove_pod(self, pod: Pod) -> None:
        self._pods.remove(pod)

    def change(self, share: float, *, pending: int = 0) -> None:
        """So large a part of pods is replaced, of nodes written anew; and so many pods find no place."""
        pods = self._pods.cache.list()
        chosen = self._random.choice(len(pods), size=int(len(pods) * share), replace=False).tolist()
        gone = [pods[index] for index in chosen]
        self._pods.remove(*gone)
        self._pods.put(*(self._made(pod.spec.node_name or self.names[0]) for pod in gone))
        self._pods.put(*(self._made("") for _ in range(pending)))
        touched = self._random.choice(len(self.names), size=int(len(self.names) * share), replace=False).tolist()
        self._nodes.put(*(self._node(index) for index in touched))


def waiting_cluster(*, pods: int, controllers: int, groups: int, seed: int = 1) -> AutoscalerBenchmark:
    """Pods without a place, and groups of as many shapes without a node."""
    shapes = synthetic_shapes(groups)
    bench = AutoscalerBenchmark(
        TableProvider(TableGroup(id=f"group-{shape.name}", shape=shape, target=0) for shape in shapes)
    )
    work = Workload.of(controllers, seed=seed)
    bench.informers.get_informer(Pod).put(*(work.pod(number, "") for number in range(pods)))
    bench.informers.get_informer(ReplicaSet).put(
        *(replica_set(f"web-{number}", pods // controllers) for number in range(controllers))
    )
    return bench


def cluster_of_n22(*, seed: int = 22) -> AutoscalerBenchmark:
    """Scenario N22 (docs/design/nodes.md 15): pods of 300 shapes, 40 machine types, 5 selectors, no group yet."""
    sizes = [(cores, ratio) for cores in (2, 4, 8, 16, 32, 48, 64, 96) for ratio in (1, 2, 4, 6, 8)]
    shapes = [Shape(name=f"t{number}", cores=cores, gib=cores * ratio) for number, (cores, ratio) in enumerate(sizes)]
    bench = AutoscalerBenchmark(
        ProvisioningProvider(shapes),
        node_autoprovisioning=True,
        max_autoprovisioned_node_group_count=60,
        max_node_groups=60,
        autoprovisioned_group_max_size=5000,
    )
    random = np.random.default_rng(seed)
    cpu = random.integers(100, 4001, 300).tolist()
    gib_of_core = random.uniform(0.8, 7.5, 300).tolist()
    work = Workload(
        requests=[
            {"cpu": f"{cores}m", "memory": f"{int(cores / 1000 * ratio * 1024)}Mi"}
            for cores, ratio in zip(cpu, gib_of_core, strict=True)
        ],
        pools=5,
    )
    bench.informers.get_informer(Pod).put(*(work.pod(number, "") for number in range(30_000)))
    bench.informers.get_informer(ReplicaSet).put(*(replica_set(f"web-{number}", 100) for number in range(300)))
    return bench
