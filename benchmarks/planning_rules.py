"""Pods with rules about each other, as Karpenter's own benchmark draws them: plans of new nodes for an empty cluster.

Five kinds in equal parts: no rule, spread over zones, spread over nodes, together on a node, apart on nodes. Sizes are
drawn from five cpu and six memory requests, labels and the values that selectors look for from seven letters, each on
its own: pods of different sizes count in each other's rules, and most pods do not match their own selector. With
`shared=False` a selector matches the pods of its own kind and size only; pods that are kept apart avoid all pods of
their kind either way.

The 400 machine types have 1 to 400 cores with 2 GiB and 10 pods per core, in three zones, at a price in proportion.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from benchmarks.planning_clusters import GIB, HOSTNAME, MIB, NOON, ZONE, ZONES, pod, policy, snapshot
from plimsoll.core.resources import ResourceVector
from plimsoll.nodes.model.snapshot import MachineType, PendingPods

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.snapshot import Snapshot

KINDS: Final = ("plain", "zone-spread", "host-spread", "host-together", "host-apart")
LETTERS: Final = "abcdefg"
_CPU_MILLI: Final = (100, 250, 500, 1000, 1500)
_MEMORY_MIB: Final = (100, 256, 512, 1024, 2048, 4096)
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"


def incremental_types(count: int) -> tuple[MachineType, ...]:
    """1 to `count` cores, what the node keeps for itself taken off."""
    return tuple(
        MachineType(
            name=f"size-{cores}",
            capacity=_amounts(1000 * cores, 2048 * cores, cores),
            allocatable=_amounts(1000 * cores - 100, 2048 * cores - 10, cores),
            price_per_hour=0.1 * cores + 0.1 * 2 * cores * GIB / 1e9,
            zones=ZONES,
        )
        for cores in range(1, count + 1)
    )


def _amounts(cpu_milli: int, memory_mib: int, cores: int) -> ResourceVector:
    return ResourceVector({"cpu": cpu_milli, "memory": memory_mib * MIB, "pods": 10 * cores})


def diverse_mix(*, pods: int, seed: int, kinds: Sequence[str] = KINDS, shared: bool = True) -> tuple[PendingPods, ...]:
    """Equal parts of the kinds; pods that are drawn alike form one entry. The first kind takes what is left over."""
    random = np.random.default_rng(seed)
    drawn: Counter[tuple[str, int, int, str, str]] = Counter()
    for index, kind in enumerate(kinds):
        many = pods // len(kinds) + (pods % len(kinds) if index == 0 else 0)
        sizes = zip(random.choice(_CPU_MILLI, many).tolist(), random.choice(_MEMORY_MIB, many).tolist(), strict=True)
        letters = random.choice(list(LETTERS), (many, 2)).tolist()
        for (cpu, memory), (label, sought) in zip(sizes, letters, strict=True):
            drawn[_normalize(kind, cpu, memory, label, sought, shared=shared)] += 1
    return tuple(_build_entry(*entry, count=count) for entry, count in drawn.items())


def _normalize(
    kind: str, cpu: int, memory: int, label: str, sought: str, *, shared: bool
) -> tuple[str, int, int, str, str]:
    if kind == "host-apart":
        return kind, cpu, memory, "nginx", "nginx"
    if not shared:
        own = f"{kind}-{cpu}-{memory}"
        return kind, cpu, memory, own, own
    return kind, cpu, memory, label, label if kind == "plain" else sought


def _build_entry(kind: str, cpu: int, memory: int, label: str, sought: str, *, count: int) -> PendingPods:
    key = {"host-together": "company", "host-apart": "apart"}.get(kind, "letter")
    name = f"{kind}-{cpu}-{memory}-{label}-{sought}"
    spec = _build_rule(kind, {"matchLabels": {key: sought}})
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi"}
    return PendingPods(
        key=f"default/{name}", pod=pod(name, requests, labels={key: label}, **spec), count=count, created=NOON
    )


def _build_rule(kind: str, selector: dict[str, Any]) -> dict[str, Any]:
    if kind in {"zone-spread", "host-spread"}:
        key = ZONE if kind == "zone-spread" else HOSTNAME
        rule = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
        return {"topologySpreadConstraints": [rule]}
    term = {"topologyKey": HOSTNAME, "labelSelector": selector}
    if kind == "host-together":
        return {"affinity": {"podAffinity": {_REQUIRED: [term]}}}
    if kind == "host-apart":
        return {"affinity": {"podAntiAffinity": {_REQUIRED: [term]}}}
    return {}


def world(
    *, pods: int, seed: int, kinds: Sequence[str] = KINDS, shared: bool = True, types: int = 400
) -> tuple[Snapshot, Policy]:
    waiting = diverse_mix(pods=pods, seed=seed, kinds=kinds, shared=shared)
    return snapshot(waiting, machine_types=incremental_types(types)), policy(
        node_autoprovisioning=True, max_autoprovisioned_node_group_count=10_000
    )
