"""Clusters, machine types and pods for the planning benchmark: the shapes of docs/design/performance.md, from a seed.

`n1` are 19 machine types as a public cloud prices them; `synthetic_types` are any number of distinct shapes of 1 to 96
cores. Allocatable is what a kubelet's usual reservations leave. Workloads are uniform or log-normal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from plimsoll.core.resources import ResourceVector
from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.model.snapshot import MachineType, NodeGroup, PendingPods, Snapshot
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.scheduling import ClusterView

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.solver.problem import Ints

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
MIB = 1 << 20
GIB = 1 << 30
ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
ZONES = ("zone-a", "zone-b", "zone-c")
GPU = "nvidia.com/gpu"
GPU_MODEL = "example.com/gpu-model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A machine as its price list knows it."""

    name: str
    cores: float
    gib: float
    gpus: int = 0
    model: str = ""
    gpu_price: float = 0.0

    @property
    def price(self) -> float:
        return 0.031611 * self.cores + 0.004237 * self.gib + self.gpus * self.gpu_price

    @property
    def capacity(self) -> ResourceVector:
        return self._amounts(self.cores, self.gib)

    @property
    def allocatable(self) -> ResourceVector:
        """Without what a kubelet keeps: less of each further core and of each further GiB."""
        cores, gib = self.cores, self.gib
        held = 0.06 * min(cores, 1) + 0.01 * min(max(cores - 1, 0), 1) + 0.005 * min(max(cores - 2, 0), 2)
        held += 0.0025 * max(cores - 4, 0)
        kept = 0.25 * min(gib, 4) + 0.2 * min(max(gib - 4, 0), 4) + 0.1 * min(max(gib - 8, 0), 8)
        kept += 0.06 * min(max(gib - 16, 0), 112) + 0.02 * max(gib - 128, 0) + 0.1
        return self._amounts(cores - held, gib - kept)

    def _amounts(self, cores: float, gib: float) -> ResourceVector:
        amounts = {"cpu": int(cores * 1000), "memory": int(gib * 1024) * MIB, "pods": 110}
        return ResourceVector({**amounts, GPU: self.gpus} if self.gpus else amounts)


def n1_shapes() -> list[Shape]:
    cores = (1, 2, 4, 8, 16, 32, 64)
    return [
        *(Shape(name=f"n1-standard-{core}", cores=core, gib=3.75 * core) for core in cores),
        *(Shape(name=f"n1-highmem-{core}", cores=core, gib=6.5 * core) for core in cores[1:]),
        *(Shape(name=f"n1-highcpu-{core}", cores=core, gib=0.9 * core) for core in cores[1:]),
    ]


def synthetic_shapes(count: int) -> list[Shape]:
    cores = (1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
    ratios = np.linspace(0.9, 8, -(-count // len(cores))).tolist()
    grid = [(core, max(core * ratio, 1.5)) for ratio in ratios for core in cores]
    return [
        Shape(name=f"m-{index}", cores=core_count, gib=round(gib, 3))
        for index, (core_count, gib) in enumerate(grid[:count])
    ]


def gpu_shapes() -> list[Shape]:
    """45 types: 15 without GPUs, six models in five sizes."""
    found = [Shape(name=f"plain-{c}-{r}", cores=c, gib=c * r) for c in (8, 16, 32, 64, 96) for r in (2, 4, 8)]
    for model, price in zip("abcdef", (0.35, 0.95, 1.5, 2.2, 2.9, 0.6), strict=True):
        for index, gpus in enumerate((1, 2, 4, 8, 8)):
            cores = max(8, (12 if index % 2 else 8) * gpus)
            name = f"gpu-{model}-{index}"
            found.append(Shape(name=name, cores=cores, gib=cores * 6, gpus=gpus, model=model, gpu_price=price))
    return found


def machine_types(shapes: Sequence[Shape], zones: tuple[str, ...] = ()) -> tuple[MachineType, ...]:
    return tuple(
        MachineType(
            name=shape.name,
            capacity=shape.capacity,
            allocatable=shape.allocatable,
            price_per_hour=shape.price,
            zones=zones,
            labels={GPU_MODEL: shape.model} if shape.model else {},
        )
        for shape in shapes
    )


def node(name: str, shape: Shape, **labels: str) -> Node:
    return msgspec.convert(
        {
            "metadata": {"name": name, "labels": {HOSTNAME: name, **labels}},
            "status": {"capacity": _written(shape.capacity), "allocatable": _written(shape.allocatable)},
        },
        Node,
    )


def groups(shapes: Sequence[Shape], *, zones: Sequence[str] = ("",)) -> tuple[NodeGroup, ...]:
    """One empty group per shape and zone, large enough for every request."""
    found = []
    for shape in shapes:
        for zone in zones:
            name = f"{shape.name}-{zone}" if zone else shape.name
            labels = {ZONE: zone} if zone else {}
            labels |= {GPU_MODEL: shape.model} if shape.model else {}
            found.append(
                NodeGroup(
                    id=name,
                    min_size=0,
                    max_size=100_000,
                    target_size=0,
                    template=node(f"{name}-template", shape, **labels),
                    machine_type=shape.name,
                    zone=zone,
                    price_per_hour=shape.price,
                )
            )
    return tuple(found)


def _written(amounts: ResourceVector) -> dict[str, Any]:
    return {**amounts.to_json()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """Classes of pods: what one asks for, cpu in milli and memory in MiB, and how many there are."""

    cpu: Ints
    memory_mib: Ints
    counts: Ints

    @property
    def pods(self) -> int:
        return int(self.counts.sum())


def workload(kind: str, *, pods: int, classes: int, seed: int) -> Workload:
    """`uniform` or `lognormal`; equal draws are one class, so there may be a few less."""
    random = np.random.default_rng(seed)
    if kind == "uniform":
        cpu, memory = random.integers(1, 41, classes) * 100, random.integers(1, 65, classes) * 128
    elif kind == "uniform-fine":
        cpu, memory = random.integers(100, 4001, classes), random.integers(128, 8193, classes)
    else:
        cpu = np.clip(np.exp(random.normal(np.log(400), 1.0, classes)), 10, 16_000).astype(np.int64)
        memory = np.clip(np.exp(random.normal(np.log(900), 1.1, classes)), 16, 48_000).astype(np.int64)
    shapes, inverse = np.unique(np.stack([cpu, memory], axis=1), axis=0, return_inverse=True)
    if classes < pods:
        counts = 1 + random.multinomial(pods - len(shapes), random.dirichlet(np.ones(len(shapes))))
    else:
        counts = np.bincount(inverse.ravel())
    return Workload(cpu=shapes[:, 0], memory_mib=shapes[:, 1], counts=counts.astype(np.int64))


def equal_counts(work: Workload, each: int) -> Workload:
    return Workload(cpu=work.cpu, memory_mib=work.memory_mib, counts=np.full(len(work.counts), each, dtype=np.int64))


def pod(
    name: str, requests: dict[str, str], *, app: str = "", labels: dict[str, str] | None = None, **spec: Any
) -> Pod:
    """`labels` replace the usual one."""
    container = {"name": "c", "resources": {"requests": requests}}
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": "default",
                "labels": {"app": app or name} if labels is None else labels,
                "ownerReferences": [
                    {
                        "apiVersion": "apps/v1",
                        "kind": "ReplicaSet",
                        "name": app or name,
                        "uid": app or name,
                        "controller": True,
                    }
                ],
            },
            "spec": {"containers": [container], **spec},
        },
        Pod,
    )


def pending(work: Workload, *, prefix: str = "web", **spec: Any) -> tuple[PendingPods, ...]:
    """Pods with one controller per class."""
    return tuple(
        PendingPods(
            key=f"default/{prefix}-{index}",
            pod=pod(f"{prefix}-{index}", {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}, **spec),
            count=count,
            created=NOON,
        )
        for index, (cpu, memory, count) in enumerate(
            zip(work.cpu.tolist(), work.memory_mib.tolist(), work.counts.tolist(), strict=True)
        )
    )


def bundle(work: Workload, name: str) -> tuple[PendingPods, ...]:
    """One request for all pods, with a pod set per class."""
    return tuple(
        replace(pending_pods, key=f"default/{name}/{index}", bundle=f"default/{name}")
        for index, pending_pods in enumerate(pending(work, prefix=name))
    )


def gpu_pending(*, pods: int, classes: int, seed: int) -> tuple[PendingPods, ...]:
    """Half of the classes ask for whole GPUs; a third of these for a model or one of two."""
    random = np.random.default_rng(seed)
    counts = 1 + random.multinomial(pods - classes, random.dirichlet(np.ones(classes)))
    found = []
    for index, count in enumerate(counts.tolist()):
        gpus = int(random.choice([0, 0, 0, 0, 1, 1, 1, 2, 4, 8]))
        cpu = int(np.clip(np.exp(random.normal(np.log(2_000 * max(gpus, 1)), 0.8)), 100, 8_000 * max(gpus, 1)))
        memory = int(np.clip(np.exp(random.normal(np.log(6_000 * max(gpus, 1)), 0.8)), 128, 40_000 * max(gpus, 1)))
        requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
        spec: dict[str, Any] = {}
        if gpus:
            requests |= {GPU: str(gpus)}
            if random.random() < 1 / 3:
                models = sorted(random.choice(list("abcdef"), size=int(random.integers(1, 3)), replace=False).tolist())
                spec = {"affinity": {"nodeAffinity": _required(GPU_MODEL, models)}}
        one = pod(f"job-{index}", requests, **spec)
        found.append(PendingPods(key=f"default/job-{index}", pod=one, count=count, created=NOON))
    return tuple(found)


def _required(key: str, values: list[str]) -> dict[str, Any]:
    terms = [{"matchExpressions": [{"key": key, "operator": "In", "values": values}]}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def five_way_mix(*, pods: int, seed: int, controllers: int = 10) -> tuple[PendingPods, ...]:
    """A fifth each: plain, spread over zones, spread over nodes, together in a zone, apart on nodes."""
    found = []
    for kind in ("plain", "zone-spread", "host-spread", "zone-together", "host-apart"):
        work = workload("lognormal", pods=pods // 5, classes=controllers, seed=seed)
        for index in range(len(work.counts)):
            name = f"{kind}-{index}"
            requests = {"cpu": f"{work.cpu[index]}m", "memory": f"{work.memory_mib[index]}Mi"}
            one = pod(name, requests, **_interaction(kind, {"matchLabels": {"app": name}}))
            found.append(PendingPods(key=f"default/{name}", pod=one, count=int(work.counts[index]), created=NOON))
        seed += 1
    return tuple(found)


def _interaction(kind: str, selector: dict[str, Any]) -> dict[str, Any]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    if kind in {"zone-spread", "host-spread"}:
        key = ZONE if kind == "zone-spread" else HOSTNAME
        rule = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        return {"topologySpreadConstraints": [rule]}
    if kind == "zone-together":
        return {"affinity": {"podAffinity": {required: [{"topologyKey": ZONE, "labelSelector": selector}]}}}
    if kind == "host-apart":
        return {"affinity": {"podAntiAffinity": {required: [{"topologyKey": HOSTNAME, "labelSelector": selector}]}}}
    return {}


def constrained_pending(kind: str, *, pods: int, classes: int, seed: int) -> tuple[PendingPods, ...]:
    """Equal controllers, with a constraint of this kind: spread on all of them, keeping apart on three in ten."""
    found = []
    work = equal_counts(workload("lognormal", pods=pods, classes=classes, seed=seed), pods // classes)
    for index, (cpu, memory) in enumerate(zip(work.cpu.tolist(), work.memory_mib.tolist(), strict=True)):
        name = f"web-{index}"
        has_it = kind != "host-apart" or index % 10 < 3
        spec = _interaction(kind, {"matchLabels": {"app": name}}) if has_it else {}
        one = pod(name, {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}, **spec)
        found.append(PendingPods(key=f"default/{name}", pod=one, count=int(work.counts[index]), created=NOON))
    return tuple(found)


def used_cluster(nodes: int, *, pods_each: int, seed: int) -> Snapshot:
    """One group whose nodes hold small pods of replica sets."""
    view = view_of(nodes, pods_each=pods_each, seed=seed)
    shape = next(n1_shape for n1_shape in n1_shapes() if n1_shape.name == "n1-standard-16")
    group = replace(groups([shape])[0], target_size=nodes, max_size=2 * nodes)
    return snapshot((), view=view, groups=(group,), group_of=dict.fromkeys(view.nodes, group.id))


def view_of(nodes: int, *, pods_each: int, seed: int) -> ClusterView:
    """Nodes of three n1 sizes with small pods on them."""
    random = np.random.default_rng(seed)
    shapes = [shape for shape in n1_shapes() if shape.name in {"n1-standard-8", "n1-standard-16", "n1-standard-32"}]
    machines = [
        node(f"node-{index}", shapes[index % len(shapes)], **{ZONE: ZONES[index % len(ZONES)]})
        for index in range(nodes)
    ]
    held = [
        pod(
            f"held-{index}",
            {"cpu": f"{int(random.integers(1, 8)) * 50}m", "memory": f"{int(random.integers(1, 16)) * 64}Mi"},
            app=f"app-{index % 50}",
            nodeName=f"node-{index % nodes}",
        )
        for index in range(nodes * pods_each)
    ]
    return ClusterView.from_objects(machines, held)


def snapshot(waiting: Sequence[PendingPods], **parts: Any) -> Snapshot:
    return Snapshot(number=1, at=NOON, pending=tuple(waiting), **{"view": ClusterView.from_objects([], []), **parts})


def policy(**options: Any) -> Policy:
    """By cost, with the flags named: `node_autoprovisioning=True` is --node-autoprovisioning."""
    given = {name.replace("_", "-"): value for name, value in options.items()}
    return read_options({"expander": "cost", **given})
