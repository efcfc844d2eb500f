"""The load of simulated TiDB clusters: curves from ConfigMaps, and the share of each instance.

A base TidbCluster names the ConfigMap by an annotation; without one it is idle. The ConfigMap has `curve.csv` (see
`curves`), and may have `repeat` ("true"), `start` (when the curve begins, else when the ConfigMap was made)
and `target` (the usage down to which hot instances hand work over to groups). It is read again at every scrape, so an
edited curve counts at once.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value
from plimsoll.kube.errors import NotFound
from plimsoll.local.tidb.instances import TIDB, TIKV
from plimsoll.local.tidb.load.curves import IDLE, Load, LoadCurve, read_curve
from plimsoll.local.tidb.load.spreading import EVEN, HotLoad, spread_work
from plimsoll.objects.api.core import ConfigMap

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.events import Key
    from plimsoll.local.tidb.instances import TidbInstance
    from plimsoll.objects.api.tidb import TidbCluster

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

LOAD: Final = "simulated.plimsoll.io/load"
_CURVE: Final = "curve.csv"
_GIB: Final = 1024**3
_DEFAULT_TARGET: Final = 0.5


class LoadSource(Value):
    """A curve, when it began, and the usage that hot instances keep."""

    curve: LoadCurve
    start: datetime
    target: float = _DEFAULT_TARGET

    def compute_load(self, now: datetime) -> Load:
        return self.curve.compute_load(max(0.0, (now - self.start).total_seconds()))


class ClusterLoads:
    """The loads of all clusters, as they were last read."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._demands: dict[Key, LoadSource] = {}
        self._loads: dict[Key, Load] = {}
        self._problems: dict[Key, str] = {}

    async def read(self, key: Key, base: TidbCluster, *, now: datetime) -> Load:
        """The load of a cluster at `now`. An unreadable curve is logged once and counts as no load."""
        name = base.metadata.annotations.get(LOAD, "")
        try:
            demand = await self._load_source(name, key.namespace) if name else None
            problem = ""
        except InvalidInput as error:
            demand, problem = None, str(error)
        if problem and self._problems.get(key) != problem:
            log.warning("simulated_tidb.no_load", cluster=str(key), problem=problem)
        self._problems[key] = problem
        if demand is None:
            self.forget(key)
            return IDLE
        self._demands[key] = demand
        self._loads[key] = demand.compute_load(now)
        return self._loads[key]

    def forget(self, key: Key) -> None:
        self._demands.pop(key, None)
        self._loads.pop(key, None)

    def sum_used_bytes(self, key: Key) -> float:
        """What all stores of a cluster hold together."""
        return self._loads.get(key, IDLE).storage_gib * _GIB

    def compute_cores(self, key: Key, instances: Iterable[TidbInstance]) -> dict[tuple[str, str], float]:
        """Cores that each instance uses, by namespace and pod. None uses more than it has."""
        load, demand = self._loads.get(key, IDLE), self._demands.get(key)
        running = [instance for instance in instances if instance.is_ready]
        target = demand.target if demand is not None else _DEFAULT_TARGET
        heat = HotLoad(instances=load.hot_instances, share=load.hot_share, target=target)
        used = _spread_work([instance for instance in running if instance.component == TIKV], load.tikv_cores, heat)
        return used | _spread_work(
            [instance for instance in running if instance.component == TIDB], load.tidb_cores, EVEN
        )

    async def _load_source(self, name: str, namespace: str) -> LoadSource:
        try:
            found = await self._client.get(ConfigMap, name, namespace=namespace)
        except NotFound:
            raise InvalidInput(f"there is no ConfigMap {namespace}/{name}", path=LOAD) from None
        repeats = found.data.get("repeat", "").strip().lower() == "true"
        made = found.metadata.creation_timestamp
        start = _parse_time(found.data["start"]) if "start" in found.data else made
        if start is None:
            raise InvalidInput("when the curve begins is not known", path="start")
        curve = read_curve(found.data.get(_CURVE, ""), repeats=repeats)
        return LoadSource(curve=curve, start=start, target=_parse_target(found.data.get("target", "")))


def _spread_work(instances: Sequence[TidbInstance], work_cores: float, heat: HotLoad) -> dict[tuple[str, str], float]:
    base = [instance for instance in instances if instance.is_base]
    groups = [instance for instance in instances if not instance.is_base]
    spread = spread_work(
        work_cores,
        base=[instance.cpu_cores for instance in base],
        groups=[group.cpu_cores for group in groups],
        heat=heat,
    )
    together = zip((*base, *groups), spread, strict=True)
    return {(instance.namespace, instance.pod): min(cores, instance.cpu_cores) for instance, cores in together}


def _parse_time(written: str) -> datetime:
    try:
        moment = datetime.fromisoformat(written.strip())
    except ValueError:
        moment = None
    if moment is None or moment.tzinfo is None:
        raise InvalidInput(f"{written!r} is not a time like 2026-01-01T00:00:00Z", path="start")
    return moment


def _parse_target(written: str) -> float:
    try:
        target = float(written) if written.strip() else _DEFAULT_TARGET
    except ValueError:
        target = 0.0
    if not 0 < target < 1:
        raise InvalidInput(f"{written!r} is not between 0 and 1", path="target")
    return target
