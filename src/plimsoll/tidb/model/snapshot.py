"""The planner's view of one component: its instances and their metrics.

The collector builds a `Snapshot` from PD, etcd and Prometheus; `plimsoll tidb plan` reads one from a file. It is plain
data as on the wire; `planning.planner.instances` interprets it.
"""

from typing import Annotated, Final, Literal

from msgspec import Meta

from plimsoll.core.values import Wire
from plimsoll.objects.api.meta import Time
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.model.limits import MOST_BYTES

Amount = Annotated[int, Meta(ge=0, le=MOST_BYTES)] | Annotated[float, Meta(ge=0, le=float(MOST_BYTES))]
Quality = Literal["fresh", "stale", "too_young", "future"]
FRESH: Final = "fresh"


class ObservedInstance(Wire, rename={}):
    """A store or TiDB server. Missing amounts are unknown. `base`: a pod of the base cluster's StatefulSet."""

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
    """Quality of the cpu metrics.

    Stale metrics look like falling load; a young instance does not have its share of the load yet. Metrics from the
    future are of another clock.
    """


class Snapshot(Wire, rename={}):
    """One component at one time. Cpu seconds are those of the window that ends then."""

    component: Component
    time: Time | None = None
    window_seconds: Annotated[float, Meta(gt=0)] = 60.0
    instances: tuple[ObservedInstance, ...] = ()
