"""The nodes of a view as columns of numbers: capacity, free resources, label values, and counts of running pods.

`NodeArrays.from_view(view)` reads every node once. `NodeArrays.update_view(view)` reads only the nodes on which
something changed. Changes are found by identity: views share the states of unchanged nodes, so no change is missed and
none is read twice. Arrays are immutable; simulations place pods on a placement over them.

* `alloc[N, R]`, `free[N, R]`: int64, cpu in millicores, in the order of `columns.names`.
* `get_label_ids(key)[N]`: a number per value of a label, -1 for nodes without it; also the domains of a topology key.
  `group_rows(keys)`: rows that no rule reading only these labels can distinguish.
* `running_pods`: the pods on each row, counted per label group. `states`: the scheduling package's states, row by row.
"""

from __future__ import annotations

from operator import is_
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import numpy as np

from plimsoll.core.resources import CPU, EPHEMERAL_STORAGE, LARGEST_AMOUNT, MEMORY, PODS
from plimsoll.nodes.planning.state.running_pods import LabelGroups, NodeContents, RunningPods

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from plimsoll.core.resources import ResourceVector
    from plimsoll.objects.api.nodes import Node
    from plimsoll.scheduling.cluster_view import ClusterView, NodeState
    from plimsoll.solver.problem import Flags, Ints


T = TypeVar("T")

_FIRST: Final = (CPU, MEMORY, EPHEMERAL_STORAGE, PODS)
# Numbers are only ever added; past this many unused ones they are reassigned.
_STALE_KINDS: Final = 4096


class NodeArraysCache:
    """The arrays of the latest view. Only nodes that changed since then are read again."""

    def __init__(self) -> None:
        self._latest: NodeArrays | None = None

    def update(self, view: ClusterView, *, resources: Iterable[str] = ()) -> NodeArrays:
        before = self._latest
        self._latest = (
            NodeArrays.from_view(view, resources=resources)
            if before is None
            else before.update_view(view, resources=resources)
        )
        return self._latest


class Columns:
    """The order of resources: the four that every node has, then the others by name."""

    __slots__ = ("index", "names")

    def __init__(self, names: Iterable[str]) -> None:
        self.names = (*_FIRST, *sorted(set(names) - set(_FIRST)))
        self.index = {name: column for column, name in enumerate(self.names)}

    def __len__(self) -> int:
        return len(self.names)

    def covers(self, names: Iterable[str]) -> bool:
        return all(name in self.index for name in names)

    def to_vector(self, amounts: ResourceVector) -> Ints:
        """[R]; amounts that no machine can have are clipped so that sums stay within 64 bits."""
        found: Ints = self.to_matrix([amounts])[0]
        return found

    def to_matrix(self, vectors: Sequence[ResourceVector]) -> Ints:
        """[len(vectors), R]."""
        if not vectors:
            return np.zeros((0, len(self)), dtype=np.int64)
        amounts = [resource_vector.get_amounts(self.names) for resource_vector in vectors]
        try:
            return np.clip(np.array(amounts, dtype=np.int64), -LARGEST_AMOUNT, LARGEST_AMOUNT)
        except OverflowError:
            return np.array(
                [[min(max(amount, -LARGEST_AMOUNT), LARGEST_AMOUNT) for amount in row] for row in amounts],
                dtype=np.int64,
            )


class RowGroups(NamedTuple):
    """Rows as groups."""

    rows: Ints
    """[G]: a row of each group."""
    group_of: Ints
    """[N]: the group of each row."""


class NodeArrays:
    """Rows of nodes, in the order of the view."""

    def __init__(self, states: Sequence[NodeState], *, columns: Columns, running_pods: RunningPods) -> None:
        self.states = tuple(states)
        self.names = tuple(node_state.name for node_state in self.states)
        self.row_of = {name: row for row, name in enumerate(self.names)}
        self.columns = columns
        self.running_pods = running_pods
        self.alloc: Ints = columns.to_matrix([node_state.allocatable for node_state in self.states])
        self.free: Ints = columns.to_matrix([node_state.free for node_state in self.states])
        self.unreadable: Flags = np.array([bool(node_state.problem) for node_state in self.states], dtype=np.bool_)
        """[N]: rows whose free resources are unknown."""
        self._of_nodes: dict[tuple[str, ...], Any] = {}

    @classmethod
    def from_view(cls, view: ClusterView, *, resources: Iterable[str] = ()) -> NodeArrays:
        """`resources` get a column even if no node has them: what pods request."""
        return cls.from_states(view.nodes.values(), resources=resources)

    @classmethod
    def from_states(cls, states: Iterable[NodeState], *, resources: Iterable[str] = ()) -> NodeArrays:
        listed = tuple(states)
        kinds = LabelGroups()
        contents = [NodeContents(node_state, kinds) for node_state in listed]
        return cls(listed, columns=_build_columns(listed, resources), running_pods=RunningPods(kinds, contents))

    def update_view(self, view: ClusterView, *, resources: Iterable[str] = ()) -> NodeArrays:
        """The arrays of a later view, updated by what changed. The result equals `of`."""
        wanted = tuple(resources)
        stale = len(self.running_pods.label_groups.label_groups) - len(self.running_pods.nodes) * 4
        if stale > _STALE_KINDS:
            return NodeArrays.from_view(view, resources=wanted)
        states = tuple(view.nodes.values())
        if len(states) == len(self.states) and all(map(is_, states, self.states)) and self.columns.covers(wanted):
            return self
        kept = self._find_unchanged_rows(states)
        fresh = [place for place, row in enumerate(kept) if row is None]
        columns = self._choose_columns(states, fresh, wanted)
        if not fresh and columns is self.columns and len(states) == len(self.states) and kept == list(range(len(kept))):
            return self
        contents = self.running_pods.nodes
        kinds = self.running_pods.label_groups
        running_pods = RunningPods(
            kinds,
            [
                NodeContents(state, kinds) if row is None else contents[row]
                for state, row in zip(states, kept, strict=True)
            ],
        )
        if columns is not self.columns:
            return NodeArrays(states, columns=columns, running_pods=running_pods)
        other = object.__new__(NodeArrays)
        other._take_over(self, states, kept, running_pods=running_pods)
        return other

    def _find_unchanged_rows(self, states: tuple[NodeState, ...]) -> list[int | None]:
        """For each state its row here, if nothing on it has changed."""
        before = self.states
        if len(states) == len(before):
            # Mostly the same nodes in the same order: then what is not the very same object is the only question.
            kept: list[int | None] = list(range(len(states)))
            changed = [row for row, same in enumerate(map(is_, states, before)) if not same]
            if all(states[row].name == before[row].name for row in changed):
                for row in changed:
                    kept[row] = row if _is_same(before[row], states[row]) else None
                return kept
        return [self._find_unchanged_row(state) for state in states]

    def _find_unchanged_row(self, state: NodeState) -> int | None:
        row = self.row_of.get(state.name)
        return row if row is not None and _is_same(self.states[row], state) else None

    def _choose_columns(self, states: tuple[NodeState, ...], fresh: Sequence[int], wanted: Sequence[str]) -> Columns:
        # Few nodes differ in what there is a name for: each set of names is looked at once.
        sets = {tuple(amounts) for row in fresh for amounts in (states[row].allocatable, states[row].used)}
        names = {name for resource_names in sets for name in resource_names}
        return self.columns if self.columns.covers((*names, *wanted)) else _build_columns(states, wanted)

    def _take_over(
        self,
        before: NodeArrays,
        states: tuple[NodeState, ...],
        kept: Sequence[int | None],
        *,
        running_pods: RunningPods,
    ) -> None:
        columns = before.columns
        self.states, self.columns, self.running_pods = states, columns, running_pods
        fresh = [place for place, row in enumerate(kept) if row is None]
        same_rows = len(kept) == len(before.states) and all(row is None or row == at for at, row in enumerate(kept))
        same_rows = same_rows and all(states[row].name == before.names[row] for row in fresh)
        if same_rows:
            self.names, self.row_of = before.names, before.row_of
            self.alloc, self.free, self.unreadable = before.alloc.copy(), before.free.copy(), before.unreadable.copy()
        else:
            self.names = tuple(node_state.name for node_state in states)
            self.row_of = {name: row for row, name in enumerate(self.names)}
            rows = np.array([-1 if row is None else row for row in kept], dtype=np.int64)
            self.alloc, self.free = _gather_rows(before.alloc, rows), _gather_rows(before.free, rows)
            self.unreadable = np.array([bool(node_state.problem) for node_state in states], dtype=np.bool_)
        # Pods come and go on the same node objects, which then need not be read again.
        written = [row for row in fresh if not same_rows or states[row].node is not before.states[row].node]
        if written:
            self.alloc[written] = columns.to_matrix([states[row].allocatable for row in written])
        if fresh:
            self.free[fresh] = columns.to_matrix([states[row].free for row in fresh])
            self.unreadable[fresh] = [bool(states[row].problem) for row in fresh]
        equal = same_rows and all(_is_same_to_rules(before.states[row].node, states[row].node) for row in fresh)
        self._of_nodes = before._of_nodes if equal else {}

    def __len__(self) -> int:
        return len(self.states)

    def memoize(self, what: tuple[str, ...], read: Callable[[], T]) -> T:
        """What `read` makes of the node objects alone, kept for as long as they stay the same to every rule.

        That is labels, spec and what they offer: pods that come and go, and heartbeats, are not looked at.
        """
        if what not in self._of_nodes:
            self._of_nodes[what] = read()
        found: T = self._of_nodes[what]
        return found

    def get_label_ids(self, key: str) -> Ints:
        return self._number_labels(key)[0]

    def get_label_values(self, key: str) -> tuple[str, ...]:
        """What the numbers of `get_label_ids` stand for."""
        return self._number_labels(key)[1]

    def _number_labels(self, key: str) -> tuple[Ints, tuple[str, ...]]:
        return self.memoize(("label", key), lambda: _number_values(self.states, key))

    def group_rows(self, keys: Iterable[str], *, names: Iterable[str] = ()) -> RowGroups:
        """Rows with equal values of these labels as groups; nodes with one of the names are each a group of its own."""
        wanted = tuple(sorted(keys))
        named = {row for row in map(self.row_of.get, names) if row is not None}
        if named:
            groups = self._group_by_labels(wanted).group_of.copy()
            groups[sorted(named)] = len(self.states) + np.arange(len(named))
            return number_rows(groups)
        return self._group_by_labels(wanted)

    def _group_by_labels(self, keys: tuple[str, ...]) -> RowGroups:
        return self.memoize(("groups", *keys), lambda: self._number_groups(keys))

    def _number_groups(self, keys: tuple[str, ...]) -> RowGroups:
        groups = np.zeros(len(self.states), dtype=np.int64)
        for key in keys:
            ids = self.get_label_ids(key) + 1
            # Renumbered after each key, so that the product stays small.
            groups = number_rows(groups * (int(ids.max(initial=0)) + 1) + ids).group_of
        return number_rows(groups)


def _number_values(states: Sequence[NodeState], key: str) -> tuple[Ints, tuple[str, ...]]:
    numbers: dict[str, int] = {}
    ids = np.full(len(states), -1, dtype=np.int64)
    for row, state in enumerate(states):
        value = state.labels.get(key)
        if value is not None:
            ids[row] = numbers.setdefault(value, len(numbers))
    return ids, tuple(numbers)


def number_rows(groups: Ints) -> RowGroups:
    """Rows with the same number as groups."""
    _, rows, group_of = np.unique(groups, return_index=True, return_inverse=True)
    return RowGroups(rows.astype(np.int64), group_of.astype(np.int64))


def _build_columns(states: Iterable[NodeState], resources: Iterable[str]) -> Columns:
    return Columns(
        {*resources, *(name for node_state in states for name in (*node_state.allocatable, *node_state.used))}
    )


def _gather_rows(before: Ints, rows: Ints) -> Ints:
    if not len(before):
        return np.zeros((len(rows), before.shape[1]), dtype=np.int64)
    return before[np.maximum(rows, 0)]


def _is_same_to_rules(before: Node, after: Node) -> bool:
    """Whether everything is the same that rules and limits read of a node object."""
    return before is after or (
        before.metadata.labels == after.metadata.labels
        and before.spec == after.spec
        and before.status.capacity == after.status.capacity
        and before.status.allocatable == after.status.allocatable
    )


def _is_same(before: NodeState, after: NodeState) -> bool:
    """Whether nothing a rule could see has changed; a rebuilt state of the same objects is the same."""
    if before is after:
        return True
    if before.node is not after.node or before.problem != after.problem or len(before.pods) != len(after.pods):
        return False
    # Lists compare by identity first: pods that are the same objects are not looked into.
    return [placed_pod.pod for placed_pod in before.pods.values()] == [pod.pod for pod in after.pods.values()]
