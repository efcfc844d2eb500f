"""Where pods of a class may go at one moment of a plan, given everybody who has a place by then.

`PlacementView(board, draft, meetings)` answers for existing nodes [N], for batches of nodes already planned [B] and for
offers of further ones [T]: what the node's own rules say, who keeps the class away, where the company is that it wants,
and how its spread constraints count. How many go where is decided by `folding`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.model.node_labels import HOSTNAME
from plimsoll.scheduling.host_ports import TakenPorts

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from plimsoll.nodes.planning.packing.pod_relations import PodRelations
    from plimsoll.nodes.planning.predicates.spread_counts import SpreadCount
    from plimsoll.nodes.planning.problem.placement import NodeBatch, Placement
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.scheduling.host_ports import HostPort
    from plimsoll.solver.problem import Flags, Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class Places:
    """Existing nodes, batches of planned nodes, offers of new ones."""

    rows: Flags
    batches: Flags
    offers: Flags

    def within(self, other: Places) -> Places:
        return Places(
            rows=self.rows & other.rows, batches=self.batches & other.batches, offers=self.offers & other.offers
        )

    @property
    def any(self) -> bool:
        return bool(self.rows.any() or self.batches.any() or self.offers.any())


class PlacementView:
    """The board with a draft on it."""

    def __init__(self, board: ScaleUpProblem, draft: Placement, meetings: PodRelations) -> None:
        self.board = board
        self.draft = draft
        self.meetings = meetings
        self._batch_offers = np.array([batch.offer for batch in draft.batches], dtype=np.int64)
        self._parties = [{meetings.party_of[number] for number in batch.content} for batch in draft.batches]

    @cached_property
    def _placed(self) -> dict[int, Ints]:
        """Made when asked for, like what is free: many a scene is only asked about new nodes."""
        return self.draft.rows_of(len(self.board.arrays))

    @cached_property
    def _free(self) -> Ints:
        free = self.board.arrays.free.copy()
        for number, rows in self._placed.items():
            free -= rows[:, None] * self.board.rules.requests[number][None, :]
        return free

    # ---- what a node says

    def open_places(self, number: int) -> Places:
        """By the node's own rules and by who keeps the class away; spread and company are not looked at."""
        return self._open(number, self.board.rules.node_predicates.fits(number, self._free, self._placed))

    def open_places_of(self, numbers: Sequence[int]) -> dict[int, Places]:
        """The same for many classes at once, which takes a fraction of the time."""
        rows = self.board.rules.node_predicates.fits_of(numbers, self._free, self._placed)
        return {number: self._open(number, rows[place]) for place, number in enumerate(numbers)}

    def _open(self, number: int, rows: Flags) -> Places:
        """Of rows that take the class by their own rules."""
        board = self.board
        offers = board.allowed[:, number].copy()
        batches: Flags = offers[self._batch_offers] if len(self._batch_offers) else np.zeros(0, dtype=np.bool_)
        for key, names in self._shunned_domains(number).items():
            rows &= ~self._in(board.arrays.label_ids(key), board.arrays.label_values(key), names)
            if key != HOSTNAME:
                flagged = self._offers_in(key, names)
                offers &= ~flagged
                batches = batches & ~flagged[self._batch_offers] if len(batches) else batches
        if not len(batches):
            return Places(rows=rows, batches=batches, offers=offers)
        shunned = {
            other for other, keys in self.meetings.shunned[self.meetings.party_of[number]].items() if HOSTNAME in keys
        }
        batches = batches & np.array([not (parties & shunned) for parties in self._parties], dtype=np.bool_)
        if ports := board.table.classes[number].scheduling_key.ports:
            batches = batches & ~np.array([self._clash(ports, batch) for batch in self.draft.batches], dtype=np.bool_)
        return Places(rows=rows, batches=batches, offers=offers)

    def _clash(self, ports: Iterable[HostPort], batch: NodeBatch) -> bool:
        taken = TakenPorts(
            port for other in batch.content for port in self.board.table.classes[other].scheduling_key.ports
        )
        return any(taken.clash(port) for port in ports)

    def room(self, number: int) -> Ints:
        """[N]: pods of the class that existing nodes have space for."""
        return self.board.rules.node_predicates.room(number, self._free, self._placed)

    def everywhere(self) -> Places:
        return Places(
            rows=np.ones(len(self.board.arrays), dtype=np.bool_),
            batches=np.ones(len(self.draft.batches), dtype=np.bool_),
            offers=np.ones(len(self.board.offers), dtype=np.bool_),
        )

    # ---- domains

    def domains(self, key: str) -> tuple[str, ...]:
        """All values of a topology key, of nodes and offers, in the order of their names."""
        board = self.board
        return tuple(sorted({*board.arrays.label_values(key), *board.offer_arrays.label_values(key)}))

    def planned_domains(self, key: str) -> set[str]:
        """Where the draft puts new nodes."""
        return {*self._offer_names(key, self._batch_offers)}

    def existing_domains(self, key: str) -> set[str]:
        """Where nodes are by now, planned ones too."""
        return {*self.board.arrays.label_values(key), *self.planned_domains(key)}

    def inside(self, key: str, names: set[str]) -> Places:
        board = self.board
        offers = self._offers_in(key, names)
        return Places(
            rows=self._in(board.arrays.label_ids(key), board.arrays.label_values(key), names),
            batches=offers[self._batch_offers] if len(self._batch_offers) else np.zeros(0, dtype=np.bool_),
            offers=offers,
        )

    def outside(self, key: str) -> Places:
        """Where the label is missing: in no domain, so that rules over domains do not hold there."""
        offers: Flags = self.board.offer_arrays.label_ids(key) < 0
        return Places(
            rows=self.board.arrays.label_ids(key) < 0,
            batches=offers[self._batch_offers] if len(self._batch_offers) else np.zeros(0, dtype=np.bool_),
            offers=offers,
        )

    def _offers_in(self, key: str, names: set[str]) -> Flags:
        arrays = self.board.offer_arrays
        return self._in(arrays.label_ids(key), arrays.label_values(key), names)

    @staticmethod
    def _in(ids: Ints, values: tuple[str, ...], names: set[str]) -> Flags:
        chosen = np.array([*(value in names for value in values), False], dtype=np.bool_)
        found: Flags = chosen[ids]
        return found

    # ---- who is where

    def _whereabouts(self, parties: set[int]) -> tuple[Flags, Flags]:
        """Rows and batches that hold pods of these parties because the draft put them there."""
        rows = np.zeros(len(self.board.arrays), dtype=np.bool_)
        for number, placed in self._placed.items():
            if self.meetings.party_of[number] in parties:
                rows |= placed > 0
        return rows, np.array([bool(party & parties) for party in self._parties], dtype=np.bool_)

    def _names(self, key: str, rows: Flags, batches: Flags) -> set[str]:
        return {*self._row_names(key, rows), *self._offer_names(key, self._batch_offers[batches])}

    def _row_names(self, key: str, rows: Flags) -> Iterator[str]:
        values = self.board.arrays.label_values(key)
        return (values[one] for one in np.unique(self.board.arrays.label_ids(key)[rows]).tolist() if one >= 0)

    def _offer_names(self, key: str, offers: Ints) -> Iterator[str]:
        values = self.board.offer_arrays.label_values(key)
        return (values[one] for one in np.unique(self.board.offer_arrays.label_ids(key)[offers]).tolist() if one >= 0)

    def _shunned_domains(self, number: int) -> dict[str, set[str]]:
        """By topology key: domains that hold somebody the class avoids, or who avoids it."""
        found: dict[str, set[str]] = {}
        known = self.board.rules.affinity_counts(number) if self._may_be_shunned(number) else None
        for flagged in (known.anti_affinity_domains, known.repelling_domains) if known is not None else ():
            for key, flags in flagged.items():
                values = self.board.arrays.label_values(key)
                found.setdefault(key, set()).update(values[one] for one in np.flatnonzero(flags).tolist())
        for party, keys in self.meetings.shunned[self.meetings.party_of[number]].items():
            rows, batches = self._whereabouts({party})
            for key in keys:
                names = {*self._row_names(key, rows)} if key == HOSTNAME else self._names(key, rows, batches)
                if names:
                    found.setdefault(key, set()).update(names)
        return found

    def _may_be_shunned(self, number: int) -> bool:
        board = self.board
        return board.table.classes[number].has_anti_affinity or bool(board.arrays.running_pods.anti_affinity_rows)

    def company(self, number: int) -> Places | None:
        """Where the company is that a class wants; None when there is nobody yet, anywhere."""
        known = self.board.rules.affinity_counts(number)
        rows, batches = self._whereabouts({*self.meetings.company[self.meetings.party_of[number]]})
        rows = rows | (known.targets > 0)
        if not any(self._names(key, rows, batches) for key in known.affinity_keys):
            # Company on nodes without the label is in no domain, and so is none.
            return None
        found = self.everywhere()
        for key in known.affinity_keys:
            near = self.inside(key, self._names(key, rows, batches)) if key != HOSTNAME else self._beside(rows, batches)
            found = found.within(near)
        return found

    def _beside(self, rows: Flags, batches: Flags) -> Places:
        return Places(rows=rows, batches=batches, offers=np.zeros(len(self.board.offers), dtype=np.bool_))

    def spread_levels(self, number: int, one: SpreadCount) -> dict[str, int]:
        """Pods that a constraint counts, by domain that exists by now, planned nodes included."""
        values = self.board.arrays.label_values(one.key)
        levels = {values[domain]: int(one.base[domain]) for domain in np.flatnonzero(one.exists).tolist()}
        meant = self.meetings.meant(one)
        for other, rows in self._placed.items():
            if other in meant:
                for domain, pods in enumerate(one.count_by_domain(rows).tolist()):
                    if pods:
                        levels[values[domain]] = levels.get(values[domain], 0) + pods
        for batch in self.draft.batches if one.key != HOSTNAME else ():
            self._count_batch(number, one, batch.offer, levels, batch.nodes * self._meant(one, batch.content))
        return levels

    def levels_of_batches(self, one: SpreadCount) -> Ints:
        """[B]: pods that a constraint counts on each node of a batch."""
        return np.array([self._meant(one, batch.content) for batch in self.draft.batches], dtype=np.int64)

    def counts_batches(self, number: int, one: SpreadCount) -> Flags:
        """[B]: nodes that are domains for the constraint of a class."""
        twin = next(twin for twin in self.board.offer_rules.spreads(number) if twin.key == one.key)
        found: Flags = twin.eligible[self._batch_offers] if len(self._batch_offers) else np.zeros(0, dtype=np.bool_)
        return found

    def rows_with(self, number: int) -> Flags:
        """[N]: rows where the draft put pods of the class; `batches_with` likewise."""
        placed = self._placed.get(number)
        return np.zeros(len(self.board.arrays), dtype=np.bool_) if placed is None else placed > 0

    def domains_with(self, number: int, key: str) -> set[str]:
        """Where the draft put pods of the class."""
        return self._names(key, self.rows_with(number), self.batches_with(number))

    def in_existing_domains(self) -> Flags:
        """[T]: offers in zones (of every key that a waiting class is spread over) where nodes are by now."""
        found = np.ones(len(self.board.offers), dtype=np.bool_)
        spreads = (
            spread_count
            for pods in self.board.table
            if pods.has_spread
            for spread_count in self.board.rules.spreads(pods.index)
        )
        for key in sorted({spread_count.key for spread_count in spreads} - {HOSTNAME}):
            found &= self._offers_in(key, self.existing_domains(key)) | self.outside(key).offers
        return found

    def batches_with(self, number: int) -> Flags:
        return np.array([number in batch.content for batch in self.draft.batches], dtype=np.bool_)

    def _meant(self, one: SpreadCount, content: Mapping[int, int]) -> int:
        meant = self.meetings.meant(one)
        return sum(pods for other, pods in content.items() if other in meant)

    def _count_batch(self, number: int, one: SpreadCount, offer: int, levels: dict[str, int], pods: int) -> None:
        arrays = self.board.offer_arrays
        domain = int(arrays.label_ids(one.key)[offer])
        twin = next(twin for twin in self.board.offer_rules.spreads(number) if twin.key == one.key)
        if domain >= 0 and twin.eligible[offer]:
            name = arrays.label_values(one.key)[domain]
            levels[name] = levels.get(name, 0) + pods


if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from plimsoll.nodes.planning.packing.pod_relations import PodRelations
    from plimsoll.nodes.planning.predicates.spread_counts import SpreadCount
    from plimsoll.nodes.planning.problem.placement import Placement
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.problem import Flags, Ints


def keeps_zones(first: PlacementView, second: PlacementView, numbers: Iterable[int]) -> bool:
    """Whether there are nodes wherever the first scene has some, as far as any of these classes is spread over it."""
    keys = {spread_count.key for number in numbers for spread_count in first.board.rules.spreads(number)} - {HOSTNAME}
    return all(first.existing_domains(key) <= second.existing_domains(key) for key in keys)
