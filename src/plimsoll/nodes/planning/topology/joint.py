"""Plans all pods at once where rules between pods count pods of many classes: quotas and caps first, then one packing.

Decided once for a whole topology group: the share of each zone (`domain_shares`), what goes on a node together
(`companies`), and what a node takes at most: one pod of a set that keeps apart, `maxSkew` pods that a spread over nodes
counts. What is left then is a packing problem without rules between pods. Pods of different labels that take and may
use the same are one kind there, so its size depends on sizes of pods, not on labels and selectors.

A spread over nodes counts, among the new nodes, only pods that are spread over nodes themselves: they can be scheduled
first. Pods that other rules bind come next, the rest last.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from plimsoll.nodes.model.node_labels import HOSTNAME
from plimsoll.nodes.planning.problem.placement import NodeBatch, Placement, merge_pods
from plimsoll.nodes.planning.topology.companies import merge_companies
from plimsoll.nodes.planning.topology.domain_shares import DomainLevels
from plimsoll.nodes.planning.topology.greedy import fill_existing
from plimsoll.nodes.planning.topology.groups import TopologyGroups
from plimsoll.solver.pack import pack_with_keys
from plimsoll.solver.problem import UNBOUNDED, PackingProblem

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from plimsoll.nodes.planning.packing.binpacking import PackingOptions
    from plimsoll.nodes.planning.packing.pod_relations import PodRelations
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.problem import BinPattern, Flags, Floats, Ints

_WORK: Final = 4_000
"""From this number of classes with rules times options on, classes are planned jointly."""


def is_worthwhile(problem: ScaleUpProblem, demand: Mapping[int, int], usable: Flags) -> bool:
    """Whether planning class by class would be too much work."""
    bound = sum(problem.table.classes[number].scheduling_key.has_pod_constraints for number in demand)
    return bound * int(usable.sum()) >= _WORK


def place_jointly(
    problem: ScaleUpProblem, relations: PodRelations, demand: Mapping[int, int], packing: PackingOptions
) -> Placement | None:
    """A placement on existing and new nodes; None if the rules are not among those that can be planned jointly."""
    rules = _JointRules.read(problem, relations, demand)
    standing = None if rules is None else fill_existing(problem, relations, demand, packing.usable)
    domains = None if rules is None else _Domains.build(rules, packing.usable)
    if rules is None or standing is None or domains is None or not domains.count_standing(rules, standing):
        return None
    placed = standing.count_placed(len(problem.table))
    left = {number: pods - int(placed[number]) for number, pods in demand.items() if pods > placed[number]}
    items = _build_items(rules, left, packing.usable, domains)
    if items is None:
        return None
    placement = standing
    for part in _split_by_domain(rules, items, packing.usable, domains):
        placement = _pack(problem, part, replace(packing, usable=part.usable), placement)
    return placement


# ---- which rules there are


@dataclass(frozen=True, slots=True, kw_only=True)
class _JointRules:
    """The rules of the classes, as far as they are planned jointly."""

    problem: ScaleUpProblem
    relations: PodRelations
    groups: TopologyGroups
    key: str
    """The topology key that pods are spread over, beside nodes; empty if there is none."""

    @classmethod
    def read(cls, problem: ScaleUpProblem, relations: PodRelations, demand: Mapping[int, int]) -> _JointRules | None:
        groups = TopologyGroups.build(problem, relations, list(demand))
        keys = sorted({spread.key for spread in groups.spreads} - {HOSTNAME})
        if len(keys) > 1 or len({option.tier for option in problem.options}) > 1:
            return None
        found = cls(problem=problem, relations=relations, groups=groups, key=keys[0] if keys else "")
        return found if all(found._is_regular(number) for number in demand) else None

    def _is_regular(self, number: int) -> bool:
        pod_class = self.problem.table.classes[number]
        if pod_class.scheduling_key.ports or pod_class.has_volumes:
            return False
        label_group = self.relations.label_group_of[number]
        avoided = self.relations.avoided[label_group]
        if avoided and (
            not self.relations.find_clique(label_group)
            or {key for keys in avoided.values() for key in keys} != {HOSTNAME}
        ):
            return False
        spreads = self.problem.table.classes[number].scheduling_key.spread
        return not pod_class.has_affinity or not (spreads or avoided)


# ---- items


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Item:
    """Pods of one class, or a company, that take and may use the same as any other item of their kind."""

    content: Mapping[int, int]
    """Pods by class of one item."""
    count: int
    domain: int
    """The index of the zone, -1 if it is free."""


@dataclass(slots=True, kw_only=True, eq=False)
class _Items:
    """All items by kind. A kind is (what one takes, its options, its keys, what it counts as), and its domain."""

    kinds: dict[tuple[Any, ...], list[_Item]] = field(default_factory=dict)

    def add(self, kind: tuple[Any, ...], item: _Item) -> None:
        if item.count:
            self.kinds.setdefault((*kind, item.domain), []).append(item)


def _build_items(rules: _JointRules, demand: Mapping[int, int], usable: Flags, domains: _Domains) -> _Items | None:
    problem = rules.problem
    together = {
        number: pods
        for number, pods in demand.items()
        if number in rules.groups.with_affinity and not problem.rules.get_affinity_counts(number).targets.any()
    }
    companies = merge_companies(problem, rules.relations, together, usable, planned=demand.keys())
    if companies is None:
        return None
    items = _Items()
    for company in companies:
        numbers = list(company.content)
        total = np.array(list(company.content.values()), dtype=np.int64) @ problem.requests[numbers]
        domain = domains.choose(company.content, company.options, total)
        items.add(
            (tuple(total.tolist()), company.options.tobytes(), (), ()),
            _Item(content=company.content, count=1, domain=domain),
        )
    options_of = np.ascontiguousarray((problem.allowed & usable[:, None]).T)
    for number in _sort_by_phase(rules, [number for number in demand if number not in rules.groups.with_affinity]):
        kind = (
            tuple(problem.requests[number].tolist()),
            options_of[number].tobytes(),
            *_find_node_terms(rules, number),
        )
        for domain, pods in domains.distribute(number, demand[number]):
            items.add(kind, _Item(content={number: 1}, count=pods, domain=domain))
    return items if domains.is_even() else None


def _sort_by_phase(rules: _JointRules, numbers: Iterable[int]) -> list[int]:
    """Pods that are spread over nodes first, then other pods with rules, then the rest; the large ones first."""
    classes = rules.problem.table.classes
    over_nodes = {owner for spread in rules.groups.spreads if spread.is_over_nodes for owner in spread.owners}
    largest = np.maximum(rules.problem.capacity.max(axis=0, initial=1), 1)
    sizes = np.round((rules.problem.requests / largest).max(axis=1), 9)
    return sorted(
        numbers,
        key=lambda number: (
            number not in over_nodes,
            not classes[number].scheduling_key.has_pod_constraints,
            -sizes[number],
            number,
        ),
    )


def _find_node_terms(rules: _JointRules, number: int) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """What a node takes once (keys), and the spreads over nodes that count the class (their numbers)."""
    label_group = rules.relations.label_group_of[number]
    keys: tuple[str, ...] = ()
    if clique := rules.relations.find_clique(label_group):
        keys = (f"apart {min(clique)}",)
    over_nodes = [(index, spread) for index, spread in enumerate(rules.groups.spreads) if spread.is_over_nodes]
    if not any(number in spread.owners for _, spread in over_nodes):
        return keys, ()
    counting = [(index, spread) for index, spread in over_nodes if number in spread.counted]
    keys += tuple(f"spread {index}" for index, spread in counting if spread.max_skew == 1)
    return keys, tuple(index for index, spread in counting if spread.max_skew > 1)


@dataclass(slots=True, kw_only=True)
class _Domains:
    """The zones that new nodes may be in, and the shares that have been dealt out."""

    problem: ScaleUpProblem
    levels: DomainLevels
    members: Flags
    """[D, T]: the options in each domain."""
    reach: Flags
    """[C, D]: whether some option in a domain takes the class."""
    fixes_all: bool
    """Whether all domains offer the same, so that every pod is given one and each domain is packed alone."""

    @classmethod
    def build(cls, rules: _JointRules, usable: Flags) -> _Domains | None:
        problem = rules.problem
        spreads = tuple(spread for spread in rules.groups.spreads if not spread.is_over_nodes)
        if not rules.key:
            none = np.zeros((0, len(usable)), dtype=np.bool_)
            reach = np.zeros((len(problem.table), 0), dtype=np.bool_)
            return cls(problem=problem, levels=DomainLevels((), ()), members=none, reach=reach, fixes_all=False)
        arrays = problem.option_arrays
        ids = arrays.get_label_ids(rules.key)
        owned = np.zeros(len(usable), dtype=np.bool_)
        for spread in spreads:
            owned |= problem.allowed[:, list(spread.owners)].any(axis=1)
        names = arrays.get_label_values(rules.key)
        used = sorted({int(index) for index in ids[owned & usable].tolist() if index >= 0}, key=lambda i: names[i])
        if not used or any(spread.min_domains > len(used) for spread in spreads):
            return None
        members = np.stack([(ids == index) & usable for index in used])
        levels = DomainLevels(tuple(names[index] for index in used), spreads)
        reach = np.stack([problem.allowed[inside].any(axis=0) for inside in members], axis=1)
        fixes_all = _is_same_offer(problem, members)
        return cls(problem=problem, levels=levels, members=members, reach=reach, fixes_all=fixes_all)

    def count_standing(self, rules: _JointRules, standing: Placement) -> bool:
        """Count the pods on existing nodes; False if a domain exists that cannot be used: it would limit the others."""
        if not rules.key:
            return True
        values = self.problem.arrays.get_label_values(rules.key)
        for index, spread in enumerate(self.levels.spreads):
            there = {values[domain]: int(spread.sample.base[domain]) for domain in np.flatnonzero(spread.sample.exists)}
            if there.keys() - set(self.levels.domains):
                return False
            self.levels.add_running(index, there)
        ids = self.problem.arrays.get_label_ids(rules.key)
        for row, content in standing.existing.items():
            if ids[row] >= 0 and values[ids[row]] in self.levels.domains:
                self.levels.add(self.levels.domains.index(values[ids[row]]), content)
        return True

    def choose(self, content: Mapping[int, int], options: Flags, total: Ints) -> int:
        """The domain of a company: the one with the least volume that has a machine for it; -1 if any will do."""
        if not len(self.members):
            return -1
        able = [index for index, inside in enumerate(self.members) if (inside & options).any()]
        counted = any(self.levels.get_signature(number) for number in content)
        if not able or not (self.fixes_all or counted):
            return -1
        chosen = min(able, key=lambda index: (int(self.levels.volume[index]), index))
        only = np.zeros(len(self.members), dtype=np.bool_)
        only[chosen] = True
        for number, pods in content.items():
            self.levels.distribute(number, pods, only, 0)
        self.levels.volume[chosen] += self._measure(total)
        return chosen

    def distribute(self, number: int, pods: int) -> list[tuple[int, int]]:
        """(domain, pods): domains are fixed for pods that constraints count, and for all if zones are packed alone."""
        if not len(self.members):
            return [(-1, pods)]
        may_use = self.reach[number]
        if not may_use.any() or not (self.fixes_all or self.levels.get_signature(number)):
            return [(-1, pods)]
        given = self.levels.distribute(number, pods, may_use, self._measure(self.problem.requests[number]))
        return [(domain, int(given[domain])) for domain in np.flatnonzero(given).tolist()]

    def _measure(self, amounts: Ints) -> int:
        """The share of the largest machine, in millionths."""
        largest = np.maximum(self.problem.capacity.max(axis=0, initial=1), 1)
        return int((amounts * 1_000_000 // largest).max(initial=0))

    def is_even(self) -> bool:
        return not len(self.members) or self.levels.is_even()


def _is_same_offer(problem: ScaleUpProblem, members: Flags) -> bool:
    """Whether the same machines can be had in all domains at the same price, for the same classes."""
    if not bool(members.any(axis=0).sum() == members.sum()):
        return False
    offers = set()
    prices = problem.planning_prices
    for inside in members:
        rows = [
            (float(prices[index]), problem.capacity[index].tobytes(), problem.allowed[index].tobytes())
            for index in np.flatnonzero(inside).tolist()
        ]
        offers.add(tuple(sorted(rows)))
    return len(offers) == 1


# ---- packing


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Part:
    """Items that are packed together, by kind, and the options that they may use."""

    kinds: tuple[tuple[tuple[Any, ...], list[_Item]], ...]
    usable: Flags
    members: Flags
    """[D, T]"""
    caps: Mapping[int, int]
    """maxSkew of spreads over nodes, by number."""


def _split_by_domain(rules: _JointRules, items: _Items, usable: Flags, domains: _Domains) -> list[_Part]:
    """One part per domain if every item has one; otherwise all in one part."""
    members = domains.members
    caps = {index: spread.max_skew for index, spread in enumerate(rules.groups.spreads)}
    kinds = list(items.kinds.items())
    if not len(members) or any(kind[-1] < 0 for kind, _ in kinds):
        return [_Part(kinds=tuple(kinds), usable=usable, members=members, caps=caps)]
    return [
        _Part(
            kinds=tuple((kind, listed) for kind, listed in kinds if kind[-1] == domain),
            usable=inside,
            members=members,
            caps=caps,
        )
        for domain, inside in enumerate(members)
    ]


def _pack(problem: ScaleUpProblem, part: _Part, packing: PackingOptions, onto: Placement) -> Placement:
    types = np.flatnonzero(packing.usable)
    if not len(types) or not part.kinds:
        return onto
    found = pack_with_keys(_build_packing_problem(problem, part, types, onto), packing.effort)
    dealer = _Dealer([listed for _, listed in part.kinds])
    batches = [batch for pattern in found.packing.patterns for batch in dealer.fill(pattern, int(types[pattern.type]))]
    values = _compute_class_values(part, found.item_values)
    return replace(onto, batches=(*onto.batches, *batches), item_values={**values, **onto.item_values})


def _build_packing_problem(problem: ScaleUpProblem, part: _Part, types: Ints, onto: Placement) -> PackingProblem:
    kinds = [kind for kind, _ in part.kinds]
    capped = sorted({index for _, _, _, counted, _ in kinds for index in counted})
    requests = np.array([takes for takes, *_ in kinds], dtype=np.int64).reshape(len(kinds), -1)
    counted = np.array(
        [[int(index in counted) for index in capped] for _, _, _, counted, _ in kinds], dtype=np.int64
    ).reshape(len(kinds), len(capped))
    most = np.tile(np.array([part.caps[index] for index in capped], dtype=np.int64), (len(types), 1))
    keys = sorted({key for _, _, own, _, _ in kinds for key in own})
    number_of = {key: index for index, key in enumerate(keys)}
    exclusive = np.zeros((len(kinds), len(keys)), dtype=np.bool_)
    for row, (_, _, own, _, _) in enumerate(kinds):
        exclusive[row, [number_of[key] for key in own]] = True
    allowed = np.stack(
        [
            np.frombuffer(options, dtype=np.bool_) & (part.members[domain] if domain >= 0 else True)
            for _, options, _, _, domain in kinds
        ],
        axis=1,
    )
    return PackingProblem(
        requests=np.hstack((requests, counted)),
        counts=np.array([sum(item.count for item in listed) for _, listed in part.kinds], dtype=np.int64),
        capacity=np.hstack((problem.capacity[types], most)),
        price=problem.planning_prices[types],
        allowed=allowed[types],
        per_bin=np.full(len(kinds), UNBOUNDED, dtype=np.int64),
        exclusive=exclusive,
        available=np.minimum(problem.available - onto.count_new_nodes(len(problem.options)), UNBOUNDED)[types],
        use=problem.limits.use[types],
        room=onto.compute_room_left(problem),
    )


def _compute_class_values(part: _Part, item_values: Floats) -> dict[int, float]:
    """The dual value of a pod per class; companies have none of their own."""
    found: dict[int, float] = {}
    for (_, listed), value in zip(part.kinds, item_values.tolist(), strict=True):
        for item in listed:
            pods = sum(item.content.values())
            found |= dict.fromkeys(item.content, value / pods)
    return found


class _Dealer:
    """Turns packed kinds back into pods of classes: the items of a kind are interchangeable."""

    def __init__(self, kinds: Sequence[Sequence[_Item]]) -> None:
        self._waiting = [deque(listed) for listed in kinds]

    def fill(self, pattern: BinPattern, option: int) -> list[NodeBatch]:
        """Equal bins stay one batch as long as the same classes fill them."""
        batches: list[NodeBatch] = []
        left = pattern.bins
        while left:
            nodes = left
            for kind, items in zip(pattern.classes, pattern.items, strict=True):
                nodes = max(1, min(nodes, self._waiting[kind][0].count // items))
            content: dict[int, int] = {}
            for kind, items in zip(pattern.classes, pattern.items, strict=True):
                for number, pods in self._take(kind, items, nodes).items():
                    content[number] = content.get(number, 0) + pods
            batches.append(NodeBatch(option=option, nodes=nodes, content=merge_pods(content, {})))
            left -= nodes
        return batches

    def _take(self, kind: int, items: int, nodes: int) -> dict[int, int]:
        """Pods per node of so many items on each of the nodes."""
        found: dict[int, int] = {}
        waiting = self._waiting[kind]
        while items:
            head = waiting[0]
            step = min(items, head.count // nodes)
            for number, pods in head.content.items():
                found[number] = found.get(number, 0) + pods * step
            items -= step
            if head.count > step * nodes:
                waiting[0] = replace(head, count=head.count - step * nodes)
            else:
                waiting.popleft()
        return found
