"""Nodes that stand: what fits on them already, and which of them are not needed.

For `benchmarks.planning`. The fill is the solver's alone, against first fit; removals are measured twice: the solver's
consolidation of numbers, and the whole simulation of a cluster of node and pod objects.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks import planning_worlds as worlds
from plimsoll.nodes.planning.removals import find_unneeded
from plimsoll.solver.filling import Demand, Standing, fill
from plimsoll.solver.survivors import Cluster, consolidate

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from plimsoll.nodes.planning.world import Snapshot
    from plimsoll.solver.problems import Ints


def rows(seeds: Sequence[int], row: Callable[..., dict[str, Any]], cpu_ms: Callable[..., float]) -> Iterator[Any]:
    yield from _fill_rows(seeds, row, cpu_ms)
    for nodes, pods_each, most_ms in ((1_000, 15, 20), (5_000, 20, 100)):
        yield from _consolidation_rows((nodes, pods_each), seeds, row, cpu_ms)
        measured = [_simulated(worlds.used_cluster(nodes, pods_each=pods_each, seed=seed), cpu_ms) for seed in seeds]
        cold, warm, unneeded = (statistics.median(one) for one in zip(*measured, strict=True))
        name = f"scale-down simulation {nodes:,} nodes"
        note = (
            f"{nodes * pods_each:,} pods, {unneeded:,.0f} nodes not needed; the turn after the first, nothing changed"
        )
        yield row(name, warm, "ms CPU", most_ms, note)
        yield row(f"{name}, first turn", cold, "ms CPU", None, "everything read anew")


def _simulated(snapshot: Snapshot, cpu_ms: Callable[..., float]) -> tuple[float, float, int]:
    """Processor time of a first turn and of the next, and how many nodes are not needed."""
    policy = worlds.policy()
    first = find_unneeded(snapshot, policy, now=snapshot.at)
    cold = cpu_ms(lambda: find_unneeded(snapshot, policy, now=snapshot.at))
    warm = cpu_ms(lambda: find_unneeded(snapshot, policy, now=snapshot.at, memory=first.memory))
    return cold, warm, len(first.unneeded)


# ---- consolidation


def _consolidation_rows(
    size: tuple[int, int], seeds: Sequence[int], row: Callable[..., dict[str, Any]], cpu_ms: Callable[..., float]
) -> Iterator[Any]:
    nodes, pods_each = size
    ratios, times, moved = [], [], []
    for seed in seeds:
        cluster = _cluster(nodes, pods_each, seed)
        found = consolidate(cluster)
        times.append(min(cpu_ms(lambda one=cluster: consolidate(one)) for _ in range(3)))
        kept = np.ones(nodes, dtype=np.bool_)
        kept[found.removed] = False
        ratios.append(float(cluster.price[kept].sum()) / (found.bound or 1.0))
        moved.append(int(found.moves[:, 3].sum()) == _pods_on(cluster, found.removed))
    note = f"moves are the pods of removed nodes: {'yes' if all(moved) else 'NO'}"
    yield row(f"consolidation {nodes:,} nodes", statistics.median(times), "ms CPU", 25 if nodes > 1_000 else 5, note)
    yield row(f"consolidation {nodes:,} nodes: cost / bound", statistics.median(ratios), "", 1.05)


def _pods_on(cluster: Cluster, removed: Ints) -> int:
    return sum(int(cluster.dwellers[cluster.starts[node] : cluster.starts[node + 1], 1].sum()) for node in removed)


def _cluster(nodes: int, pods_each: int, seed: int) -> Cluster:
    """Pods of 300 log-normal classes placed at random on nodes of three types, as far as they have room."""
    random = np.random.default_rng(seed)
    shapes = [one for one in worlds.n1_shapes() if one.name in {"n1-standard-8", "n1-standard-16", "n1-highmem-16"}]
    work = worlds.workload("lognormal", pods=10_000, classes=300, seed=seed)
    requests = np.stack([work.cpu, work.memory_mib, np.ones_like(work.cpu)], axis=1)
    types = random.integers(0, len(shapes), nodes)
    sizes = np.array([[one.allocatable["cpu"], one.allocatable["memory"] // worlds.MIB, 110] for one in shapes])
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
    return Cluster(
        requests=requests,
        free=free,
        price=np.array([shapes[index].price for index in types]),
        kind=np.zeros(nodes, dtype=np.int64),
        allowed=np.ones((1, len(requests)), dtype=np.bool_),
        starts=np.concatenate([[0], np.cumsum([len(home) for home in held])]).astype(np.int64),
        dwellers=np.array(lines, dtype=np.int64),
        removable=np.ones(nodes, dtype=np.bool_),
    )


# ---- filling


def _fill_rows(
    seeds: Sequence[int], row: Callable[..., dict[str, Any]], cpu_ms: Callable[..., float]
) -> Iterator[dict[str, Any]]:
    times, ratios = [], []
    for seed in seeds:
        random = np.random.default_rng(seed)
        work = worlds.workload("lognormal", pods=100_000, classes=5_000, seed=seed)
        requests = np.stack([work.cpu, work.memory_mib, np.ones_like(work.cpu)], axis=1)
        free = np.stack(
            [random.integers(0, 8_000, 5_000), random.integers(0, 30_000, 5_000), random.integers(5, 110, 5_000)],
            axis=1,
        )
        demand = Demand(requests=requests, counts=work.counts, allowed=np.ones((1, len(requests)), dtype=np.bool_))
        standing = Standing(free=free, kind=np.zeros(len(free), dtype=np.int64))
        placed = int(fill(demand, standing).placed().sum())
        times.append(min(cpu_ms(lambda one=demand, at=standing: fill(one, at)) for _ in range(3)))
        ratios.append(placed / _first_fit(requests, work.counts, free))
    note = f"pods placed: {statistics.median(ratios):.2f} x first fit"
    yield row("fill 5,000 classes on 5,000 nodes", statistics.median(times), "ms CPU", 100, note)
    yield row("fill: first fit places, to ours", 1 / statistics.median(ratios), "x", 0.8)


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
