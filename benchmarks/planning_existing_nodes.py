"""Nodes that stand, as numbers: how many pods fit on them, and which of them are not needed.

For `benchmarks.planning`: the solver alone, the fill against first fit and consolidation against its bound. Whole
turns over node and pod objects are measured in `planning_loops`.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import planning_clusters
from plimsoll.solver.consolidation.consolidate import NodeSet, consolidate
from plimsoll.solver.filling.fill import ExistingNodes, FillDemand, fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from plimsoll.solver.problem import Ints


def rows(seeds: Sequence[int], row: Callable[..., dict[str, Any]], cpu_ms: Callable[..., float]) -> Iterator[Any]:
    yield from _fill_rows(seeds, row, cpu_ms)
    for size in ((1_000, 15), (5_000, 20)):
        yield from _consolidation_rows(size, seeds, row, cpu_ms)


# ---- consolidation


def _consolidation_rows(
    size: tuple[int, int], seeds: Sequence[int], row: Callable[..., dict[str, Any]], cpu_ms: Callable[..., float]
) -> Iterator[Any]:
    nodes, pods_each = size
    ratios, times, moved = [], [], []
    for seed in seeds:
        cluster = _cluster(nodes, pods_each, seed)
        found = consolidate(cluster)
        times.append(min(cpu_ms(lambda instance=cluster: consolidate(instance)) for _ in range(3)))
        kept = np.ones(nodes, dtype=np.bool_)
        kept[found.removed] = False
        ratios.append(float(cluster.price[kept].sum()) / (found.bound or 1.0))
        moved.append(int(found.moves[:, 3].sum()) == _pods_on(cluster, found.removed))
    note = f"moves are the pods of removed nodes: {'yes' if all(moved) else 'NO'}"
    yield row(f"consolidation {nodes:,} nodes", statistics.median(times), "ms CPU", 25 if nodes > 1_000 else 5, note)
    yield row(f"consolidation {nodes:,} nodes: cost / bound", statistics.median(ratios), "", 1.05)


def _pods_on(cluster: NodeSet, removed: Ints) -> int:
    return sum(int(cluster.movable[cluster.starts[node] : cluster.starts[node + 1], 1].sum()) for node in removed)


def _cluster(nodes: int, pods_each: int, seed: int) -> NodeSet:
    """Pods of 300 log-normal classes placed at random on nodes of three types, as far as they have room."""
    random = np.random.default_rng(seed)
    shapes = [
        shape
        for shape in planning_clusters.n1_shapes()
        if shape.name in {"n1-standard-8", "n1-standard-16", "n1-highmem-16"}
    ]
    work = planning_clusters.workload("lognormal", pods=10_000, classes=300, seed=seed)
    requests = np.stack([work.cpu, work.memory_mib, np.ones_like(work.cpu)], axis=1)
    types = random.integers(0, len(shapes), nodes)
    sizes = np.array(
        [[shape.allocatable["cpu"], shape.allocatable["memory"] // planning_clusters.MIB, 110] for shape in shapes]
    )
    free = sizes[types].astype(np.int64)
    held: list[dict[int, int]] = [{} for _ in range(nodes)]
    wanted = np.stack(
        [random.integers(0, len(requests), nodes * pods_each), random.integers(0, nodes, nodes * pods_each)]
    )
    for kind, node in wanted.T.tolist():
        if (requests[kind] <= free[node]).all():
            free[node] -= requests[kind]
            held[node][kind] = held[node].get(kind, 0) + 1
    lines = [(kind, count) for home in held for kind, count in sorted(home.items())]
    return NodeSet(
        requests=requests,
        free=free,
        price=np.array([shapes[index].price for index in types]),
        kind=np.zeros(nodes, dtype=np.int64),
        allowed=np.ones((1, len(requests)), dtype=np.bool_),
        starts=np.concatenate([[0], np.cumsum([len(home) for home in held])]).astype(np.int64),
        movable=np.array(lines, dtype=np.int64),
        removable=np.ones(nodes, dtype=np.bool_),
    )


# ---- filling


def _fill_rows(
    seeds: Sequence[int], row: Callable[..., dict[str, Any]], cpu_ms: Callable[..., float]
) -> Iterator[dict[str, Any]]:
    """On nodes of all n1 sizes, each with any part of its cpu and of its memory free; beside it on small leftovers."""
    times, ratios, in_leftovers = [], [], []
    for seed in seeds:
        random = np.random.default_rng(seed)
        work = planning_clusters.workload("lognormal", pods=100_000, classes=5_000, seed=seed)
        requests = np.stack([work.cpu, work.memory_mib, np.ones_like(work.cpu)], axis=1)
        demand = FillDemand(requests=requests, counts=work.counts, allowed=np.ones((1, len(requests)), dtype=np.bool_))
        used, leftovers = _used_nodes(5_000, random), _leftovers(5_000, random)
        ratios.append(_placed(demand, used) / _first_fit(requests, work.counts, used))
        in_leftovers.append(_placed(demand, leftovers) / _first_fit(requests, work.counts, leftovers))
        times.append(min(cpu_ms(lambda instance=demand, at=used: _placed(instance, at)) for _ in range(3)))
    note = f"pods placed: {statistics.median(ratios):.2f} x first fit"
    yield row("fill 5,000 classes on 5,000 nodes", statistics.median(times), "ms CPU", 100, note)
    note = f"of small leftovers {1 / statistics.median(in_leftovers):.2f}"
    yield row("fill: first fit places, to ours", 1 / statistics.median(ratios), "x", 0.8, note)


def _placed(demand: FillDemand, free: Ints) -> int:
    return int(fill(demand, ExistingNodes(free=free, kind=np.zeros(len(free), dtype=np.int64))).count_placed().sum())


def _used_nodes(count: int, random: np.random.Generator) -> Ints:
    sizes = np.array(
        [
            [shape.allocatable["cpu"], shape.allocatable["memory"] // planning_clusters.MIB]
            for shape in planning_clusters.n1_shapes()
        ]
    )
    parts = sizes[random.integers(0, len(sizes), count)] * random.uniform(0, 1, (count, 2))
    return np.column_stack((parts.astype(np.int64), random.integers(5, 110, count)))


def _leftovers(count: int, random: np.random.Generator) -> Ints:
    """Up to 8 cores and 30 GB, whatever the node: few pods fit, and cpu runs out on nearly all of them."""
    amounts = (random.integers(0, 8_000, count), random.integers(0, 30_000, count), random.integers(5, 110, count))
    return np.stack(amounts, axis=1)


def _first_fit(requests: Ints, counts: Ints, free: Ints) -> int:
    """Pods that find a node when each class, largest first, goes to the first nodes with room."""
    left = free.copy()
    placed = 0
    for kind in np.argsort(-(requests / free.mean(axis=0)).max(axis=1), kind="stable").tolist():
        room = (left // np.maximum(requests[kind], 1)).min(axis=1)
        before = np.concatenate([[0], np.cumsum(room)[:-1]])
        here = np.clip(counts[kind] - before, 0, room)
        left -= here[:, None] * requests[kind]
        placed += int(here.sum())
    return placed
