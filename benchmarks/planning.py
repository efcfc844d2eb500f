"""The planning engine against specs of its own size: whole plans, timed, verified, and measured against a bound.

Times are processor time of this process, as in the tables these rows are compared with: other work on the machine then
disturbs less. A plan's row is the median over seeds that no test uses (`PLIMSOLL_BENCH_SEEDS` of them, five by
default); beside it stand, in the same run, the time of one dense pass over its input (each column of a matrix of pods
times 5 integers summed up), their ratio, the time of the verifier, and the cost over the lower bound.
"""

from __future__ import annotations

import gc
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from benchmarks import planning_clusters, planning_existing_nodes, planning_loops, planning_quality
from plimsoll.nodes.planning.scaleup.planner import propose, verify_proposal
from plimsoll.solver import kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.scale_up_plan import ScaleUpPlan
    from plimsoll.nodes.model.snapshot import Snapshot

FIRST_SEED: Final = 90_210
COLD_FILE: Final = Path("examples/plans/mixed.yaml")
MIB: Final = 1 << 20

World = tuple["Snapshot", "Policy"]


def seeds() -> range:
    return range(FIRST_SEED, FIRST_SEED + int(os.environ.get("PLIMSOLL_BENCH_SEEDS", "5")))


def row(name: str, value: float, unit: str, most: float | None = None, note: str = "", **more: float) -> dict[str, Any]:
    """A measurement; `most` is its target. Further numbers go to the JSON only."""
    return {
        "name": name,
        "value": round(value, 5),
        "unit": unit,
        "target": None if most is None else f"<= {most:g}",
        "met": None if most is None else bool(value <= most),
        "note": note,
        **{key: round(number, 5) for key, number in more.items()},
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Measurement:
    """One world, planned and verified; times in ms."""

    plan_ms: float
    dense_ms: float
    verify_ms: float
    peak_mib: float
    pods: int
    plan: ScaleUpPlan

    @property
    def over_bound(self) -> float:
        return self.plan.cost_per_hour / self.plan.lower_bound_per_hour if self.plan.lower_bound_per_hour else 1.0


def cpu_ms(work: Callable[[], object]) -> float:
    gc.collect()
    began_s = time.process_time()
    work()
    return (time.process_time() - began_s) * 1000


def dense_pass_ms(pods: int) -> float:
    matrix = np.ones((pods, 5), dtype=np.int64)
    return min(cpu_ms(lambda: matrix.sum(axis=0)) for _ in range(5))


def measured(world: World) -> Measurement:
    """Planned once for its memory and to have everything loaded, then three times: the best counts."""
    snapshot, policy = world
    pods = sum(pending.count for pending in snapshot.pending)
    before_mib = _memory_mib("VmRSS")
    _forget_peak()
    proposal = propose(snapshot, policy)
    peak_mib = _memory_mib("VmHWM") - before_mib
    plan_ms = min(cpu_ms(lambda: propose(snapshot, policy)) for _ in range(3))
    answers: list[ScaleUpPlan] = []
    verify_ms = cpu_ms(lambda: answers.append(verify_proposal(proposal)))
    plan = answers[0]
    _check(plan, pods)
    return Measurement(
        plan_ms=plan_ms, dense_ms=dense_pass_ms(pods), verify_ms=verify_ms, peak_mib=peak_mib, pods=pods, plan=plan
    )


def _check(plan: ScaleUpPlan, pods: int) -> None:
    left = sum(unschedulable.pods for unschedulable in plan.unschedulable)
    if plan.scheduled + left != pods:
        raise RuntimeError(f"{plan.scheduled} helped and {left} left of {pods}")


def _memory_mib(field: str) -> float:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(f"{field}:"))


def _forget_peak() -> None:
    """Linux: the highest memory so far is forgotten."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def plan_rows(
    name: str, make: Callable[[int], World], *, most_ms: float | None, most_cost: float | None
) -> Iterator[Any]:
    """Time and cost, medians over the seeds."""
    found = [measured(make(seed)) for seed in seeds()]
    plan_ms = statistics.median(result.plan_ms for result in found)
    dense_ms = statistics.median(result.dense_ms for result in found)
    verify_ms = statistics.median(result.verify_ms for result in found)
    placed = sum(result.plan.scheduled for result in found) / sum(result.pods for result in found)
    note = f"dense pass {dense_ms:.3g} ms, x {plan_ms / dense_ms:.3g}; verifier {verify_ms:.0f} ms; {placed:.1%} placed"
    refuted = sum(result.plan.verification_failures for result in found)
    note += f"; {refuted} classes refuted and placed pod by pod" if refuted else ""
    more = {"refuted": refuted, "dense_ms": dense_ms, "dense_passes": plan_ms / dense_ms, "verify_ms": verify_ms}
    yield row(f"{name}: planning", plan_ms, "ms CPU", most_ms, note, **more)
    if any(result.plan.cost_per_hour for result in found):
        over = [result.over_bound for result in found]
        yield row(f"{name}: cost / bound", statistics.median(over), "", most_cost, f"worst {max(over):.4f}")
    yield row(
        f"{name}: memory", max(result.peak_mib for result in found), "MiB", None, "peak above what was held before"
    )


# ---- worlds


def one_loop(groups: int, pods: int = 10_000) -> Callable[[int], World]:
    """Pending pods of 100 controllers, all groups empty."""

    def make(seed: int) -> World:
        work = planning_clusters.equal_counts(
            planning_clusters.workload("lognormal", pods=pods, classes=100, seed=seed), pods // 100
        )
        shapes = planning_clusters.synthetic_shapes(groups)
        return planning_clusters.snapshot(
            planning_clusters.pending(work), groups=planning_clusters.groups(shapes)
        ), planning_clusters.policy()

    return make


def largest_request(types: int) -> Callable[[int], World]:
    """32 pod sets of 16,384 pods each, all or nothing, groups to be made of so many machine types."""

    def make(seed: int) -> World:
        work = planning_clusters.equal_counts(
            planning_clusters.workload("lognormal", pods=524_288, classes=32, seed=seed), 16_384
        )
        kinds = planning_clusters.machine_types(planning_clusters.synthetic_shapes(types))
        waiting = planning_clusters.bundle(work, "largest")
        return planning_clusters.snapshot(waiting, machine_types=kinds), planning_clusters.policy(
            node_autoprovisioning=True
        )

    return make


def five_ways(seed: int) -> World:
    kinds = planning_clusters.machine_types(planning_clusters.synthetic_shapes(400), planning_clusters.ZONES)
    waiting = planning_clusters.five_way_mix(pods=20_000, seed=seed)
    return planning_clusters.snapshot(waiting, machine_types=kinds), planning_clusters.policy(
        node_autoprovisioning=True
    )


def constrained(kind: str) -> Callable[[int], World]:
    """10,000 pods of 100 controllers on 19 types in three zones; all of them, or a third, with a constraint."""

    def make(seed: int) -> World:
        groups = planning_clusters.groups(planning_clusters.n1_shapes(), zones=planning_clusters.ZONES)
        waiting = planning_clusters.constrained_pending(kind, pods=10_000, classes=100, seed=seed)
        return planning_clusters.snapshot(waiting, groups=groups), planning_clusters.policy()

    return make


# ---- rows


def rows() -> Iterator[dict[str, Any]]:
    kernels.compile_all()
    # Loads what is called first, so that no row pays for it.
    propose(*one_loop(200)(0))
    yield from plan_rows("loop 10,000 pods x 200 groups", one_loop(200), most_ms=50, most_cost=1.01)
    yield from plan_rows("loop 10,000 pods x 50 groups", one_loop(50), most_ms=None, most_cost=1.01)
    for types in (21, 200):
        yield from _largest(types)
    yield from plan_rows("five-way mix 20,000 x 400 types", five_ways, most_ms=1_000, most_cost=None)
    yield from planning_loops.rows(seeds(), row, cpu_ms)
    yield from planning_existing_nodes.rows(seeds(), row, cpu_ms)
    yield _growth()
    yield from _overheads()
    yield from planning_quality.rows(seeds(), row, cpu_ms)
    yield from _cold_start()


def _largest(types: int) -> Iterator[dict[str, Any]]:
    name = f"largest request x {types} types"
    for plan_row in plan_rows(name, largest_request(types), most_ms=None, most_cost=1.01):
        if plan_row["name"].endswith("planning"):
            yield plan_row
            yield row(f"{name}: dense passes", plan_row["dense_passes"], "", 10)
        elif plan_row["name"].endswith("memory"):
            yield row(plan_row["name"], plan_row["value"], plan_row["unit"], 50, plan_row["note"])
        else:
            yield plan_row


def _growth() -> dict[str, Any]:
    """The same 100 controllers with 100 and with 1,000 pods each."""
    ratios = []
    for seed in seeds():
        few, many = measured(one_loop(200)(seed)), measured(one_loop(200, pods=100_000)(seed))
        ratios.append(many.plan_ms / few.plan_ms)
    return row("growth: x 10 pods, equal classes", statistics.median(ratios), "x", 1.5, f"worst {max(ratios):.2f}")


def _overheads() -> Iterator[dict[str, Any]]:
    plain = statistics.median(measured(constrained("plain")(seed)).plan_ms for seed in seeds())
    for kind in ("zone-spread", "host-apart"):
        found = statistics.median(measured(constrained(kind)(seed)).plan_ms for seed in seeds())
        share = "all" if kind == "zone-spread" else "30 %"
        note = f"{share} of 100 controllers; {found:.0f} ms to {plain:.0f} ms without"
        yield row(f"constraint overhead: {kind}", found / plain, "x", 3, note)


def _cold_start() -> Iterator[dict[str, Any]]:
    """A process from nothing to its first plan: as the command chooses, and with machine code loaded for it."""
    command = [sys.executable, "-m", "plimsoll", "plan", "-f", str(COLD_FILE)]
    yield row("cold start to first plan", min(_child_s(command) for _ in range(3)), "s CPU", 2, COLD_FILE.name)
    compiled = {**os.environ, kernels.VARIABLE: "numba"}
    loading = min(_child_s(command, compiled) for _ in range(3))
    yield row("cold start with machine code", loading, "s CPU", None, "from a warm cache")


def _child_s(command: list[str], environment: dict[str, str] | None = None) -> float:
    before = os.times()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system
