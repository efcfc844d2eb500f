"""Turns of the node autoscaler when running pods have rules about each other.

A share of the controllers, chosen by a seed, gives its pods one rule each: hostname anti-affinity, hostname spread or
zone spread, over the pods of the same controller. Every cluster takes the same turns: cold, ten idle ones in a row, one
pod changed, one pod pending, one pod in a hundred changed. Targets are ratios to the same cluster without rules, and
between the sizes. Consolidation is measured on the same clusters. Processor time; kernels are compiled.
"""

from __future__ import annotations

import logging
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import structlog

from benchmarks.autoscaler_clusters import DEPLOYMENTS, SteadyCluster
from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.planning.consolidation.planner import Consolidation, ConsolidationOptions, consolidate
from plimsoll.solver import kernels

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plimsoll.nodes.loop_result import LoopResult

SIZES = (1_000, 5_000)
PODS_EACH = 30
SHARES = (0.1, 0.3, 1.0)
KINDS = ("hostname anti-affinity", "hostname spread", "zone spread")
_IDLE_TURNS = 10
_TRIES = 3
_MOST_TIMES_WITHOUT_RULES = 3
_MOST_TIMES_SMALLER = 6
_MOST_GROWTH = 1.5

_HOSTNAME = "kubernetes.io/hostname"
_ZONE = "topology.kubernetes.io/zone"


def build_rules(kind: str, share: float, *, seed: int = 22) -> dict[int, dict[str, Any]]:
    """By controller: the rule that its pods have about each other, for so large a part of the controllers."""
    random = np.random.default_rng(seed)
    chosen = random.permutation(DEPLOYMENTS)[: round(DEPLOYMENTS * share)]
    return {owner: _build_rule(kind, f"web-{owner}") for owner in sorted(chosen.tolist())}


def _build_rule(kind: str, app: str) -> dict[str, Any]:
    selector = {"labelSelector": {"matchLabels": {"app": app}}}
    if kind == "hostname anti-affinity":
        terms = [{"topologyKey": _HOSTNAME, **selector}]
        return {"affinity": {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    key = _ZONE if kind == "zone spread" else _HOSTNAME
    constraint = {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", **selector}
    return {"topologySpreadConstraints": [constraint]}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnTimes:
    """Seconds of processor time of the turns of one cluster."""

    cold: float
    idle: tuple[float, ...]
    """Ten turns in a row."""
    one_changed: float
    one_pending: float
    part_changed: float
    unneeded: int
    not_looked_at: int


def measure(nodes: int, rules: dict[int, dict[str, Any]]) -> TurnTimes:
    cluster = SteadyCluster(nodes=nodes, pods_each=PODS_EACH, zones=3, rules=rules)
    cold, _ = _time_turn(cluster)
    idle = tuple(_time_turn(cluster)[0] for _ in range(_IDLE_TURNS))
    pods = nodes * PODS_EACH
    one_changed = min(_time_turn(cluster, lambda: cluster.replace_pods(1))[0] for _ in range(_TRIES))
    one_pending = min(_time_pending(cluster) for _ in range(_TRIES))
    part_changed, turn = _time_turn(cluster, lambda: cluster.replace_pods(pods // 100))
    return TurnTimes(
        cold=cold,
        idle=idle,
        one_changed=one_changed,
        one_pending=one_pending,
        part_changed=part_changed,
        unneeded=len(turn.scale_down.unneeded),
        not_looked_at=sum(node.reason.code == "NotTriedThisTime" for node in turn.scale_down.unremovable),
    )


def _time_turn(cluster: SteadyCluster, change: Callable[[], None] | None = None) -> tuple[float, LoopResult]:
    if change is not None:
        change()
    began = time.process_time()
    turn = cluster.bench.turn()
    seconds = time.process_time() - began
    assert turn.ended_early is None, turn.ended_early
    return seconds, turn


def _time_pending(cluster: SteadyCluster) -> float:
    pod = cluster.add_pending()
    seconds, _ = _time_turn(cluster)
    cluster.remove_pod(pod)
    cluster.bench.turn()
    return seconds


def rows() -> Iterator[dict[str, Any]]:
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR))
    kernels.compile_all()
    SteadyCluster(nodes=20, pods_each=2).bench.turn()
    smaller: dict[str, TurnTimes] = {}
    for nodes in SIZES:
        plain = measure(nodes, {})
        yield from _build_rows(f"{nodes:,} nodes, no rules", plain, plain, smaller)
        for kind in KINDS:
            for share in SHARES:
                measured = measure(nodes, build_rules(kind, share))
                name = f"{nodes:,} nodes, {kind} on {share:.0%}"
                yield from _build_rows(name, measured, plain, smaller)
    yield from _consolidation_rows()


def _consolidation_rows() -> Iterator[dict[str, Any]]:
    """What consolidation saves under rules, of what it saves without them, and how long it takes for that."""
    nodes, share = SIZES[0], SHARES[1]
    plain_seconds, plain_found = _consolidate(nodes, {})
    for kind in KINDS:
        seconds, found = _consolidate(nodes, build_rules(kind, share))
        name = f"consolidation, {nodes:,} nodes, {kind} on {share:.0%}"
        note = f"{len(found.removals)} nodes removed, {len(plain_found.removals)} without rules"
        saved = found.savings_per_hour / plain_found.savings_per_hour
        yield _row(name, seconds * 1000, "ms CPU", _MOST_TIMES_WITHOUT_RULES * plain_seconds * 1000, note)
        yield {
            **_row(f"{name}: savings / without rules", saved, "x", None, ""),
            "target": ">= 0.95",
            "met": saved >= 0.95,
        }


def _consolidate(nodes: int, rules: dict[int, dict[str, Any]]) -> tuple[float, Consolidation]:
    cluster = SteadyCluster(nodes=nodes, pods_each=PODS_EACH, zones=3, rules=rules)
    snapshot = cluster.bench.turn().snapshot
    assert snapshot is not None
    policy = read_options({"consolidation": "underutilized"})
    options = ConsolidationOptions(budgets=())
    began = time.process_time()
    found = consolidate(snapshot, policy, now=snapshot.at, options=options)
    return time.process_time() - began, found


def _build_rows(
    name: str, measured: TurnTimes, plain: TurnTimes, smaller: dict[str, TurnTimes]
) -> Iterator[dict[str, Any]]:
    idle = min(measured.idle)
    note = (
        f"cold {measured.cold * 1000:,.0f}, one pending {measured.one_pending * 1000:,.0f}, 1 % changed "
        f"{measured.part_changed * 1000:,.0f} ms; {measured.unneeded} unneeded, {measured.not_looked_at} not looked at"
    )
    at_most = None if measured is plain else _MOST_TIMES_WITHOUT_RULES * min(plain.idle) * 1000
    yield _row(f"{name}: idle turn", idle * 1000, "ms CPU", at_most, note)
    at_most = None if measured is plain else _MOST_TIMES_WITHOUT_RULES * plain.one_changed * 1000
    yield _row(f"{name}: one pod changed", measured.one_changed * 1000, "ms CPU", at_most, "")
    growth = min(measured.idle[-3:]) / min(measured.idle[:3])
    yield _row(f"{name}: last idle turns of ten / first", growth, "x", _MOST_GROWTH, "")
    kind = name.partition(", ")[2]
    if kind in smaller:
        yield _row(f"{name}: idle turn / 1,000 nodes", idle / min(smaller[kind].idle), "x", _MOST_TIMES_SMALLER, "")
    else:
        smaller[kind] = measured


def _row(name: str, value: float, unit: str, at_most: float | None, note: str) -> dict[str, Any]:
    met = None if at_most is None else value <= at_most
    target = "" if at_most is None else f"<= {at_most:.3g}"
    return {"name": name, "value": value, "unit": unit, "target": target, "met": met, "note": note}
