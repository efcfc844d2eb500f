"""Plans for Kafka clusters: the joint balance of counts and bytes, and the analyzer with all goals.

The clusters are those of docs/design/performance.md 5. Notes give Cruise Control's own analyzer on the same cluster
where it was measured (its processor time, moves and the largest deviation).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from plimsoll.kafka.brokers.dump import read_dump, write_dump
from plimsoll.kafka.model.cluster import build_model
from plimsoll.kafka.model.description import ClusterDescription
from plimsoll.kafka.model.proposals import OptimizationResult
from plimsoll.kafka.model.requests import Mode, RebalanceRequest
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.planning.optimizer import optimize
from plimsoll.solver.kernels import compile_all, force_choice
from plimsoll.solver.replicas.balance import balance
from plimsoll.solver.replicas.problem import BrokerState
from tests.kafka.planning.clusters import describe_broker, describe_topic, generate_cluster
from tests.solver.replicas.generated_clusters import make_problem

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.solver.replicas.problem import ReplicaProblem, ReplicaSolution

SEEDS = range(1, 6)
CHANGES: dict[str, dict[str, int]] = {"+10": {"added": 10}, "-10": {"removed": 10}}
CRUISE_CONTROL = {
    ("+10", 3): "Cruise Control at +-9 %: 36.9 s, 25,508 moves; at +-1 %: 62.9 s, bytes 97 % off",
    ("-10", 3): "Cruise Control at +-9 %: 14.2 s, 30,145 moves; at +-1 %: 20.0 s",
    ("+10", 5): "Cruise Control at +-9 %: 19.6 s, 25,513 moves",
}


def rows() -> Iterator[dict[str, Any]]:
    compile_all()
    for racks in (3, 5):
        for change, size in CHANGES.items():
            yield from _measure_relief(racks, change, size)
            yield from _measure_strict(racks, change, size)
    yield from _measure_plain()
    yield from _measure_scale()
    yield from _measure_dump()
    yield from _measure_analyzer()


def _measure_relief(racks: int, change: str, size: dict[str, int]) -> Iterator[dict[str, Any]]:
    runs = [_run(make_problem(racks=racks, seed=seed, relief=True, **size)) for seed in SEEDS]
    name = f"{change} of 100 brokers, {racks} racks, +-1 %, relief"
    seconds = max(run[0] for run in runs)
    yield _row(f"{name}: time", seconds, "s", 0.2, note=CRUISE_CONTROL.get((change, racks), ""))
    yield _row(f"{name}: moves / bound", max(_divide_moves(run[2]) for run in runs), "x", 1.001)
    yield _row(f"{name}: bytes / bound", max(_divide_bytes(run[2]) for run in runs), "x", 1.01)
    counts, held = zip(*(_find_deviations(run[1], run[2]) for run in runs), strict=True)
    yield _row(f"{name}: count deviation", 100 * max(counts), "%", 1.0)
    yield _row(f"{name}: byte deviation", 100 * max(held), "%", 1.0)


def _measure_strict(racks: int, change: str, size: dict[str, int]) -> Iterator[dict[str, Any]]:
    runs = [_run(make_problem(racks=racks, seed=seed, relief=False, **size)) for seed in SEEDS]
    name = f"{change} of 100 brokers, {racks} racks, +-1 %, strict"
    yield _row(f"{name}: time", max(run[0] for run in runs), "s", 0.2)
    yield _row(f"{name}: moves / bound", max(_divide_moves(run[2]) for run in runs), "x", 1.0)
    outside = sum(int((~_find_inside(run[1], run[2])).sum()) for run in runs)
    yield _row(f"{name}: new brokers outside a window", outside, "brokers", 0)


def _measure_plain() -> Iterator[dict[str, Any]]:
    problem = make_problem(racks=5, added=10, seed=1, relief=True)
    with force_choice("plain"):
        yield _row("the same without machine code", _run(problem, repeats=2)[0], "s", 0.6)


def _measure_scale() -> Iterator[dict[str, Any]]:
    """A million replicas, and ten times the partitions."""
    large = make_problem(partitions=333_334, brokers=300, racks=3, added=10, seed=1, relief=True)
    yield _row("1,000,000 replicas on 300 brokers, +10", _run(large, repeats=2)[0], "s", 1.0)
    small = _run(make_problem(partitions=30_000, brokers=100, racks=3, added=10, seed=1))[0]
    big = _run(make_problem(partitions=300_000, brokers=100, racks=3, added=10, seed=1), repeats=2)[0]
    yield _row("time of ten times the partitions", big / small, "x", 12.0)


def _measure_dump() -> Iterator[dict[str, Any]]:
    """A dump as `plimsoll kafka dump` writes it, and its model."""
    brokers = tuple(describe_broker(broker, rack=f"rack-{broker % 3}") for broker in range(100))
    rows = [[(start + step) % 100 for step in range(3)] for start in range(20)]
    topics = tuple(describe_topic(f"topic-{number:05d}", rows, size=10**9 + number) for number in range(5_000))
    written = write_dump(ClusterDescription(brokers=brokers, topics=topics))
    began = time.process_time()
    description = read_dump(written)
    read_at = time.process_time()
    build_model(description)
    built_at = time.process_time()
    yield _row("reading a dump of 100,000 partitions", read_at - began, "s", 0.5, note=f"{len(written) / 1e6:.0f} MB")
    yield _row("its model", built_at - read_at, "s", 0.6)


def _measure_analyzer() -> Iterator[dict[str, Any]]:
    """All goals, with and without rates, at the default windows."""
    new, leaving = tuple(range(100, 110)), tuple(range(90, 100))
    cases = {
        "+10 of 100 brokers": (10, RebalanceRequest(mode=Mode.ADD_BROKERS, brokers=new), 3.0, "39.1 s"),
        "-10 of 100 brokers": (0, RebalanceRequest(mode=Mode.REMOVE_BROKERS, brokers=leaving), 2.0, "19.8 s"),
        "100 brokers in full": (0, RebalanceRequest(), 2.0, ""),
    }
    for has_rates in (False, True):
        for name, (added, request, most, other) in cases.items():
            model = generate_cluster(
                partitions=100_000, brokers=100, racks=3, new=added, seed=7, topics=5_000, has_rates=has_rates
            )
            began = time.process_time()
            result = optimize(model, request, AnalyzerSettings())
            seconds = time.process_time() - began
            assert isinstance(result, OptimizationResult), result
            score = f"balancedness {result.balancedness_before:.1f} -> {result.balancedness_after:.1f}"
            moves = f"{result.bounds.moves:,} moves, at least {result.bounds.least_moves:,}"
            peer = f"; Cruise Control with ten goals: {other}" if other and not has_rates else ""
            rates = "with rates" if has_rates else "without rates"
            yield _row(f"all goals, {rates}: {name}", seconds, "s", most, note=f"{moves}; {score}{peer}")


def _row(name: str, value: float, unit: str, most: float, *, note: str = "") -> dict[str, Any]:
    met = value <= most * (1 + 1e-9)
    return {"name": name, "value": value, "unit": unit, "target": f"<= {most:g}", "met": met, "note": note}


def _run(problem: ReplicaProblem, *, repeats: int = 3) -> tuple[float, ReplicaProblem, ReplicaSolution]:
    best = float("inf")
    for _ in range(repeats):
        began = time.process_time()
        solution = balance(problem)
        best = min(best, time.process_time() - began)
    return best, problem, solution


def _divide_moves(solution: ReplicaSolution) -> float:
    return solution.moves / solution.least_moves


def _divide_bytes(solution: ReplicaSolution) -> float:
    return solution.moved_bytes / solution.least_bytes


def _find_deviations(problem: ReplicaProblem, solution: ReplicaSolution) -> tuple[float, float]:
    stays = problem.state != BrokerState.LEAVING
    counts, held = _sum_up(problem, solution)
    windows = solution.windows
    return (
        float(np.abs(counts[stays] / windows.mean_count[stays] - 1).max()),
        float(np.abs(held[stays] / windows.mean_bytes[stays] - 1).max()),
    )


def _find_inside(problem: ReplicaProblem, solution: ReplicaSolution) -> Any:
    new = problem.state == BrokerState.NEW
    counts, held = _sum_up(problem, solution)
    return (solution.windows.find_counts_inside(counts) & solution.windows.are_bytes_inside(held))[new]


def _sum_up(problem: ReplicaProblem, solution: ReplicaSolution) -> tuple[Any, Any]:
    sizes = np.repeat(problem.size, np.diff(problem.offsets))
    brokers = len(problem.rack_of)
    return (
        np.bincount(solution.broker_of, minlength=brokers),
        np.bincount(solution.broker_of, sizes, minlength=brokers),
    )
