"""How good packings are: cost over a bound that was given much more effort than the packing was.

For `benchmarks.planning`. The bound is computed anew for each row, with effort that proves rather than plans.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from benchmarks import planning_clusters
from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
from plimsoll.solver.bounds.lower_bound import compute_lower_bound
from plimsoll.solver.pack import pack
from plimsoll.solver.problem import UNBOUNDED, Effort, PackingProblem

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from plimsoll.solver.packing.solution import Solution

PROVING: Final = Effort(rounds=100)
ALL_DIFFERENT: Final = 10_000


def rows(seeds: Sequence[int], row: Callable[..., dict[str, Any]], cpu_ms: Callable[..., float]) -> Iterator[Any]:
    for kind in ("uniform", "lognormal"):
        for pods in (100, 1_000, 10_000, 100_000):
            most = {100: 1.12, 1_000: 1.06}.get(pods, 1.01)
            problems = [
                _n1(planning_clusters.workload(kind, pods=pods, classes=min(pods, 200), seed=seed)) for seed in seeds
            ]
            yield from _rows(f"{kind} {pods:,} pods, 19 types", problems, most, row, cpu_ms)
    yield from _rows("GPU models 8,000 pods, 45 types", [_gpu(seed) for seed in seeds], 1.02, row, cpu_ms)
    for kind in ("uniform-fine", "lognormal"):
        problems = [_n1(planning_clusters.workload(kind, pods=1, classes=ALL_DIFFERENT, seed=seed)) for seed in seeds]
        least = min(len(packing_problem.counts) for packing_problem in problems)
        yield from _rows(f"10,000 pods all different, {kind}", problems, 1.02, row, cpu_ms, f"{least:,} shapes or more")


def _rows(
    name: str,
    problems: Sequence[PackingProblem],
    most: float,
    row: Callable[..., dict[str, Any]],
    cpu_ms: Callable[..., float],
    note: str = "",
) -> Iterator[Any]:
    ratios, times = [], []
    for problem in problems:
        answers: list[Solution] = []
        times.append(cpu_ms(lambda instance=problem, found=answers: found.append(pack(instance, Effort()))))
        ratios.append(answers[0].packing.cost / max(compute_lower_bound(problem, effort=PROVING), answers[0].bound))
    reported = f"worst {max(ratios):.4f}; {statistics.median(times):.0f} ms CPU{'; ' * bool(note)}{note}"
    yield row(f"{name}: cost / bound", statistics.median(ratios), "", most, reported, plan_ms=statistics.median(times))


def _n1(work: planning_clusters.Workload) -> PackingProblem:
    shapes = planning_clusters.n1_shapes()
    capacity = [
        [shape.allocatable["cpu"], shape.allocatable["memory"] // planning_clusters.MIB, 110] for shape in shapes
    ]
    requests = np.stack([work.cpu, work.memory_mib, np.ones_like(work.cpu)], axis=1)
    return PackingProblem(
        requests=requests,
        counts=work.counts,
        capacity=np.array(capacity, dtype=np.int64),
        price=np.array([shape.price for shape in shapes]),
        allowed=np.ones((len(shapes), len(requests)), dtype=np.bool_),
        **_free(len(requests), len(shapes)),
    )


def _gpu(seed: int) -> PackingProblem:
    """As the engine sees it: GPU models come in as who may go where."""
    waiting = planning_clusters.gpu_pending(pods=8_000, classes=370, seed=seed)
    board = ScaleUpProblem.from_snapshot(
        planning_clusters.snapshot(waiting, groups=planning_clusters.groups(planning_clusters.gpu_shapes())),
        planning_clusters.policy(),
    )
    possible = board.allowed.any(axis=0)
    return PackingProblem(
        requests=board.requests[possible],
        counts=board.table.counts[possible],
        capacity=board.capacity,
        price=board.prices,
        allowed=board.allowed[:, possible],
        **_free(int(possible.sum()), len(board.options)),
    )


def _free(classes: int, types: int) -> dict[str, Any]:
    return {
        "per_bin": np.full(classes, UNBOUNDED, dtype=np.int64),
        "exclusive": np.zeros((classes, 0), dtype=np.bool_),
        "available": np.full(types, UNBOUNDED, dtype=np.int64),
        "use": np.zeros((types, 0), dtype=np.int64),
        "room": np.zeros(0, dtype=np.int64),
    }
