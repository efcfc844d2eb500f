"""From an effective TidbClusterAutoScaler to the question for the planner. Called by the controller, after validation.

The cluster's own size is added as the reserved type, from what its instances request: limits are often absent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.tidb.planning.components import RESERVED_TYPES, Component
from plimsoll.tidb.planning.defaulting import component_of_cluster, scaled_component
from plimsoll.tidb.planning.exact_numbers import exact
from plimsoll.tidb.planning.sizes import type_of_requests, type_of_resource
from plimsoll.tidb.planning.strategies import Rule, Strategy

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.objects.tidb import AutoRule, TidbCluster, TidbClusterAutoScaler


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
