"""Builders of small clusters for tests of scale-up options: machine types, groups, pods, snapshots."""

from datetime import UTC, datetime
from typing import Any

from plimsoll.core.resources import ResourceVector
from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.config.policy import Policy
from plimsoll.nodes.model.snapshot import MachineType, NodeGroup, PendingPods, Snapshot
from plimsoll.objects.api.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
)
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.nodes import Node, NodeSpec, NodeStatus, Taint
from plimsoll.objects.api.pods import Container, Pod, PodSpec, PodTemplateSpec, ResourceRequirements
from plimsoll.objects.api.workloads import DaemonSet, DaemonSetSpec
from plimsoll.scheduling import ClusterView

GIB = 1 << 30
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)


def policy(**options: Any) -> Policy:
    """`max_cpu=5` is --max-cpu=5."""
    return read_options({name.replace("_", "-"): value for name, value in options.items()})


def nap(**options: Any) -> Policy:
    return policy(node_autoprovisioning=True, **options)


def amounts(cpu: float, gib: float, **more: int) -> ResourceVector:
    others = {name.replace("gpu", "nvidia.com/gpu"): amount for name, amount in more.items()}
    return ResourceVector({"cpu": round(cpu * 1000), "memory": round(gib * GIB), "pods": 110, **others})


def machine(name: str, cpu: float, gib: float, *, gpu: int = 0, price: float | None = None, **more: Any) -> MachineType:
    size = amounts(cpu, gib, gpu=gpu)
    return MachineType(name=name, capacity=size, allocatable=size, price_per_hour=price, **more)


def standard(cores: int, **more: Any) -> MachineType:
    price = 0.031611 * cores + 0.004237 * 3.75 * cores
    return machine(f"n1-standard-{cores}", cores, 3.75 * cores, price=price, **more)


def highmem(cores: int, **more: Any) -> MachineType:
    price = 0.031611 * cores + 0.004237 * 6.5 * cores
    return machine(f"n1-highmem-{cores}", cores, 6.5 * cores, price=price, **more)


def node(
    name: str, size: ResourceVector, *, labels: dict[str, str] | None = None, taints: tuple[Taint, ...] = ()
) -> Node:
    written: dict[str, Any] = {**size.to_json()}
    return Node(
        metadata=ObjectMeta(name=name, labels=labels or {}),
        spec=NodeSpec(taints=taints),
        status=NodeStatus(capacity=written, allocatable=written),
    )


def group(name: str, kind: MachineType, *, target: int = 0, most: int = 10, **more: Any) -> NodeGroup:
    return NodeGroup(
        **{
            "id": name,
            "min_size": 0,
            "max_size": most,
            "target_size": target,
            "template": node(f"{name}-0", kind.capacity, labels=dict(kind.labels)),
            "machine_type": kind.name,
            "price_per_hour": kind.price_per_hour,
            **more,
        }
    )


def pod(
    cpu: str = "1",
    memory: str = "1Gi",
    *,
    gpu: int = 0,
    selector: dict[str, str] | None = None,
    affinity: list[list[tuple[str, str, list[str]]]] | None = None,
    **spec: Any,
) -> Pod:
    """`affinity` is a list of terms, each a list of (key, operator, values)."""
    requests: dict[str, Any] = {"cpu": cpu, "memory": memory, **({"nvidia.com/gpu": gpu} if gpu else {})}
    terms = tuple(
        NodeSelectorTerm(
            match_expressions=tuple(
                NodeSelectorRequirement(key=key, operator=operator, values=tuple(values))
                for key, operator, values in term
            )
        )
        for term in affinity or ()
    )
    required = NodeAffinity(required_during_scheduling_ignored_during_execution=NodeSelector(node_selector_terms=terms))
    return Pod(
        metadata=ObjectMeta(name="p", namespace="default"),
        spec=PodSpec(
            containers=(Container(name="c", resources=ResourceRequirements(requests=requests)),),
            node_selector=selector or {},
            affinity=Affinity(node_affinity=required) if affinity else None,
            **spec,
        ),
    )


def pending(name: str, what: Pod, count: int = 1) -> PendingPods:
    return PendingPods(key=f"default/{name}", pod=what, count=count)


def daemon_set(name: str, cpu: str, **spec: Any) -> DaemonSet:
    requests: dict[str, Any] = {"cpu": cpu}
    template = PodSpec(containers=(Container(name="d", resources=ResourceRequirements(requests=requests)),), **spec)
    return DaemonSet(
        metadata=ObjectMeta(name=name, namespace="kube-system", uid=f"uid-{name}"),
        spec=DaemonSetSpec(template=PodTemplateSpec(spec=template)),
    )


def snapshot(*entries: PendingPods, nodes: tuple[Node, ...] = (), **more: Any) -> Snapshot:
    return Snapshot(number=1, at=NOON, view=ClusterView.from_objects(nodes), pending=entries, **more)
