"""Series of simulated instances: counters and quotas, scraped every 15 s, stored for ten minutes.

A very small Prometheus without a server: `scraper` writes to it, `queries` reads from it. Nothing survives a restart,
and need not: a cluster without metrics is not scaled in.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.local.tidb.instances import TidbInstance

SCRAPE_S: Final = 15.0
_KEPT_S: Final = 600.0
LOOKBACK_S: Final = 300.0
"""How long the last sample of a series that is still scraped counts."""
# A series is carried on to the edge of a window if it ends about where the next sample would have been.
_NEAR: Final = 1.1


class Sample(NamedTuple):
    """At a time, in seconds since 1970: a counter and gauges."""

    at_s: float
    cpu_seconds: float
    cores: float
    sizes: Mapping[str, float] = {}


@dataclass(slots=True)
class Series:
    """The samples of an instance, from its start to its end. `ended_s`: the scrape that no longer found it."""

    instance: TidbInstance
    samples: deque[Sample] = field(default_factory=deque)
    rate: float = 0.0
    ended_s: float | None = None

    @property
    def labels(self) -> dict[str, str]:
        """As TidbMonitor writes them."""
        one = self.instance
        return {
            "cluster": one.cluster,
            "component": one.component,
            "instance": one.pod,
            "kubernetes_namespace": one.namespace,
            "tidb_cluster": f"{one.namespace}-{one.cluster}",
        }

    def compute_count_at(self, now_s: float) -> float:
        """The counter at a moment after the last sample."""
        last = self.samples[-1]
        return last.cpu_seconds + self.rate * max(0.0, now_s - last.at_s) if self.ended_s is None else last.cpu_seconds

    def find_latest_sample(self, at_s: float) -> Sample | None:
        """The sample that a gauge has at a moment."""
        if self.ended_s is not None and self.ended_s <= at_s:
            return None
        found = [sample for sample in self.samples if sample.at_s <= at_s]
        return found[-1] if found and at_s - found[-1].at_s < LOOKBACK_S else None

    def increase(self, at_s: float, *, window_s: float) -> float | None:
        """As Prometheus reckons it: from the samples in the window, carried on to its edges."""
        begin_s = at_s - window_s
        inside = [sample for sample in self.samples if begin_s < sample.at_s <= at_s]
        if len(inside) < 2:
            return None
        first, last = inside[0], inside[-1]
        grown, measured_s = last.cpu_seconds - first.cpu_seconds, last.at_s - first.at_s
        apart_s = measured_s / (len(inside) - 1)
        before_s, after_s = first.at_s - begin_s, at_s - last.at_s
        if grown > 0:
            # A counter was never below zero.
            before_s = min(before_s, measured_s * first.cpu_seconds / grown)
        carried_s = sum(gap if gap < _NEAR * apart_s else apart_s / 2 for gap in (before_s, after_s))
        return grown * (measured_s + carried_s) / measured_s


class SeriesStore:
    """The series of all instances of all clusters."""

    def __init__(self) -> None:
        self._series: dict[str, Series] = {}

    def __bool__(self) -> bool:
        return bool(self._series)

    def list_series(self, component: str) -> list[Series]:
        found = [
            series for series in self._series.values() if series.instance.component == component and series.samples
        ]
        return sorted(found, key=lambda series: (series.instance.namespace, series.instance.pod, series.instance.uid))

    def add_scrape(
        self,
        instances: Iterable[TidbInstance],
        *,
        cores: Mapping[tuple[str, str], float],
        sizes: Mapping[tuple[str, str], Mapping[str, float]],
        at_s: float,
    ) -> None:
        """One look at all that run. Counters have grown by what was used since the last."""
        present = {instance.uid: instance for instance in instances if instance.is_ready}
        for uid, instance in present.items():
            series = self._series.setdefault(uid, Series(instance))
            place = instance.namespace, instance.pod
            rate = cores.get(place, 0.0)
            counter = 0.0
            if series.samples:
                last = series.samples[-1]
                counter = last.cpu_seconds + (at_s - last.at_s) * (series.rate + rate) / 2
            series.instance, series.rate, series.ended_s = instance, rate, None
            series.samples.append(Sample(at_s, counter, instance.cpu_cores, sizes.get(place, {})))
        for uid, series in list(self._series.items()):
            if uid not in present and series.ended_s is None:
                series.ended_s = at_s
            while series.samples and series.samples[0].at_s < at_s - _KEPT_S:
                series.samples.popleft()
            if not series.samples:
                del self._series[uid]
