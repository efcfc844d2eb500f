"""From an effective TidbClusterAutoScaler to the question for the planner. Called by the controller, after validation.

The cluster's own size is added as the reserved type, from what its instances request: limits are often absent.

The question of a pass for the planner: what is on its way, and which sizes are no longer what they were. Pure.

Called by the controller before it asks; `asking` does the rest. The planner counts what has registered, so it is told
what is made and has not: or it would advise the same again, or leave the group out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.tidb.model.components import RESERVED_TYPES, Component, group_name
from plimsoll.tidb.model.decimals import exact
from plimsoll.tidb.model.names import size_suffix
from plimsoll.tidb.model.reconcile_types import EXTERNAL, BaseSeen
from plimsoll.tidb.model.strategy import Rule, Strategy
from plimsoll.tidb.planning.api.defaults import component_of_cluster, scaled_component
from plimsoll.tidb.planning.api.sizes import type_of_requests, type_of_resource
from plimsoll.tidb.planning.reconcile.context import ReconcileContext
from plimsoll.tidb.planning.reconcile.desired import first_of_each, is_of_other_size, sized_types

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plimsoll.objects.api.tidb import AutoRule, TidbCluster, TidbClusterAutoScaler
    from plimsoll.tidb.model.reconcile_types import ComponentSeen, GroupSeen, PassPolicy


def strategy_for(
    component: Component,
    *,
    effective: TidbClusterAutoScaler,
    base: TidbCluster,
    node_count: int | None,
    pending: Mapping[str, int] | None = None,
    suffixes: Mapping[str, str] | None = None,
) -> Strategy:
    """What to ask about one component.

    `effective` is defaulted and valid. `pending` is, by type, how many instances are made and not registered yet;
    `suffixes`, by type, what tells the present size apart (`names.size_suffix`) where a group of another size stands.
    """
    scaled, own = scaled_component(effective, component), component_of_cluster(base, component)
    assert scaled is not None, "asked only about what is scaled"
    assert own is not None, "validation saw to it"
    reserved = scaled.resources.get(component.homogeneous_type)
    return Strategy(
        component=component,
        cpu=_rule(scaled.rules.get("cpu")),
        storage=_rule(scaled.rules.get("storage")) if component is Component.TIKV else None,
        types={
            name: type_of_resource(name, resource, suffix=(suffixes or {}).get(name, ""))
            for name, resource in sorted(scaled.resources.items())
            if name not in RESERVED_TYPES
        },
        homogeneous=type_of_requests(component.homogeneous_type, own, count=reserved.count if reserved else None),
        node_count=node_count,
        pending=dict(sorted((pending or {}).items())),
    )


def _rule(rule: AutoRule | None) -> Rule | None:
    if rule is None:
        return None
    assert rule.max_threshold is not None
    assert rule.min_threshold is not None
    types = tuple(name for name in rule.resource_types if name not in RESERVED_TYPES)
    return Rule(high=exact(rule.max_threshold), low=exact(rule.min_threshold), types=types)


def question_for(
    seen: ComponentSeen,
    base: TidbCluster,
    effective: TidbClusterAutoScaler,
    *,
    node_count: int | None,
    policy: PassPolicy,
    now: datetime,
) -> Strategy:
    """`effective` is defaulted and valid. `strategies.write_strategy` makes the body of it."""
    turn = ReconcileContext(seen=seen, policy=policy, now=now)
    groups, _ = first_of_each(group for group in seen.groups if group.key != EXTERNAL)
    by_type: dict[str, list[GroupSeen]] = {}
    for group in groups:
        by_type.setdefault(group.resource_type, []).append(group)
    suffixes = {kind: suffix for kind, of in by_type.items() if (suffix := _suffix(kind, of, turn))}
    pending = {kind: _on_their_way(kind, of, turn, suffix=suffixes.get(kind, "")) for kind, of in by_type.items()}
    pending[seen.component.homogeneous_type] = _lacking(seen.base)
    return strategy_for(
        seen.component,
        effective=effective,
        base=base,
        node_count=node_count,
        pending={kind: number for kind, number in pending.items() if kind and number},
        suffixes=suffixes,
    )


def _suffix(kind: str, groups: list[GroupSeen], turn: ReconcileContext) -> str:
    """Tells new instances of a type apart if groups of another size stand.

    Not while one of these lacks instances: the planner would count them to the new group. Then the answer is about the
    old one, and what that must not have goes to a second group all the same.
    """
    assert turn.seen.scaled is not None, "asked only about what is scaled"
    component = turn.seen.component
    types = sized_types(turn.seen.scaled, component)
    others = [group for group in groups if is_of_other_size(group, types, component)]
    is_usual_fit = any(group.key == group_name(component, kind) for group in groups if group not in others)
    if not others or is_usual_fit or any(_expected(group, turn) for group in others):
        return ""
    size = types[kind].size
    return size_suffix(size.cpu_milli, size.memory_bytes, size.storage_bytes)


def _on_their_way(kind: str, groups: list[GroupSeen], turn: ReconcileContext, *, suffix: str) -> int:
    """Of the group to which the planner counts what it is told: any other would be asked for twice."""
    usual = group_name(turn.seen.component, kind, suffix)
    known = sorted(group.key for group in groups if group.replicas > _lacking(group))
    current = usual if suffix or usual in known or not known else known[0]
    return sum(_expected(group, turn) for group in groups if group.key == current)


def _expected(group: GroupSeen, turn: ReconcileContext) -> int:
    """Instances that may be believed to come. What finds no node for long is not on its way."""
    return 0 if group.is_being_deleted or turn.is_past_grace(group.waiting_since) else _lacking(group)


def _lacking(one: BaseSeen | GroupSeen) -> int:
    """How many are to be there and are not known to PD; one that leaves is not missed."""
    there = one.present if one.present is not None else one.registered
    if there is None:
        return 0
    leaving = 0 if isinstance(one, BaseSeen) else max(one.leaving, int(one.mark is not None))
    return max(0, one.replicas - there - leaving)
