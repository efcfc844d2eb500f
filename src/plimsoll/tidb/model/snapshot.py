"""The planner's whole view of the world: the instances of one component, and what was measured of each.

Collectors make a `Snapshot` from PD, etcd and Prometheus; `plimsoll tidb plan` reads one from a file. It is plain data
as it stands on the wire. What it means is worked out in `instances`.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta

from plimsoll.core.values import Wire
from plimsoll.objects.api.meta import Time
from plimsoll.tidb.model.components import Component

Amount = Annotated[int, Meta(ge=0)] | Annotated[float, Meta(ge=0)]
Quality = Literal["fresh", "stale", "too_young"]
FRESH: Final = "fresh"


class InstanceSeen(Wire, rename={}):
    """One store or TiDB server. Absent amounts are unknown ones. `base`: a pod of the base cluster's StatefulSet."""

    name: str
    namespace: str = ""
    store_id: int | None = None
    state: str = ""
    engine: str = ""
    base: bool = False
    labels: dict[str, str] = {}
    cpu_used_seconds: Amount | None = None
    cpu_quota_cores: Amount | None = None
    capacity_bytes: Amount | None = None
    used_bytes: Amount | None = None
    quality: Quality = FRESH
    """Of the cpu metrics. Stale ones look like falling load, and a young instance has not seen its share yet."""


class Snapshot(Wire, rename={}):
    """One component at one time; cpu seconds are those of the window that ends then."""

    component: Component
    time: Time | None = None
    window_seconds: Annotated[float, Meta(gt=0)] = 60.0
    instances: tuple[InstanceSeen, ...] = ()
