"""Strategies and snapshots of TiDB clusters as JSON, with the defaults of the specification's examples.

Quota 4 cores, 100 GB of disk, thresholds 0.8 and 0.2, 10 nodes; `small` has 2 cores and count 4, `big` 8 and count 1.
"""

from __future__ import annotations

import json
from typing import Any

from plimsoll.tidb.model.components import Component
from plimsoll.tidb.planning.planner.planner import plan
from plimsoll.tidb.planning.planner.result import CannotPlan, PlannerResult
from plimsoll.tidb.wire.snapshots import read_snapshot
from plimsoll.tidb.wire.strategy import read_strategies

GB = 10**9
WINDOW_S = 60
SMALL = {"resource_type": "small", "cpu": 2000, "memory": 4 * GB, "storage": 10 * GB, "count": 4}
BIG = {"resource_type": "big", "cpu": 8000, "memory": 16 * GB, "storage": 10 * GB, "count": 1}

Json = dict[str, Any]


def instance(
    usage: float | None = 0.3, *, quota: float | None = 4, name: str = "db-0", base: bool = True, **more: Any
) -> Json:
    """`usage` None: its cpu seconds are missing."""
    used = None if usage is None else round(usage * WINDOW_S * (quota or 4), 6)
    return {
        "name": name,
        "namespace": "prod",
        "state": "Up",
        "base": base,
        "labels": {},
        "cpu_used_seconds": used,
        "cpu_quota_cores": quota,
        **more,
    }


def base(*usages: float | None, quota: float = 4, **more: Any) -> list[Json]:
    return [instance(usage, quota=quota, name=f"db-tikv-{i}", **more) for i, usage in enumerate(usages)]


def group_of(
    kind: str, *usages: float | None, quota: float = 2, component: str = "tikv", label: str = "", **more: Any
) -> list[Json]:
    group = label or f"pd-auto-scaling-{component}-{kind}"
    labels = {"group": group, "resource-type": kind, "specialUse": "hotRegion"}
    return [
        instance(usage, quota=quota, name=f"auto-{kind}-{i}", base=False, **{"labels": labels, **more})
        for i, usage in enumerate(usages)
    ]


def disks(used_gb: float, *, number: int = 3, capacity_gb: float = 100) -> list[Json]:
    """Stores that hold so much together."""
    sizes: dict[str, Any] = {"capacity_bytes": int(capacity_gb * GB), "used_bytes": round(used_gb * GB / number)}
    return [instance(0.3, name=f"db-tikv-{i}", store_id=i, engine="tikv", **sizes) for i in range(number)]


def snapshot(*instances: Json, component: str = "tikv") -> Json:
    return {
        "time": "2026-01-01T00:00:00Z",
        "window_seconds": WINDOW_S,
        "component": component,
        "instances": list(instances),
    }


def thresholds(high: float = 0.8, low: float | None = 0.2, **more: Any) -> Json:
    return {"max_threshold": high, "min_threshold": low, **more}


def strategy(
    *types: Json,
    component: str = "tikv",
    cpu: Json | None = None,
    storage: Json | None = None,
    nodes: int | None = 10,
    limit: int | None = None,
    own_storage: int = 100 * GB,
    **more: Any,
) -> Json:
    """With a cpu rule unless only a storage rule is given; `limit` is the count of the reserved type."""
    own: Json = {"resource_type": f"default_homogeneous_{component}", "cpu": 4000, "memory": 16 * GB}
    own |= {"storage": own_storage} | ({} if limit is None else {"count": limit})
    names = sorted([type_["resource_type"] for type_ in types] + [own["resource_type"]])
    rules = {"cpu_rule": cpu or (None if storage else thresholds()), "storage_rule": storage}
    present = {name: {"resource_types": names, **rule} for name, rule in rules.items() if rule}
    found: Json = {"rules": [{"component": component, **present}], "resources": [*types, own], **more}
    return found if nodes is None else {**found, "node_count": nodes}


def answer(asked: Json, seen: Json) -> PlannerResult | CannotPlan:
    snap = read_snapshot(json.dumps(seen).encode())
    (found,) = [
        read_strategy
        for read_strategy in read_strategies(json.dumps(asked).encode())
        if read_strategy.component is snap.component
    ]
    return plan(found, snap)


def planned(asked: Json, *instances: Json) -> PlannerResult:
    found = answer(asked, snapshot(*instances, component=asked["rules"][0]["component"]))
    assert isinstance(found, PlannerResult), found
    return found


def counts(asked: Json, *instances: Json) -> dict[str, int]:
    """Planned counts; the cluster's own as `own`, several groups of a type by their label."""
    found: dict[str, int] = {}
    for scaling_plan in planned(asked, *instances).plans:
        kind = "own" if scaling_plan.is_homogeneous else scaling_plan.resource_type
        found[scaling_plan.group if kind in found else kind] = scaling_plan.count
    return found


def codes(asked: Json, *instances: Json) -> list[str]:
    return [reason.code for reason in planned(asked, *instances).reasons]


TIKV, TIDB = Component.TIKV, Component.TIDB
