"""Cpu metrics of instances from Prometheus: seconds used in a window, quota, and time of measurement.

Series are identified by pod and namespace, as TidbMonitor labels them. Prometheus may hold other clusters too; series
that match no member are dropped when they are joined.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value
from plimsoll.tidb.model.components import Component
from plimsoll.web.prometheus import QueryFailed

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plimsoll.tidb.pd.members import PodName
    from plimsoll.web.prometheus import Prometheus, Vector

WINDOW: Final = "%window%"
_INSTANCE: Final = "instance"
_NAMESPACE: Final = "kubernetes_namespace"

Amounts = dict[tuple[str, str], float]
"""By name and namespace of the pod."""


class CpuQueries(Value):
    """PromQL of one component. `%window%` stands for the window in seconds."""

    used: str
    quota: str
    quota_time: str = ""
    """When the quota was measured; empty: `timestamp(quota)`."""

    @property
    def measured(self) -> str:
        return self.quota_time or f"timestamp({self.quota})"


DEFAULT_QUERIES: Final = {
    Component.TIKV: CpuQueries(
        used=f"sum(increase(tikv_thread_cpu_seconds_total[{WINDOW}])) by (instance, kubernetes_namespace)",
        quota="tikv_server_cpu_cores_quota",
    ),
    Component.TIDB: CpuQueries(
        used=(
            f'sum(increase(process_cpu_seconds_total{{component="tidb"}}[{WINDOW}])) '
            "by (instance, kubernetes_namespace)"
        ),
        quota="tidb_server_maxprocs",
    ),
}
_FIELDS: Final = {"cpu_used": "used", "cpu_quota": "quota", "cpu_quota_timestamp": "quota_time"}


class CpuReadings(Value):
    """The answers. `problems` name failed queries: their amounts are missing, which is not zero.

    Amounts of a pod with two series are missing too: which one is its own is unknown.
    """

    used_seconds: Amounts = {}
    quota_cores: Amounts = {}
    measured_s: Amounts = {}
    """When the quota was measured, in seconds since 1970."""
    duplicated: frozenset[tuple[str, str]] = frozenset()
    """Pods with two series in one answer."""
    problems: tuple[str, ...] = ()


def read_queries(written: Mapping[str, str]) -> dict[Component, CpuQueries]:
    """The default queries, with those named replaced, such as `tikv.cpu_used`. Raises `InvalidInput`."""
    queries = {component: _as_fields(cpu_queries) for component, cpu_queries in DEFAULT_QUERIES.items()}
    for name, text in written.items():
        component, _, metric = name.partition(".")
        if component not in queries or metric not in _FIELDS:
            known = ", ".join(f"{query}.{metric}" for query in sorted(queries) for metric in _FIELDS)
            raise InvalidInput(f"unknown query {name!r}; known are {known}", path="query")
        if not text.strip():
            raise InvalidInput(f"{name} is empty", path="query")
        queries[Component(component)][_FIELDS[metric]] = text
    return {component: CpuQueries(**fields) for component, fields in queries.items()}


def _as_fields(queries: CpuQueries) -> dict[str, str]:
    return {"used": queries.used, "quota": queries.quota, "quota_time": queries.quota_time}


async def read_cpu(queries: CpuQueries, prometheus: Prometheus, *, at: datetime, window_s: int) -> CpuReadings:
    """Run all queries at once, for one moment."""

    async def ask(text: str) -> Vector | QueryFailed:
        return await prometheus.query(text.replace(WINDOW, f"{window_s}s"), at=at)

    async with asyncio.TaskGroup() as group:
        used = group.create_task(ask(queries.used))
        quota = group.create_task(ask(queries.quota))
        measured = group.create_task(ask(queries.measured))
    answers = (used.result(), quota.result(), measured.result())
    found = [_group_by_pod(answer) for answer in answers]
    used_seconds, quota_cores, measured_s = [
        {pod: amounts[0] for pod, amounts in by_pod.items() if len(amounts) == 1} for by_pod in found
    ]
    return CpuReadings(
        used_seconds=used_seconds,
        quota_cores=quota_cores,
        measured_s=measured_s,
        duplicated=frozenset(pod for by_pod in found for pod, amounts in by_pod.items() if len(amounts) > 1),
        problems=tuple(dict.fromkeys(answer.problem for answer in answers if isinstance(answer, QueryFailed))),
    )


def find_amount(pod: PodName, amounts: Amounts) -> float | None:
    return amounts.get((pod.name, pod.namespace))


def _group_by_pod(answer: Vector | QueryFailed) -> dict[tuple[str, str], list[float]]:
    """Samples without a pod and negative samples are ignored."""
    if isinstance(answer, QueryFailed):
        return {}
    found: dict[tuple[str, str], list[float]] = {}
    for sample in answer.samples:
        pod = sample.labels.get(_INSTANCE, ""), sample.labels.get(_NAMESPACE, "")
        if all(pod) and sample.value >= 0:
            found.setdefault(pod, []).append(sample.value)
    return found
