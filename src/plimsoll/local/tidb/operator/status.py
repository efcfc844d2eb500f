"""The status of a TidbCluster as its operator writes it, and the merge patch for it. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value
from plimsoll.local.tidb.instances import TIDB, TIKV, TidbInstance
from plimsoll.local.tidb.pd.stores import TOMBSTONE, PdState, StoreState
from plimsoll.objects.api.meta import format_time
from plimsoll.objects.api.workloads import StatefulSet  # noqa: TC001 - msgspec reads annotations at run time

if TYPE_CHECKING:
    from datetime import datetime

NORMAL: Final = "Normal"
SCALE: Final = "Scale"
UPGRADE: Final = "Upgrade"
_READY: Final = "Ready"

Json = dict[str, Any]


class ObservedCluster(Value):
    """The input of a status. `pd` None: the PD is not known yet."""

    namespace: str
    name: str
    wanted: dict[str, int]
    """Replicas by component."""
    sets: dict[str, StatefulSet]
    instances: tuple[TidbInstance, ...] = ()
    pd: PdState | None = None


def build_status(observed: ObservedCluster, before: Json, *, now: datetime) -> Json:
    """`before` is the status that stands there: what did not change keeps its time."""
    components = {name: _build_component(observed, name) for name in observed.wanted}
    is_ready = all(_is_ready(observed, name) for name in observed.wanted)
    return {**components, "conditions": [_build_condition(before, is_ready=is_ready, now=now)]}


def build_merge_patch(before: Any, after: Json) -> Json:
    """The merge patch that leads from one to the other; empty: they are the same."""
    before = before if isinstance(before, dict) else {}
    patch: Json = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(value, dict) and isinstance(old, dict):
            if inner := build_merge_patch(old, value):
                patch[name] = inner
        elif value != old:
            patch[name] = value
    return patch


def _build_component(observed: ObservedCluster, component: str) -> Json:
    found = observed.sets.get(component)
    status: Json = {"synced": True, "phase": _determine_phase(observed, component)}
    if found is not None:
        status["statefulSet"] = _set_status(found)
    if component == TIKV:
        status |= _build_stores(observed)
    if component == TIDB:
        members = [instance for instance in observed.instances if instance.component == TIDB]
        status["members"] = {instance.pod: {"name": instance.pod, "health": instance.is_ready} for instance in members}
    return status


def _determine_phase(observed: ObservedCluster, component: str) -> str:
    found = observed.sets.get(component)
    if found is None:
        return NORMAL
    status = found.status
    is_rolling = bool(status.current_revision) and status.current_revision != status.update_revision
    if is_rolling and status.updated_replicas < status.replicas:
        return UPGRADE
    wanted = observed.wanted[component]
    return NORMAL if wanted == (found.spec.replicas or 0) == status.replicas else SCALE


def _set_status(found: StatefulSet) -> Json:
    status = found.status
    return {
        "observedGeneration": status.observed_generation,
        "replicas": status.replicas,
        "readyReplicas": status.ready_replicas,
        "currentReplicas": status.current_replicas,
        "updatedReplicas": status.updated_replicas,
        "currentRevision": status.current_revision,
        "updateRevision": status.update_revision,
    }


def _build_stores(observed: ObservedCluster) -> Json:
    if observed.pd is None:
        return {}
    own = observed.pd.list_stores_of_cluster(observed.namespace, observed.name)
    at = observed.pd.as_of
    return {
        "bootStrapped": observed.pd.is_bootstrapped,
        "stores": {
            str(store_state.id): _store(store_state, at) for store_state in own if store_state.state != TOMBSTONE
        },
        "tombstoneStores": {
            str(store_state.id): _store(store_state, at) for store_state in own if store_state.state == TOMBSTONE
        },
    }


def _store(store: StoreState, at: datetime) -> Json:
    return {
        "id": str(store.id),
        "podName": store.pod,
        "ip": store.address.rpartition(":")[0],
        "leaderCount": store.leaders,
        "state": store.get_state_name(at),
    }


def _is_ready(observed: ObservedCluster, component: str) -> bool:
    found = observed.sets.get(component)
    wanted = observed.wanted[component]
    if found is None or found.status.ready_replicas != wanted:
        return False
    if component != TIKV:
        return True
    own = observed.pd.list_stores_of_cluster(observed.namespace, observed.name) if observed.pd else ()
    return observed.pd is not None and sum(store_state.is_healthy(observed.pd.as_of) for store_state in own) >= wanted


def _build_condition(before: Json, *, is_ready: bool, now: datetime) -> Json:
    status = "True" if is_ready else "False"
    reason, message = ("Ready", "TiDB cluster is fully up and running") if is_ready else ("NotReady", "not all are up")
    conditions = before.get("conditions")
    old = next(
        (
            condition
            for condition in conditions or ()
            if isinstance(condition, dict) and condition.get("type") == _READY
        ),
        {},
    )
    same = old.get("status") == status
    since = old.get("lastTransitionTime") if same else format_time(now)
    return {"type": _READY, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}
