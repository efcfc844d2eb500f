"""How many pods of a class one node takes: host ports, anti-affinity and spread over nodes, as caps and keys.

A cap is a number of pods; a key is something that a node takes once, for all classes that share it.

For spread over nodes (topology key hostname) every eligible node is a domain, including idle ones, which keep the
minimum low and so limit all others. Existing nodes are filled evenly as far as all of them can; new ones are filled
evenly up to what the lowest node allows. Other pods may take that room: `is_level` checks the result, and a class that
came out uneven is planned again with caps that hold whatever happens to the other nodes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.model.node_labels import HOSTNAME
from plimsoll.nodes.planning.packing.zone_quotas import Spreading, quotas
from plimsoll.scheduling.host_ports import ANY_ADDRESS
from plimsoll.solver.problem import UNBOUNDED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.nodes.planning.equivalence.pod_classes import PodClass
    from plimsoll.nodes.planning.packing.demand_slices import DemandSlice
    from plimsoll.nodes.planning.packing.placement_view import PlacementView, Places
    from plimsoll.nodes.planning.predicates.spread_counts import SpreadCount
    from plimsoll.solver.problem import Ints


def over_nodes(view: PlacementView, number: int) -> tuple[SpreadCount, ...]:
    """The hard constraints of a class over nodes."""
    return tuple(spread_count for spread_count in view.problem.rules.spreads(number) if spread_count.key == HOSTNAME)


def safe_caps(view: PlacementView, number: int) -> Ints | None:
    """[N + B]: the cap of each existing and planned node if no other node gets pods; None: no cap."""
    spreads = over_nodes(view, number)
    if not spreads:
        return None
    rows, batches = len(view.problem.arrays), len(view.placement.batches)
    caps = np.full(rows + batches, UNBOUNDED, dtype=np.int64)
    for spread_count in spreads:
        levels = _row_levels(view, number, spread_count)
        room = spread_count.max_skew + _least(levels[spread_count.eligible], spread_count, more=0) - levels
        caps[:rows] = np.minimum(caps[:rows], _cap(room, spread_count) * spread_count.eligible)
        # Other new nodes are empty, so the minimum may be 0 for pods on new nodes.
        caps[rows:] = np.minimum(
            caps[rows:], _cap(spread_count.max_skew - view.levels_of_batches(spread_count), spread_count)
        )
    return caps


def _cap(room: Ints, one: SpreadCount) -> Ints:
    """The cap from the room below the skew. Pods that the constraint does not count are not limited in number."""
    if one.counts_itself:
        return np.maximum(room, 0)
    return np.where(room >= 0, UNBOUNDED, 0)


def _least(levels: Ints, one: SpreadCount, *, more: int) -> int:
    """The minimum over these domains, of which `more` are not among the levels."""
    if len(levels) + more < one.min_domains:
        return 0
    return int(levels.min(initial=UNBOUNDED))


def _row_levels(view: PlacementView, number: int, one: SpreadCount) -> Ints:
    """[N]: pods that the constraint counts on each existing node."""
    found = view.spread_levels(number, one)
    values, ids = view.problem.arrays.label_values(HOSTNAME), view.problem.arrays.label_ids(HOSTNAME)
    return np.array(
        [found.get(values[value_id], 0) if value_id >= 0 else 0 for value_id in ids.tolist()], dtype=np.int64
    )


# ---- as high as all can rise


def split_evenly(view: PlacementView, demand_slice: DemandSlice, height: int | None) -> list[DemandSlice]:
    """A share as an even load on existing nodes, and on new ones; `height`: so many pods on a new node."""
    one = over_nodes(view, demand_slice.number)[0]
    rows = len(view.problem.arrays)
    existing, lowest = _split_rows(view, demand_slice, one)
    held = view.levels_of_batches(one)[view.counts_batches(demand_slice.number, one)]
    most = min(lowest, int(held.min(initial=UNBOUNDED))) + one.max_skew
    caps = np.zeros(rows + len(view.placement.batches), dtype=np.int64)
    caps[:rows] = existing
    here = int(existing.sum())
    there = replace(
        demand_slice, pods=here, places=_only(demand_slice.places, new=False), per_node=UNBOUNDED, caps=caps, even=True
    )
    found = [there] if here else []
    if demand_slice.pods > here:
        found += _evenly(
            demand_slice,
            demand_slice.pods - here,
            _height(view, demand_slice, most) if height is None else min(height, most),
        )
    return found


def hopeful_caps(view: PlacementView, demand_slice: DemandSlice) -> Ints:
    """[N + B]: as `safe_caps`, but for existing nodes as if all of them rose together."""
    one = over_nodes(view, demand_slice.number)[0]
    caps = (
        np.full(len(view.problem.arrays) + len(view.placement.batches), UNBOUNDED)
        if demand_slice.caps is None
        else demand_slice.caps
    )
    given, _ = _split_rows(view, demand_slice, one)
    return np.concatenate((given, caps[len(given) :]))


def _split_rows(view: PlacementView, demand_slice: DemandSlice, one: SpreadCount) -> tuple[Ints, int]:
    """[N] pods for existing nodes, and the level of the lowest eligible one afterwards."""
    arrays = view.problem.arrays
    room = view.room(demand_slice.number)
    values, ids = arrays.label_values(HOSTNAME), arrays.label_ids(HOSTNAME)
    open_rows = np.flatnonzero(demand_slice.places.rows & one.eligible & (room > 0)).tolist()
    names = {values[int(ids[row])]: row for row in open_rows}
    spreading = Spreading(
        max_skew=one.max_skew,
        min_domains=one.min_domains,
        counts_itself=True,
        counts=view.spread_levels(demand_slice.number, one),
    )
    answer = quotas(
        demand_slice.pods,
        spreading,
        open_domains=list(names),
        most={name: int(room[row]) for name, row in names.items()},
    )
    given = np.zeros(len(arrays), dtype=np.int64)
    for name, pods in answer.pods.items():
        given[names[name]] = pods
    levels = (_row_levels(view, demand_slice.number, one) + given)[one.eligible]
    return given, int(levels.min(initial=UNBOUNDED))


def tallest(view: PlacementView, demand_slice: DemandSlice) -> int:
    """How many pods of the share the largest new node has space for."""
    return int(_space(view, demand_slice).max(initial=0))


def _space(view: PlacementView, demand_slice: DemandSlice) -> Ints:
    """For each option it may be on: how many fit on an empty node."""
    problem, options = view.problem, np.flatnonzero(demand_slice.places.options)
    request = problem.requests[demand_slice.number] > 0
    space: Ints = problem.capacity[options][:, request] // problem.requests[demand_slice.number][request]
    least: Ints = space.min(axis=1, initial=UNBOUNDED)
    return least


def _height(view: PlacementView, demand_slice: DemandSlice, most: int) -> int:
    """How many pods a new node gets where they cost least each."""
    problem, options = view.problem, np.flatnonzero(demand_slice.places.options)
    fits = np.minimum(_space(view, demand_slice), min(most, demand_slice.pods))
    able = np.flatnonzero(fits > 0)
    if not len(able):
        return 1
    price = np.round(problem.planning_prices[options][able] / fits[able], 9)
    return int(fits[able][np.lexsort((-fits[able], price))[0]])


def _evenly(demand_slice: DemandSlice, pods: int, height: int) -> list[DemandSlice]:
    """So many pods over the fewest nodes of that height, none of which gets two more than another."""
    nodes = -(-pods // max(1, height))
    low, higher = divmod(pods, nodes)
    keys = (*demand_slice.keys, f"level {demand_slice.number}")
    return [
        replace(
            demand_slice,
            pods=pods_per_node * many,
            pods_per_item=pods_per_node,
            per_node=pods_per_node,
            places=_only(demand_slice.places, new=True),
            keys=keys,
            caps=None,
            even=True,
        )
        for pods_per_node, many in ((low + 1, higher), (low, nodes - higher))
        if pods_per_node * many
    ]


def _only(places: Places, *, new: bool) -> Places:
    """Options alone, or existing nodes alone."""
    return replace(
        places,
        rows=places.rows & (not new),
        batches=np.zeros_like(places.batches),
        options=places.options & new,
    )


# ---- what came of it


def is_level(view: PlacementView, number: int) -> bool:
    """Whether the constraints over nodes hold for a class with everything where the placement has it."""
    for spread_count in over_nodes(view, number):
        if not spread_count.counts_itself:
            continue
        levels = _row_levels(view, number, spread_count)
        placed = view.rows_with(number)
        lowest = _least(levels[spread_count.eligible], spread_count, more=0)
        if (levels[placed] > lowest + spread_count.max_skew).any():
            return False
        new = view.levels_of_batches(spread_count)
        eligible = view.counts_batches(number, spread_count)
        nodes = sum(batch.nodes for batch, counts in zip(view.placement.batches, eligible, strict=True) if counts)
        among = np.concatenate((levels[spread_count.eligible], new[eligible]))
        lowest = (
            int(among.min(initial=UNBOUNDED))
            if int(spread_count.eligible.sum()) + nodes >= spread_count.min_domains
            else 0
        )
        if (new[view.batches_with(number)] > lowest + spread_count.max_skew).any():
            return False
    return True


class NodeTerms:
    """For the classes of one layer."""

    def __init__(self, view: PlacementView, demand: Mapping[int, int]) -> None:
        self._view = view
        self._relations = view.relations
        self._demand = demand

    def caps(self, one: PodClass) -> Ints | None:
        """Of nodes that stand or are planned, where these differ."""
        caps = safe_caps(self._view, one.index)
        if not one.has_volumes:
            return caps
        rows, batches = len(self._view.problem.arrays), len(self._view.placement.batches)
        room = np.concatenate((self._view.room(one.index), np.full(batches, UNBOUNDED, dtype=np.int64)))
        return room if caps is None else np.minimum(caps, room) if rows + batches else caps

    def cap(self, one: PodClass) -> int:
        cap = UNBOUNDED
        for spread in self._view.problem.rules.spreads(one.index):
            if spread.key == HOSTNAME and spread.counts_itself:
                cap = min(cap, spread.max_skew)
        if one.scheduling_key.ports or HOSTNAME in self.own_keys(one.index) or one.one_pod_only:
            cap = 1
        return (
            min(cap, 1)
            if one.has_volumes and self._view.problem.rules.node_predicates.excludes_itself(one.index)
            else cap
        )

    def keys(self, one: PodClass) -> tuple[str, ...]:
        label_group = self._relations.label_group_of[one.index]
        keys = self._port_keys(one)
        if HOSTNAME in self.own_keys(one.index):
            keys = (*keys, f"apart {min(self._relations.clique(label_group) or (label_group,))}")
        if self._is_levelled_with_others(one.index):
            keys = (*keys, f"level {label_group}")
        return keys

    def _is_levelled_with_others(self, number: int) -> bool:
        """Whether other sizes of the same app are spread over nodes in the same go: a node then takes one of all."""
        label_group = self._relations.label_group_of[number]
        counts_itself = any(spread_count.counts_itself for spread_count in over_nodes(self._view, number))
        return counts_itself and sum(other in self._demand for other in self._relations.members[label_group]) > 1

    def _port_keys(self, one: PodClass) -> tuple[str, ...]:
        """A key for each address; a port on every address takes the keys of all that are asked for."""
        found: dict[str, None] = {}
        for port in one.scheduling_key.ports:
            known = self._addresses.get((port.protocol, port.port), set())
            addresses = sorted(known) if port.address == ANY_ADDRESS else [port.address]
            found |= dict.fromkeys(f"port {port.protocol} {address} {port.port}" for address in addresses)
        return tuple(found)

    @cached_property
    def _addresses(self) -> dict[tuple[str, int], set[str]]:
        found: dict[tuple[str, int], set[str]] = {}
        for number in self._demand:
            for port in self._view.problem.table.classes[number].scheduling_key.ports:
                found.setdefault((port.protocol, port.port), set()).add(port.address)
        return found

    def own_keys(self, number: int) -> tuple[str, ...]:
        """Topology keys over which the class keeps its own pods apart."""
        label_group = self._relations.label_group_of[number]
        return self._relations.avoided[label_group].get(label_group, ())
