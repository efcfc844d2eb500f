"""Interpretation of a snapshot: which instances exist, their groups, and their known load and disk usage."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.tidb.model.components import GROUP_LABEL, GROUP_PREFIX, RESOURCE_TYPE_LABEL, Component
from plimsoll.tidb.model.decimals import to_exact
from plimsoll.tidb.model.limits import read_cores
from plimsoll.tidb.model.snapshot import FRESH
from plimsoll.tidb.planning.planner.result import CannotPlan, Refusal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.tidb.model.snapshot import ObservedInstance, Snapshot

# Leaving or gone. A store in any other state exists, including Disconnected and Down.
_GONE: Final = "Tombstone"
_NOT_PRESENT: Final = frozenset({"Offline", _GONE})
_TIFLASH: Final = "tiflash"


class CpuLoad(Value, frozen=True):
    """The load of an instance with fresh metrics."""

    used_cores: Fraction
    quota_cores: Fraction

    @property
    def usage(self) -> Fraction:
        return self.used_cores / self.quota_cores


class Disk(Value):
    """Disk usage of a store."""

    used_bytes: Fraction
    capacity_bytes: Fraction


class Instance(Value):
    """An instance that exists. `group` and `resource_type` are empty if it is in no group.

    An instance that is neither in a group nor part of the base cluster belongs to a heterogeneous cluster of the user:
    it works and occupies a node, but the planner does not change its number. `quota_cores` may be known when the load
    is not.
    """

    name: str
    group: str
    resource_type: str
    is_homogeneous: bool
    load: CpuLoad | None
    quota_cores: Fraction | None
    disk: Disk | None


def read_instances(snapshot: Snapshot) -> tuple[Instance, ...] | CannotPlan:
    """The instances that count: without leaving stores and without TiFlash."""
    instances = []
    for observed in snapshot.instances:
        if not _is_present(observed, snapshot.component):
            continue
        instance = _build_instance(observed, window_s=to_exact(snapshot.window_seconds))
        if instance.group and not instance.resource_type:
            detail = f"{observed.name} is in group {instance.group} and has no label {RESOURCE_TYPE_LABEL}"
            return CannotPlan(code=Refusal.MISSING_RESOURCE_TYPE, detail=detail)
        instances.append(instance)
    return tuple(instances)


def count_unlisted(snapshot: Snapshot, registered: Mapping[str, int]) -> dict[str, int]:
    """Per type, the registered instances that the snapshot lacks. Those that are leaving are listed too."""
    listed = Counter(
        get_resource_type(observed, snapshot.component)
        for observed in snapshot.instances
        if observed.state != _GONE and not _is_other_engine(observed, snapshot.component)
    )
    lacking = {name: number - listed[name] for name, number in registered.items()}
    return {name: number for name, number in sorted(lacking.items()) if number > 0}


def get_resource_type(observed: ObservedInstance, component: Component) -> str:
    """The resource type of an instance; empty: it belongs to a cluster that is not scaled."""
    instance = _build_instance(observed, window_s=Fraction(1))
    if instance.group:
        return instance.resource_type
    return component.homogeneous_type if instance.is_homogeneous else ""


def _is_present(observed: ObservedInstance, component: Component) -> bool:
    return observed.state not in _NOT_PRESENT and not _is_other_engine(observed, component)


def _is_other_engine(observed: ObservedInstance, component: Component) -> bool:
    engine = observed.engine or _get_label(observed, "engine")
    return component is Component.TIKV and _TIFLASH in {engine.lower(), _get_label(observed, "engine").lower()}


def _build_instance(observed: ObservedInstance, *, window_s: Fraction) -> Instance:
    group = _get_label(observed, GROUP_LABEL)
    is_ours = group.startswith(GROUP_PREFIX) and len(group) > len(GROUP_PREFIX)
    cores = read_cores(observed.cpu_quota_cores)
    quota = to_exact(cores) if cores is not None else None
    return Instance(
        name=observed.name,
        group=group if is_ours else "",
        resource_type=_get_label(observed, RESOURCE_TYPE_LABEL) if is_ours else "",
        is_homogeneous=observed.base and not is_ours,
        load=_load(observed, quota=quota, window_s=window_s),
        quota_cores=quota,
        disk=_build_disk(observed),
    )


def _load(observed: ObservedInstance, *, quota: Fraction | None, window_s: Fraction) -> CpuLoad | None:
    if quota is None or observed.cpu_used_seconds is None or observed.quality != FRESH:
        return None
    return CpuLoad(used_cores=to_exact(observed.cpu_used_seconds) / window_s, quota_cores=quota)


def _build_disk(observed: ObservedInstance) -> Disk | None:
    if observed.used_bytes is None or observed.capacity_bytes is None:
        return None
    return Disk(used_bytes=to_exact(observed.used_bytes), capacity_bytes=to_exact(observed.capacity_bytes))


def _get_label(observed: ObservedInstance, key: str) -> str:
    """The value of a label. PD treats keys of labels case-insensitively."""
    return next((value for name, value in observed.labels.items() if name.lower() == key), "")
