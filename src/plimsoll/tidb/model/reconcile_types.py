"""What a reconcile of one component observes and decides: the types between observing, planning and actuation.

`observing` builds an `ObservedComponent`, `planning` decides, `actuation` acts and `reporting` reports. All of it is
data. What a reconcile must know about the previous one is stored in Kubernetes objects.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from typing import Annotated, Final

from msgspec import Meta

from plimsoll.core.plans import Reason  # noqa: TC001 - as above
from plimsoll.core.values import Value
from plimsoll.objects.api.meta import Time  # noqa: TC001 - as above
from plimsoll.objects.api.tidb import (
    ComponentAutoScaler,  # noqa: TC001
    GroupScalingStatus,  # noqa: TC001
)
from plimsoll.tidb.model.components import Component  # noqa: TC001 - as above
from plimsoll.tidb.model.scaling_plan import ScalingPlan  # noqa: TC001 - msgspec reads annotations at run time

EXTERNAL: Final = "external"
"""The key, in a component's status, of the group that an external service sizes."""


class Size(Value):
    """The size of one instance. `storage_bytes` is 0 for TiDB."""

    cpu_milli: int
    memory_bytes: int
    storage_bytes: int = 0


class DrainRecord(Value):
    """The progress of a store removal: JSON in an annotation of its TidbCluster, so that it survives a restart."""

    store_id: Annotated[int, Meta(ge=0)]
    evicting_since: Time
    region_count: Annotated[int, Meta(ge=0)]
    regions_moved_at: Time
    """When `region_count` last fell."""
    owns_eviction: bool = True
    """Whether the eviction of its leaders is ours, and so ends with the record. Older records are of our evictions."""


class ObservedBase(Value):
    """The scaled cluster, as far as one component is concerned. None means that its status does not say.

    `running` is the size of its StatefulSet. `registered` counts stores that are Up, or TiDB servers that are ready.
    """

    replicas: int
    running: int | None = None
    registered: int | None = None
    phase: str = ""
    is_paused: bool = False
    is_being_deleted: bool = False
    last_change: datetime | None = None
    """When we raised the replicas, if the status does not say because of a crash. Taken from managed fields."""
    present: int | None = None
    """Like `registered`, including silent stores (Disconnected, Down), which planners count. None: as `registered`."""
    config_problem: str = ""
    """Why groups cannot use the cluster's configuration, such as invalid TOML."""


class ObservedGroup(Value):
    """A TidbCluster that we created. `key` is its group or `EXTERNAL`; other fields as in `ObservedBase`."""

    name: str
    key: str
    created: datetime
    replicas: int
    resource_type: str = ""
    size: Size | None = None
    running: int | None = None
    registered: int | None = None
    last_change: datetime | None = None
    """From its annotation: the status entry may be older after a crash."""
    unschedulable_since: datetime | None = None
    """Since when one of its pods has been unschedulable."""
    drain_record: DrainRecord | None = None
    offline: int = 0
    """The number of its stores that are Offline, with or without a drain record."""
    present: int | None = None
    is_being_deleted: bool = False


class ObservedComponent(Value):
    """A component of a cluster. `scaled` has its defaults and is valid; None: the autoscaler no longer scales it."""

    component: Component
    scaled: ComponentAutoScaler | None
    base: ObservedBase
    groups: tuple[ObservedGroup, ...] = ()
    status: dict[str, GroupScalingStatus] = {}


class ReconcilePolicy(Value):
    """Settings of the operator."""

    removal_confirmations: int = 2
    """Consecutive accepted answers that must omit a group before it is removed; 1 trusts every omission."""
    registration_grace_s: float = 600.0
    """How long the instances of a group may take to register."""
    out_consecutive: int = 1
    in_consecutive: int = 1
    """How many consecutive reconciles must want a change before it is made."""
    tidb_drain_s: float = 0.0
    """How long TiDB servers of a removed group may shut down before their TidbCluster is deleted; 0: no delay."""


# ---- acts


class RaiseBase(Value):
    """Raise the replicas of the base cluster."""

    key: str
    replicas: int
    was: int
    reason: Reason


class CreateGroup(Value):
    """Create a TidbCluster for a group that has none, with `plan.count` instances."""

    key: str
    plan: ScalingPlan
    size: Size
    reason: Reason


class Resize(Value):
    """Change replicas at once: for scale-out, for TiDB, and for TiKV pods that never held data."""

    key: str
    group: str
    replicas: int
    was: int
    reason: Reason


class TakeOut(Value):
    """Remove one store: it is drained first, and `replicas` is lowered only after that."""

    key: str
    group: str
    replicas: int
    was: int
    reason: Reason


class BringBack(Value):
    """Cancel what `TakeOut` began, so that there are `replicas` instances."""

    key: str
    group: str
    replicas: int
    was: int
    reason: Reason


class Remove(Value):
    """Delete a TidbCluster that has no instances left, or whose instances hold no data."""

    key: str
    group: str
    reason: Reason


Act = RaiseBase | CreateGroup | Resize | TakeOut | BringBack | Remove


class Held(Value):
    """A desired change that is not made now. `key` is empty if it concerns the whole component."""

    key: str
    reason: Reason


class Decision(Value):
    """What a reconcile does, in order, and what it holds back.

    `status` is the new status of the component, except for what depends on the success of acts; `decide.conclude` adds
    that.
    """

    acts: tuple[Act, ...] = ()
    held: tuple[Held, ...] = ()
    status: dict[str, GroupScalingStatus] = {}
