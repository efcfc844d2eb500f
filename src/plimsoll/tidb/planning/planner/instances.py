"""What a snapshot means: which instances are there, whose they are, and what is known of their load and disks."""

from __future__ import annotations

from fractions import Fraction  # noqa: TC003 - msgspec reads annotations at run time
from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.tidb.model.components import GROUP_LABEL, GROUP_PREFIX, RESOURCE_TYPE_LABEL, Component
from plimsoll.tidb.model.decimals import exact
from plimsoll.tidb.model.snapshot import FRESH
from plimsoll.tidb.planning.planner.result import CannotPlan, Refusal

if TYPE_CHECKING:
    from plimsoll.tidb.model.snapshot import InstanceSeen, Snapshot

# Leaving, or gone. Whatever else PD says of a store, it is there: Disconnected and Down ones too.
_NOT_PRESENT: Final = frozenset({"Offline", "Tombstone"})
_TIFLASH: Final = "tiflash"


class CpuLoad(Value, frozen=True):
    """Of an instance that tells both, freshly."""

    used_cores: Fraction
    quota_cores: Fraction

    @property
    def usage(self) -> Fraction:
        return self.used_cores / self.quota_cores


class Disk(Value):
    """How full a store is."""

    used_bytes: Fraction
    capacity_bytes: Fraction


class Instance(Value):
    """One that is there. `group` and `resource_type` are empty if it is in none.

    In no group and not of the base cluster is what belongs to a heterogeneous cluster of the user's own: it works and
    takes a node, but nobody here changes its number. `quota_cores` may be known without the load being so.
    """

    name: str
    group: str
    resource_type: str
    is_homogeneous: bool
    load: CpuLoad | None
    quota_cores: Fraction | None
    disk: Disk | None


def instances_of(snapshot: Snapshot) -> tuple[Instance, ...] | CannotPlan:
    """Those that count: neither leaving ones nor TiFlash."""
    found = []
    for seen in snapshot.instances:
        if not _is_present(seen, snapshot.component):
            continue
        instance = _instance(seen, window_s=exact(snapshot.window_seconds))
        if instance.group and not instance.resource_type:
            detail = f"{seen.name} is of group {instance.group} and has no label {RESOURCE_TYPE_LABEL}"
            return CannotPlan(code=Refusal.MISSING_RESOURCE_TYPE, detail=detail)
        found.append(instance)
    return tuple(found)


def _is_present(seen: InstanceSeen, component: Component) -> bool:
    engine = seen.engine or _label(seen, "engine")
    is_other = component is Component.TIKV and _TIFLASH in {engine.lower(), _label(seen, "engine").lower()}
    return seen.state not in _NOT_PRESENT and not is_other


def _instance(seen: InstanceSeen, *, window_s: Fraction) -> Instance:
    group = _label(seen, GROUP_LABEL)
    is_ours = group.startswith(GROUP_PREFIX) and len(group) > len(GROUP_PREFIX)
    quota = exact(seen.cpu_quota_cores) if seen.cpu_quota_cores else None
    return Instance(
        name=seen.name,
        group=group if is_ours else "",
        resource_type=_label(seen, RESOURCE_TYPE_LABEL) if is_ours else "",
        is_homogeneous=seen.base and not is_ours,
        load=_load(seen, quota=quota, window_s=window_s),
        quota_cores=quota,
        disk=_disk(seen),
    )


def _load(seen: InstanceSeen, *, quota: Fraction | None, window_s: Fraction) -> CpuLoad | None:
    if quota is None or seen.cpu_used_seconds is None or seen.quality != FRESH:
        return None
    return CpuLoad(used_cores=exact(seen.cpu_used_seconds) / window_s, quota_cores=quota)


def _disk(seen: InstanceSeen) -> Disk | None:
    if seen.used_bytes is None or seen.capacity_bytes is None:
        return None
    return Disk(used_bytes=exact(seen.used_bytes), capacity_bytes=exact(seen.capacity_bytes))


def _label(seen: InstanceSeen, key: str) -> str:
    """PD takes keys of labels in any case."""
    return next((value for name, value in seen.labels.items() if name.lower() == key), "")
