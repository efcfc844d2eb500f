"""The nodes of a view as columns of numbers: what they offer, what is free, which label values they have, who is there.

`Arrays.of(view)` reads every node once; `Arrays.updated(view)` reads again only nodes on which something changed, found
by identity (views share the states of nodes nobody touched), so that no change can be missed and none is paid twice.
Arrays are immutable: simulations place pods on a `Trial` (module `trials`) over them.

* `alloc[N, R]`, `free[N, R]` - int64, cpu in millicores, in the order of `columns.names`.
* `label_ids(key)[N]` - a number for each value of a label, -1 where a node does not have it: also the domains of a
  topology key. `grouped(keys)` - rows that no rule reading only these labels can tell apart.
* `neighbours` - who is on the rows; `states` - the scheduling package's own states, row by row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from plimsoll.nodes.planning.neighbours import Household, Kinds, Neighbours

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.core.resources import ResourceVector
    from plimsoll.scheduling.view import ClusterView, NodeState
    from plimsoll.solver.problems import Flags, Ints

_FIRST: Final = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
# More than any machine has, and small enough that sums of a few do not leave 64 bits.
_MOST: Final = 1 << 60
# Kinds are only ever added; past this many unused ones they are numbered anew.
_STALE_KINDS: Final = 4096


class Columns:
    """Which resource stands in which column: the four every node has, then the others by name."""

    __slots__ = ("index", "names")

    def __init__(self, names: Iterable[str]) -> None:
        self.names = (*_FIRST, *sorted(set(names) - set(_FIRST)))
        self.index = {name: column for column, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def covers(self, names: Iterable[str]) -> bool:
        return all(name in self.index for name in names)

    def vector(self, amounts: ResourceVector) -> Ints:
        """[R]; amounts no machine can have are cut to what 64 bits can still add up."""
        return np.array(self._listed(amounts), dtype=np.int64)

    def matrix(self, vectors: Sequence[ResourceVector]) -> Ints:
        """[len(vectors), R]."""
        if not vectors:
            return np.zeros((0, len(self)), dtype=np.int64)
        return np.array([self._listed(one) for one in vectors], dtype=np.int64)

    def _listed(self, amounts: ResourceVector) -> list[int]:
        return [min(max(amounts[name], -_MOST), _MOST) for name in self.names]


class Arrays:
    """Rows of nodes, in the order of the view."""

    def __init__(self, states: Sequence[NodeState], *, columns: Columns, neighbours: Neighbours) -> None:
        self.states = tuple(states)
        self.names = tuple(one.name for one in self.states)
        self.row_of = {name: row for row, name in enumerate(self.names)}
        self.columns = columns
        self.neighbours = neighbours
        self.alloc: Ints = columns.matrix([one.allocatable for one in self.states])
        self.free: Ints = columns.matrix([one.free for one in self.states])
        self._label_ids: dict[str, tuple[Ints, tuple[str, ...]]] = {}
        self._groups: dict[tuple[str, ...], tuple[Ints, Ints]] = {}

    @classmethod
    def of(cls, view: ClusterView, *, resources: Iterable[str] = ()) -> Arrays:
        """`resources` are names that must have a column even if no node offers them: what pods ask for."""
        return cls.of_states(view.nodes.values(), resources=resources)

    @classmethod
    def of_states(cls, states: Iterable[NodeState], *, resources: Iterable[str] = ()) -> Arrays:
        listed = tuple(states)
        kinds = Kinds()
        homes = [Household.of(one, kinds) for one in listed]
        return cls(listed, columns=_columns(listed, resources), neighbours=Neighbours(kinds, homes))

    def updated(self, view: ClusterView, *, resources: Iterable[str] = ()) -> Arrays:
        """The same for a later view, by what changed. Gives what `of` gives."""
        wanted = tuple(resources)
        stale = len(self.neighbours.kinds.kin) - len(self.neighbours.households) * 4
        if stale > _STALE_KINDS:
            return Arrays.of(view, resources=wanted)
        states = tuple(view.nodes.values())
        kept = [self._unchanged(state) for state in states]
        fresh = [state for state, row in zip(states, kept, strict=True) if row is None]
        names = {name for state in fresh for name in (*state.allocatable, *state.used)}
        columns = self.columns if self.columns.covers((*names, *wanted)) else _columns(states, wanted)
        kinds = self.neighbours.kinds
        homes = [
            Household.of(state, kinds) if row is None else self.neighbours.households[row]
            for state, row in zip(states, kept, strict=True)
        ]
        other = object.__new__(Arrays)
        other._take_over(self, states, kept, columns=columns, neighbours=Neighbours(kinds, homes))
        return other

    def _unchanged(self, state: NodeState) -> int | None:
        row = self.row_of.get(state.name)
        return row if row is not None and _same(self.states[row], state) else None

    def _take_over(
        self,
        before: Arrays,
        states: tuple[NodeState, ...],
        kept: Sequence[int | None],
        *,
        columns: Columns,
        neighbours: Neighbours,
    ) -> None:
        if columns is not before.columns:
            Arrays.__init__(self, states, columns=columns, neighbours=neighbours)
            return
        self.states = states
        self.names = tuple(one.name for one in states)
        same_rows = self.names == before.names
        self.row_of = before.row_of if same_rows else {name: row for row, name in enumerate(self.names)}
        self.columns, self.neighbours = columns, neighbours
        rows = np.array([-1 if row is None else row for row in kept], dtype=np.int64)
        self.alloc = _gathered(before.alloc, rows)
        self.free = _gathered(before.free, rows)
        for row in np.flatnonzero(rows < 0).tolist():
            self.alloc[row] = columns.vector(states[row].allocatable)
            self.free[row] = columns.vector(states[row].free)
        same_nodes = same_rows and all(one.node is other.node for one, other in zip(states, before.states, strict=True))
        # Label values follow from node objects alone; pods that came or went do not change them.
        self._label_ids = before._label_ids if same_nodes else {}
        self._groups = before._groups if same_nodes else {}

    def __len__(self) -> int:
        return len(self.states)

    @property
    def unreadable(self) -> Flags:
        """[N]: rows of which nobody can say what is free."""
        return np.array([bool(one.problem) for one in self.states], dtype=np.bool_)

    def label_ids(self, key: str) -> Ints:
        return self._labelled(key)[0]

    def label_values(self, key: str) -> tuple[str, ...]:
        """What the numbers of `label_ids` stand for."""
        return self._labelled(key)[1]

    def _labelled(self, key: str) -> tuple[Ints, tuple[str, ...]]:
        found = self._label_ids.get(key)
        if found is None:
            numbers: dict[str, int] = {}
            ids = np.full(len(self.states), -1, dtype=np.int64)
            for row, state in enumerate(self.states):
                value = state.labels.get(key)
                if value is not None:
                    ids[row] = numbers.setdefault(value, len(numbers))
            found = self._label_ids[key] = (ids, tuple(numbers))
        return found

    def grouped(self, keys: Iterable[str], *, names: Iterable[str] = ()) -> tuple[Ints, Ints]:
        """Rows with equal values of these labels as groups; nodes with one of the names are each a group of its own.

        Gives [G], a row of each group, and [N], the group of each row.
        """
        wanted = tuple(sorted(keys))
        singled = {row for row in map(self.row_of.get, names) if row is not None}
        if singled:
            groups = self._by_labels(wanted)[1].copy()
            groups[sorted(singled)] = len(self.states) + np.arange(len(singled))
            return _numbered(groups)
        return self._by_labels(wanted)

    def _by_labels(self, keys: tuple[str, ...]) -> tuple[Ints, Ints]:
        found = self._groups.get(keys)
        if found is None:
            groups = np.zeros(len(self.states), dtype=np.int64)
            for key in keys:
                ids = self.label_ids(key) + 1
                # Numbered anew after each key, so that the product stays small.
                groups = _numbered(groups * (int(ids.max(initial=0)) + 1) + ids)[1]
            found = self._groups[keys] = _numbered(groups)
        return found


def _numbered(groups: Ints) -> tuple[Ints, Ints]:
    _, rows, group_of = np.unique(groups, return_index=True, return_inverse=True)
    return rows.astype(np.int64), group_of.astype(np.int64)


def _columns(states: Iterable[NodeState], resources: Iterable[str]) -> Columns:
    return Columns({*resources, *(name for one in states for name in (*one.allocatable, *one.used))})


def _gathered(before: Ints, rows: Ints) -> Ints:
    if not len(before):
        return np.zeros((len(rows), before.shape[1]), dtype=np.int64)
    return before[np.maximum(rows, 0)]


def _same(before: NodeState, after: NodeState) -> bool:
    """Whether nothing a rule could see has changed; a rebuilt state of the same objects is the same."""
    if before is after:
        return True
    if before.node is not after.node or before.problem != after.problem or len(before.pods) != len(after.pods):
        return False
    # Lists compare by identity first: pods that are the same objects are not looked into.
    return [one.pod for one in before.pods.values()] == [one.pod for one in after.pods.values()]
