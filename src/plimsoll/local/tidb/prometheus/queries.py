"""The queries of the planner, answered from simulated series, and the series in the text format for scraping. Pure.

This is `GET` and `POST /api/v1/query` of Prometheus' HTTP API for exactly three forms: a metric, its timestamp, and the
increase of a counter in a window, by instance. Anything else is refused as a query that cannot be parsed.
"""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import parse_qs

import msgspec

from plimsoll.local.tidb.instances import TIDB, TIKV

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plimsoll.local.tidb.prometheus.series import Sample, Series, SeriesStore

_METRIC: Final = r"(?P<metric>[a-z_:][a-z0-9_:]*)(?:\{(?P<matchers>[^{}]*)\})?"
_MATCHER: Final = re.compile(r'\s*([a-z_][a-z0-9_]*)\s*=\s*"([^"\\]*)"\s*', re.IGNORECASE)
_GAUGE: Final = re.compile(rf"(?P<timestamp>timestamp\()?\s*{_METRIC}\s*(?(timestamp)\))", re.IGNORECASE)
_INCREASE: Final = re.compile(
    rf"sum\(\s*increase\(\s*{_METRIC}\[(?P<window>[0-9]+)s\]\s*\)\s*\)"
    r"\s*by\s*\(\s*instance\s*,\s*kubernetes_namespace\s*\)",
    re.IGNORECASE,
)
_LONGEST_QUERY: Final = 1000
_BY: Final = ("instance", "kubernetes_namespace")
_SIZES: Final = "tikv_store_size_bytes"
_MOST_BYTES: Final = 64 * 1024


class _Metric(NamedTuple):
    component: str
    help: str
    value: Callable[[Sample], float] | None
    """None: a counter."""


_METRICS: Final = {
    "tikv_thread_cpu_seconds_total": _Metric(TIKV, "CPU seconds of TiKV's threads", None),
    "process_cpu_seconds_total": _Metric(TIDB, "CPU seconds of the process", None),
    "tikv_server_cpu_cores_quota": _Metric(TIKV, "Cores a TiKV may use", lambda sample: sample.cores),
    "tidb_server_maxprocs": _Metric(TIDB, "Cores a TiDB may use", lambda sample: sample.cores),
}


def answer_query(series: SeriesStore, *, query: str, body: bytes, now_s: float) -> tuple[int, bytes]:
    """To one request: the text of its query string, and its form."""
    if len(body) > _MOST_BYTES or len(query) > _MOST_BYTES:
        return _refuse("too long")
    fields = parse_qs(query) | parse_qs(body.decode(errors="replace"))
    expression = (fields.get("query") or [""])[0].strip()
    try:
        at_s = float((fields.get("time") or [str(now_s)])[0])
    except ValueError:
        return _refuse(f"invalid parameter 'time': cannot parse {fields['time'][0]!r}")
    found = _find(series, expression, at_s) if len(expression) <= _LONGEST_QUERY else None
    if found is None:
        return _refuse(f"not among the queries that the simulated Prometheus knows: {expression[:200]!r}")
    result = [{"metric": labels, "value": [at_s, _format_value(value)]} for labels, value in found]
    data = {"resultType": "vector", "result": result}
    return HTTPStatus.OK, msgspec.json.encode({"status": "success", "data": data})


def format_exposition(series: SeriesStore, *, now_s: float) -> bytes:
    """All current values in the text format 0.0.4 of an exporter."""
    lines: list[str] = []
    for name, metric in _METRICS.items():
        kind = "counter" if metric.value is None else "gauge"
        lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} {kind}"]
        for instance_series in series.list_series(metric.component):
            if instance_series.ended_s is None:
                value = (
                    instance_series.compute_count_at(now_s)
                    if metric.value is None
                    else metric.value(instance_series.samples[-1])
                )
                lines.append(f"{name}{{{_format_labels(instance_series.labels)}}} {_format_value(value)}")
    lines += [f"# HELP {_SIZES} Of a store's disk", f"# TYPE {_SIZES} gauge"]
    for instance_series in series.list_series(TIKV):
        if instance_series.ended_s is None:
            for kind, size in sorted(instance_series.samples[-1].sizes.items()):
                lines.append(
                    f"{_SIZES}{{{_format_labels({**instance_series.labels, 'type': kind})}}} {_format_value(size)}"
                )
    return ("\n".join(lines) + "\n").encode()


def _find(series: SeriesStore, query: str, at_s: float) -> list[tuple[dict[str, str], float]] | None:
    """None: no query that is known here."""
    if (read := _INCREASE.fullmatch(query)) is not None:
        wanted = _parse_matchers(read["matchers"])
        metric = _METRICS.get(read["metric"])
        if metric is None or metric.value is not None or wanted is None:
            return None
        return _compute_growth(series.list_series(metric.component), wanted, at_s, window_s=float(read["window"]))
    if (read := _GAUGE.fullmatch(query)) is not None and (wanted := _parse_matchers(read["matchers"])) is not None:
        points = list(_iterate_points(series, read["metric"], at_s))
        known = read["metric"] in _METRICS or read["metric"] == _SIZES
        if not known:
            return None
        if read["timestamp"]:
            return [(_strip_name(labels), at) for labels, at, _ in points if wanted.items() <= labels.items()]
        return [(labels, value) for labels, _, value in points if wanted.items() <= labels.items()]
    return None


def _compute_growth(
    found: list[Series], wanted: dict[str, str], at_s: float, *, window_s: float
) -> list[tuple[dict[str, str], float]]:
    sums: dict[tuple[str, ...], float] = {}
    for series in found:
        grown = series.increase(at_s, window_s=window_s) if wanted.items() <= series.labels.items() else None
        if grown is not None:
            place = tuple(series.labels[name] for name in _BY)
            sums[place] = sums.get(place, 0.0) + grown
    return [(dict(zip(_BY, place, strict=True)), value) for place, value in sums.items()]


def _iterate_points(series: SeriesStore, name: str, at_s: float) -> Iterator[tuple[dict[str, str], float, float]]:
    """Labels, when it was measured, and the value, of every series of a metric."""
    metric = _METRICS.get(name)
    for instance_series in series.list_series(TIKV if metric is None else metric.component):
        sample = instance_series.find_latest_sample(at_s)
        if sample is None:
            continue
        labels = {"__name__": name, **instance_series.labels}
        if metric is not None:
            value = sample.cpu_seconds if metric.value is None else metric.value(sample)
            yield labels, sample.at_s, value
        elif name == _SIZES:
            for kind, size in sorted(sample.sizes.items()):
                yield {**labels, "type": kind}, sample.at_s, size


def _parse_matchers(written: str | None) -> dict[str, str] | None:
    """None for what is more than equality."""
    wanted: dict[str, str] = {}
    for part in (written or "").split(","):
        if not part.strip():
            continue
        read = _MATCHER.fullmatch(part)
        if read is None:
            return None
        wanted[read[1]] = read[2]
    return wanted


def _strip_name(labels: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in labels.items() if name != "__name__"}


def _format_labels(labels: dict[str, str]) -> str:
    return ",".join(f'{name}="{value}"' for name, value in labels.items())


def _format_value(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _refuse(problem: str) -> tuple[int, bytes]:
    response: dict[str, Any] = {"status": "error", "errorType": "bad_data", "error": problem}
    return HTTPStatus.BAD_REQUEST, msgspec.json.encode(response)
