"""Autoscalers and clusters for simulations, with defaults."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from plimsoll.local.tidb.load.curves import Load, LoadCurve, LoadPoint
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.tidb import (
    AutoResource,
    AutoRule,
    ComponentAutoScaler,
    TidbCluster,
    TidbClusterAutoScaler,
    TidbClusterAutoScalerSpec,
    TidbClusterReference,
    TidbClusterSpec,
    TidbComponent,
)
from plimsoll.simulation.tidb.closed_loop import ClosedLoop, SimulationSetup
from plimsoll.simulation.tidb.simulated_sets import Delays
from plimsoll.simulation.tidb.simulator import SimulationInput
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.planning.api.defaults import apply_defaults
from plimsoll.tidb.planning.api.validation import find_problems

SMALL = AutoResource(cpu="2", memory="4Gi", storage="20Gi", count=4)


def scaled(
    *,
    cpu: tuple[float, float] | None = (0.8, 0.2),
    storage: tuple[float, float] | None = None,
    types: dict[str, AutoResource] | None = None,
    intervals: tuple[int, int] = (300, 500),
) -> ComponentAutoScaler:
    """Thresholds are the upper and the lower; intervals those of scaling out and in."""
    rules = {"cpu": cpu, "storage": storage}
    return ComponentAutoScaler(
        rules={name: AutoRule(max_threshold=pair[0], min_threshold=pair[1]) for name, pair in rules.items() if pair},
        resources={"small": SMALL} if types is None else types,
        scale_out_interval_seconds=intervals[0],
        scale_in_interval_seconds=intervals[1],
    )


def cluster(*, tikv: int = 3, tidb: int = 2) -> TidbCluster:
    """Every instance has 4 cores."""
    spec = TidbClusterSpec(
        tikv=TidbComponent(replicas=tikv, requests={"cpu": "4", "memory": "16Gi", "storage": "100Gi"}),
        tidb=TidbComponent(replicas=tidb, requests={"cpu": "4", "memory": "8Gi"}),
    )
    return TidbCluster(metadata=ObjectMeta(name="db", namespace="prod"), spec=spec)


def setting(
    *,
    tikv: ComponentAutoScaler | None = None,
    tidb: ComponentAutoScaler | None = None,
    base: TidbCluster | None = None,
    nodes: int | None = 20,
    delays: Delays | None = None,
    is_tidb_skewed: bool = False,
) -> SimulationSetup:
    base = base or cluster()
    spec = TidbClusterAutoScalerSpec(cluster=TidbClusterReference(name="db"), tikv=tikv, tidb=tidb)
    autoscaler = TidbClusterAutoScaler(metadata=ObjectMeta(name="as1", namespace="prod"), spec=spec)
    assert not find_problems(autoscaler, base)
    return SimulationSetup(
        effective=apply_defaults(autoscaler, base),
        base=base,
        begin=datetime(2026, 1, 1, tzinfo=UTC),
        node_count=nodes,
        delays=delays or Delays(),
        is_tidb_skewed=is_tidb_skewed,
    )


def curve(*points: tuple[float, Load]) -> LoadCurve:
    return LoadCurve(points=tuple(LoadPoint(at_s=at_s, load=load) for at_s, load in points))


def steadily(load: Load, *, hours: float = 1) -> LoadCurve:
    return curve((0, load), (3600 * hours, load))


def run_of(curve: LoadCurve, **more: Any) -> SimulationInput:
    return SimulationInput(setting=setting(**more), curve=curve)


def rest(loop: ClosedLoop, load: Load, *, step_s: float, quiet_turns: int, most_turns: int) -> dict[str, int] | None:
    """Turn the loop under a constant load until nothing changed for so many turns; None: it never comes to rest."""
    sizes, quiet = loop.simulated.sizes, 0
    for turn in range(most_turns):
        loop.reconcile(load, now_s=turn * step_s)
        quiet = quiet + 1 if loop.simulated.sizes == sizes and not loop.simulated.is_changing(turn * step_s) else 0
        sizes = loop.simulated.sizes
        if quiet == quiet_turns:
            return sizes
    return None


def loop_of(setting: SimulationSetup, component: Component = Component.TIKV) -> ClosedLoop:
    return ClosedLoop(component, setting)
