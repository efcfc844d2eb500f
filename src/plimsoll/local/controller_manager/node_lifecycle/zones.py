"""The eviction rate per zone: many silent nodes are more likely a fault of the control plane than of the nodes.

The node lifecycle controller reports every node to `Zones` and asks it before it evicts the pods of one. Rules and
rates are kube-controller-manager's: a node every ten seconds in a healthy zone; in a zone where most nodes are not
ready a node every hundred seconds if the zone is large, none if it is small; none anywhere when no node at all is
ready. Updates are incremental, so that a change costs nothing in a large cluster. Without clock or I/O: the time is a
parameter.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from plimsoll.core.values import Value


class ZoneState(StrEnum):
    """As kube-controller-manager names them."""

    NORMAL = "Normal"
    PARTIAL = "PartialDisruption"
    FULL = "FullDisruption"


class EvictionRates(Value, frozen=True):
    """Nodes a second that may be emptied; the defaults are kube-controller-manager's."""

    per_s: float = 0.1
    secondary_per_s: float = 0.01
    large_zone: int = 50
    """Zones of more nodes than this go on slowly when partially disrupted; smaller ones stop."""
    unhealthy_share: float = 0.55


class NodeZone(NamedTuple):
    """What counts about a node. `zone` is None for one that is left out of the count."""

    zone: str | None
    is_ready: bool


def determine_zone_state(ready: int, not_ready: int, rates: EvictionRates) -> ZoneState:
    if not_ready and not ready:
        return ZoneState.FULL
    if not_ready > 2 and not_ready / (not_ready + ready) >= rates.unhealthy_share:
        return ZoneState.PARTIAL
    return ZoneState.NORMAL


@dataclass(slots=True)
class _Zone:
    ready: int = 0
    not_ready: int = 0
    state: ZoneState = ZoneState.NORMAL
    last_s: float | None = None
    """When the last node may be, or was, emptied."""
    next_evictions: dict[str, float] = field(default_factory=dict)


class Zones:
    """Node counts by zone, and the eviction rate of each zone."""

    def __init__(self, rates: EvictionRates) -> None:
        self._rates = rates
        self._places: dict[str, NodeZone] = {}
        self._zones: dict[str, _Zone] = {}
        self._is_all_disrupted = False

    def __contains__(self, name: str) -> bool:
        return name in self._places

    @property
    def is_all_disrupted(self) -> bool:
        """Whether no zone has a node that is ready: then no pod is evicted."""
        return self._is_all_disrupted

    def put(self, name: str, place: NodeZone | None) -> bool:
        """Set or remove (None) a node. True: the eviction rates of all nodes may have changed."""
        before = self._places.get(name)
        if before == place:
            return False
        self._count(before, -1)
        if place is None:
            del self._places[name]
        else:
            self._places[name] = place
        self._count(place, +1)
        if place is None or place.is_ready:
            self.cancel_eviction(name)
        return self._update_states()

    def compute_next_eviction_s(self, name: str, now_s: float) -> float | None:
        """Seconds until the node may be emptied, 0 for now; None: not before something changes."""
        place = self._places.get(name)
        if place is None or self._is_all_disrupted:
            return None
        zone = self._get_zone(place.zone or "")
        rate = self._get_rate(zone)
        if rate <= 0:
            return None
        if name not in zone.next_evictions:
            zone.last_s = now_s if zone.last_s is None else max(now_s, zone.last_s + 1 / rate)
            zone.next_evictions[name] = zone.last_s
        return max(0.0, zone.next_evictions[name] - now_s)

    def cancel_eviction(self, name: str) -> None:
        """The node need not be emptied after all."""
        for zone in self._zones.values():
            zone.next_evictions.pop(name, None)

    # ---- inside

    def _get_zone(self, name: str) -> _Zone:
        return self._zones.setdefault(name, _Zone())

    def _count(self, place: NodeZone | None, by: int) -> None:
        if place is None or place.zone is None:
            return
        zone = self._get_zone(place.zone)
        if place.is_ready:
            zone.ready += by
        else:
            zone.not_ready += by

    def _update_states(self) -> bool:
        has_changed = False
        for zone in self._zones.values():
            state = determine_zone_state(zone.ready, zone.not_ready, self._rates)
            if state is not zone.state:
                zone.state = state
                zone.next_evictions.clear()
                zone.last_s = None
                has_changed = True
        with_nodes = [zone for zone in self._zones.values() if zone.ready or zone.not_ready]
        self._is_all_disrupted = bool(with_nodes) and all(zone.state is ZoneState.FULL for zone in with_nodes)
        return has_changed

    def _get_rate(self, zone: _Zone) -> float:
        if zone.state is not ZoneState.PARTIAL:
            return self._rates.per_s
        return self._rates.secondary_per_s if zone.ready + zone.not_ready > self._rates.large_zone else 0.0
