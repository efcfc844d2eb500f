"""From Kubernetes objects to the `ObservedComponent` that decisions are based on. Pure.

Where a status is missing, nothing is invented: None means unknown, and `planning.reconcile` decides what follows.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput, InvalidQuantity
from plimsoll.kube.managed_fields import find_last_write_time
from plimsoll.tidb.model.components import GROUP_PREFIX, RESOURCE_TYPE_LABEL, Component
from plimsoll.tidb.model.reconcile_types import EXTERNAL, ObservedBase, ObservedComponent, ObservedGroup, Size
from plimsoll.tidb.planning.api.defaults import get_component, get_scaled_component
from plimsoll.tidb.planning.api.sizes import read_requests_type
from plimsoll.tidb.settings import NAME
from plimsoll.tidb.wire.annotations import GROUP, is_made_by, read_change_time, read_drain_record
from plimsoll.tidb.wire.config_labels import find_config_problem, read_labels

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.tidb import (
        GroupScalingStatus,
        TidbCluster,
        TidbClusterAutoScaler,
        TidbComponent,
        TidbComponentStatus,
    )
    from plimsoll.objects.codec.decoding import RawObject
    from plimsoll.tidb.observing.observer import Observed

_UP: Final = "Up"
_LEAVING: Final = frozenset({"Offline"})
_PRESENT: Final = frozenset({_UP, "Disconnected", "Down"})
_LONG_AGO: Final = datetime(1970, 1, 1, tzinfo=UTC)


def is_starting(base: TidbCluster, *, now: datetime, grace_s: float) -> bool:
    """Whether a cluster is younger than the grace period and shows no sign that its PD was ever reachable."""
    status, created = base.status, base.metadata.creation_timestamp
    if created is None or (now - created).total_seconds() > grace_s:
        return False
    parts = status.tikv, status.tidb
    is_up = any(
        component_status.stateful_set is not None and component_status.stateful_set.ready_replicas
        for component_status in parts
    )
    return not is_up and not status.tikv.stores and not status.tikv.tombstone_stores


def observe_component(
    observed: Observed,
    component: Component,
    *,
    effective: TidbClusterAutoScaler,
    registered: Mapping[str, int],
) -> ObservedComponent:
    """The component. `registered` counts stores in PD per TidbCluster, where the status of the object lacks them."""
    assert observed.base is not None, "observing a component needs a base cluster"
    return ObservedComponent(
        component=component,
        scaled=get_scaled_component(effective, component),
        base=_build_base(observed.base, component, registered=registered, entries=_read_entries(observed, component)),
        groups=tuple(
            _build_group(raw, component, registered=registered, pods=observed.pods.get(raw.metadata.name, ()))
            for raw in find_clusters(observed, component)
        ),
        status=_read_entries(observed, component),
    )


def find_clusters(observed: Observed, component: Component) -> tuple[RawObject[TidbCluster], ...]:
    """The clusters that we created for a component."""
    autoscaler = observed.autoscaler
    return tuple(
        raw
        for raw in observed.clusters
        if is_made_by(
            raw.metadata.labels,
            autoscaler=autoscaler.metadata.name,
            component=component,
            base=autoscaler.spec.cluster.name,
        )
    )


def read_store_ids(cluster: TidbCluster) -> frozenset[int]:
    """The stores in the status of a cluster that are not a Tombstone."""
    return frozenset(int(name) for name in cluster.status.tikv.stores if re.fullmatch("[1-9][0-9]{0,18}", name))


def lacks_store_status(cluster: RawObject[TidbCluster]) -> bool:
    """Whether only PD knows which of its stores are Up."""
    return "stores" not in _get_part(cluster, "status", Component.TIKV)


def _build_base(
    cluster: RawObject[TidbCluster],
    component: Component,
    *,
    registered: Mapping[str, int],
    entries: Mapping[str, GroupScalingStatus],
) -> ObservedBase:
    own, status = get_component(cluster.view, component), _get_status(cluster.view, component)
    replicas = own.replicas if own is not None else 0
    entry = entries.get(component.homogeneous_type)
    is_recorded = entry is not None and entry.replicas == replicas
    return ObservedBase(
        replicas=replicas,
        running=status.stateful_set.replicas if status.stateful_set is not None else None,
        registered=_count_registered(cluster, component, registered),
        present=_count_present(cluster, component),
        phase=status.phase,
        is_paused=cluster.view.spec.paused,
        is_being_deleted=cluster.metadata.deletion_timestamp is not None,
        last_change=None
        if is_recorded
        else find_last_write_time(cluster.raw, ("spec", component, "replicas"), manager=NAME),
        config_problem=find_config_problem(own.config, component) if own is not None else "",
    )


def _build_group(
    cluster: RawObject[TidbCluster], component: Component, *, registered: Mapping[str, int], pods: Iterable[Pod]
) -> ObservedGroup:
    metadata, own = cluster.metadata, get_component(cluster.view, component)
    status = _get_status(cluster.view, component)
    key = metadata.labels.get(GROUP, "") or EXTERNAL
    changed = read_change_time(metadata.annotations)
    return ObservedGroup(
        name=metadata.name,
        key=key,
        created=_find_creation_time(metadata.creation_timestamp, changed),
        replicas=own.replicas if own is not None else 0,
        resource_type=_find_resource_type(cluster, component, key),
        size=_read_size(own),
        running=status.stateful_set.replicas if status.stateful_set is not None else None,
        registered=_count_registered(cluster, component, registered),
        last_change=changed,
        unschedulable_since=_find_waiting_since(pods),
        drain_record=read_drain_record(metadata.annotations),
        offline=_count_in_state(cluster, component, _LEAVING),
        present=_count_present(cluster, component),
        is_being_deleted=metadata.deletion_timestamp is not None,
    )


def _find_creation_time(written: datetime | None, changed: datetime | None) -> datetime:
    """The creation time by the server's clock or ours, whichever is earlier.

    A clock that is ahead must not keep a cluster young.
    """
    return min((moment for moment in (written, changed) if moment is not None), default=_LONG_AGO)


def _read_size(own: TidbComponent | None) -> Size | None:
    if own is None:
        return None
    try:
        read = read_requests_type("", own)
    except InvalidQuantity:
        return None
    return Size(cpu_milli=read.cpu_milli, memory_bytes=read.memory_bytes, storage_bytes=read.storage_bytes)


def _find_resource_type(cluster: RawObject[TidbCluster], component: Component, key: str) -> str:
    """The type in the labels of its instances, otherwise the end of the group's name."""
    own = get_component(cluster.view, component)
    try:
        labels = read_labels(own.config, component) if own is not None else {}
    except InvalidInput:
        labels = {}
    return labels.get(RESOURCE_TYPE_LABEL, "") or key.removeprefix(f"{GROUP_PREFIX}-{component}-")


def _count_registered(cluster: RawObject[TidbCluster], component: Component, known: Mapping[str, int]) -> int | None:
    if component is Component.TIKV:
        if lacks_store_status(cluster):
            return known.get(cluster.metadata.name)
        return sum(store.state == _UP for store in cluster.view.status.tikv.stores.values())
    status = _get_part(cluster, "status", component)
    members = status.get("members")
    if isinstance(members, dict):
        return sum(isinstance(member, dict) and member.get("health") is True for member in members.values())
    summary = status.get("statefulSet")
    ready = summary.get("readyReplicas") if isinstance(summary, dict) else None
    return ready if isinstance(ready, int) else None


def _count_present(cluster: RawObject[TidbCluster], component: Component) -> int | None:
    """Stores that PD counts, including silent ones; None: the status does not list stores."""
    if component is not Component.TIKV or lacks_store_status(cluster):
        return None
    return _count_in_state(cluster, component, _PRESENT)


def _count_in_state(cluster: RawObject[TidbCluster], component: Component, states: frozenset[str]) -> int:
    stores = cluster.view.status.tikv.stores.values() if component is Component.TIKV else ()
    return sum(store.state in states for store in stores)


def _find_waiting_since(pods: Iterable[Pod]) -> datetime | None:
    """Since when the first of the pods has been unschedulable."""
    moments = [
        condition.last_transition_time or pod.metadata.creation_timestamp
        for pod in pods
        for condition in pod.status.conditions
        if pod.status.phase == "Pending"
        and not pod.spec.node_name
        and (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "Unschedulable")
    ]
    return min((moment for moment in moments if moment is not None), default=None)


def _read_entries(observed: Observed, component: Component) -> dict[str, GroupScalingStatus]:
    status = observed.autoscaler.status
    return status.tidb if component is Component.TIDB else status.tikv


def _get_status(cluster: TidbCluster, component: Component) -> TidbComponentStatus:
    return cluster.status.tidb if component is Component.TIDB else cluster.status.tikv


def _get_part(cluster: RawObject[TidbCluster], *path: str) -> dict[str, Any]:
    """The map at a path of the raw object; empty if there is none."""
    found: Any = msgspec.json.decode(cluster.raw)
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}
