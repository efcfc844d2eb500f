"""The expanders of Cluster Autoscaler: a chain of filters that choose the group to scale up.

Each filter keeps the best of its input; remaining ties are broken by a seeded choice, so that the same input always
gives the same plan. The optimal planner needs no expander.

The `grpc` expander calls an external server, which planning itself never does: without an answer the chain raises
`Unanswered`, and the caller asks the server and plans again. Answers are data, so a plan can be replayed.
"""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from plimsoll.core.resources import CPU, MEMORY, ResourceVector
from plimsoll.nodes.config.expander_priorities import compile_pattern
from plimsoll.nodes.model.prices import estimate_price

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from plimsoll.nodes.model.scale_up_plan import ScaleUpOption
    from plimsoll.objects.api.pods import Pod


MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpanderOption:
    """The scale-up of one group by a number of nodes, and the pods that it helps."""

    scale_up_option: ScaleUpOption
    nodes: int
    pods: int
    requests: ResourceVector
    """The sum of the requests of the helped pods."""
    gpus: int = 0
    """The GPUs of one node."""
    scheduled_pods: tuple[tuple[Pod, int], ...] = ()
    """One pod per helped class, and the number of helped pods of the class."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpanderContext:
    """The input of the filters besides the options."""

    cluster_nodes: int = 0
    priorities: Mapping[int, Sequence[str]] = field(default_factory=dict)
    """The configuration of the priority expander: number to patterns; the highest number wins."""
    seed: str = ""
    """Empty: derived from the groups."""
    answers: Mapping[str, Sequence[str]] | None = None
    """Answers of the external expander: groups by `build_request_key`. None: there is no external expander."""


class Unanswered(Exception):
    """The chain reached the external expander, which has not answered for these options: ask it and plan again."""

    def __init__(self, options: Sequence[ExpanderOption]) -> None:
        super().__init__(f"the external expander has not been asked to choose among {len(options)} groups")
        self.options = tuple(options)


def choose(options: Sequence[ExpanderOption], chain: Sequence[str], context: ExpanderContext) -> ExpanderOption | None:
    """The option that the chain chooses; None if there are no options."""
    left = list(options)
    for name in chain:
        if len(left) > 1:
            left = FILTERS[name](left, context)
    return _choose_by_seed(left, context) if left else None


def prefer_most_pods(options: Sequence[ExpanderOption], _context: ExpanderContext) -> list[ExpanderOption]:
    best = max(option.pods for option in options)
    return [option for option in options if option.pods == best]


def prefer_least_nodes(options: Sequence[ExpanderOption], _context: ExpanderContext) -> list[ExpanderOption]:
    best = min(option.nodes for option in options)
    return [option for option in options if option.nodes == best]


def prefer_least_waste(options: Sequence[ExpanderOption], _context: ExpanderContext) -> list[ExpanderOption]:
    return _filter_lowest(options, [_compute_waste(option) for option in options])


def prefer_lowest_price_score(options: Sequence[ExpanderOption], context: ExpanderContext) -> list[ExpanderOption]:
    """The price expander: price per requested resource, preferring nodes of a size that suits the cluster."""
    return _filter_lowest(
        options, [compute_price_score(option, cluster_nodes=context.cluster_nodes) for option in options]
    )


def prefer_highest_priority(options: Sequence[ExpanderOption], context: ExpanderContext) -> list[ExpanderOption]:
    """Options that match the highest priority with any match; all options if nothing is configured or matches."""
    for number in sorted(context.priorities, reverse=True):
        patterns = [compile_pattern(text) for text in context.priorities[number]]
        if met := [
            option for option in options if any(pattern.search(option.scale_up_option.group) for pattern in patterns)
        ]:
            return met
    return list(options)


def keep_all(options: Sequence[ExpanderOption], _context: ExpanderContext) -> list[ExpanderOption]:
    """The `random` expander: the seeded choice at the end of every chain does the rest."""
    return list(options)


def prefer_least_cost(options: Sequence[ExpanderOption], _context: ExpanderContext) -> list[ExpanderOption]:
    """The `cost` expander if one group is scaled up at a time: price per pod helped."""
    return _filter_lowest(
        options, [option.nodes * option.scale_up_option.planning_price / max(option.pods, 1) for option in options]
    )


def filter_by_grpc(options: Sequence[ExpanderOption], context: ExpanderContext) -> list[ExpanderOption]:
    """The options that the external expander named; all options if it named none or does not exist."""
    if context.answers is None:
        return list(options)
    named = context.answers.get(build_request_key(options))
    if named is None:
        raise Unanswered(options)
    return [option for option in options if option.scale_up_option.group in named] or list(options)


def build_request_key(options: Sequence[ExpanderOption]) -> str:
    """A key that identifies a set of options."""
    rows = sorted((option.scale_up_option.group, option.nodes, option.pods) for option in options)
    return hashlib.sha256(repr(rows).encode()).hexdigest()


FILTERS: Final[Mapping[str, Callable[[Sequence[ExpanderOption], ExpanderContext], list[ExpanderOption]]]] = {
    "random": keep_all,
    "most-pods": prefer_most_pods,
    "least-waste": prefer_least_waste,
    "least-nodes": prefer_least_nodes,
    "price": prefer_lowest_price_score,
    "priority": prefer_highest_priority,
    "cost": prefer_least_cost,
    "grpc": filter_by_grpc,
}


def compute_price_score(option: ExpanderOption, *, cluster_nodes: int) -> float:
    """Compute unfit' x (C + S) / (T + S), doubled for a new group; the lowest wins (docs/design/nodes.md 6.7)."""
    cost = option.scale_up_option.price_per_hour * option.nodes
    small_pod = estimate_price(ResourceVector({CPU: 500, MEMORY: 500 * MIB}))
    score = (
        _compute_unfitness(option, cluster_nodes) * (cost + small_pod) / (estimate_price(option.requests) + small_pod)
    )
    return score if option.scale_up_option.exists else 2 * score


_GPU_UNFIT: Final = 1000.0
_PREFERRED_CORES: Final = ((2, 1), (6, 2), (20, 4), (60, 8), (200, 16))
_MOST_PREFERRED_CORES: Final = 32


def _compute_unfitness(option: ExpanderOption, cluster_nodes: int) -> float:
    if option.gpus:
        return _GPU_UNFIT
    preferred = next((cores for most, cores in _PREFERRED_CORES if cluster_nodes <= most), _MOST_PREFERRED_CORES)
    cores = max(option.scale_up_option.capacity[CPU], 1) / 1000
    unfit = max(preferred / cores, cores / preferred)
    return (unfit - 1) * (1 - math.tanh((option.nodes - 1) / 15)) + 1


def _compute_waste(option: ExpanderOption) -> float:
    wasted = 0.0
    for name in (CPU, MEMORY):
        there = option.scale_up_option.capacity[name] * option.nodes
        wasted += (there - option.requests[name]) / there if there else 0.0
    return wasted


def _filter_lowest(options: Sequence[ExpanderOption], scores: Sequence[float]) -> list[ExpanderOption]:
    # Rounded, so that equal options stay equal whatever the order of additions.
    rounded = [round(score, 9) for score in scores]
    best = min(rounded)
    return [option for option, score in zip(options, rounded, strict=True) if score == best]


def _choose_by_seed(options: Sequence[ExpanderOption], context: ExpanderContext) -> ExpanderOption:
    """One of equal options, by a hash of the seed and the groups, so that no group is preferred by name."""
    ids = sorted(option.scale_up_option.group for option in options)
    seed = context.seed or ",".join(ids)
    drawn = {group: hashlib.sha256(f"{seed}\0{group}".encode()).digest() for group in ids}
    return min(options, key=lambda option: (drawn[option.scale_up_option.group], option.scale_up_option.group))
