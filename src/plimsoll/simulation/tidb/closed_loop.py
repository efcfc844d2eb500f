"""The closed loop of an autoscaler and a simulated cluster: load, instances, metrics, plan, decision, instances.

Planner and decisions are the real ones.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from plimsoll.core.values import Value
from plimsoll.objects.api.tidb import (
    TidbCluster,  # noqa: TC001
    TidbClusterAutoScaler,  # noqa: TC001
)
from plimsoll.simulation.tidb.simulated_component import ComponentSetup, SimulatedComponent
from plimsoll.simulation.tidb.simulated_sets import Delays
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.model.reconcile_types import ReconcilePolicy, Size
from plimsoll.tidb.planning.api.defaults import get_component, get_scaled_component
from plimsoll.tidb.planning.api.sizes import read_requests_type
from plimsoll.tidb.planning.planner.planner import plan
from plimsoll.tidb.planning.planner.result import CannotPlan
from plimsoll.tidb.planning.reconcile.decide import conclude, decide
from plimsoll.tidb.planning.reconcile.planner_request import build_planner_request

if TYPE_CHECKING:
    from plimsoll.core.plans import Reason
    from plimsoll.local.tidb.load.curves import Load
    from plimsoll.tidb.model.reconcile_types import Act, Held


class SimulationSetup(Value):
    """What is simulated. `effective` has its defaults and is valid for `base`."""

    effective: TidbClusterAutoScaler
    base: TidbCluster
    begin: datetime
    node_count: int | None = None
    policy: ReconcilePolicy = ReconcilePolicy()
    delays: Delays = Delays()
    is_tidb_skewed: bool = False
    """Whether TiDB instances are hot as well, because long-lived connections stay where they are."""


class CarriedOutAct(Value):
    """An act, and the change in the number of instances: 0 while a store is being drained."""

    act: Act
    added: int


class ClosedLoopStep(Value):
    """The result of one reconcile. `planned` are the planner's reasons; `refused` says why it could not plan."""

    done: tuple[CarriedOutAct, ...] = ()
    held: tuple[Held, ...] = ()
    planned: tuple[Reason, ...] = ()
    refused: str = ""


class ClosedLoop:
    """The loop of one component."""

    def __init__(self, component: Component, setting: SimulationSetup) -> None:
        self.component = component
        self._setting = setting
        scaled = get_scaled_component(setting.effective, component)
        own = get_component(setting.base, component)
        assert scaled is not None, "only what is scaled is simulated"
        assert own is not None, "validation saw to it"
        size = read_requests_type(component.homogeneous_type, own)
        self.simulated = SimulatedComponent(
            ComponentSetup(
                component=component,
                scaled=scaled,
                replicas=own.replicas,
                size=Size(cpu_milli=size.cpu_milli, memory_bytes=size.memory_bytes, storage_bytes=size.storage_bytes),
                begin=setting.begin,
                delays=setting.delays,
                is_skewed=component is Component.TIKV or setting.is_tidb_skewed,
            )
        )

    def reconcile(self, load: Load, *, now_s: float) -> ClosedLoopStep:
        """One reconcile of the controller: observe, plan, decide, act."""
        setting, world = self._setting, self.simulated
        now = setting.begin + timedelta(seconds=now_s)
        seen = world.observe(now_s=now_s)
        question = build_planner_request(
            seen, setting.base, setting.effective, node_count=setting.node_count, policy=setting.policy, now=now
        )
        answer = plan(question, world.build_snapshot(load, now_s=now_s))
        if isinstance(answer, CannotPlan):
            return ClosedLoopStep(refused=answer.detail)
        decided = decide(seen, answer.plans, policy=setting.policy, now=now)
        done: list[CarriedOutAct] = []
        finished: list[str] = []
        for act in decided.acts:
            before = sum(world.sizes.values())
            if world.carry_out(act, now_s=now_s):
                finished.append(act.key)
            done.append(CarriedOutAct(act=act, added=sum(world.sizes.values()) - before))
        world.status = conclude(decided, finished, now=now)
        return ClosedLoopStep(done=tuple(done), held=decided.held, planned=answer.reasons)
