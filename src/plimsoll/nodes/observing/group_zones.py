"""In which zone the next machine of a group over several zones is expected (docs/design/nodes.md 6.5). Pure.

A template is made from one node, so its zone is that of this node. Clouds put the next machine into the zone with the
fewest machines of the group. The zones are those that the provider names, and those of the group's nodes. A provider
that knows where the next machine comes from is believed; otherwise the zone with the fewest is expected. If machines
came in other zones than expected, the zone that was missed is not expected for a while: a group must not grow again and
again for pods that its new machines do not serve.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.nodes.model.node_labels import ZONE, ZONE_KEYS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from plimsoll.nodes.cluster_state.health import ClusterHealth
    from plimsoll.nodes.model.snapshot import NodeGroup
    from plimsoll.nodes.observing.provider_state import ProviderState
    from plimsoll.objects.api.nodes import Node

_MISSED_FOR: Final = timedelta(minutes=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneForecast:
    """The zones of upcoming nodes, in their order, and of the next machine."""

    zones: tuple[str, ...]
    """All zones of the group."""
    upcoming: tuple[str, ...]
    next: str


@dataclass(slots=True)
class _ZonesOfGroup:
    """The nodes of a group by zone, and the zones of those that have not started."""

    there: Counter[str] = field(default_factory=Counter)
    starting: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Settled:
    """The nodes by zone when no node was on its way, and the zones that were expected then."""

    there: Counter[str]
    expected: tuple[str, ...]


class GroupZones:
    """Forecasts zones from loop to loop, and remembers where it was wrong."""

    def __init__(self) -> None:
        self._settled: dict[str, _Settled] = {}
        self._missed: dict[tuple[str, str], datetime] = {}
        """(group, zone) to when it was missed."""
        self._relabelled: dict[tuple[str, str], tuple[Node, Node]] = {}

    def forecast(self, cloud: ProviderState, nodes: Iterable[Node], health: ClusterHealth) -> dict[str, ZoneForecast]:
        """The forecast of each group with more than one zone. Nodes that have not started count as upcoming."""
        by_group = {name: _ZonesOfGroup() for name in cloud.groups}
        for node in nodes:
            group, zone = cloud.group_of.get(node.metadata.name, ""), node.metadata.labels.get(ZONE, "")
            if zone and group in by_group:
                by_group[group].there[zone] += 1
                by_group[group].starting += [zone] if node.metadata.name in health.not_started else []
        found: dict[str, ZoneForecast] = {}
        for group, known in by_group.items():
            zones = tuple(dict.fromkeys((*cloud.groups[group].zones, *sorted(known.there))))
            if len(zones) > 1:
                forecast = cloud.groups[group].zone_forecast
                if forecast:
                    upcoming = (*known.starting, *forecast[:-1])
                    found[group] = ZoneForecast(zones=zones, upcoming=upcoming, next=forecast[-1])
                else:
                    found[group] = self._forecast_group(group, zones, known, health)
        self._settled = {group: settled for group, settled in self._settled.items() if group in found}
        return found

    def apply(self, groups: Sequence[NodeGroup], forecasts: Mapping[str, ZoneForecast]) -> tuple[NodeGroup, ...]:
        """The groups with a template in the zone of their next machine."""
        return tuple(
            replace(
                group,
                template=self.relabel(group.template, forecasts[group.id].next),
                zone=forecasts[group.id].next,
                zones=forecasts[group.id].zones,
            )
            if group.id in forecasts
            else group
            for group in groups
        )

    def relabel(self, node: Node, zone: str) -> Node:
        """The node in another zone; the same node and zone give the same object."""
        labels = node.metadata.labels
        if labels.get(ZONE, "") == zone:
            return node
        key = (node.metadata.name, zone)
        known = self._relabelled.get(key)
        if known is None or known[0] is not node:
            moved = {**labels, ZONE: zone, **{name: zone for name in ZONE_KEYS if name in labels}}
            moved_node = structs.replace(node, metadata=structs.replace(node.metadata, labels=moved))
            known = self._relabelled[key] = (node, moved_node)
        return known[1]

    def _forecast_group(
        self, group: str, zones: tuple[str, ...], nodes: _ZonesOfGroup, health: ClusterHealth
    ) -> ZoneForecast:
        missing = max(0, health.upcoming.get(group, 0) - len(nodes.starting))
        if not missing:
            self._note_missed(group, nodes.there, health.at)
        expected = tuple(zone for zone in zones if not self._is_missed(group, zone, health.at)) or zones
        if not missing:
            self._settled[group] = _Settled(there=nodes.there, expected=expected)
        order = _fill_emptiest(nodes.there, expected, missing + 1)
        return ZoneForecast(zones=zones, upcoming=(*nodes.starting, *order[:-1]), next=order[-1])

    def _note_missed(self, group: str, there: Counter[str], now: datetime) -> None:
        """Remember the zones in which fewer nodes came than expected since the group was last complete."""
        settled = self._settled.get(group)
        if settled is None:
            return
        came = there - settled.there
        expected = Counter(_fill_emptiest(settled.there, settled.expected, came.total()))
        self._missed |= {(group, zone): now for zone in expected - came}

    def _is_missed(self, group: str, zone: str, now: datetime) -> bool:
        since = self._missed.get((group, zone))
        return since is not None and now - since <= _MISSED_FOR


def _fill_emptiest(there: Counter[str], zones: Sequence[str], machines: int) -> list[str]:
    """The zones of the next machines, each in the one with the fewest; among equals, the first."""
    filled = Counter(there)
    order: list[str] = []
    for _ in range(machines):
        emptiest = min(zones, key=lambda zone: filled[zone])
        filled[emptiest] += 1
        order.append(emptiest)
    return order
