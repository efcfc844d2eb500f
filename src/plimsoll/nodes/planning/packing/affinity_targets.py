"""Keeps room on nodes beside pods that other pods require by affinity.

Affinity targets are placed before the pods that need them, and are packed tightly, so that often no room is left beside
them. If that leaves pods unscheduled, `place_with_affinity_targets` plans anew: as many targets as needed, each with
room for its share of the dependent pods; then the dependent pods; then all others. Pods placed before stay.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from plimsoll.nodes.model.node_labels import HOSTNAME
from plimsoll.nodes.planning.packing.place import place
from plimsoll.nodes.planning.packing.pod_by_pod import PlacementRequest, improve_placement, score
from plimsoll.solver.problem import UNBOUNDED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from plimsoll.nodes.planning.packing.binpacking import PackingOptions
    from plimsoll.nodes.planning.packing.pod_relations import PodRelations
    from plimsoll.nodes.planning.problem.placement import Placement
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.solver.problem import Ints


@dataclass(frozen=True, slots=True, kw_only=True)
class _Party:
    """So many hosts of one class, each with room for so many guests of others."""

    host: int
    hosts: int
    beside: Mapping[int, int]
    """Guests by class beside each host."""


def place_with_affinity_targets(
    problem: ScaleUpProblem,
    relations: PodRelations,
    request: tuple[Ints, Placement | None, PackingOptions],
    placement: Placement,
) -> Placement:
    """The draft, or one that helps more pods; `request`: demand [C], on top of what, by which means."""
    demand, onto, packing = request
    before = np.zeros_like(demand) if onto is None else onto.placed(len(demand))
    missing = demand + before - placement.placed(len(demand))
    best = placement
    for label_group in _label_groups(problem, relations, demand, missing):
        tried = _placed(problem, relations, (demand, onto, packing), label_group)
        if score(problem, tried) > score(problem, best):
            best = tried
    return improve_placement(
        PlacementRequest(problem=problem, relations=relations, demand=demand, onto=onto, packing=packing), best
    )


def _label_groups(problem: ScaleUpProblem, relations: PodRelations, demand: Ints, missing: Ints) -> Iterator[_Party]:
    """For hosts whose guests are left over: as few of them as can be with all guests beside them, and as many."""
    guests = [number for number in np.flatnonzero(demand > 0).tolist() if _is_guest(problem, number)]
    for host in np.flatnonzero(demand > 0).tolist() if missing[guests].any() else ():
        label_group = relations.label_group_of[host]
        ours = [
            guest
            for guest in guests
            if label_group in relations.affinity_targets[relations.label_group_of[guest]] and guest != host
        ]
        if not missing[ours].any() or label_group in {relations.label_group_of[our] for our in ours}:
            continue
        spaces = _spaces(problem, host, ours)
        most = int(demand[host])
        few, many = 1, most
        while few < many:
            middle = (few + many) // 2
            few, many = (few, middle) if _fits(problem, spaces, _shares(demand, ours, middle)) else (middle + 1, many)
        for hosts in sorted({few, most}):
            beside = _shares(demand, ours, hosts)
            if _fits(problem, spaces, beside):
                yield _Party(host=host, hosts=hosts, beside=beside)
        if len(ours) == 1 and (each := _most_beside(problem, spaces, ours[0])):
            yield _Party(host=host, hosts=min(most, -(-int(demand[ours[0]]) // each)), beside={ours[0]: each})


def _is_guest(problem: ScaleUpProblem, number: int) -> bool:
    one = problem.table.classes[number]
    return one.problem is None and one.has_affinity and HOSTNAME in problem.rules.affinity_counts(number).affinity_keys


def _shares(demand: Ints, guests: Sequence[int], hosts: int) -> dict[int, int]:
    return {guest: -(-int(demand[guest]) // hosts) for guest in guests}


def _spaces(problem: ScaleUpProblem, host: int, guests: Sequence[int]) -> Ints:
    """[S, R]: what nodes that take host and guests have beside one host, those that stand and those that could be."""
    classes = [host, *guests]
    rows = np.logical_and.reduce(
        [problem.rules.node_predicates.fits(pod_class, problem.arrays.free, {}) for pod_class in classes]
    )
    options = problem.allowed[:, classes].all(axis=1)
    found: Ints = np.concatenate((problem.capacity[options], problem.free[rows])) - problem.requests[host]
    return found


def _fits(problem: ScaleUpProblem, spaces: Ints, beside: Mapping[int, int]) -> bool:
    request = sum((problem.requests[guest] * pods for guest, pods in beside.items()), start=np.zeros(1, dtype=np.int64))
    return bool((spaces >= request).all(axis=1).any())


def _most_beside(problem: ScaleUpProblem, spaces: Ints, guest: int) -> int:
    """How many guests the largest node has room for."""
    request = problem.requests[guest] > 0
    beside = (spaces[:, request] // problem.requests[guest][request]).min(axis=1, initial=UNBOUNDED)
    return min(max(int(beside.max(initial=0)), 0), UNBOUNDED)


def _placed(
    problem: ScaleUpProblem,
    relations: PodRelations,
    request: tuple[Ints, Placement | None, PackingOptions],
    label_group: _Party,
) -> Placement:
    demand, onto, packing = request
    requests = problem.requests.copy()
    hosts, guests = np.zeros_like(demand), np.zeros_like(demand)
    hosts[label_group.host] = label_group.hosts
    for guest, pods in label_group.beside.items():
        requests[label_group.host] += problem.requests[guest] * pods
        guests[guest] = demand[guest]
    placement = place(replace(problem, requests=requests), relations, hosts, packing, onto)
    placement = place(problem, relations, guests, packing, placement)
    rest = demand - hosts - guests
    return place(problem, relations, rest, packing, placement) if rest.any() else placement
