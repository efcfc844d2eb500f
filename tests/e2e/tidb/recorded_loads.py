"""Recorded metrics for a Prometheus: one hour apart, loads of a TiDB cluster as they stood at that hour.

Samples lie 15 s apart and end with the hour. What a scenario needs to be missing is not in its hour at all: without
scrapes there are no stale markers, as in a Prometheus that has lost its targets from its settings.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime

STEP_S = 15
QUOTA = 4
_SAMPLES = 20
_FIRST_HOUR = datetime(2025, 6, 1, tzinfo=UTC)


@dataclass(frozen=True)
class HourlyLoad:
    """Used cores of TiKV pods, by name; pods without a quota have none at that hour."""

    used_cores: dict[str, float]
    namespaces: dict[str, str] = field(default_factory=dict)
    without_quota: frozenset[str] = frozenset()


def pods(*used_cores: float, tc: str = "db") -> dict[str, float]:
    return {f"{tc}-tikv-{ordinal}": cores for ordinal, cores in enumerate(used_cores)}


OTHERS = pods(3.96, 3.96, 3.96, tc="other")
LOW = {**pods(0.2, 0.2, 0.2), **pods(0.2, tc="auto-small")}
HOURS = {
    "high": HourlyLoad(pods(3.6, 3.6, 3.6)),
    "high beside another cluster": HourlyLoad(
        {**pods(3.6, 3.6, 3.6), **OTHERS}, namespaces=dict.fromkeys(OTHERS, "test")
    ),
    "low": HourlyLoad(LOW),
    "low without a quota": HourlyLoad(LOW, without_quota=frozenset({"db-tikv-2"})),
    "one of three": HourlyLoad(pods(0.2)),
}


def end_s(hour: str) -> int:
    """The moment of its last samples."""
    return int(_FIRST_HOUR.timestamp()) + 3600 * (list(HOURS).index(hour) + 1)


def end(hour: str, *, later_s: int = 0) -> str:
    return datetime.fromtimestamp(end_s(hour) + later_s, UTC).isoformat().replace("+00:00", "Z")


def open_metrics() -> list[str]:
    """All hours, in lines; a series in one piece and in order of time."""
    used, quota = [], []
    for pod in sorted({pod for hour in HOURS.values() for pod in hour.used_cores}):
        for name, hour in HOURS.items():
            if pod not in hour.used_cores:
                continue
            labels = f'{{instance="{pod}",kubernetes_namespace="{hour.namespaces.get(pod, "prod")}"}}'
            for index in range(_SAMPLES):
                at_s = end_s(name) - STEP_S * (_SAMPLES - 1 - index)
                used_s = hour.used_cores[pod] * STEP_S * index
                used.append(f"tikv_thread_cpu_seconds_total{labels} {used_s:.6f} {at_s}")
                if pod not in hour.without_quota:
                    quota.append(f"tikv_server_cpu_cores_quota{labels} {QUOTA} {at_s}")
    return [
        "# TYPE tikv_thread_cpu_seconds counter",
        *used,
        "# TYPE tikv_server_cpu_cores_quota gauge",
        *quota,
    ]
