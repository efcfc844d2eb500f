"""Pods with required affinity: where their targets are, which domain they share, which pods stay together on a node.

Affinity over zones selects one domain for all classes that require each other; affinity on a node turns pods into one
item. Other cases are placed pod by pod.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.model.node_labels import HOSTNAME
from plimsoll.nodes.planning.packing.demand_slices import NO_AFFINITY_TARGET
from plimsoll.solver.problem import UNBOUNDED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.planning.packing.demand_slices import DemandSlice, Feedback, LoweredConstraints
    from plimsoll.nodes.planning.packing.placement_view import PlacementView, Places
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.problem import Floats


class PodPrices:
    """The price of a pod: its share of a new node, at planning prices."""

    def __init__(self, problem: ScaleUpProblem) -> None:
        self._problem = problem
        self._prices = problem.planning_prices
        self._known: dict[int, Floats] = {}
        """Class to [T]."""

    def get_price(self, number: int, places: Places) -> float:
        """The price of one pod on the cheapest new node among the places; 0 without new nodes."""
        problem = self._problem
        if not places.options.any():
            return 0.0
        if number not in self._known:
            demand_slice = (problem.requests[number] / np.maximum(problem.capacity, 1)).max(axis=1)
            self._known[number] = demand_slice * self._prices
        return round(float(self._known[number][places.options].min()), 9)


class Colocation:
    """Lowers required affinity for the classes of one layer. Shared domains, refusals and slices go to `lowered`."""

    def __init__(
        self, view: PlacementView, demand: Mapping[int, int], feedback: Feedback, lowered: LoweredConstraints
    ) -> None:
        self._view = view
        self._relations = view.relations
        self._demand = demand
        self._feedback = feedback
        self._lowered = lowered
        self._prices = PodPrices(view.problem)

    def find_places(self, number: int, places: Places) -> Places | None:
        """Places with affinity targets or where it may be the first; None if it is refused or placed pod by pod."""
        view, label_group = self._view, self._relations.label_group_of[number]
        near = view.find_affinity_places(number)
        if near is not None:
            return places.intersect(near)
        mutual_group = self._relations.find_mutual_group(label_group)
        if not mutual_group:
            wanted = self._relations.affinity_targets[label_group]
            if wanted and wanted != (label_group,) and label_group in wanted:
                self._lowered.complex.append(number)
            else:
                self._lowered.refuse(
                    number, NO_AFFINITY_TARGET, "node(s) didn't match pod affinity rules: no matching pod is there"
                )
            return None
        keys = [key for key in view.problem.rules.get_affinity_counts(number).affinity_keys if key != HOSTNAME]
        if len(keys) > 1:
            self._lowered.complex.append(number)
            return None
        return (
            places.intersect(view.select_domains(keys[0], {self._choose_domain(mutual_group, keys[0])}))
            if keys
            else places
        )

    def _choose_domain(self, mutual_group: tuple[int, ...], key: str) -> str:
        """The domain for a mutual group: where most of its pods fit, then where they cost least."""
        if mutual_group not in self._lowered.shared_domains:
            members = [number for number in self._demand if self._relations.label_group_of[number] in mutual_group]
            scored = sorted((*self._compute_price(members, key, name), name) for name in self._view.list_domains(key))
            self._lowered.shared_domains[mutual_group] = [name for _, _, name in scored] or [""]
        return self._feedback.shared_domains.get(mutual_group, self._lowered.shared_domains[mutual_group][0])

    def _compute_price(self, members: Sequence[int], key: str, name: str) -> tuple[int, float]:
        unplaced, price = 0, 0.0
        inside = self._view.select_domains(key, {name})
        for number in members:
            places = self._view.open_places(number).intersect(inside)
            if places.options.any():
                price += self._demand[number] * self._prices.get_price(number, places)
            elif not places.any:
                unplaced += self._demand[number]
        return unplaced, round(price, 9)

    def is_on_a_node(self, number: int) -> bool:
        pod_class = self._view.problem.table.classes[number]
        return pod_class.has_affinity and HOSTNAME in self._view.problem.rules.get_affinity_counts(number).affinity_keys

    def keep_together(self, demand_slice: DemandSlice, *, own_keys: Sequence[str]) -> None:
        """Place all pods of the slice on one node, if no affinity target exists yet."""
        mutual_group = self._relations.find_mutual_group(self._relations.label_group_of[demand_slice.number])
        members = [number for number in self._demand if self._relations.label_group_of[number] in mutual_group]
        if len(members) > 1 or self._view.problem.rules.get_spreads(demand_slice.number) or own_keys:
            self._lowered.complex.append(demand_slice.number)
            return
        together = min(demand_slice.pods, self._find_largest_group(demand_slice))
        if together < demand_slice.pods:
            self._lowered.refuse(
                demand_slice.number,
                NO_AFFINITY_TARGET,
                f"its pods want to be on one node, and no node takes {f'more than {together}' if together else 'one'}",
            )
        if together:
            self._lowered.slices.append(replace(demand_slice, pods=together, pods_per_item=together))

    def _find_largest_group(self, demand_slice: DemandSlice) -> int:
        problem = self._view.problem
        request = np.maximum(problem.requests[demand_slice.number], 1)
        requested = problem.requests[demand_slice.number] > 0
        spaces = [
            problem.capacity[demand_slice.places.options],
            self._view.placement.compute_free_rows(problem)[demand_slice.places.rows],
        ]
        fits = [
            int((space[:, requested] // request[requested]).min(axis=1, initial=UNBOUNDED).max(initial=0))
            for space in spaces
        ]
        return min(max(fits), demand_slice.per_node)
