"""Pods that want company: where it is, where a family could have its home, and who is glued together. For `folding`.

Company in a zone picks a home for all who want each other; company on a node glues pods into one item. What is not so
simple is left to the estimator, pod by pod.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.model.node_labels import HOSTNAME
from plimsoll.nodes.planning.packing.demand_slices import NO_COMPANY
from plimsoll.solver.problem import UNBOUNDED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.planning.packing.demand_slices import DemandSlice, Feedback, Folded
    from plimsoll.nodes.planning.packing.placement_view import PlacementView, Places
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.problem import Floats


class PodPrices:
    """What a pod costs by its share of a new node, at the price that planning goes by."""

    def __init__(self, board: ScaleUpProblem) -> None:
        self._board = board
        self._prices = board.planning_prices
        self._known: dict[int, Floats] = {}
        """Class to [T]."""

    def of(self, number: int, places: Places) -> float:
        """Of one pod on a new node, by its share of the node; 0 where there is none."""
        board = self._board
        if not places.offers.any():
            return 0.0
        if number not in self._known:
            share = (board.requests[number] / np.maximum(board.capacity, 1)).max(axis=1)
            self._known[number] = share * self._prices
        return round(float(self._known[number][places.offers].min()), 9)


class Colocation:
    """For the classes of one layer. Homes, refusals and glued shares go to `folded`."""

    def __init__(self, scene: PlacementView, demand: Mapping[int, int], learned: Feedback, folded: Folded) -> None:
        self._scene = scene
        self._meetings = scene.meetings
        self._demand = demand
        self._learned = learned
        self._folded = folded
        self._prices = PodPrices(scene.board)

    def near(self, number: int, places: Places) -> Places | None:
        """Where it is in company, or may be the first; None if it was refused or left to the estimator."""
        scene, party = self._scene, self._meetings.party_of[number]
        company = scene.company(number)
        if company is not None:
            return places.within(company)
        family = self._meetings.family(party)
        if not family:
            wanted = self._meetings.company[party]
            if wanted and wanted != (party,) and party in wanted:
                self._folded.complex.append(number)
            else:
                self._folded.refuse(
                    number, NO_COMPANY, "node(s) didn't match pod affinity rules: nobody it wants is there"
                )
            return None
        keys = [key for key in scene.board.rules.affinity_counts(number).affinity_keys if key != HOSTNAME]
        if len(keys) > 1:
            self._folded.complex.append(number)
            return None
        return places.within(scene.inside(keys[0], {self._home(family, keys[0])})) if keys else places

    def _home(self, family: tuple[int, ...], key: str) -> str:
        """The one domain for all who want each other: where most of them fit, then where they seem to cost least."""
        if family not in self._folded.homes:
            members = [number for number in self._demand if self._meetings.party_of[number] in family]
            scored = sorted((*self._price_in(members, key, name), name) for name in self._scene.domains(key))
            self._folded.homes[family] = [name for _, _, name in scored] or [""]
        return self._learned.homes.get(family, self._folded.homes[family][0])

    def _price_in(self, members: Sequence[int], key: str, name: str) -> tuple[int, float]:
        homeless, price = 0, 0.0
        inside = self._scene.inside(key, {name})
        for number in members:
            places = self._scene.open_places(number).within(inside)
            if places.offers.any():
                price += self._demand[number] * self._prices.of(number, places)
            elif not places.any:
                homeless += self._demand[number]
        return homeless, round(price, 9)

    def is_on_a_node(self, number: int) -> bool:
        one = self._scene.board.table.classes[number]
        return one.has_affinity and HOSTNAME in self._scene.board.rules.affinity_counts(number).affinity_keys

    def glue(self, share: DemandSlice, *, own_keys: Sequence[str]) -> None:
        """All of them go to one node together, where nobody is yet whose company they want."""
        family = self._meetings.family(self._meetings.party_of[share.number])
        members = [number for number in self._demand if self._meetings.party_of[number] in family]
        if len(members) > 1 or self._scene.board.rules.spreads(share.number) or own_keys:
            self._folded.complex.append(share.number)
            return
        together = min(share.pods, self._largest_group(share))
        if together < share.pods:
            self._folded.refuse(
                share.number,
                NO_COMPANY,
                f"its pods want to be on one node, and no node takes {f'more than {together}' if together else 'one'}",
            )
        if together:
            self._folded.shares.append(replace(share, pods=together, glued=together))

    def _largest_group(self, share: DemandSlice) -> int:
        board = self._scene.board
        request = np.maximum(board.requests[share.number], 1)
        asked = board.requests[share.number] > 0
        spaces = [board.capacity[share.places.offers], self._scene.draft.free_rows(board)[share.places.rows]]
        fits = [
            int((space[:, asked] // request[asked]).min(axis=1, initial=UNBOUNDED).max(initial=0)) for space in spaces
        ]
        return min(max(fits), share.per_node)
