"""What a pass sees, with the defaults of the specification: `prod/db` has 3 stores, `small` may have 3 instances."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from plimsoll.objects.api.tidb import AutoResource, ComponentAutoScaler, ExternalConfig, GroupScalingStatus
from plimsoll.tidb.model.components import Component, make_group_labels, make_group_name
from plimsoll.tidb.model.reconcile_types import (
    BringBack,
    CreateGroup,
    Decision,
    DrainRecord,
    ObservedBase,
    ObservedComponent,
    ObservedGroup,
    RaiseBase,
    ReconcilePolicy,
    Remove,
    Size,
)
from plimsoll.tidb.model.scaling_plan import ScalingPlan
from plimsoll.tidb.planning.reconcile.decide import conclude, decide

GI = 1024**3
START = datetime(2026, 1, 1, tzinfo=UTC)
TIKV, TIDB = Component.TIKV, Component.TIDB
SMALL = AutoResource(cpu="1000m", memory="2Gi", storage="10Gi", count=3)
BIG = AutoResource(cpu="8", memory="16Gi", storage="10Gi")
SMALL_SIZE = Size(cpu_milli=1000, memory_bytes=2 * GI, storage_bytes=10 * GI)
POLICY = ReconcilePolicy()
MARK = DrainRecord(store_id=4, evicting_since=START, region_count=3, regions_moved_at=START)
OWN = "default_homogeneous_tikv"


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def key_of(kind: str = "small", component: Component = TIKV) -> str:
    return make_group_name(component, kind)


KEY = key_of()


def scaled(*, limit: int | None = None, external: int | None = None, **types: AutoResource) -> ComponentAutoScaler:
    resources = dict(types or {"small": SMALL, "big": BIG})
    if limit is not None:
        resources[OWN] = AutoResource(count=limit)
    return ComponentAutoScaler(
        resources=resources,
        scale_in_interval_seconds=500,
        scale_out_interval_seconds=300,
        external=None if external is None else ExternalConfig(max_replicas=external),
    )


def base(replicas: int = 3, **changes: Any) -> ObservedBase:
    return ObservedBase(**{"replicas": replicas, "running": replicas, "registered": replicas, **changes})


def group(kind: str = "small", replicas: int = 1, *, component: Component = TIKV, **changes: Any) -> ObservedGroup:
    """A finished one, 700 s old at `START`, of the size that its type has."""
    size = {"small": SMALL_SIZE}.get(kind)
    if size and component is TIDB:
        size = replace(size, storage_bytes=0)
    fields = {
        "name": f"auto-{kind}",
        "key": key_of(kind, component),
        "created": at(-700),
        "replicas": replicas,
        "resource_type": kind,
        "size": size,
        "running": replicas,
        "registered": replicas,
    }
    return ObservedGroup(**{**fields, **changes})


def seen(*groups: ObservedGroup, component: Component = TIKV, **changes: Any) -> ObservedComponent:
    fields = {"component": component, "scaled": scaled(), "base": base(), "groups": groups}
    return ObservedComponent(**{**fields, **changes})


def plan(kind: str = "small", count: int = 1, *, component: Component = TIKV, key: str = "") -> ScalingPlan:
    labels = make_group_labels(component, kind, group=key or key_of(kind, component))
    return ScalingPlan(component=component, count=count, resource_type=kind, labels=labels)


def own(count: int, component: Component = TIKV) -> ScalingPlan:
    return ScalingPlan(component=component, count=count, resource_type=component.homogeneous_type)


def entry(seconds: float | None = None, **fields: Any) -> GroupScalingStatus:
    moment = None if seconds is None else at(seconds)
    return GroupScalingStatus(last_auto_scaling_timestamp=moment, **fields)


def decided(
    world: ObservedComponent, *answer: ScalingPlan, now: float = 0, policy: ReconcilePolicy = POLICY
) -> Decision:
    return decide(world, answer, policy=policy, now=at(now))


def kinds(found: Decision) -> list[str]:
    """The acts in order, as words: `Resize pd-auto-scaling-tikv-small 2`."""
    return [" ".join([type(act).__name__, act.key, *_number(act)]) for act in found.acts]


def codes(found: Decision) -> dict[str, str]:
    return {held.key: held.reason.code for held in found.held}


def _number(act: Any) -> list[str]:
    if isinstance(act, Remove):
        return []
    return [str(act.plan.count if isinstance(act, CreateGroup) else act.replicas)]


def next_pass(world: ObservedComponent, found: Decision, *, now: float, crashes: bool = False) -> ObservedComponent:
    """The world after all acts succeeded and everything has come or gone; a crash loses the status only."""
    groups = {group_seen.key: group_seen for group_seen in world.groups}
    for act in found.acts:
        if isinstance(act, RaiseBase):
            world = replace(world, base=base(act.replicas, last_change=at(now)))
        elif isinstance(act, CreateGroup):
            made = group(act.plan.resource_type, act.plan.count, component=world.component)
            changes = {"key": act.key, "name": f"auto-{act.key}", "size": act.size}
            groups[act.key] = replace(made, created=at(now), last_change=at(now), **changes)
        elif isinstance(act, Remove):
            del groups[act.key]
        elif isinstance(act, BringBack):
            groups[act.key] = replace(groups[act.key], drain_record=None, offline=0, **_all_there(act.replicas))
        else:
            groups[act.key] = replace(
                groups[act.key], drain_record=None, last_change=at(now), **_all_there(act.replicas)
            )
    status = world.status if crashes else conclude(found, {act.key for act in found.acts}, now=at(now))
    return replace(world, groups=tuple(groups.values()), status=status)


def _all_there(number: int) -> dict[str, int]:
    return {"replicas": number, "running": number, "registered": number}
