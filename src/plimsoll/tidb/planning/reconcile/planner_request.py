"""The request to the planner for a component. Pure.

The size of the cluster's own instances is added as the reserved type, from their requests, because limits are often
absent. The planner counts registered instances, so the request says how many were created and have not registered;
otherwise it would advise the same again, or omit the group.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from plimsoll.tidb.model.components import RESERVED_TYPES, Component, make_group_name
from plimsoll.tidb.model.decimals import to_exact
from plimsoll.tidb.model.names import make_size_suffix
from plimsoll.tidb.model.reconcile_types import EXTERNAL, ObservedBase, ObservedGroup
from plimsoll.tidb.model.strategy import Rule, Strategy
from plimsoll.tidb.planning.api.defaults import get_component, get_scaled_component
from plimsoll.tidb.planning.api.sizes import read_requests_type, read_resource_type
from plimsoll.tidb.planning.reconcile.context import ReconcileContext
from plimsoll.tidb.planning.reconcile.desired import is_of_other_size, read_sized_types, select_oldest_per_key

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plimsoll.objects.api.tidb import AutoRule, TidbCluster, TidbClusterAutoScaler
    from plimsoll.tidb.model.reconcile_types import ObservedComponent, ReconcilePolicy


def build_strategy(
    component: Component,
    *,
    effective: TidbClusterAutoScaler,
    base: TidbCluster,
    node_count: int | None,
    pending: Mapping[str, int] | None = None,
    suffixes: Mapping[str, str] | None = None,
) -> Strategy:
    """The strategy for one component.

    `effective` has its defaults and is valid. `pending` counts, per type, instances that were created and have not
    registered yet. `suffixes` has, per type, the suffix of the present size (`make_size_suffix`) where a group of
    another size exists.
    """
    scaled, own = get_scaled_component(effective, component), get_component(base, component)
    assert scaled is not None, "called only for a scaled component"
    assert own is not None, "ensured by validation"
    reserved = scaled.resources.get(component.homogeneous_type)
    return Strategy(
        component=component,
        cpu=_build_rule(scaled.rules.get("cpu")),
        storage=_build_rule(scaled.rules.get("storage")) if component is Component.TIKV else None,
        types={
            name: read_resource_type(name, resource, suffix=(suffixes or {}).get(name, ""))
            for name, resource in sorted(scaled.resources.items())
            if name not in RESERVED_TYPES
        },
        homogeneous=read_requests_type(component.homogeneous_type, own, count=reserved.count if reserved else None),
        node_count=node_count,
        pending=dict(sorted((pending or {}).items())),
    )


def _build_rule(rule: AutoRule | None) -> Rule | None:
    if rule is None:
        return None
    assert rule.max_threshold is not None
    assert rule.min_threshold is not None
    types = tuple(name for name in rule.resource_types if name not in RESERVED_TYPES)
    return Rule(high=to_exact(rule.max_threshold), low=to_exact(rule.min_threshold), types=types)


def build_planner_request(
    observed: ObservedComponent,
    base: TidbCluster,
    effective: TidbClusterAutoScaler,
    *,
    node_count: int | None,
    policy: ReconcilePolicy,
    now: datetime,
) -> Strategy:
    """The strategy for an observed component. `effective` has its defaults and is valid."""
    context = ReconcileContext(observed=observed, policy=policy, now=now)
    groups, _ = select_oldest_per_key(group for group in observed.groups if group.key != EXTERNAL)
    by_type: dict[str, list[ObservedGroup]] = {}
    for group in groups:
        by_type.setdefault(group.resource_type, []).append(group)
    suffixes = {
        resource_type: suffix
        for resource_type, groups_of_type in by_type.items()
        if (suffix := _find_suffix(resource_type, groups_of_type, context))
    }
    pending = {
        resource_type: _count_pending(resource_type, groups_of_type, context, suffix=suffixes.get(resource_type, ""))
        for resource_type, groups_of_type in by_type.items()
    }
    pending[observed.component.homogeneous_type] = _count_missing(observed.base)
    registered = {
        resource_type: sum(_count_listed_at_least(group) for group in groups_of_type)
        for resource_type, groups_of_type in by_type.items()
    }
    registered[observed.component.homogeneous_type] = _count_listed_at_least(observed.base)
    strategy = build_strategy(
        observed.component,
        effective=effective,
        base=base,
        node_count=node_count,
        pending={resource_type: number for resource_type, number in pending.items() if resource_type and number},
        suffixes=suffixes,
    )
    known = {resource_type: number for resource_type, number in sorted(registered.items()) if resource_type and number}
    return msgspec.structs.replace(strategy, registered=known)


def _count_listed_at_least(cluster: ObservedBase | ObservedGroup) -> int:
    """Instances that a complete list has. A store that is being removed may be gone before the status says so."""
    if cluster.registered is None:
        return 0
    is_leaving = isinstance(cluster, ObservedGroup) and cluster.drain_record is not None and not cluster.offline
    return max(0, min(cluster.registered, cluster.replicas) - int(is_leaving))


def _find_suffix(resource_type: str, groups: list[ObservedGroup], context: ReconcileContext) -> str:
    """The suffix for new instances of a type if groups of another size exist.

    There is none while one of these groups lacks instances, because the planner would count them towards the new group.
    The answer is then about the old group, and its surplus goes to a second group anyway.
    """
    assert context.observed.scaled is not None, "called only for a scaled component"
    component = context.observed.component
    types = read_sized_types(context.observed.scaled, component)
    others = [group for group in groups if is_of_other_size(group, types, component)]
    is_usual_fit = any(
        group.key == make_group_name(component, resource_type) for group in groups if group not in others
    )
    if not others or is_usual_fit or any(_count_expected(group, context) for group in others):
        return ""
    size = types[resource_type].size
    return make_size_suffix(size.cpu_milli, size.memory_bytes, size.storage_bytes)


def _count_pending(resource_type: str, groups: list[ObservedGroup], context: ReconcileContext, *, suffix: str) -> int:
    """Pending instances of the group that the planner counts them towards; others would be requested twice."""
    usual = make_group_name(context.observed.component, resource_type, suffix)
    known = sorted(group.key for group in groups if group.replicas > _count_missing(group))
    current = usual if suffix or usual in known or not known else known[0]
    return sum(_count_expected(group, context) for group in groups if group.key == current)


def _count_expected(group: ObservedGroup, context: ReconcileContext) -> int:
    """Instances that are expected to register. An instance that has been unschedulable for long is not."""
    return 0 if group.is_being_deleted or context.is_past_grace(group.unschedulable_since) else _count_missing(group)


def _count_missing(cluster: ObservedBase | ObservedGroup) -> int:
    """Desired instances that PD does not know. A store that is being removed is not missing."""
    present = cluster.present if cluster.present is not None else cluster.registered
    if present is None:
        return 0
    leaving = 0 if isinstance(cluster, ObservedBase) else max(cluster.offline, int(cluster.drain_record is not None))
    return max(0, cluster.replicas - present - leaving)
