"""Pods with rules about each other, as Karpenter's own benchmark draws them: plans of new nodes for an empty cluster.

Five kinds in equal parts: no rule, spread over zones, spread over nodes, together on a node, apart on nodes. Sizes are
drawn from five cpu and six memory requests, labels and the values that selectors look for from seven letters, each on
its own: pods of different sizes count in each other's rules, and most pods do not match their own selector. With
`shared=False` a selector matches the pods of its own kind and size only; pods that are kept apart avoid all pods of
their kind either way.

The 400 machine types have 1 to 400 cores with 2 GiB and 10 pods per core, in three zones, at a price in proportion.
"""

from __future__ import annotations

import gc
import time
from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from benchmarks.planning import row
from benchmarks.planning_clusters import GIB, HOSTNAME, MIB, NOON, ZONE, ZONES, pod, policy, snapshot
from plimsoll.core.resources import ResourceVector
from plimsoll.nodes.model.snapshot import MachineType, PendingPods
from plimsoll.nodes.planning.packing.pod_relations import PodRelations
from plimsoll.nodes.planning.scaleup.planner import propose, verify_proposal
from plimsoll.nodes.planning.topology.greedy import place_greedily
from plimsoll.solver import kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import Snapshot

T = TypeVar("T")
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


# ---- rows

_SIZES: Final = {1_000: 0.3, 5_000: None, 20_000: 3.0}
"""Pods of the whole mix, and the most seconds that planning may take."""
_ALONE: Final = 200
"""Pods of one kind, or of two kinds together."""
_SEED: Final = 90_210


def rows() -> Iterator[dict[str, Any]]:
    kernels.compile_all()
    propose(*world(pods=100, seed=0))
    for shared in (True, False):
        for pods, most_s in _SIZES.items():
            yield from _plan_rows(KINDS, pods, shared=shared, most_s=most_s)
    for kind in KINDS:
        for shared in (True, False) if kind not in {"plain", "host-apart"} else (True,):
            yield from _plan_rows((kind,), _ALONE, shared=shared)
    for pair in combinations(KINDS, 2):
        yield from _plan_rows(pair, 2 * _ALONE, shared=True)
    yield from _growth_rows()


def _plan_rows(
    kinds: Sequence[str], pods: int, *, shared: bool, most_s: float | None = None
) -> Iterator[dict[str, Any]]:
    found = _measure(world(pods=pods, seed=_SEED, kinds=kinds, shared=shared))
    name = f"{pods:,} {' + '.join(kinds) if len(kinds) < len(KINDS) else 'mix'}, {'shared' if shared else 'own'}"
    floor = "no floor" if found.floor is None else f"floor {found.floor:.2f}"
    note = f"{found.classes} classes, {found.nodes} nodes, {found.plan.cost_per_hour:.2f}/h, {floor}, {found.left} left"
    note += f", {found.plan.verification_failures} refuted; verifier {found.verify_s:.3f} s"
    yield row(f"{name}: planning", found.plan_s, "s CPU", most_s, note)
    if found.plan.lower_bound_per_hour:
        yield row(f"{name}: cost / bound", found.plan.cost_per_hour / found.plan.lower_bound_per_hour, "", 1.05)
    yield row(f"{name}: verifier / planning", found.verify_s / found.plan_s, "", 1)


def _growth_rows() -> Iterator[dict[str, Any]]:
    """Ten times the pods of the same classes; ten times the classes."""
    snapshot_, rules = world(pods=1_000, seed=_SEED, shared=False)
    few = _measure((snapshot_, rules)).plan_s
    more = tuple(replace(entry, count=10 * entry.count) for entry in snapshot_.pending)
    many = _measure((replace(snapshot_, pending=more), rules)).plan_s
    yield row("growth: x 10 pods, equal classes", many / few, "x", 1.5)
    small, large = _measure(world(pods=300, seed=_SEED)), _measure(world(pods=6_000, seed=_SEED))
    classes = large.classes / small.classes
    yield row("growth: with classes", large.plan_s / small.plan_s / classes, "x per x", 1.5, f"x {classes:.1f} classes")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Measurement:
    plan: ScaleUpPlan
    plan_s: float
    verify_s: float
    classes: int
    nodes: int
    left: int
    floor: float | None
    """What first fit costs, if it places as many pods."""


def _measure(known: tuple[Snapshot, Policy]) -> _Measurement:
    """Processor time; the better of two plans."""
    snapshot_, rules = known
    proposal, plan_s = min((_time(lambda: propose(snapshot_, rules)) for _ in range(2)), key=itemgetter(1))
    plan, verify_s = _time(lambda: verify_proposal(proposal))
    problem = proposal.problem
    relations = PodRelations(problem.table, problem.rules, snapshot_.view)
    demand = {pods.index: pods.count for pods in problem.table}
    floor = place_greedily(problem, relations, demand, np.ones(len(problem.options), dtype=np.bool_))
    complete = floor is not None and int(floor.count_placed(len(problem.table)).sum()) >= plan.scheduled
    return _Measurement(
        plan=plan,
        plan_s=plan_s,
        verify_s=verify_s,
        classes=len(problem.table),
        nodes=sum(scale_up.added for scale_up in plan.scale_ups),
        left=sum(unschedulable.pods for unschedulable in plan.unschedulable),
        floor=floor.compute_cost(problem) if floor is not None and complete else None,
    )


def _time(work: Callable[[], T]) -> tuple[T, float]:
    gc.collect()
    began_s = time.process_time()
    done = work()
    return done, time.process_time() - began_s
