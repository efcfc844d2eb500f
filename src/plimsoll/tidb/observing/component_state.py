"""From objects of Kubernetes to what a pass decides on: `ComponentSeen`. Pure.

`autoscaler` calls it with what `observing` read. Where a status says nothing, nothing is made up: None tells that
nobody knows, and what follows from that is `planning.applying`'s to say.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput, InvalidQuantity
from plimsoll.kube.managed_fields import written_at
from plimsoll.tidb.model.components import GROUP_PREFIX, RESOURCE_TYPE_LABEL, Component
from plimsoll.tidb.model.reconcile_types import EXTERNAL, BaseSeen, ComponentSeen, GroupSeen, Size
from plimsoll.tidb.planning.api.defaults import component_of_cluster, scaled_component
from plimsoll.tidb.planning.api.sizes import type_of_requests
from plimsoll.tidb.settings import NAME
from plimsoll.tidb.wire.annotations import GROUP, is_made_by, read_change, read_mark
from plimsoll.tidb.wire.config_labels import labels_in, problem_of_config

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
    """Whether a cluster is younger than the grace, and nothing tells that its PD ever answered anybody."""
    status, created = base.status, base.metadata.creation_timestamp
    if created is None or (now - created).total_seconds() > grace_s:
        return False
    parts = status.tikv, status.tidb
    is_up = any(
        component_status.stateful_set is not None and component_status.stateful_set.ready_replicas
        for component_status in parts
    )
    return not is_up and not status.tikv.stores and not status.tikv.tombstone_stores


def component_seen(
    observed: Observed,
    component: Component,
    *,
    effective: TidbClusterAutoScaler,
    registered: Mapping[str, int],
) -> ComponentSeen:
    """`registered` is, by TidbCluster, what PD knows of stores where the object's status does not tell."""
    assert observed.base is not None, "nothing is seen without a base cluster"
    return ComponentSeen(
        component=component,
        scaled=scaled_component(effective, component),
        base=_base(observed.base, component, registered=registered, entries=_entries(observed, component)),
        groups=tuple(
            _group(raw, component, registered=registered, pods=observed.pods.get(raw.metadata.name, ()))
            for raw in clusters_of(observed, component)
        ),
        status=_entries(observed, component),
    )


def clusters_of(observed: Observed, component: Component) -> tuple[RawObject[TidbCluster], ...]:
    """Those that we made for a component."""
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


def is_silent_on_stores(cluster: RawObject[TidbCluster]) -> bool:
    """Whether only PD can tell which stores of it are Up."""
    return "stores" not in _part(cluster, "status", Component.TIKV)


def _base(
    cluster: RawObject[TidbCluster],
    component: Component,
    *,
    registered: Mapping[str, int],
    entries: Mapping[str, GroupScalingStatus],
) -> BaseSeen:
    own, status = component_of_cluster(cluster.view, component), _status(cluster.view, component)
    replicas = own.replicas if own is not None else 0
    entry = entries.get(component.homogeneous_type)
    is_told = entry is not None and entry.replicas == replicas
    return BaseSeen(
        replicas=replicas,
        running=status.stateful_set.replicas if status.stateful_set is not None else None,
        registered=_registered(cluster, component, registered),
        present=_present(cluster, component),
        phase=status.phase,
        is_paused=cluster.view.spec.paused,
        is_being_deleted=cluster.metadata.deletion_timestamp is not None,
        last_change=None if is_told else written_at(cluster.raw, ("spec", component, "replicas"), manager=NAME),
        config_problem=problem_of_config(own.config, component) if own is not None else "",
    )


def _group(
    cluster: RawObject[TidbCluster], component: Component, *, registered: Mapping[str, int], pods: Iterable[Pod]
) -> GroupSeen:
    metadata, own = cluster.metadata, component_of_cluster(cluster.view, component)
    status = _status(cluster.view, component)
    key = metadata.labels.get(GROUP, "") or EXTERNAL
    changed = read_change(metadata.annotations)
    return GroupSeen(
        name=metadata.name,
        key=key,
        created=_created(metadata.creation_timestamp, changed),
        replicas=own.replicas if own is not None else 0,
        resource_type=_resource_type(cluster, component, key),
        size=_size(own),
        running=status.stateful_set.replicas if status.stateful_set is not None else None,
        registered=_registered(cluster, component, registered),
        last_change=changed,
        waiting_since=_waiting_since(pods),
        mark=read_mark(metadata.annotations),
        leaving=_in_state(cluster, component, _LEAVING),
        present=_present(cluster, component),
        is_being_deleted=metadata.deletion_timestamp is not None,
    )


def _created(written: datetime | None, changed: datetime | None) -> datetime:
    """By the server's clock or ours, whichever is earlier: no clock that is ahead makes a cluster young for ever."""
    return min((moment for moment in (written, changed) if moment is not None), default=_LONG_AGO)


def _size(own: TidbComponent | None) -> Size | None:
    if own is None:
        return None
    try:
        read = type_of_requests("", own)
    except InvalidQuantity:
        return None
    return Size(cpu_milli=read.cpu_milli, memory_bytes=read.memory_bytes, storage_bytes=read.storage_bytes)


def _resource_type(cluster: RawObject[TidbCluster], component: Component, key: str) -> str:
    """As its instances are labelled; else what the group's name ends with."""
    own = component_of_cluster(cluster.view, component)
    try:
        labels = labels_in(own.config, component) if own is not None else {}
    except InvalidInput:
        labels = {}
    return labels.get(RESOURCE_TYPE_LABEL, "") or key.removeprefix(f"{GROUP_PREFIX}-{component}-")


def _registered(cluster: RawObject[TidbCluster], component: Component, known: Mapping[str, int]) -> int | None:
    if component is Component.TIKV:
        if is_silent_on_stores(cluster):
            return known.get(cluster.metadata.name)
        return sum(store.state == _UP for store in cluster.view.status.tikv.stores.values())
    status = _part(cluster, "status", component)
    members = status.get("members")
    if isinstance(members, dict):
        return sum(isinstance(member, dict) and member.get("health") is True for member in members.values())
    summary = status.get("statefulSet")
    ready = summary.get("readyReplicas") if isinstance(summary, dict) else None
    return ready if isinstance(ready, int) else None


def _present(cluster: RawObject[TidbCluster], component: Component) -> int | None:
    """Stores that PD counts, silent ones too; None: the status does not tell of stores."""
    if component is not Component.TIKV or is_silent_on_stores(cluster):
        return None
    return _in_state(cluster, component, _PRESENT)


def _in_state(cluster: RawObject[TidbCluster], component: Component, states: frozenset[str]) -> int:
    stores = cluster.view.status.tikv.stores.values() if component is Component.TIKV else ()
    return sum(store.state in states for store in stores)


def _waiting_since(pods: Iterable[Pod]) -> datetime | None:
    """Since when the first of them has found no node."""
    moments = [
        condition.last_transition_time or pod.metadata.creation_timestamp
        for pod in pods
        for condition in pod.status.conditions
        if pod.status.phase == "Pending"
        and not pod.spec.node_name
        and (condition.type, condition.status, condition.reason) == ("PodScheduled", "False", "Unschedulable")
    ]
    return min((moment for moment in moments if moment is not None), default=None)


def _entries(observed: Observed, component: Component) -> dict[str, GroupScalingStatus]:
    status = observed.autoscaler.status
    return status.tidb if component is Component.TIDB else status.tikv


def _status(cluster: TidbCluster, component: Component) -> TidbComponentStatus:
    return cluster.status.tidb if component is Component.TIDB else cluster.status.tikv


def _part(cluster: RawObject[TidbCluster], *path: str) -> dict[str, Any]:
    """What stands at a path of the object as the server wrote it; nothing, where it is no map."""
    found: Any = msgspec.json.decode(cluster.raw)
    for step in path:
        found = found.get(step) if isinstance(found, dict) else None
    return found if isinstance(found, dict) else {}
