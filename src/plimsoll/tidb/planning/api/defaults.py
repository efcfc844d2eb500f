"""Defaults of a TidbClusterAutoScaler: a pure function of it and its base cluster.

The result is never written back, because a stored default would not follow when the base cluster changes its size.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec.structs import replace

from plimsoll.objects.api.tidb import AutoResource
from plimsoll.tidb.model.components import RESERVED_TYPES, Component
from plimsoll.tidb.model.strategy import DEFAULT_MIN_THRESHOLD
from plimsoll.tidb.planning.api.sizes import is_quantity, parse_bytes

if TYPE_CHECKING:
    from plimsoll.objects.api.tidb import (
        AutoRule,
        ComponentAutoScaler,
        TidbCluster,
        TidbClusterAutoScaler,
        TidbComponent,
    )

SCALE_IN_INTERVAL_S: Final = 500
SCALE_OUT_INTERVAL_S: Final = 300


def apply_defaults(autoscaler: TidbClusterAutoScaler, base: TidbCluster | None) -> TidbClusterAutoScaler:
    """The effective autoscaler. Without a base cluster the default type exists but has no size."""
    spec = autoscaler.spec
    cluster = replace(spec.cluster, namespace=spec.cluster.namespace or autoscaler.metadata.namespace)
    components = {
        component.value: _fill_component(
            scaled,
            component,
            own=get_component(base, component),
            is_base_known=base is not None,
        )
        for component in Component
        if (scaled := get_scaled_component(autoscaler, component)) is not None
    }
    return replace(autoscaler, spec=replace(spec, cluster=cluster, **components))


def get_scaled_component(autoscaler: TidbClusterAutoScaler, component: Component) -> ComponentAutoScaler | None:
    """The spec of a component in the autoscaler; None: it is not scaled."""
    return autoscaler.spec.tidb if component is Component.TIDB else autoscaler.spec.tikv


def get_component(cluster: TidbCluster | None, component: Component) -> TidbComponent | None:
    if cluster is None:
        return None
    return cluster.spec.tidb if component is Component.TIDB else cluster.spec.tikv


def has_storage(resource: AutoResource) -> bool:
    """Whether storage is given. An unreadable quantity is a separate error, not missing storage."""
    if resource.storage is None:
        return False
    return not is_quantity(resource.storage) or parse_bytes(resource.storage) > 0


def _fill_component(
    scaled: ComponentAutoScaler, component: Component, *, own: TidbComponent | None, is_base_known: bool
) -> ComponentAutoScaler:
    scaled = replace(
        scaled,
        scale_in_interval_seconds=_get_or_default(scaled.scale_in_interval_seconds, SCALE_IN_INTERVAL_S),
        scale_out_interval_seconds=_get_or_default(scaled.scale_out_interval_seconds, SCALE_OUT_INTERVAL_S),
    )
    if scaled.external is not None:
        return scaled
    resources = scaled.resources
    if resources.keys() <= RESERVED_TYPES and (own is not None or not is_base_known):
        resources = {**resources, component.default_type: _copy_size(own)}
    usable = tuple(
        name
        for name, resource in resources.items()
        if name not in RESERVED_TYPES and (component is Component.TIDB or has_storage(resource) or not is_base_known)
    )
    rules = {name: _fill_rule(rule, usable) for name, rule in scaled.rules.items()}
    return replace(scaled, resources=resources, rules=rules)


def _copy_size(own: TidbComponent | None) -> AutoResource:
    requests = own.requests if own else {}
    return AutoResource(cpu=requests.get("cpu"), memory=requests.get("memory"), storage=requests.get("storage"))


def _fill_rule(rule: AutoRule, usable: tuple[str, ...]) -> AutoRule:
    return replace(
        rule,
        min_threshold=DEFAULT_MIN_THRESHOLD if rule.min_threshold is None else rule.min_threshold,
        resource_types=tuple(sorted(set(rule.resource_types or usable))),
    )


def _get_or_default(given: int | None, default: int) -> int:
    return default if given is None else given
