"""A loop of the node autoscaler: from scratch, after a small change, and with many pending pods.

The real loop runs from the informers' caches to the last event. `benchmarks.autoscaler_clusters` feeds it from memory,
so that the figures include no API server. Processor time; targets of docs/design/nodes.md 7.5. Kernels are compiled.
"""

from __future__ import annotations

import logging
import resource
import time
import tracemalloc
from typing import TYPE_CHECKING, Any

import structlog

from benchmarks.autoscaler_clusters import SteadyCluster, cluster_of_n22, waiting_cluster
from plimsoll.solver import kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plimsoll.nodes.loop_result import LoopResult

_NODES = 5_000
_PODS_EACH = 30
_CHANGED = 0.01
_TURNS = 5
_MIB = 1 << 20


def rows() -> Iterator[dict[str, Any]]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    kernels.compile_all()
    yield from _standing_rows()
    yield from _waiting_rows()
    yield from _n22_rows()


def _standing_rows() -> Iterator[dict[str, Any]]:
    cluster = SteadyCluster(nodes=_NODES, pods_each=_PODS_EACH)
    before = _resident_mib()
    cold, turn = _timed(cluster.bench.turn)
    reported = f"{_NODES * _PODS_EACH:,} pods, {len(turn.scale_down.unneeded)} nodes found unneeded"
    yield _row(f"turn at {_NODES:,} nodes, cold", cold, "s CPU", 10, reported)
    yield _row("... memory beyond the caches", _resident_mib() - before, "MiB", None, "of the process, after that turn")
    times = []
    for _ in range(_TURNS):
        cluster.change(_CHANGED, pending=50)
        seconds, turn = _timed(cluster.bench.turn)
        times.append(seconds)
    changed = f"{_CHANGED:.0%} of pods and nodes changed, 50 pods more wait; best of {_TURNS}, worst {max(times):.2f}"
    yield _row(f"turn at {_NODES:,} nodes, after a change", min(times), "s CPU", 1, changed)
    idle = min(_timed(cluster.bench.turn)[0] for _ in range(3))
    yield _row(f"turn at {_NODES:,} nodes, nothing changed", idle, "s CPU", None, "best of 3")


def _waiting_rows() -> Iterator[dict[str, Any]]:
    times = []
    for seed in range(3):
        bench = waiting_cluster(pods=10_000, controllers=100, groups=200, seed=seed)
        seconds, turn = _timed(bench.turn)
        assert turn.scale_up.plan.scheduled == 10_000, "everybody gets a place"
        times.append(seconds)
    reported = f"100 controllers, 200 groups, first turn; best of 3, {len(turn.scale_up.results)} groups grown"
    yield _row("turn with 10,000 pending pods", min(times), "s CPU", 5, reported)
    tracemalloc.start()
    bench = waiting_cluster(pods=10_000, controllers=100, groups=200)
    held, _ = tracemalloc.get_traced_memory()
    bench.turn()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    yield _row("... memory beyond the caches at its peak", (peak - held) / _MIB, "MiB", None, "of Python objects")


def _n22_rows() -> Iterator[dict[str, Any]]:
    """The cloud answers at once here; over a simulated one its own work is on top."""
    bench = cluster_of_n22()
    times, turns = [], []
    for _ in range(3):
        seconds, turn = _timed(bench.turn)
        times.append(seconds)
        turns.append(turn)
    plan = turns[0].scale_up.plan
    groups = bench.provider.groups.values()
    cost = sum(table_group.target * table_group.shape.price for table_group in groups)
    assert all(loop_result.scale_up.plan.scheduled == 30_000 for loop_result in turns), (
        "everybody is planned for, in every turn"
    )
    assert len(groups) <= 60
    above = cost / plan.lower_bound_per_hour
    reported = f"300 shapes, 40 machine types; {len(groups)} groups, which cost {above:.4f} of the bound"
    yield _row("N22: 30,000 pending pods, first turn", times[0], "s CPU", 5, reported)
    reported = "their nodes are on the way; the worse of two"
    yield _row("N22: ... the turns after it", max(times[1:]), "s CPU", 5, reported)


def _timed(doing: Callable[[], LoopResult]) -> tuple[float, LoopResult]:
    began = time.process_time()
    turn = doing()
    assert turn.ended_early is None, turn.ended_early
    return time.process_time() - began, turn


def _resident_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _row(name: str, value: float, unit: str, at_most: float | None, note: str) -> dict[str, Any]:
    met = None if at_most is None else value <= at_most
    target = "" if at_most is None else f"<= {at_most:g}"
    return {"name": name, "value": value, "unit": unit, "target": target, "met": met, "note": note}
