"""Nodes that fill up, with the counts of every rule between pods per node and per domain: arrays, one class at a time.

`NodeCounts` holds existing nodes first, then new ones as they are opened. `take` places as many pods of a class as the
rules and the free resources allow, on all nodes at once: the room of each node, the share of each domain, then the
nodes in order. What it places holds when it is placed, whatever comes later.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.nodes.model.node_labels import HOSTNAME
from plimsoll.solver.problem import UNBOUNDED

if TYPE_CHECKING:
    from plimsoll.nodes.planning.packing.pod_relations import PodRelations
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.nodes.planning.topology.groups import SpreadGroup, TopologyGroups
    from plimsoll.solver.problem import Flags, Ints

_STEPS: Final = 10_000
"""The number of times that one class is looked at again because its own pods raised the lowest level."""


@dataclass(slots=True, kw_only=True)
class NodeCounts:
    """The nodes of one problem and what has been placed on them."""

    problem: ScaleUpProblem
    relations: PodRelations
    groups: TopologyGroups
    domains: tuple[str, ...]
    """The values of the one topology key, beside nodes, that pods are spread over."""
    domain_key: str
    free: Ints = field(init=False)
    """[M, R]"""
    options: Ints = field(init=False)
    """[M]: the option of a new node, -1 for an existing one."""
    placed: list[tuple[int, int, int]] = field(init=False, default_factory=list)
    """(node, class, pods)"""
    _domain_of: Ints = field(init=False)
    _on_node: Ints = field(init=False)
    """[G, M]: pods that each spread over nodes counts."""
    _in_domain: Ints = field(init=False)
    """[G, D]: pods that each other spread counts."""
    _exists: Flags = field(init=False)
    """[G, D]: domains that hold the minimum down: they have nodes, or new nodes may be opened in them."""
    _present: dict[int, Flags] = field(init=False, default_factory=dict)
    """By label group [M]: nodes on which its pods have been placed."""
    _signatures: dict[int, list[int]] = field(init=False, default_factory=dict)
    """By class: the spreads that count it."""
    _over_nodes: dict[int, list[int]] = field(init=False, default_factory=dict)
    """By class: its own spreads over nodes."""
    _over_domains: dict[int, list[int]] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        arrays = self.problem.arrays
        rows, spreads = len(arrays), self.groups.spreads
        self.free = self.problem.free.copy()
        self.options = np.full(rows, -1, dtype=np.int64)
        self._domain_of = np.full(rows, -1, dtype=np.int64)
        if self.domain_key:
            self._domain_of = self._number_domains(
                arrays.get_label_ids(self.domain_key), arrays.get_label_values(self.domain_key)
            )
        self._on_node = np.zeros((len(spreads), rows), dtype=np.int64)
        self._in_domain = np.zeros((len(spreads), len(self.domains)), dtype=np.int64)
        self._exists = np.zeros((len(spreads), len(self.domains)), dtype=np.bool_)
        for index, spread in enumerate(spreads):
            self._count_running(index, spread)
            for number in spread.counted:
                self._signatures.setdefault(number, []).append(index)
            for number in spread.owners:
                (self._over_nodes if spread.is_over_nodes else self._over_domains).setdefault(number, []).append(index)

    def _number_domains(self, ids: Ints, values: tuple[str, ...]) -> Ints:
        known = {name: index for index, name in enumerate(self.domains)}
        numbers = np.array([*(known.get(name, -1) for name in values), -1], dtype=np.int64)
        found: Ints = numbers[ids]
        return found

    def _count_running(self, index: int, spread: SpreadGroup) -> None:
        sample = spread.sample
        if spread.is_over_nodes:
            inside = sample.domains >= 0
            self._on_node[index, inside] = sample.base[sample.domains[inside]]
            return
        values = self.problem.arrays.get_label_values(spread.key)
        for at, name in enumerate(self.domains):
            if name in values:
                self._in_domain[index, at] = sample.base[values.index(name)]
                self._exists[index, at] = sample.exists[values.index(name)]

    # ---- new nodes

    def open_nodes(self, option: int, nodes: int, capacity: Ints) -> None:
        """`capacity`: what the largest node holds that this one may become."""
        self.free = np.vstack((self.free, np.tile(capacity, (nodes, 1))))
        self.options = np.concatenate((self.options, np.full(nodes, option, dtype=np.int64)))
        domain = -1
        if self.domain_key:
            arrays = self.problem.option_arrays
            ids = self._number_domains(arrays.get_label_ids(self.domain_key), arrays.get_label_values(self.domain_key))
            domain = int(ids[option])
        self._domain_of = np.concatenate((self._domain_of, np.full(nodes, domain, dtype=np.int64)))
        self._on_node = np.hstack((self._on_node, np.zeros((len(self._on_node), nodes), dtype=np.int64)))
        for label_group, flags in self._present.items():
            self._present[label_group] = np.concatenate((flags, np.zeros(nodes, dtype=np.bool_)))
        if domain >= 0:
            self._exists[:, domain] = True

    def expect_domains(self, openable: Flags) -> None:
        """[D]: domains in which nodes may be opened: pods are spread over them as if they had nodes already."""
        self._exists |= openable

    # ---- where pods may go

    def take(self, number: int, pods: int) -> int:
        """Place up to so many pods of a class; returns how many were placed."""
        left = pods
        for _ in range(_STEPS):
            given = self._share(number, self._count_room(number, left), left)
            if not given.any():
                break
            self._put(number, given)
            left -= int(given.sum())
            if not left:
                break
        return pods - left

    def find_open_domains(self, number: int) -> Flags:
        """[D + 1]: domains that take one more pod of the class by its spread; the last entry is for nodes in none."""
        found: Flags = self._count_domain_room(number) > 0
        return found

    def may_begin(self, number: int) -> bool:
        """Whether a new node takes the class: not if it must join a target that has a node."""
        return not self.problem.table.classes[number].has_affinity or bool(self._find_near(number).all())

    def count_on_empty_node(self, number: int) -> int:
        """How many pods of the class the rules allow on one more node."""
        most = 1 if self._is_kept_apart(number) else UNBOUNDED
        for index in self._over_nodes.get(number, ()):
            spread = self.groups.spreads[index]
            if number in spread.counted:
                most = min(most, spread.max_skew)
        return most

    def _count_room(self, number: int, most: int) -> Ints:
        """[M]: how many pods of the class each node takes now, domains aside."""
        request = self.problem.requests[number]
        room = np.where(self._find_allowed(number), most, 0)
        for column in np.flatnonzero(request).tolist():
            np.minimum(room, self.free[:, column] // request[column], out=room)
        if self._is_kept_apart(number):
            room = np.minimum(room, 1)
        for index in self._over_nodes.get(number, ()):
            spread, level = self.groups.spreads[index], self._on_node[index]
            headroom = spread.max_skew + self._find_lowest_node(index, spread) - level
            room = np.minimum(room, headroom) if number in spread.counted else np.where(headroom >= 0, room, 0)
        return np.maximum(room, 0)

    def _find_lowest_node(self, index: int, spread: SpreadGroup) -> int:
        """The level of the lowest node; new nodes are among them, and further ones will be empty."""
        eligible = np.concatenate((spread.sample.eligible, self.options[len(spread.sample.eligible) :] >= 0))
        levels = self._on_node[index, eligible]
        return int(levels.min(initial=UNBOUNDED)) if len(levels) >= max(spread.min_domains, 1) else 0

    def _find_allowed(self, number: int) -> Flags:
        """[M]: by the rules of the nodes, and by affinity and anti-affinity."""
        problem = self.problem
        rows = len(problem.arrays)
        found = np.ones(len(self.free), dtype=np.bool_)
        if rows:
            found[:rows] = problem.rules.node_predicates.find_fitting(number, problem.arrays.free, {})
        if problem.reserved is not None and problem.reserved.kept_off[number]:
            found[:rows] &= ~problem.reserved.rows
        found[rows:] = problem.allowed[self.options[rows:], number]
        label_group = self.relations.label_group_of[number]
        for other in self.relations.avoided[label_group]:
            if other in self._present:
                found &= ~self._present[other]
        pod_class = problem.table.classes[number]
        if rows and (pod_class.has_anti_affinity or problem.arrays.running_pods.anti_affinity_rows):
            _, avoided, avoiding = problem.rules.find_affinity_conflicts(number, {})
            found[:rows] &= ~(avoided | avoiding)
        return found & self._find_near(number) if pod_class.has_affinity else found

    def _find_near(self, number: int) -> Flags:
        """[M]: nodes with an affinity target; all nodes for the first pod of those that match themselves."""
        label_group = self.relations.label_group_of[number]
        near = np.zeros(len(self.free), dtype=np.bool_)
        near[: len(self.problem.arrays)] = self.problem.rules.get_affinity_counts(number).targets > 0
        for target in self.relations.affinity_targets[label_group]:
            if target in self._present:
                near |= self._present[target]
        if near.any() or label_group not in self.relations.affinity_targets[label_group]:
            return near
        return np.ones(len(self.free), dtype=np.bool_)

    def _is_kept_apart(self, number: int) -> bool:
        label_group = self.relations.label_group_of[number]
        return HOSTNAME in self.relations.avoided[label_group].get(label_group, ())

    def _count_domain_room(self, number: int) -> Ints:
        """[D + 1]: how many pods of the class each domain takes now; the last entry is for nodes in none."""
        room = np.full(len(self.domains) + 1, UNBOUNDED, dtype=np.int64)
        for index in self._over_domains.get(number, ()):
            spread = self.groups.spreads[index]
            room[-1] = 0
            levels = self._in_domain[index]
            present = levels[self._exists[index]]
            lowest = int(present.min(initial=UNBOUNDED)) if len(present) >= max(spread.min_domains, 1) else 0
            headroom = spread.max_skew + lowest - levels
            if number not in spread.counted:
                headroom = np.where(headroom >= 0, UNBOUNDED, 0)
            room[:-1] = np.minimum(room[:-1], np.maximum(headroom, 0))
        return room

    # ---- placing

    def _share(self, number: int, room: Ints, pods: int) -> Ints:
        """[M]: pods for each node, in order, within what their domains take."""
        if self._must_stay_together(number):
            # The first pod opens the node of the others.
            first = np.flatnonzero(room > 0)[:1]
            given = np.zeros_like(room)
            given[first] = 1
            return given
        by_domain = self._count_domain_room(number)
        if number in self._over_domains:
            for domain in range(len(by_domain)):
                inside = np.flatnonzero(self._domain_of == (domain if domain < len(self.domains) else -1))
                room[inside] = _limit_sum(room[inside], int(by_domain[domain]))
        return _limit_sum(room, pods)

    def _must_stay_together(self, number: int) -> bool:
        """Whether pods of the class need each other on a node, and none is there yet."""
        pod_class = self.problem.table.classes[number]
        return pod_class.has_affinity and bool(self._find_near(number).all()) and len(self.free) > 1

    def _put(self, number: int, given: Ints) -> None:
        nodes = np.flatnonzero(given)
        pods = given[nodes]
        self.free[nodes] -= pods[:, None] * self.problem.requests[number]
        self.placed += [(node, number, many) for node, many in zip(nodes.tolist(), pods.tolist(), strict=True)]
        for index in self._signatures.get(number, ()):
            spread = self.groups.spreads[index]
            if spread.is_over_nodes:
                self._on_node[index, nodes] += pods
            else:
                inside = self._domain_of[nodes] >= 0
                np.add.at(self._in_domain[index], self._domain_of[nodes[inside]], pods[inside])
        label_group = self.relations.label_group_of[number]
        if label_group not in self._present:
            self._present[label_group] = np.zeros(len(self.free), dtype=np.bool_)
        self._present[label_group][nodes] = True


def _limit_sum(room: Ints, most: int) -> Ints:
    """The same room in order, as long as its sum is within the limit."""
    before = np.cumsum(room) - room
    found: Ints = np.clip(most - before, 0, room)
    return found
