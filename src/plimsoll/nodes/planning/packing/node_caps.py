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
from plimsoll.nodes.planning.packing.zone_quotas import Spreading, compute_quotas
from plimsoll.scheduling.host_ports import ANY_ADDRESS
from plimsoll.solver.problem import UNBOUNDED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.nodes.planning.equivalence.pod_classes import PodClass
    from plimsoll.nodes.planning.packing.demand_slices import DemandSlice
    from plimsoll.nodes.planning.packing.placement_view import PlacementView, Places
    from plimsoll.nodes.planning.predicates.spread_counts import SpreadCount
    from plimsoll.solver.problem import Ints


def find_node_spreads(view: PlacementView, number: int) -> tuple[SpreadCount, ...]:
    """The hard constraints of a class over nodes."""
    return tuple(
        spread_count for spread_count in view.problem.rules.get_spreads(number) if spread_count.key == HOSTNAME
    )


def compute_safe_caps(view: PlacementView, number: int) -> Ints | None:
    """[N + B]: the cap of each existing and planned node if no other node gets pods; None: no cap."""
    spreads = find_node_spreads(view, number)
    if not spreads:
        return None
    rows, batches = len(view.problem.arrays), len(view.placement.batches)
    caps = np.full(rows + batches, UNBOUNDED, dtype=np.int64)
    for spread_count in spreads:
        levels = _count_on_rows(view, number, spread_count)
        room = spread_count.max_skew + _compute_minimum(levels[spread_count.eligible], spread_count, more=0) - levels
        caps[:rows] = np.minimum(caps[:rows], _compute_cap(room, spread_count) * spread_count.eligible)
        # Other new nodes are empty, so the minimum may be 0 for pods on new nodes.
        caps[rows:] = np.minimum(
            caps[rows:], _compute_cap(spread_count.max_skew - view.count_on_batches(spread_count), spread_count)
        )
    return caps


def _compute_cap(room: Ints, spread: SpreadCount) -> Ints:
    """The cap from the room below the skew. Pods that the constraint does not count are not limited in number."""
    if spread.counts_itself:
        return np.maximum(room, 0)
    return np.where(room >= 0, UNBOUNDED, 0)


def _compute_minimum(levels: Ints, spread: SpreadCount, *, more: int) -> int:
    """The minimum over these domains, of which `more` are not among the levels."""
    if len(levels) + more < spread.min_domains:
        return 0
    return int(levels.min(initial=UNBOUNDED))


def _count_on_rows(view: PlacementView, number: int, spread: SpreadCount) -> Ints:
    """[N]: pods that the constraint counts on each existing node."""
    found = view.count_spread_levels(number, spread)
    values, ids = view.problem.arrays.get_label_values(HOSTNAME), view.problem.arrays.get_label_ids(HOSTNAME)
    return np.array(
        [found.get(values[value_id], 0) if value_id >= 0 else 0 for value_id in ids.tolist()], dtype=np.int64
    )


# ---- even load


def split_evenly(view: PlacementView, demand_slice: DemandSlice, height: int | None) -> list[DemandSlice]:
    """A slice as an even load on existing and new nodes; `height`: pods per new node."""
    spread = find_node_spreads(view, demand_slice.number)[0]
    rows = len(view.problem.arrays)
    existing, lowest = _split_rows(view, demand_slice, spread)
    held = view.count_on_batches(spread)[view.find_counted_batches(demand_slice.number, spread)]
    most = min(lowest, int(held.min(initial=UNBOUNDED))) + spread.max_skew
    caps = np.zeros(rows + len(view.placement.batches), dtype=np.int64)
    caps[:rows] = existing
    here = int(existing.sum())
    there = replace(
        demand_slice,
        pods=here,
        places=_restrict_places(demand_slice.places, new=False),
        per_node=UNBOUNDED,
        caps=caps,
        even=True,
    )
    found = [there] if here else []
    if demand_slice.pods > here:
        found += _split_evenly(
            demand_slice,
            demand_slice.pods - here,
            _choose_pods_per_node(view, demand_slice, most) if height is None else min(height, most),
        )
    return found


def compute_optimistic_caps(view: PlacementView, demand_slice: DemandSlice) -> Ints:
    """[N + B]: as `compute_safe_caps`, but for existing nodes as if all of them rose together."""
    spread = find_node_spreads(view, demand_slice.number)[0]
    caps = (
        np.full(len(view.problem.arrays) + len(view.placement.batches), UNBOUNDED)
        if demand_slice.caps is None
        else demand_slice.caps
    )
    given, _ = _split_rows(view, demand_slice, spread)
    return np.concatenate((given, caps[len(given) :]))


def _split_rows(view: PlacementView, demand_slice: DemandSlice, spread: SpreadCount) -> tuple[Ints, int]:
    """[N] pods for existing nodes, and the level of the lowest eligible one afterwards."""
    arrays = view.problem.arrays
    room = view.count_room(demand_slice.number)
    values, ids = arrays.get_label_values(HOSTNAME), arrays.get_label_ids(HOSTNAME)
    open_rows = np.flatnonzero(demand_slice.places.rows & spread.eligible & (room > 0)).tolist()
    names = {values[int(ids[row])]: row for row in open_rows}
    spreading = Spreading(
        max_skew=spread.max_skew,
        min_domains=spread.min_domains,
        counts_itself=True,
        counts=view.count_spread_levels(demand_slice.number, spread),
    )
    answer = compute_quotas(
        demand_slice.pods,
        spreading,
        open_domains=list(names),
        most={name: int(room[row]) for name, row in names.items()},
    )
    given = np.zeros(len(arrays), dtype=np.int64)
    for name, pods in answer.pods.items():
        given[names[name]] = pods
    levels = (_count_on_rows(view, demand_slice.number, spread) + given)[spread.eligible]
    return given, int(levels.min(initial=UNBOUNDED))


def count_on_largest_node(view: PlacementView, demand_slice: DemandSlice) -> int:
    """The number of pods of the slice that fit on the largest new node."""
    return int(_count_on_empty_nodes(view, demand_slice).max(initial=0))


def _count_on_empty_nodes(view: PlacementView, demand_slice: DemandSlice) -> Ints:
    """The number of pods on an empty node, per allowed option."""
    problem, options = view.problem, np.flatnonzero(demand_slice.places.options)
    request = problem.requests[demand_slice.number] > 0
    space: Ints = problem.capacity[options][:, request] // problem.requests[demand_slice.number][request]
    least: Ints = space.min(axis=1, initial=UNBOUNDED)
    return least


def _choose_pods_per_node(view: PlacementView, demand_slice: DemandSlice, most: int) -> int:
    """The number of pods per new node at which a pod costs least."""
    problem, options = view.problem, np.flatnonzero(demand_slice.places.options)
    fits = np.minimum(_count_on_empty_nodes(view, demand_slice), min(most, demand_slice.pods))
    able = np.flatnonzero(fits > 0)
    if not len(able):
        return 1
    price = np.round(problem.planning_prices[options][able] / fits[able], 9)
    return int(fits[able][np.lexsort((-fits[able], price))[0]])


def _split_evenly(demand_slice: DemandSlice, pods: int, height: int) -> list[DemandSlice]:
    """Slices that spread the pods over the fewest nodes of that height; nodes differ by at most one pod."""
    nodes = -(-pods // max(1, height))
    low, higher = divmod(pods, nodes)
    keys = (*demand_slice.keys, f"level {demand_slice.number}")
    return [
        replace(
            demand_slice,
            pods=pods_per_node * many,
            pods_per_item=pods_per_node,
            per_node=pods_per_node,
            places=_restrict_places(demand_slice.places, new=True),
            keys=keys,
            caps=None,
            even=True,
        )
        for pods_per_node, many in ((low + 1, higher), (low, nodes - higher))
        if pods_per_node * many
    ]


def _restrict_places(places: Places, *, new: bool) -> Places:
    """Options alone, or existing nodes alone."""
    return replace(
        places,
        rows=places.rows & (not new),
        batches=np.zeros_like(places.batches),
        options=places.options & new,
    )


# ---- check of the result


def is_level(view: PlacementView, number: int) -> bool:
    """Whether the constraints of a class over nodes hold in the placement."""
    for spread_count in find_node_spreads(view, number):
        if not spread_count.counts_itself:
            continue
        levels = _count_on_rows(view, number, spread_count)
        placed = view.find_rows_with(number)
        lowest = _compute_minimum(levels[spread_count.eligible], spread_count, more=0)
        if (levels[placed] > lowest + spread_count.max_skew).any():
            return False
        new = view.count_on_batches(spread_count)
        eligible = view.find_counted_batches(number, spread_count)
        nodes = sum(batch.nodes for batch, counts in zip(view.placement.batches, eligible, strict=True) if counts)
        among = np.concatenate((levels[spread_count.eligible], new[eligible]))
        lowest = (
            int(among.min(initial=UNBOUNDED))
            if int(spread_count.eligible.sum()) + nodes >= spread_count.min_domains
            else 0
        )
        if (new[view.find_batches_with(number)] > lowest + spread_count.max_skew).any():
            return False
    return True


class NodeTerms:
    """Caps and keys of the classes of one layer."""

    def __init__(self, view: PlacementView, demand: Mapping[int, int]) -> None:
        self._view = view
        self._relations = view.relations
        self._demand = demand

    def compute_caps(self, pod_class: PodClass) -> Ints | None:
        """[N + B]: the caps of existing and planned nodes; None if there are none."""
        caps = compute_safe_caps(self._view, pod_class.index)
        if not pod_class.has_volumes:
            return caps
        rows, batches = len(self._view.problem.arrays), len(self._view.placement.batches)
        room = np.concatenate((self._view.count_room(pod_class.index), np.full(batches, UNBOUNDED, dtype=np.int64)))
        return room if caps is None else np.minimum(caps, room) if rows + batches else caps

    def compute_cap(self, pod_class: PodClass) -> int:
        cap = UNBOUNDED
        for spread in self._view.problem.rules.get_spreads(pod_class.index):
            if spread.key == HOSTNAME and spread.counts_itself:
                cap = min(cap, spread.max_skew)
        if pod_class.scheduling_key.ports or HOSTNAME in self.list_own_keys(pod_class.index) or pod_class.one_pod_only:
            cap = 1
        return (
            min(cap, 1)
            if pod_class.has_volumes and self._view.problem.rules.node_predicates.excludes_itself(pod_class.index)
            else cap
        )

    def collect_keys(self, pod_class: PodClass) -> tuple[str, ...]:
        label_group = self._relations.label_group_of[pod_class.index]
        keys = self._collect_port_keys(pod_class)
        if HOSTNAME in self.list_own_keys(pod_class.index):
            keys = (*keys, f"apart {min(self._relations.find_clique(label_group) or (label_group,))}")
        if self._is_levelled_with_others(pod_class.index):
            keys = (*keys, f"level {label_group}")
        return keys

    def _is_levelled_with_others(self, number: int) -> bool:
        """Whether other classes of its label group in the layer are spread over nodes: a node takes one pod of all."""
        label_group = self._relations.label_group_of[number]
        counts_itself = any(spread_count.counts_itself for spread_count in find_node_spreads(self._view, number))
        return counts_itself and sum(other in self._demand for other in self._relations.members[label_group]) > 1

    def _collect_port_keys(self, pod_class: PodClass) -> tuple[str, ...]:
        """A key per address; a port on every address takes the keys of all requested addresses."""
        found: dict[str, None] = {}
        for port in pod_class.scheduling_key.ports:
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

    def list_own_keys(self, number: int) -> tuple[str, ...]:
        """Topology keys over which the class keeps its own pods apart."""
        label_group = self._relations.label_group_of[number]
        return self._relations.avoided[label_group].get(label_group, ())
