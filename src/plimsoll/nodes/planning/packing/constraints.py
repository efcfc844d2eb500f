"""Lowers constraints between pods to numbers: each class of a layer becomes demand slices that can be packed in bulk.

Host ports and anti-affinity on a node become keys that a node takes once, and spread over nodes becomes a cap
(`node_caps`). Affinity selects a domain or keeps pods together (`colocation`). Spread and anti-affinity over zones
become quotas, one slice per zone (`zone_quotas`). Everything else is placed pod by pod. The special cases are listed in
docs/design/nodes.md 7.4.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.model.node_labels import HOSTNAME, ZONE
from plimsoll.nodes.planning.packing.colocation import Colocation, PodPrices
from plimsoll.nodes.planning.packing.demand_slices import (
    ONE_PER_DOMAIN,
    ONE_POD_ONLY,
    SPREAD_HELD,
    DemandSlice,
    Feedback,
    LoweredConstraints,
)
from plimsoll.nodes.planning.packing.node_caps import (
    NodeTerms,
    compute_optimistic_caps,
    find_node_spreads,
    split_evenly,
)
from plimsoll.nodes.planning.packing.zone_quotas import Quotas, Spreading, compute_quotas, shift_to_cheap_domains

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from plimsoll.nodes.planning.packing.placement_view import PlacementView, Places
    from plimsoll.nodes.planning.predicates.spread_counts import SpreadCount


def lower_constraints(view: PlacementView, demand: Mapping[int, int], feedback: Feedback) -> LoweredConstraints:
    """Lower the constraints of one layer. `demand`: pods by class."""
    lowering = _Lowering(view, demand, feedback)
    places = view.open_places_of(list(demand))
    for number, pods in demand.items():
        lowering.take(number, pods, places[number])
    return lowering.lowered


class _Lowering:
    def __init__(self, view: PlacementView, demand: Mapping[int, int], feedback: Feedback) -> None:
        self.lowered = LoweredConstraints()
        self._view = view
        self._relations = view.relations
        self._feedback = feedback
        self._on_node = NodeTerms(view, demand)
        self._colocation = Colocation(view, demand, feedback, self.lowered)
        self._prices = PodPrices(view.problem)
        self._running: dict[int, dict[str, int]] = {}
        """Pods distributed so far in this layer, by label group and domain."""
        self._taken: dict[tuple[tuple[int, ...], str], set[str]] = {}
        """By clique and topology key: domains that already have their one pod."""

    def take(self, number: int, pods: int, places: Places) -> None:
        """Lower pods of a class that may be in these places by the rules of the nodes."""
        pod_class = self._view.problem.table.classes[number]
        if pod_class.is_simple and not self._relations.avoided[self._relations.label_group_of[number]]:
            self.lowered.slices.append(DemandSlice(number=number, pods=pods, places=places))
            return
        if pod_class.one_pod_only and pods > 1:
            self.lowered.refuse(number, ONE_POD_ONLY, "its ReadWriteOncePod claim lets one pod run at a time")
            pods = 1
        near = self._colocation.find_places(number, places) if pod_class.has_affinity else places
        if near is None:
            return
        plain = DemandSlice(
            number=number,
            pods=pods,
            places=near,
            per_node=self._on_node.compute_cap(pod_class),
            keys=self._on_node.collect_keys(pod_class),
            caps=self._on_node.compute_caps(pod_class),
        )
        if self._colocation.is_on_a_node(number) and self._view.find_affinity_places(number) is None:
            self._colocation.keep_together(plain, own_keys=self._on_node.list_own_keys(number))
        else:
            self._spread_out(plain)

    # ---- over domains

    def _spread_out(self, demand_slice: DemandSlice) -> None:
        number = demand_slice.number
        spreads = [
            spread_count
            for spread_count in self._view.problem.rules.get_spreads(number)
            if spread_count.key != HOSTNAME
        ]
        apart = [key for key in self._on_node.list_own_keys(number) if key != HOSTNAME]
        keys = {*apart, *(spread_count.key for spread_count in spreads)}
        if len(keys) > 1 or (spreads and apart) or len(spreads) > 1:
            self.lowered.complex.append(number)
        elif apart:
            self._limit_to_one_per_domain(demand_slice, apart[0])
        elif spreads:
            self._level_over_domains(demand_slice, spreads[0])
        else:
            self._level_over_nodes(demand_slice)

    def _level_over_nodes(self, demand_slice: DemandSlice) -> None:
        even = (
            split_evenly(self._view, demand_slice, self._feedback.heights.get(demand_slice.number))
            if self._may_rise(demand_slice)
            else []
        )
        stays = not any(part.places.options.any() for part in even)
        # Existing nodes are filled before new nodes join, so they rise whichever class adds new nodes.
        self.lowered.slices += even if even and (stays or not self._feedback.held_down) else [demand_slice]

    def _describe_next_machines(self, spread: SpreadCount, answer: Quotas) -> str:
        """Groups that have machines in a limiting zone, but whose next machine is expected in another."""
        elsewhere = [
            f"the next machine of {group.id} is expected in {group.zone}"
            for group in self._view.problem.snapshot.groups
            if spread.key == ZONE
            and group.zone not in answer.held_by
            and not set(answer.held_by).isdisjoint(group.zones)
        ]
        return f" ({', '.join(elsewhere)})" if elsewhere else ""

    def _may_rise(self, demand_slice: DemandSlice) -> bool:
        """Whether the class is spread over nodes, and nothing else keeps its pods from filling them evenly."""
        spreads = find_node_spreads(self._view, demand_slice.number)
        lone = len(spreads) == 1 and spreads[0].counts_itself and demand_slice.number not in self._feedback.uneven
        return lone and demand_slice.per_node == spreads[0].max_skew and not demand_slice.keys

    def _level_over_domains(self, demand_slice: DemandSlice, spread: SpreadCount) -> None:
        view, number = self._view, demand_slice.number
        levels = view.count_spread_levels(number, spread)
        for label_group in {
            self._relations.label_group_of[other] for other in self._relations.find_counted_classes(spread)
        }:
            for name, pods in self._running.get(label_group, {}).items():
                levels[name] = levels.get(name, 0) + pods
        if self._may_rise(demand_slice) and spread.counts_itself and not self._feedback.held_down:
            demand_slice = replace(demand_slice, caps=compute_optimistic_caps(view, demand_slice), rises=True)
        for name in self._feedback.present.get(number, ()):
            levels.setdefault(name, 0)
        places = self._group_places_by_domain(demand_slice, spread.key)
        spreading = Spreading(
            max_skew=spread.max_skew, min_domains=spread.min_domains, counts_itself=spread.counts_itself, counts=levels
        )
        most = {name: pods for (of, name), pods in self._feedback.most.items() if of == number}
        # A domain without nodes that gets none in this plan does not exist, so it limits no class.
        able = [name for name in places if name in levels or most.get(name, 1)]
        if not spread.counts_itself:
            self._restrict_to_even_domains(demand_slice, spreading, able)
            return
        answer = self._compute_quotas_on_existing_nodes(
            demand_slice, spreading, places, most
        ) or self._compute_quotas_by_price(demand_slice, spreading, {name: places[name] for name in able}, most)
        self._add_slices(demand_slice, answer, places)
        if answer.left:
            self.lowered.refuse(
                number,
                SPREAD_HELD,
                _describe_limiting_domains(spread, answer, domains={*levels, *able})
                + self._describe_next_machines(spread, answer),
            )

    def _compute_quotas_by_price(
        self, demand_slice: DemandSlice, of: Spreading, places: Mapping[str, Places], most: Mapping[str, int]
    ) -> Quotas:
        """Even quotas; within the skew, fewer pods for domains with expensive new nodes."""
        even = compute_quotas(demand_slice.pods, of, open_domains=list(places), most=most)
        if self._feedback.evenly or of.max_skew == 1:
            return even
        free = self._view.count_room(demand_slice.number)
        new = {name: domain for name, domain in places.items() if domain.options.any() and not free[domain.rows].any()}
        prices = {name: self._prices.get_price(demand_slice.number, domain) for name, domain in new.items()}
        found = shift_to_cheap_domains(even, of, prices=prices, most=most)
        self.lowered.shifted |= found.pods != even.pods
        return found

    def _compute_quotas_on_existing_nodes(
        self, demand_slice: DemandSlice, of: Spreading, places: Mapping[str, Places], most: Mapping[str, int]
    ) -> Quotas | None:
        """Quotas with which all pods fit on existing nodes, so that no domain is opened; None if they do not fit."""
        if not demand_slice.places.rows.any():
            return None
        free = self._view.count_room(demand_slice.number)
        room = {name: int(free[domain.rows].sum()) for name, domain in places.items() if domain.rows.any()}
        limits = {name: min(pods, most.get(name, pods)) for name, pods in room.items()}
        answer = compute_quotas(
            demand_slice.pods, of, open_domains=[name for name in limits if limits[name]], most=limits
        )
        return None if answer.left else answer

    def _restrict_to_even_domains(self, demand_slice: DemandSlice, of: Spreading, names: Sequence[str]) -> None:
        """Restrict pods that their own constraint does not count: where one may go, all may."""
        key = next(
            spread_count.key
            for spread_count in self._view.problem.rules.get_spreads(demand_slice.number)
            if spread_count.key != HOSTNAME
        )
        standing = _find_even_domains([name for name in names if name in of.counts], of.counts, of)
        inside = demand_slice.places.intersect(self._view.select_domains(key, standing))
        if int(self._view.count_room(demand_slice.number)[inside.rows].sum()) >= demand_slice.pods:
            allowed = standing
        else:
            allowed = _find_even_domains(names, {**dict.fromkeys(names, 0), **of.counts}, of)
        if not allowed:
            self.lowered.refuse(
                demand_slice.number, SPREAD_HELD, f"no domain of {key} is within maxSkew {of.max_skew} of the lowest"
            )
            return
        self._level_over_nodes(
            replace(demand_slice, places=demand_slice.places.intersect(self._view.select_domains(key, allowed)))
        )

    def _group_places_by_domain(self, demand_slice: DemandSlice, key: str) -> dict[str, Places]:
        """Open domains: first those with existing nodes, then by the estimated price of the pods."""
        places = {
            name: demand_slice.places.intersect(self._view.select_domains(key, {name}))
            for name in self._view.list_domains(key)
        }
        order = sorted(
            (not domain.rows.any(), self._prices.get_price(demand_slice.number, domain), name)
            for name, domain in places.items()
        )
        return {name: places[name] for _, _, name in order if places[name].any}

    def _add_slices(self, demand_slice: DemandSlice, answer: Quotas, places: Mapping[str, Places]) -> None:
        running = self._running.setdefault(self._relations.label_group_of[demand_slice.number], {})
        for name, pods in answer.pods.items():
            if pods:
                self.lowered.slices.append(replace(demand_slice, pods=pods, places=places[name], domain=name))
                running[name] = running.get(name, 0) + pods

    def _limit_to_one_per_domain(self, demand_slice: DemandSlice, key: str) -> None:
        clique = self._relations.find_clique(self._relations.label_group_of[demand_slice.number])
        if not clique:
            self.lowered.complex.append(demand_slice.number)
            return
        taken = self._taken.setdefault((clique, key), set())
        places = {
            name: domain
            for name, domain in self._group_places_by_domain(demand_slice, key).items()
            if name not in taken and self._feedback.most.get((demand_slice.number, name), 1)
        }
        there = [name for name, domain in places.items() if domain.rows.any()][: demand_slice.pods]
        # Nodes without the label are in no domain and take any number of pods; existing nodes go first.
        beyond = demand_slice.places.intersect(self._view.select_unlabelled(key))
        outside = replace(beyond, batches=np.zeros_like(beyond.batches), options=np.zeros_like(beyond.options))
        room = int(self._view.count_room(demand_slice.number)[outside.rows].sum()) if outside.any else 0
        standing = min(demand_slice.pods - len(there), room)
        new = [name for name in places if name not in there][: demand_slice.pods - len(there) - standing]
        chosen = [*there, *new]
        taken |= set(chosen)
        for name in chosen:
            self.lowered.slices.append(replace(demand_slice, pods=1, places=places[name], domain=name))
        if standing:
            self.lowered.slices.append(replace(demand_slice, pods=standing, places=outside))
        left = demand_slice.pods - len(chosen) - standing
        if left and beyond.any:
            self.lowered.slices.append(replace(demand_slice, pods=left, places=beyond))
        elif left:
            message = f"its pods avoid each other over {key}: {len(chosen)} more can be placed, one in each free domain"
            self.lowered.refuse(demand_slice.number, ONE_PER_DOMAIN, message)


def _find_even_domains(names: Iterable[str], levels: Mapping[str, int], of: Spreading) -> set[str]:
    """Domains that are within the skew of the lowest."""
    lowest = min(levels.values(), default=0) if len(levels) >= of.min_domains else 0
    return {name for name in names if levels[name] - lowest <= of.max_skew}


def _describe_limiting_domains(spread: SpreadCount, answer: Quotas, *, domains: Collection[str]) -> str:
    pods = f"{answer.left} pod{'s' * (answer.left != 1)}"
    many = f"{pods} cannot be spread over {spread.key} with maxSkew {spread.max_skew}"
    if answer.held_by:
        verb = "holds" if len(answer.held_by) == 1 else "hold"
        return f"{many}: {', '.join(answer.held_by)} can take no more and {verb} the others back"
    if not domains:
        return f"{many}: no node that is there or could be added has that label"
    few = f"{len(domains)} domain{'s' * (len(domains) != 1)}, which may hold {spread.max_skew} each"
    return f"{many} and minDomains {spread.min_domains}: there can only be {few}"
