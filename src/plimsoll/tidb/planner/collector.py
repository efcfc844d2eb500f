"""Collects a snapshot of one component: members from PD, cpu metrics from Prometheus.

The age of metrics is judged by the quota's timestamp, because a window of usage with a missing end shows falling load,
and a failed scrape removes the quota while the usage is still answered.
"""

from __future__ import annotations

import asyncio
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.durations import add_seconds
from plimsoll.core.values import Value
from plimsoll.tidb.model.limits import CLOCK_SKEW_S, read_cores, read_cpu_seconds
from plimsoll.tidb.model.snapshot import FRESH, ObservedInstance, Quality, Snapshot
from plimsoll.tidb.pd.client import PdFailed
from plimsoll.tidb.pd.members import BaseCluster, Member, list_members
from plimsoll.tidb.prometheus.cpu import DEFAULT_QUERIES, CpuQueries, CpuReadings, find_amount, read_cpu
from plimsoll.tidb.prometheus.discovery import PrometheusNotFound, find_prometheus
from plimsoll.web.prometheus import Prometheus

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from plimsoll.tidb.model.components import Component
    from plimsoll.tidb.pd.client import PdClient
    from plimsoll.tidb.pd.members import PodName
    from plimsoll.tidb.prometheus.cpu import Amounts
    from plimsoll.web.client import HttpClient

TIME_TO_COLLECT_S: Final = 5.5
"""For all requests together. A single request has 5 s, and callers wait about as long."""
_INTERVALS_UNTIL_STALE: Final = 2
_YOUNG_WINDOWS: Final = 2


class CollectorSettings(Value):
    """What is collected, and where from. `prometheus` empty: PD is asked for the address."""

    base: BaseCluster
    prometheus: str = ""
    window_s: int = 60
    scrape_interval_s: float = 15.0
    queries: dict[Component, CpuQueries] = msgspec.field(default_factory=lambda: dict(DEFAULT_QUERIES))


class MetricsGap(Value):
    """An existing instance whose cpu metrics cannot be used."""

    instance: str
    problem: str
    is_expected: bool = False
    """A young instance: its metrics come by themselves."""


class CollectedSnapshot(Value):
    """A snapshot, and a description of what is missing in it for people."""

    snapshot: Snapshot
    gaps: tuple[MetricsGap, ...] = ()
    problems: tuple[str, ...] = ()
    """Requests that were not answered."""


class CannotCollect(Value):
    """The instances are unknown: nothing can be planned."""

    code: str
    detail: str


class Collector:
    """The collector of one cluster."""

    def __init__(self, settings: CollectorSettings, *, pd: PdClient, web: HttpClient) -> None:
        self._settings = settings
        self._pd = pd
        self._web = web

    async def collect(
        self, component: Component, *, at: datetime, wants_cpu: bool = True
    ) -> CollectedSnapshot | CannotCollect:
        async with asyncio.TaskGroup() as group:
            listing = group.create_task(self._list_members(component, at))
            reading = group.create_task(self._read_cpu(component, at)) if wants_cpu else None
        members = listing.result()
        if isinstance(members, PdFailed):
            return _collect_failure(members)
        readings = CpuReadings() if reading is None else reading.result()
        joined = [_build_instance(member, readings, at=at, settings=self._settings) for member in members]
        snapshot = Snapshot(
            component=component,
            time=at,
            window_seconds=float(self._settings.window_s),
            instances=tuple(instance for instance, _ in joined),
        )
        gaps = tuple(
            MetricsGap(instance=instance.name, problem=problem, is_expected=instance.quality == "too_young")
            for instance, problem in joined
            if wants_cpu and problem
        )
        return CollectedSnapshot(snapshot=snapshot, gaps=gaps, problems=readings.problems)

    async def _list_members(self, component: Component, at: datetime) -> tuple[Member, ...] | PdFailed:
        try:
            async with asyncio.timeout(TIME_TO_COLLECT_S):
                return await list_members(component, self._settings.base, self._pd, at=at)
        except TimeoutError:
            return PdFailed(problem=f"PD did not answer within {TIME_TO_COLLECT_S:g} s")

    async def _read_cpu(self, component: Component, at: datetime) -> CpuReadings:
        try:
            async with asyncio.timeout(TIME_TO_COLLECT_S):
                address = await find_prometheus(self._settings.prometheus, self._pd)
                if isinstance(address, PrometheusNotFound):
                    return CpuReadings(problems=(address.problem,))
                queries, window_s = self._settings.queries[component], self._settings.window_s
                return await read_cpu(queries, Prometheus(address, web=self._web), at=at, window_s=window_s)
        except TimeoutError:
            return CpuReadings(problems=(f"Prometheus did not answer within {TIME_TO_COLLECT_S:g} s",))


def _collect_failure(failed: PdFailed) -> CannotCollect:
    if failed.is_not_bootstrapped:
        return CannotCollect(code="not_bootstrapped", detail=failed.problem)
    return CannotCollect(code="pd_unreachable" if failed.is_unreachable else "pd_failed", detail=failed.problem)


def _build_instance(
    member: Member, readings: CpuReadings, *, at: datetime, settings: CollectorSettings
) -> tuple[ObservedInstance, str]:
    """The instance, and what is wrong with its metrics. Leaving stores and TiFlash need none."""
    used = quota = None
    if member.pod is not None:
        used = read_cpu_seconds(find_amount(member.pod, readings.used_seconds), window_s=settings.window_s)
        quota = read_cores(find_amount(member.pod, readings.quota_cores))
    quality, problem = _judge_metrics(member, readings, at=at, settings=settings)
    instance = ObservedInstance(
        name=member.pod.name if member.pod else member.address,
        namespace=member.pod.namespace if member.pod else "",
        store_id=member.store_id,
        state=member.state,
        engine=_get_engine(member),
        base=member.is_base,
        labels=member.labels,
        cpu_used_seconds=used,
        cpu_quota_cores=quota,
        capacity_bytes=member.capacity_bytes,
        used_bytes=member.used_bytes,
        quality=quality,
    )
    return instance, "" if member.is_tiflash or member.is_leaving else problem


def _get_engine(member: Member) -> str:
    if member.store_id is None:
        return ""
    return "tiflash" if member.is_tiflash else "tikv"


def _judge_metrics(
    member: Member, readings: CpuReadings, *, at: datetime, settings: CollectorSettings
) -> tuple[Quality, str]:
    """The quality of its metrics, and the problem. Missing metrics are fresh: their absence says enough."""
    if member.pod is None:
        return FRESH, f"the address {member.address} names no pod"
    young_s = _YOUNG_WINDOWS * settings.window_s
    if member.started is not None and at < add_seconds(member.started, young_s):
        return "too_young", f"started {member.started:%Y-%m-%dT%H:%M:%SZ}, less than {young_s} s ago"
    if (member.pod.name, member.pod.namespace) in readings.duplicated:
        return FRESH, "Prometheus has two series for it"
    if problem := _find_missing(member.pod, readings.quota_cores, what="quota", read=read_cores):
        return FRESH, problem
    measured_s = find_amount(member.pod, readings.measured_s)
    limit_s = _INTERVALS_UNTIL_STALE * settings.scrape_interval_s
    if measured_s is None:
        return "stale", "the time of measurement is unknown"
    if at.timestamp() - measured_s > limit_s:
        return "stale", f"measured more than {limit_s:g} s ago"
    if measured_s - at.timestamp() > CLOCK_SKEW_S:
        return "future", f"measured more than {CLOCK_SKEW_S:g} s after the present time"
    read_used = partial(read_cpu_seconds, window_s=settings.window_s)
    return FRESH, _find_missing(member.pod, readings.used_seconds, what="usage", read=read_used)


def _find_missing(pod: PodName, amounts: Amounts, *, what: str, read: Callable[[float | None], float | None]) -> str:
    """Why an amount cannot be used; empty: it can."""
    amount = find_amount(pod, amounts)
    if amount is None:
        return f"missing {what}"
    return f"{what} {amount:g} is out of range" if read(amount) is None else ""
