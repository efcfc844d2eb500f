"""Everything a plan of removals looks at, made once: who is on which node, who may move, and where each could go.

`Occupancy.of(snapshot, rules, memory=...)`. Rows are nodes [N], kinds are pods alike to every rule about moving [K],
classes are pods alike to every rule about places [C]. Costs by what changed since the memory was kept, and by kinds and
classes, not by pods. Nothing here decides anything.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.planning.arrays import Arrays
from plimsoll.nodes.planning.classes import ClassTable
from plimsoll.nodes.planning.companions import means
from plimsoll.nodes.planning.drains import Drain
from plimsoll.nodes.planning.homes import Homes
from plimsoll.nodes.planning.predicates import Predicates
from plimsoll.nodes.planning.scheduling_keys import Forms
from plimsoll.nodes.planning.static_rules import Verdicts
from plimsoll.nodes.planning.world import Pending

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.planning.classes import PodClass
    from plimsoll.nodes.planning.drains import Drainability, DrainRules
    from plimsoll.nodes.planning.world import Snapshot
    from plimsoll.scheduling.view import ClusterView, PlacedPod, PodKey
    from plimsoll.solver.problems import Flags, Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Sorted:
    """Kinds sorted into classes. Good for as long as nothing it was made from changed."""

    table: ClassTable
    class_of: Ints
    """[K]; -1 for kinds that belong to their node."""
    looks: Flags
    """[C]: how many fit is not a matter of resources alone: terms, ports, volumes, or somebody who keeps them away."""
    made_from: tuple[object, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Memory:
    """What may be kept from one turn to the next: answers by content, never by time."""

    verdicts: Verdicts = field(default_factory=Verdicts)
    forms: Forms = field(default_factory=Forms)
    arrays: Arrays | None = None
    homes: Homes | None = None
    sorted: Sorted | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Occupancy:
    """One snapshot under one set of drain rules."""

    snapshot: Snapshot
    rules: DrainRules
    arrays: Arrays
    homes: Homes
    sorted: Sorted
    predicates: Predicates
    verdicts: tuple[Drainability, ...]
    """[K]"""
    requests: Ints
    """[C, R]: of resources that anybody asks for."""
    free: Ints
    """[N, R]"""
    moving: Ints
    """[N]: pods that need a place when the node goes."""
    slot_use: Ints
    """[N, B]: pods under each disruption budget among them."""
    kept_by: dict[int, int]
    """Row to the kind of the first pod that keeps the node."""
    looks: Flags
    """[N]: rows with pods to move that look at others, or have volumes or ports."""
    memory: Memory

    @classmethod
    def of(cls, snapshot: Snapshot, rules: DrainRules, *, memory: Memory | None = None) -> Occupancy:
        known = memory or Memory()
        view = snapshot.view
        arrays = Arrays.of(view) if known.arrays is None else known.arrays.updated(view)
        homes = Homes.of(view, known.homes)
        kinds = _sorted(view, arrays, homes, known)
        predicates = Predicates(kinds.table, arrays, view, verdicts=known.verdicts)
        columns = np.flatnonzero((predicates.requests > 0).any(axis=0))
        verdicts = tuple(rules.verdict(one.pod) for one in homes.kinds)
        moves = np.array([one.drain is Drain.MOVE for one in verdicts], dtype=np.bool_)
        looking = moves & (kinds.class_of >= 0) & _at(kinds.looks, kinds.class_of)
        return cls(
            snapshot=snapshot,
            rules=rules,
            arrays=arrays,
            homes=homes,
            sorted=kinds,
            predicates=predicates,
            verdicts=verdicts,
            requests=np.ascontiguousarray(predicates.requests[:, columns]),
            free=np.ascontiguousarray(arrays.free[:, columns]),
            moving=_counted(homes, moves),
            slot_use=_slot_use(homes, rules, moves),
            kept_by=_first_keeping(homes, verdicts),
            looks=_counted(homes, looking) > 0,
            memory=Memory(verdicts=known.verdicts, forms=known.forms, arrays=arrays, homes=homes, sorted=kinds),
        )

    def to_move(self, row: int) -> list[tuple[PlacedPod, int]]:
        """Pods of a node that need a place when it goes, with their classes."""
        return [
            (placed, int(self.sorted.class_of[kind]))
            for placed, kind in self.homes.pods(row)
            if self.verdicts[kind].drain is Drain.MOVE
        ]

    def first_of_class(self, row: int, number: int) -> PodKey | None:
        """A pod of a class on a node; None where the class only came there by moves."""
        class_of = self.sorted.class_of
        return next((placed.key for placed, kind in self.homes.pods(row) if class_of[kind] == number), None)

    def let_go(self, row: int) -> list[PlacedPod]:
        """Daemon pods and the like: they may be evicted, and need no place."""
        return [placed for placed, kind in self.homes.pods(row) if self.verdicts[kind].drain is Drain.LET_GO]

    def lines(self, rows: Flags) -> tuple[Ints, Ints]:
        """Where each row's lines begin [N + 1], and lines (class, pods): what chosen rows have to move."""
        moves = np.array([one.drain is Drain.MOVE for one in self.verdicts], dtype=np.bool_)
        chosen = rows[self.homes.row]
        chosen[chosen] = moves[self.homes.kind[chosen]]
        classes = max(len(self.sorted.table), 1)
        cells = self.homes.row[chosen] * classes + self.sorted.class_of[self.homes.kind[chosen]]
        found, pods = np.unique(cells, return_counts=True)
        starts = np.searchsorted(found, np.arange(len(self.arrays) + 1) * classes)
        return starts.astype(np.int64), np.column_stack((found % classes, pods)).astype(np.int64)

    def static(self, one: PodClass) -> Flags:
        """[N]: rows that cordon, taints and node affinity leave to a class."""
        fits = np.ones(len(self.arrays), dtype=np.bool_)
        if one.problem is not None:
            return ~fits
        known = self.predicates.rules.static
        for codes in (known.unschedulable(one), known.node_name(one), known.taints(one), known.node_affinity(one)):
            if codes is not None:
                fits &= codes == 0
        return fits

    def permissions(self) -> tuple[Ints, Flags]:
        """[N], [kinds of nodes, C]: nodes that every simple class sees alike are of one kind."""
        wishes: dict[object, int] = {}
        rows: list[Flags] = []
        wish_of = np.zeros(len(self.sorted.table), dtype=np.int64)
        for one in self.sorted.table:
            wish = None if one.problem is not None else (one.form.tolerations, one.form.nodes, one.form.pin)
            if wish not in wishes:
                wishes[wish] = len(rows)
                rows.append(self.static(one))
            wish_of[one.index] = wishes[wish]
        if not rows:
            return np.zeros(len(self.arrays), dtype=np.int64), np.zeros((1, 0), dtype=np.bool_)
        kinds, kind_of = np.unique(np.stack(rows, axis=1), axis=0, return_inverse=True)
        allowed = kinds[:, wish_of] & ~self.sorted.looks
        return kind_of.reshape(-1).astype(np.int64), np.ascontiguousarray(allowed)


def _at(flags: Flags, numbers: Ints) -> Flags:
    return flags[np.maximum(numbers, 0)] if len(flags) else np.zeros(len(numbers), dtype=np.bool_)


def _counted(homes: Homes, kinds: Flags) -> Ints:
    """[N]: pods of some kinds."""
    return np.bincount(homes.row[kinds[homes.kind]], minlength=len(homes.homes)).astype(np.int64)


def _slot_use(homes: Homes, rules: DrainRules, moves: Flags) -> Ints:
    use = np.zeros((len(homes.homes), len(rules.slots.allowed)), dtype=np.int64)
    if not use.shape[1]:
        return use
    under: dict[int, list[int]] = {}
    for kind in np.flatnonzero(moves).tolist():
        for slot in rules.slots.meaning(homes.kinds[kind].pod):
            under.setdefault(slot, []).append(kind)
    for slot, kinds in under.items():
        meant = np.zeros(len(homes.kinds), dtype=np.bool_)
        meant[kinds] = True
        use[:, slot] = _counted(homes, meant)
    return use


def _first_keeping(homes: Homes, verdicts: Sequence[Drainability]) -> dict[int, int]:
    keeps = np.array([one.keeps_node for one in verdicts], dtype=np.bool_)
    places = np.flatnonzero(keeps[homes.kind])
    rows, first = np.unique(homes.row[places], return_index=True)
    return dict(zip(rows.tolist(), homes.kind[places[first]].tolist(), strict=True))


def _sorted(view: ClusterView, arrays: Arrays, homes: Homes, known: Memory) -> Sorted:
    """Kept while no kind is new and the cluster around them is the same as far as classes see it."""
    avoiders = tuple(arrays.neighbours.avoider_rows)
    made_from = (homes.kinds, arrays.neighbours.kinds, avoiders, view.storage, view.namespaces)
    before = known.sorted
    if before is not None and _same(before.made_from, made_from):
        return before
    movable = [one for one in homes.kinds if not one.stays]
    pending = [Pending(key=str(one.number), pod=one.pod, count=1) for one in movable]
    table = ClassTable.of(pending, view, forms=known.forms, seen_by_running=arrays.neighbours.selectors_in_play())
    class_of = np.full(len(homes.kinds), -1, dtype=np.int64)
    class_of[[one.number for one in movable]] = table.class_of
    terms = [term for number in avoiders for term in arrays.neighbours.kinds.avoiders[number].terms]
    looks = [not one.is_simple or any(means(term, one.pod, view.namespaces) for term in terms) for one in table]
    return Sorted(table=table, class_of=class_of, looks=np.array(looks, dtype=np.bool_), made_from=made_from)


def _same(before: tuple[object, ...], now: tuple[object, ...]) -> bool:
    kinds, around, avoiders, *others = before
    same_kinds = kinds is now[0] or (isinstance(kinds, tuple) and kinds == now[0])
    return (
        same_kinds
        and around is now[1]
        and avoiders == now[2]
        and all(one is other for one, other in zip(others, now[3:], strict=True))
    )
