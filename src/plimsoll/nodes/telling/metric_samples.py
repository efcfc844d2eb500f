"""Metrics as text for Prometheus, and as a plain map for a scenario's `metrics`. Pure but for reading a registry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prometheus_client.exposition import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from plimsoll.nodes.telling.metric_families import MEASURED, PREFIX, WITHOUT_TOTAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client import CollectorRegistry

_TOTAL = "_total"


class _AsNamed(Collector):
    """A registry without what the library adds: times of creation, and `_total` where Cluster Autoscaler has none."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        for metric in self._registry.collect():
            shown = Metric(metric.name, metric.documentation, metric.type)
            for sample in metric.samples:
                if not sample.name.endswith("_created"):
                    name = sample.name.removesuffix(_TOTAL) if metric.name in WITHOUT_TOTAL else sample.name
                    shown.add_sample(name, sample.labels, sample.value)
            yield shown


def exposition(registry: CollectorRegistry) -> bytes:
    text = generate_latest(_AsNamed(registry))
    for name in WITHOUT_TOTAL:
        # In lines of help and type the library still says it.
        text = text.replace(f"{name}{_TOTAL}".encode(), name.encode())
    return text


def samples(registry: CollectorRegistry) -> dict[str, float]:
    """Each value by its full name and by the short one; the short name alone is the sum over labels, zero if none."""
    found: dict[str, float] = {}
    for metric in _AsNamed(registry).collect():
        if metric.name in MEASURED:
            continue
        if metric.type == "histogram":
            found |= _in_all(metric)
            continue
        is_counter = metric.type == "counter" and metric.name not in WITHOUT_TOTAL
        name = f"{metric.name}{_TOTAL}" if is_counter else metric.name
        short = name.removeprefix(PREFIX)
        found[short] = sum(sample.value for sample in metric.samples)
        for sample in metric.samples:
            found[name + _written(sample.labels, quote='"')] = sample.value
            found[short + _written(sample.labels)] = sample.value
    return found


def _in_all(metric: Metric) -> dict[str, float]:
    """Of a histogram how many and how much, which add up over labels as a counter does; not its buckets."""
    found: dict[str, float] = {}
    for suffix in ("_count", "_sum"):
        name = metric.name + suffix
        short = name.removeprefix(PREFIX)
        some = [sample for sample in metric.samples if sample.name == name]
        found[short] = sum(sample.value for sample in some)
        for sample in some:
            found[name + _written(sample.labels, quote='"')] = sample.value
            found[short + _written(sample.labels)] = sample.value
    return found


def _written(labels: Mapping[str, str], *, quote: str = "") -> str:
    listed = ",".join(f"{key}={quote}{value}{quote}" for key, value in sorted(labels.items()))
    return f"{{{listed}}}" if listed else ""
