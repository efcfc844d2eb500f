"""From PD and Prometheus to the planner's snapshot, with what is wrong with the metrics of every instance.

The planning service collects anew for every question; nothing is remembered. Numbers are passed on as they were
measured. Whether they can be trusted is judged here, what follows from it in `planning`: a Prometheus that lags behind
shows falling load, and a failed scrape takes the quota away while the usage is still answered.
"""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.values import Value
from plimsoll.tidb.model.snapshot import FRESH, InstanceSeen, Quality, Snapshot
from plimsoll.tidb.pd.client import PdFailed
from plimsoll.tidb.pd.members import BaseCluster, Member, members_of
from plimsoll.tidb.prometheus.cpu import DEFAULT_QUERIES, CpuQueries, CpuReadings, amount_of, read_cpu
from plimsoll.tidb.prometheus.discovery import NotKnown, prometheus_address
from plimsoll.web.prometheus import Prometheus

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.tidb.model.components import Component
    from plimsoll.tidb.pd.client import Pd
    from plimsoll.web.client import HttpClient

TIME_TO_COLLECT_S: Final = 5.5
"""For all questions together; a single one has 5 s, and who asks us waits about as long."""
_INTERVALS_UNTIL_STALE: Final = 2
_YOUNG_WINDOWS: Final = 2


class Collecting(Value):
    """What is collected, and where from. `prometheus` empty: PD is asked where it is."""

    base: BaseCluster
    prometheus: str = ""
    window_s: int = 60
    scrape_interval_s: float = 15.0
    queries: dict[Component, CpuQueries] = msgspec.field(default_factory=lambda: dict(DEFAULT_QUERIES))


class Gap(Value):
    """An instance that is there, and whose cpu metrics cannot be used."""

    instance: str
    problem: str


class Collected(Value):
    """A snapshot, and what is missing in it, for people: the snapshot itself says the same to the planner."""

    snapshot: Snapshot
    gaps: tuple[Gap, ...] = ()
    problems: tuple[str, ...] = ()
    """Questions that were not answered."""


class CannotCollect(Value):
    """It is not known which instances there are: nothing can be planned."""

    code: str
    detail: str


class Collector:
    """Of one cluster."""

    def __init__(self, settings: Collecting, *, pd: Pd, web: HttpClient) -> None:
        self._settings = settings
        self._pd = pd
        self._web = web

    async def collect(self, component: Component, *, at: datetime, wants_cpu: bool = True) -> Collected | CannotCollect:
        async with asyncio.TaskGroup() as group:
            listing = group.create_task(self._members(component))
            reading = group.create_task(self._readings(component, at)) if wants_cpu else None
        members = listing.result()
        if isinstance(members, PdFailed):
            return _cannot(members)
        readings = CpuReadings() if reading is None else reading.result()
        joined = [_seen(member, readings, at=at, settings=self._settings) for member in members]
        snapshot = Snapshot(
            component=component,
            time=at,
            window_seconds=float(self._settings.window_s),
            instances=tuple(seen for seen, _ in joined),
        )
        gaps = tuple(Gap(instance=seen.name, problem=problem) for seen, problem in joined if wants_cpu and problem)
        return Collected(snapshot=snapshot, gaps=gaps, problems=readings.problems)

    async def _members(self, component: Component) -> tuple[Member, ...] | PdFailed:
        try:
            async with asyncio.timeout(TIME_TO_COLLECT_S):
                return await members_of(component, self._settings.base, self._pd)
        except TimeoutError:
            return PdFailed(problem=f"PD did not answer within {TIME_TO_COLLECT_S:g} s")

    async def _readings(self, component: Component, at: datetime) -> CpuReadings:
        try:
            async with asyncio.timeout(TIME_TO_COLLECT_S):
                address = await prometheus_address(self._settings.prometheus, self._pd)
                if isinstance(address, NotKnown):
                    return CpuReadings(problems=(address.problem,))
                queries, window_s = self._settings.queries[component], self._settings.window_s
                return await read_cpu(queries, Prometheus(address, web=self._web), at=at, window_s=window_s)
        except TimeoutError:
            return CpuReadings(problems=(f"Prometheus did not answer within {TIME_TO_COLLECT_S:g} s",))


def _cannot(failed: PdFailed) -> CannotCollect:
    if failed.is_not_bootstrapped:
        return CannotCollect(code="not_bootstrapped", detail=failed.problem)
    return CannotCollect(code="pd_unreachable" if failed.is_unreachable else "pd_failed", detail=failed.problem)


def _seen(member: Member, readings: CpuReadings, *, at: datetime, settings: Collecting) -> tuple[InstanceSeen, str]:
    """The instance, and what is wrong with its metrics; of leaving ones and TiFlash nobody wants any."""
    used = quota = None
    if member.pod is not None:
        used, quota = amount_of(member.pod, readings.used_seconds), amount_of(member.pod, readings.quota_cores)
    quality, problem = _judged(member, readings, at=at, settings=settings)
    seen = InstanceSeen(
        name=member.pod.name if member.pod else member.address,
        namespace=member.pod.namespace if member.pod else "",
        store_id=member.store_id,
        state=member.state,
        engine=_engine(member),
        base=member.is_base,
        labels=member.labels,
        cpu_used_seconds=used,
        cpu_quota_cores=quota,
        capacity_bytes=member.capacity_bytes,
        used_bytes=member.used_bytes,
        quality=quality,
    )
    return seen, "" if member.is_tiflash or member.is_leaving else problem


def _engine(member: Member) -> str:
    if member.store_id is None:
        return ""
    return "tiflash" if member.is_tiflash else "tikv"


def _judged(member: Member, readings: CpuReadings, *, at: datetime, settings: Collecting) -> tuple[Quality, str]:
    """What its metrics are worth, and why not more. Missing ones are fresh: their absence tells all there is."""
    if member.pod is None:
        return FRESH, f"the address {member.address} names no pod"
    young_s = _YOUNG_WINDOWS * settings.window_s
    if member.started is not None and at - member.started < timedelta(seconds=young_s):
        return "too_young", f"started {member.started:%Y-%m-%dT%H:%M:%SZ}, less than {young_s} s ago"
    if amount_of(member.pod, readings.quota_cores) is None:
        return FRESH, "missing quota"
    measured_s = amount_of(member.pod, readings.measured_s)
    limit_s = _INTERVALS_UNTIL_STALE * settings.scrape_interval_s
    if measured_s is None:
        return "stale", "when it was measured is not known"
    if at.timestamp() - measured_s > limit_s:
        return "stale", f"measured {at.timestamp() - measured_s:.0f} s ago, more than {limit_s:g} s"
    if amount_of(member.pod, readings.used_seconds) is None:
        return FRESH, "missing usage"
    return FRESH, ""
