"""What one pass over a component of a cluster sees and decides: the words between observing, deciding and acting.

`observing` makes a `ComponentSeen`, `applying` decides what to do about it, `acting` does it, `telling` tells it. All
of it is data, and all that a pass remembers of the one before stands in Kubernetes objects.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from typing import Final

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
    """Of one instance. `storage_bytes` is 0 for TiDB."""

    cpu_milli: int
    memory_bytes: int
    storage_bytes: int = 0


class DrainMark(Value):
    """How far the removal of a store has come: JSON in an annotation of its TidbCluster, so that a restart knows."""

    store_id: int
    evicting_since: Time
    region_count: int
    regions_moved_at: Time
    """When `region_count` was last seen to fall."""


class BaseSeen(Value):
    """The cluster that is scaled, as far as one component goes. None: its status does not tell.

    `running` is the size of its StatefulSet; `registered` are its stores that are Up, or its TiDB servers that are
    ready.
    """

    replicas: int
    running: int | None = None
    registered: int | None = None
    phase: str = ""
    is_paused: bool = False
    is_being_deleted: bool = False
    last_change: datetime | None = None
    """When we raised it, if the status does not tell of that: a crash came between. By who wrote its replicas."""
    present: int | None = None
    """As `registered`, with stores that are silent (Disconnected, Down): planners count them. None: as `registered`."""
    config_problem: str = ""
    """Why its configuration cannot be given to a group: no TOML, say."""


class GroupSeen(Value):
    """A TidbCluster that we made. `key` is its group, or `EXTERNAL`; the rest as in `BaseSeen`."""

    name: str
    key: str
    created: datetime
    replicas: int
    resource_type: str = ""
    size: Size | None = None
    running: int | None = None
    registered: int | None = None
    last_change: datetime | None = None
    """By its annotation: what its status entry says may be older, if a crash came between."""
    waiting_since: datetime | None = None
    """Since when a pod of it finds no node."""
    mark: DrainMark | None = None
    leaving: int = 0
    """How many of its stores are Offline: on their way out, whether or not a mark tells of it."""
    present: int | None = None
    is_being_deleted: bool = False


class ComponentSeen(Value):
    """`scaled` is defaulted and valid; None: the autoscaler no longer says anything of the component."""

    component: Component
    scaled: ComponentAutoScaler | None
    base: BaseSeen
    groups: tuple[GroupSeen, ...] = ()
    status: dict[str, GroupScalingStatus] = {}


class PassPolicy(Value):
    """What an operator may choose."""

    removal_confirmations: int = 2
    """Accepted answers in a row that leave a group out before it goes; 1 trusts every omission."""
    registration_grace_s: float = 600.0
    """So long a group may be without its instances before that is held against it."""
    out_consecutive: int = 1
    in_consecutive: int = 1
    """How many passes in a row must want a change before it is made."""
    tidb_drain_s: float = 0.0
    """So long TiDB servers of a group that goes may end by themselves before their TidbCluster goes; 0: not at all."""


# ---- what is done


class RaiseBase(Value):
    """More instances of the cluster itself."""

    key: str
    replicas: int
    was: int
    reason: Reason


class CreateGroup(Value):
    """A TidbCluster for a group that has none. `plan.count` instances."""

    key: str
    plan: ScalingPlan
    size: Size
    reason: Reason


class Resize(Value):
    """Another number of replicas, at once: upwards, of TiDB, and of TiKV pods that never held anything."""

    key: str
    group: str
    replicas: int
    was: int
    reason: Reason


class TakeOut(Value):
    """One store less: emptied first, and `replicas` only when it is."""

    key: str
    group: str
    replicas: int
    was: int
    reason: Reason


class BringBack(Value):
    """Stop what `TakeOut` began; `replicas` are to be there."""

    key: str
    group: str
    replicas: int
    was: int
    reason: Reason


class Remove(Value):
    """Delete a TidbCluster that has no instances left, or whose instances hold nothing."""

    key: str
    group: str
    reason: Reason


Act = RaiseBase | CreateGroup | Resize | TakeOut | BringBack | Remove


class Held(Value):
    """A change that is wanted and not made now; `key` is empty if it is about the whole component."""

    key: str
    reason: Reason


class Decided(Value):
    """What one pass does, in order, and what it leaves.

    `status` is the component's as it should now be, but for what only success of an act can say:
    `applying.concluded` adds that.
    """

    acts: tuple[Act, ...] = ()
    held: tuple[Held, ...] = ()
    status: dict[str, GroupScalingStatus] = {}
