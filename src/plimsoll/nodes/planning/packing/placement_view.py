"""Where pods of a class may go at one moment of a plan, given all pods placed so far.

`PlacementView(problem, placement, relations)` answers for existing nodes [N], for batches of planned nodes [B] and for
options of further ones [T]: what the node's own rules allow, which domains the class must avoid, where its affinity
targets are, and how its spread constraints count.
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
    """Existing nodes, batches of planned nodes, options of new ones."""

    rows: Flags
    batches: Flags
    options: Flags

    def intersect(self, other: Places) -> Places:
        return Places(
            rows=self.rows & other.rows, batches=self.batches & other.batches, options=self.options & other.options
        )

    @property
    def any(self) -> bool:
        return bool(self.rows.any() or self.batches.any() or self.options.any())


class PlacementView:
    """The problem with a placement on it."""

    def __init__(self, problem: ScaleUpProblem, placement: Placement, relations: PodRelations) -> None:
        self.problem = problem
        self.placement = placement
        self.relations = relations
        self._batch_options = np.array([batch.option for batch in placement.batches], dtype=np.int64)
        self._label_groups = [
            {relations.label_group_of[number] for number in batch.content} for batch in placement.batches
        ]

    @cached_property
    def _placed(self) -> dict[int, Ints]:
        """Computed on demand, like the free resources: many views are only asked about new nodes."""
        return self.placement.index_by_class(len(self.problem.arrays))

    @cached_property
    def _free(self) -> Ints:
        free = self.problem.arrays.free.copy()
        for number, rows in self._placed.items():
            free -= rows[:, None] * self.problem.rules.requests[number][None, :]
        return free

    # ---- places that accept a class

    def open_places(self, number: int) -> Places:
        """Places by the rules of the node and by anti-affinity; spread and required affinity are not checked."""
        return self._open(number, self.problem.rules.node_predicates.find_fitting(number, self._free, self._placed))

    def open_places_of(self, numbers: Sequence[int]) -> dict[int, Places]:
        """The open places of many classes at once, which is much faster."""
        rows = self.problem.rules.node_predicates.find_fitting_of_all(numbers, self._free, self._placed)
        return {number: self._open(number, rows[place]) for place, number in enumerate(numbers)}

    def _open(self, number: int, rows: Flags) -> Places:
        """The open places, given the rows that take the class by the rules of the node."""
        problem = self.problem
        if problem.reserved is not None and problem.reserved.kept_off[number]:
            rows = rows & ~problem.reserved.rows
        options = problem.allowed[:, number].copy()
        batches: Flags = options[self._batch_options] if len(self._batch_options) else np.zeros(0, dtype=np.bool_)
        for key, names in self._find_avoided_domains(number).items():
            rows &= ~self._flag_values(problem.arrays.get_label_ids(key), problem.arrays.get_label_values(key), names)
            if key != HOSTNAME:
                flagged = self._find_options_in(key, names)
                options &= ~flagged
                batches = batches & ~flagged[self._batch_options] if len(batches) else batches
        if not len(batches):
            return Places(rows=rows, batches=batches, options=options)
        avoided = {
            other
            for other, keys in self.relations.avoided[self.relations.label_group_of[number]].items()
            if HOSTNAME in keys
        }
        batches = batches & np.array(
            [not (label_groups & avoided) for label_groups in self._label_groups], dtype=np.bool_
        )
        if ports := problem.table.classes[number].scheduling_key.ports:
            batches = batches & ~np.array(
                [self._is_conflicting(ports, batch) for batch in self.placement.batches], dtype=np.bool_
            )
        return Places(rows=rows, batches=batches, options=options)

    def _is_conflicting(self, ports: Iterable[HostPort], batch: NodeBatch) -> bool:
        taken = TakenPorts(
            port for other in batch.content for port in self.problem.table.classes[other].scheduling_key.ports
        )
        return any(taken.clashes_with(port) for port in ports)

    def count_room(self, number: int) -> Ints:
        """[N]: pods of the class that existing nodes have space for."""
        return self.problem.rules.node_predicates.count_room(number, self._free, self._placed)

    def list_all_places(self) -> Places:
        return Places(
            rows=np.ones(len(self.problem.arrays), dtype=np.bool_),
            batches=np.ones(len(self.placement.batches), dtype=np.bool_),
            options=np.ones(len(self.problem.options), dtype=np.bool_),
        )

    # ---- domains

    def list_domains(self, key: str) -> tuple[str, ...]:
        """All values of a topology key, of nodes and options, in the order of their names."""
        problem = self.problem
        return tuple(sorted({*problem.arrays.get_label_values(key), *problem.option_arrays.get_label_values(key)}))

    def find_planned_domains(self, key: str) -> set[str]:
        """Domains in which the placement adds nodes."""
        return {*self._iterate_option_names(key, self._batch_options)}

    def find_existing_domains(self, key: str) -> set[str]:
        """Domains with nodes, existing or planned."""
        return {*self.problem.arrays.get_label_values(key), *self.find_planned_domains(key)}

    def keeps_zones(self, tried: Placement, numbers: Iterable[int]) -> bool:
        """Whether another placement has nodes in all domains of this one, for keys that these classes are spread over.

        Fewer zones would be cheaper, but less spread: `ZonePruning` decides on zones.
        """
        other = PlacementView(self.problem, tried, self.relations)
        spreads = (spread for number in numbers for spread in self.problem.rules.get_spreads(number))
        keys = {spread.key for spread in spreads} - {HOSTNAME}
        return all(self.find_existing_domains(key) <= other.find_existing_domains(key) for key in keys)

    def select_domains(self, key: str, names: set[str]) -> Places:
        problem = self.problem
        options = self._find_options_in(key, names)
        return Places(
            rows=self._flag_values(problem.arrays.get_label_ids(key), problem.arrays.get_label_values(key), names),
            batches=options[self._batch_options] if len(self._batch_options) else np.zeros(0, dtype=np.bool_),
            options=options,
        )

    def select_unlabelled(self, key: str) -> Places:
        """Places without the label: they are in no domain, so rules over domains do not apply there."""
        options: Flags = self.problem.option_arrays.get_label_ids(key) < 0
        return Places(
            rows=self.problem.arrays.get_label_ids(key) < 0,
            batches=options[self._batch_options] if len(self._batch_options) else np.zeros(0, dtype=np.bool_),
            options=options,
        )

    def _find_options_in(self, key: str, names: set[str]) -> Flags:
        arrays = self.problem.option_arrays
        return self._flag_values(arrays.get_label_ids(key), arrays.get_label_values(key), names)

    @staticmethod
    def _flag_values(ids: Ints, values: tuple[str, ...], names: set[str]) -> Flags:
        chosen = np.array([*(value in names for value in values), False], dtype=np.bool_)
        found: Flags = chosen[ids]
        return found

    # ---- places of pods

    def _find_pods(self, label_groups: set[int]) -> tuple[Flags, Flags]:
        """Rows and batches on which the placement has pods of these label groups."""
        rows = np.zeros(len(self.problem.arrays), dtype=np.bool_)
        for number, placed in self._placed.items():
            if self.relations.label_group_of[number] in label_groups:
                rows |= placed > 0
        return rows, np.array([bool(label_group & label_groups) for label_group in self._label_groups], dtype=np.bool_)

    def _collect_names(self, key: str, rows: Flags, batches: Flags) -> set[str]:
        return {*self._iterate_row_names(key, rows), *self._iterate_option_names(key, self._batch_options[batches])}

    def _iterate_row_names(self, key: str, rows: Flags) -> Iterator[str]:
        values = self.problem.arrays.get_label_values(key)
        return (
            values[value_id]
            for value_id in np.unique(self.problem.arrays.get_label_ids(key)[rows]).tolist()
            if value_id >= 0
        )

    def _iterate_option_names(self, key: str, options: Ints) -> Iterator[str]:
        values = self.problem.option_arrays.get_label_values(key)
        return (
            values[value_id]
            for value_id in np.unique(self.problem.option_arrays.get_label_ids(key)[options]).tolist()
            if value_id >= 0
        )

    def _find_avoided_domains(self, number: int) -> dict[str, set[str]]:
        """By topology key: domains with pods that the class avoids or that avoid it."""
        found: dict[str, set[str]] = {}
        known = self.problem.rules.get_affinity_counts(number) if self._has_avoided_domains(number) else None
        for flagged in (known.anti_affinity_domains, known.repelling_domains) if known is not None else ():
            for key, flags in flagged.items():
                values = self.problem.arrays.get_label_values(key)
                found.setdefault(key, set()).update(values[value_id] for value_id in np.flatnonzero(flags).tolist())
        for label_group, keys in self.relations.avoided[self.relations.label_group_of[number]].items():
            rows, batches = self._find_pods({label_group})
            for key in keys:
                names = (
                    {*self._iterate_row_names(key, rows)}
                    if key == HOSTNAME
                    else self._collect_names(key, rows, batches)
                )
                if names:
                    found.setdefault(key, set()).update(names)
        return found

    def _has_avoided_domains(self, number: int) -> bool:
        problem = self.problem
        return problem.table.classes[number].has_anti_affinity or bool(problem.arrays.running_pods.anti_affinity_rows)

    def find_affinity_places(self, number: int) -> Places | None:
        """Places with the affinity targets of a class; None if there are none anywhere yet."""
        known = self.problem.rules.get_affinity_counts(number)
        rows, batches = self._find_pods({*self.relations.affinity_targets[self.relations.label_group_of[number]]})
        rows = rows | (known.targets > 0)
        if not any(self._collect_names(key, rows, batches) for key in known.affinity_keys):
            # Targets on nodes without the label are in no domain, so they do not count.
            return None
        found = self.list_all_places()
        for key in known.affinity_keys:
            near = (
                self.select_domains(key, self._collect_names(key, rows, batches))
                if key != HOSTNAME
                else self._select_nodes(rows, batches)
            )
            found = found.intersect(near)
        return found

    def _select_nodes(self, rows: Flags, batches: Flags) -> Places:
        return Places(rows=rows, batches=batches, options=np.zeros(len(self.problem.options), dtype=np.bool_))

    def count_spread_levels(self, number: int, spread: SpreadCount) -> dict[str, int]:
        """Pods that a constraint counts, per existing domain, planned nodes included."""
        values = self.problem.arrays.get_label_values(spread.key)
        levels = {values[domain]: int(spread.base[domain]) for domain in np.flatnonzero(spread.exists).tolist()}
        meant = self.relations.find_counted_classes(spread)
        for other, rows in self._placed.items():
            if other in meant:
                for domain, pods in enumerate(spread.count_by_domain(rows).tolist()):
                    if pods:
                        levels[values[domain]] = levels.get(values[domain], 0) + pods
        for batch in self.placement.batches if spread.key != HOSTNAME else ():
            self._count_batch(
                number, spread, batch.option, levels, batch.nodes * self._count_matching(spread, batch.content)
            )
        return levels

    def count_on_batches(self, spread: SpreadCount) -> Ints:
        """[B]: pods that a constraint counts on each node of a batch."""
        return np.array(
            [self._count_matching(spread, batch.content) for batch in self.placement.batches], dtype=np.int64
        )

    def find_counted_batches(self, number: int, spread: SpreadCount) -> Flags:
        """[B]: nodes that are domains for the constraint of a class."""
        twin = next(twin for twin in self.problem.option_rules.get_spreads(number) if twin.key == spread.key)
        found: Flags = twin.eligible[self._batch_options] if len(self._batch_options) else np.zeros(0, dtype=np.bool_)
        return found

    def find_rows_with(self, number: int) -> Flags:
        """[N]: rows on which the placement has pods of the class."""
        placed = self._placed.get(number)
        return np.zeros(len(self.problem.arrays), dtype=np.bool_) if placed is None else placed > 0

    def find_domains_with(self, number: int, key: str) -> set[str]:
        """Domains in which the placement has pods of the class."""
        return self._collect_names(key, self.find_rows_with(number), self.find_batches_with(number))

    def find_options_in_existing_domains(self) -> Flags:
        """[T]: options in zones that have nodes, for every key that a pending class is spread over."""
        found = np.ones(len(self.problem.options), dtype=np.bool_)
        spreads = (
            spread_count
            for pods in self.problem.table
            if pods.has_spread
            for spread_count in self.problem.rules.get_spreads(pods.index)
        )
        for key in sorted({spread_count.key for spread_count in spreads} - {HOSTNAME}):
            found &= self._find_options_in(key, self.find_existing_domains(key)) | self.select_unlabelled(key).options
        return found

    def find_batches_with(self, number: int) -> Flags:
        return np.array([number in batch.content for batch in self.placement.batches], dtype=np.bool_)

    def _count_matching(self, spread: SpreadCount, content: Mapping[int, int]) -> int:
        meant = self.relations.find_counted_classes(spread)
        return sum(pods for other, pods in content.items() if other in meant)

    def _count_batch(self, number: int, spread: SpreadCount, option: int, levels: dict[str, int], pods: int) -> None:
        arrays = self.problem.option_arrays
        domain = int(arrays.get_label_ids(spread.key)[option])
        twin = next(twin for twin in self.problem.option_rules.get_spreads(number) if twin.key == spread.key)
        if domain >= 0 and twin.eligible[option]:
            name = arrays.get_label_values(spread.key)[domain]
            levels[name] = levels.get(name, 0) + pods
