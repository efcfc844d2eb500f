"""A component of a simulated cluster: what a reconcile observes, what the planner measures, and the effect of acts.

It stands for Kubernetes, PD and Prometheus, as far as planner and decisions use them.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.local.tidb.load.spreading import EVEN, HotLoad, spread_work
from plimsoll.simulation.tidb.simulated_sets import Delays, SetTemplate, SimulatedSet
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.model.reconcile_types import (
    BringBack,
    CreateGroup,
    DrainRecord,
    ObservedBase,
    ObservedComponent,
    ObservedGroup,
    RaiseBase,
    Remove,
    Resize,
    Size,
    TakeOut,
)
from plimsoll.tidb.model.snapshot import FRESH, ObservedInstance, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from plimsoll.local.tidb.load.curves import Load
    from plimsoll.objects.api.tidb import ComponentAutoScaler, GroupScalingStatus
    from plimsoll.simulation.tidb.simulated_sets import SimulatedInstance
    from plimsoll.tidb.model.reconcile_types import Act
    from plimsoll.tidb.model.snapshot import Quality

BASE: Final = "base"
"""The kind of the base cluster's own instances."""
_WINDOW_S: Final = 60.0
_GIB: Final = 2**30
_DIGITS: Final = 6
"""Digits of measured seconds, as exporters have them. More would give the planner very long fractions."""


class ComponentSetup(Value):
    """The initial state of a component. `scaled` has its defaults and is valid."""

    component: Component
    scaled: ComponentAutoScaler
    replicas: int
    size: Size
    begin: datetime
    delays: Delays = Delays()
    is_skewed: bool = False
    """Whether the hot share of the load falls on instances of this component."""


class Measured(Value):
    """One instance at one time. `requested_cores` may exceed its cores: then it is saturated."""

    name: str
    kind: str
    requested_cores: float
    cores: float

    @property
    def usage(self) -> float:
        return min(1.0, self.requested_cores / self.cores)


class SimulatedComponent:
    """Mutable; `status` is the component's part of the autoscaler's status."""

    def __init__(self, setup: ComponentSetup) -> None:
        self.component = setup.component
        self.status: dict[str, GroupScalingStatus] = {}
        self._setup = setup
        self._base = SimulatedSet(SetTemplate(key="", kind=BASE, size=setup.size), delays=setup.delays, made_s=0.0)
        self._base.resize(setup.replicas, now_s=0.0, is_old=True)
        self._groups: dict[str, SimulatedSet] = {}

    @property
    def sizes(self) -> dict[str, int]:
        """Numbers of instances, including those that start or are drained: all of them are paid for."""
        sizes: dict[str, int] = {}
        for instance_set in self._list_sets():
            sizes[instance_set.form.kind] = sizes.get(instance_set.form.kind, 0) + instance_set.replicas
        return sizes

    @property
    def cores(self) -> float:
        """The cores of all instances, as they are paid for."""
        return sum(instance_set.replicas * instance_set.form.cores for instance_set in self._list_sets())

    @property
    def storage_gib(self) -> float:
        """What the cluster's own stores can hold."""
        return self._base.replicas * self._base.form.size.storage_bytes / _GIB

    def is_changing(self, now_s: float) -> bool:
        """Whether an instance starts or is drained."""
        return any(len(instance_set.list_ready(now_s)) < instance_set.replicas for instance_set in self._list_sets())

    # ---- what is seen

    def measure(self, load: Load, *, now_s: float) -> tuple[Measured, ...]:
        """The load of every working instance."""
        work = load.tikv_cores if self.component is Component.TIKV else load.tidb_cores
        working = [(owner.form, instance) for owner in self._list_sets() for instance in owner.list_ready(now_s)]
        spread = spread_work(
            work,
            base=[form.cores for form, _ in working if form.is_base],
            groups=[form.cores for form, _ in working if not form.is_base],
            heat=self._compute_hot_load(load),
        )
        return tuple(
            Measured(name=instance.name, kind=form.kind, requested_cores=cores, cores=form.cores)
            for (form, instance), cores in zip(working, spread, strict=True)
        )

    def build_snapshot(self, load: Load, *, now_s: float) -> Snapshot:
        """What the planner's collector would collect."""
        usage = {measured.name: measured.usage for measured in self.measure(load, now_s=now_s)}
        filled = min(1.0, load.storage_gib / self.storage_gib) if self.storage_gib else 0.0
        return Snapshot(
            component=self.component,
            time=self._to_time(now_s),
            window_seconds=_WINDOW_S,
            instances=tuple(
                self._observe_instance(owner, instance, usage=usage[instance.name], filled=filled, now_s=now_s)
                for owner in self._list_sets()
                for instance in owner.list_ready(now_s)
            ),
        )

    def observe(self, *, now_s: float) -> ObservedComponent:
        """What the controller would read from Kubernetes."""
        ready = len(self._base.list_ready(now_s))
        base = ObservedBase(replicas=self._base.replicas, running=self._base.replicas, registered=ready, phase="Normal")
        return ObservedComponent(
            component=self.component,
            scaled=self._setup.scaled,
            base=base,
            groups=tuple(self._observe_group(key, now_s=now_s) for key in sorted(self._groups)),
            status=self.status,
        )

    # ---- what is done

    def carry_out(self, act: Act, *, now_s: float) -> bool:
        """Carry out an act; False if it is not finished yet."""
        match act:
            case RaiseBase():
                self._base.resize(act.replicas, now_s=now_s)
            case CreateGroup():
                self._create(act, now_s=now_s)
            case Resize():
                self._groups[act.key].resize(act.replicas, now_s=now_s)
            case TakeOut():
                return self._groups[act.key].take_out(now_s=now_s)
            case BringBack():
                self._groups[act.key].bring_back()
            case Remove():
                del self._groups[act.key]
        return True

    def _create(self, act: CreateGroup, *, now_s: float) -> None:
        form = SetTemplate(key=act.key, kind=act.plan.resource_type, size=act.size, labels=act.plan.labels)
        self._groups[act.key] = SimulatedSet(form, delays=self._setup.delays, made_s=now_s)
        self._groups[act.key].resize(act.plan.count, now_s=now_s)

    # ---- parts

    def _list_sets(self) -> Iterator[SimulatedSet]:
        yield self._base
        yield from self._groups.values()

    def _to_time(self, now_s: float) -> datetime:
        return self._setup.begin + timedelta(seconds=now_s)

    def _compute_hot_load(self, load: Load) -> HotLoad:
        rule = self._setup.scaled.rules.get("cpu")
        if not self._setup.is_skewed or rule is None:
            return EVEN
        target = ((rule.max_threshold or 0.0) + (rule.min_threshold or 0.0)) / 2
        return HotLoad(instances=load.hot_instances, share=load.hot_share, target=target)

    def _observe_instance(
        self, owner: SimulatedSet, instance: SimulatedInstance, *, usage: float, filled: float, now_s: float
    ) -> ObservedInstance:
        form = owner.form
        quality: Quality = "too_young" if owner.is_young(instance, now_s=now_s) else FRESH
        has_disk = self.component is Component.TIKV
        return ObservedInstance(
            name=instance.name,
            state="Up",
            base=form.is_base,
            labels=form.labels,
            cpu_used_seconds=round(usage * form.cores * _WINDOW_S, _DIGITS),
            cpu_quota_cores=form.cores,
            capacity_bytes=form.size.storage_bytes if has_disk else None,
            used_bytes=form.size.storage_bytes * (filled if form.is_base else 0.0) if has_disk else None,
            quality=quality,
        )

    def _observe_group(self, key: str, *, now_s: float) -> ObservedGroup:
        group = self._groups[key]
        since = group.draining_since_s
        return ObservedGroup(
            name=key,
            key=key,
            created=self._to_time(group.made_s),
            replicas=group.replicas,
            resource_type=group.form.kind,
            size=group.form.size,
            running=group.replicas,
            registered=len(group.list_ready(now_s)),
            last_change=self._to_time(group.changed_s),
            drain_record=None if since is None else _mark(self._to_time(since)),
            offline=0 if since is None else 1,
        )


def _mark(began: datetime) -> DrainRecord:
    return DrainRecord(store_id=1, evicting_since=began, region_count=1, regions_moved_at=began)
