"""Builds the plan from a finished placement: scale-ups, pods on existing nodes, unschedulable pods, cost and bound.

The lower bound is what the pods on new nodes cost at least. It drops rules and never adds any: it knows what a single
node takes (resources, its own rules, host ports, anti-affinity on a node), but not zones, affinity, group sizes and
limits. The dual values of the packing are tried first, because they give a bound quickly.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.gpus import count_gpus
from plimsoll.nodes.model.node_labels import HOSTNAME
from plimsoll.nodes.model.reasons import NOT_WHOLE
from plimsoll.nodes.model.scale_up_plan import GroupScaleUp, Result, ScaleUpPlan, UnschedulablePods
from plimsoll.nodes.planning.explain.missing_zones import MissingZones
from plimsoll.nodes.planning.explain.new_groups import explain_new_group, explain_new_labels
from plimsoll.nodes.planning.explain.offered_labels import OfferedLabels
from plimsoll.nodes.planning.explain.unschedulable import explain_unschedulable
from plimsoll.nodes.planning.problem.pod_names import build_scale_up, name_pods
from plimsoll.solver.bounds.lower_bound import PROVING, compute_lower_bound
from plimsoll.solver.bounds.relaxation import merge_equal_classes
from plimsoll.solver.column_generation.proven_bound import bound_from_values, prove_bound
from plimsoll.solver.problem import UNBOUNDED, PackingProblem

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.planning.problem.placement import Placement
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.nodes.planning.problem.scheduled_pods import PartialPlacement, ScheduledPods
    from plimsoll.solver.problem import Effort, Flags, Ints


def build_plan(problem: ScaleUpProblem, scheduled: ScheduledPods, *, usable: Flags, effort: Effort) -> ScaleUpPlan:
    """Names, cost and reasons for a placement; `usable` are the options that were not left out."""
    placement = scheduled.placement
    named = name_pods(problem, scheduled)
    missing_zones = MissingZones(problem, placement)
    scale_ups = tuple(
        build_scale_up(
            problem,
            option,
            patterns,
            because=(
                *(() if problem.options[option].exists else explain_new_group(problem, placement, option)),
                *explain_new_labels(problem, option),
                *missing_zones.explain_scale_up(option),
            ),
        )
        for option, patterns in sorted(named.patterns.items(), key=lambda entry: _has_accelerators(problem, entry[0]))
    )
    unschedulable = _explain_unschedulable(problem, scheduled, usable)
    cost = sum(scale_up.added * scale_up.option.price_per_hour for scale_up in scale_ups)
    return ScaleUpPlan(
        result=_classify_result(scale_ups, unschedulable),
        scale_ups=scale_ups,
        existing=named.existing,
        scheduled=sum(scheduled.pods),
        unschedulable=unschedulable,
        cost_per_hour=round(cost, 9),
        lower_bound_per_hour=round(min(cost, compute_cost_bound(problem, placement, effort, cost)), 9),
        label_sets=problem.option_set.label_sets,
        skipped_groups=problem.option_set.skipped_groups,
        budgets={"rounds": effort.rounds, "valueVectors": effort.value_vectors, "cells": effort.cells},
    )


def _has_accelerators(problem: ScaleUpProblem, option: int) -> bool:
    """Such nodes are added last: pods that could run anywhere find other nodes before them."""
    return count_gpus(problem.options[option].capacity) > 0


def _classify_result(scale_ups: Sequence[GroupScaleUp], unschedulable: Sequence[UnschedulablePods]) -> Result:
    if scale_ups:
        return Result.NEEDED
    return Result.NO_OPTIONS if unschedulable else Result.NOT_NEEDED


def _explain_unschedulable(
    problem: ScaleUpProblem, scheduled: ScheduledPods, usable: Flags
) -> tuple[UnschedulablePods, ...]:
    """The unschedulable pods, grouped by their reasons."""
    found: dict[tuple[str, ...], tuple[tuple[Reason, ...], dict[str, int]]] = {}
    known: dict[tuple[int, int], tuple[Reason, ...]] = {}
    offered = OfferedLabels(problem)
    for index, pending in enumerate(problem.table.pending):
        left = pending.count - scheduled.pods[index]
        if left:
            number = int(problem.table.class_of[index])
            nearest = scheduled.tries.get(index)
            key = (number, -1 if nearest is None else id(nearest))
            if key not in known:
                known[key] = _explain(problem, scheduled, number, nearest, usable, offered)
            reasons = known[key]
            found.setdefault(tuple(map(str, reasons)), (reasons, {}))[1][pending.key] = left
    return tuple(
        UnschedulablePods(pods=sum(keys.values()), keys=keys, reasons=reasons) for reasons, keys in found.values()
    )


def _explain(
    problem: ScaleUpProblem,
    scheduled: ScheduledPods,
    number: int,
    nearest: PartialPlacement | None,
    usable: Flags,
    offered: OfferedLabels,
) -> tuple[Reason, ...]:
    """The reasons of a class outside bundles, or of one in a bundle with its closest attempt."""
    if nearest is not None:
        return _explain_bundle(problem, nearest, number, usable, offered)
    waits = scheduled.waits.get(number)
    return explain_unschedulable(problem, scheduled.placement, number, usable, offered) if waits is None else (waits,)


def _explain_bundle(
    problem: ScaleUpProblem, nearest: PartialPlacement, number: int, usable: Flags, offered: OfferedLabels
) -> tuple[Reason, ...]:
    """The reasons of pods in a bundle: how many of its pods fit and, for classes that do not fit, what they lack."""
    message = f"{nearest.placed} of {nearest.pods} pods fit, and all are wanted or none"
    facts = {"fit": nearest.placed, "pods": nearest.pods}
    reasons = [Reason(code=NOT_WHOLE, message=message, facts=facts)]
    if number in nearest.short:
        reasons += explain_unschedulable(problem, nearest.placement, number, usable, offered)
    return tuple({(reason.code, reason.message): reason for reason in reasons}.values())


MANY_RULES: Final = 20_000
"""From this number of classes with rules times options on, the quickest bound is taken."""
_APART: Final = 200
"""The number of classes with anti-affinity to themselves that are compared with each other."""


def compute_cost_bound(problem: ScaleUpProblem, placement: Placement, effort: Effort, cost: float) -> float:
    """A lower bound for the cost of these pods. It is not improved once it proves the cost good enough."""
    counts = placement.count_on_new_nodes(len(problem.table))
    chosen = np.flatnonzero(counts)
    if not len(chosen):
        return 0.0
    types = len(problem.options)
    apart = [number for number in chosen.tolist() if _keeps_apart(problem, number)]
    packing_problem = PackingProblem(
        requests=problem.requests[chosen],
        counts=counts[chosen],
        capacity=problem.capacity,
        price=problem.prices,
        allowed=problem.allowed[:, chosen],
        per_bin=np.where(np.isin(chosen, apart), 1, UNBOUNDED),
        exclusive=_find_exclusive_keys(problem, chosen, apart),
        available=np.full(types, UNBOUNDED, dtype=np.int64),
        use=np.zeros((types, 0), dtype=np.int64),
        room=np.zeros(0, dtype=np.int64),
    )
    bound_by_rules = sum(problem.table.classes[number].scheduling_key.has_pod_constraints for number in chosen.tolist())
    # Where keys bind, the program behind a finer bound takes longer than the plan, and hardly improves it.
    is_large = bound_by_rules * types >= MANY_RULES and effort.rounds < PROVING
    enough = 0.0 if is_large else cost / (1 + effort.gap)
    item_values = np.array([placement.item_values.get(number, 0.0) for number in chosen.tolist()])
    packing_problem, item_values = merge_equal_classes(packing_problem, item_values)
    bound = bound_from_values(packing_problem, item_values) if item_values.any() else 0.0
    if bound < enough or is_large:
        bound = max(bound, compute_lower_bound(packing_problem, effort=effort, enough=enough))
    if effort.rounds < PROVING or bound >= enough:
        return bound
    return prove_bound(packing_problem, effort, known=bound, enough=enough)


def _keeps_apart(problem: ScaleUpProblem, number: int) -> bool:
    """Whether no node takes two pods of the class, because of anti-affinity, a port, a disk or a claim."""
    pods = problem.table.classes[number]
    if pods.has_anti_affinity and _repels(problem, number, number):
        return True
    return bool(pods.scheduling_key.ports or pods.volumes) and problem.option_rules.node_predicates.excludes_itself(
        number
    )


def _repels(problem: ScaleUpProblem, first: int, other: int) -> bool:
    """Whether pods of these classes never share a node; the anti-affinity of either is enough."""
    classes, namespaces = problem.table.classes, problem.snapshot.view.namespaces
    terms = problem.rules.get_affinity_terms
    return HOSTNAME in (
        *terms(first).collect_anti_affinity_keys(classes[other].pod, namespaces),
        *terms(other).collect_anti_affinity_keys(classes[first].pod, namespaces),
    )


def _find_exclusive_keys(problem: ScaleUpProblem, chosen: Ints, apart: list[int]) -> Flags:
    """[C, K]: sets of classes of which a node takes one pod in all: each avoids itself and all others."""
    cliques: list[list[int]] = []
    avoiding = [number for number in apart if problem.table.classes[number].has_anti_affinity]
    for number in avoiding[:_APART]:
        if not _repels(problem, number, number):
            continue
        joined = next((clique for clique in cliques if all(_repels(problem, number, other) for other in clique)), None)
        if joined is None:
            cliques.append([number])
        else:
            joined.append(number)
    keys = [np.isin(chosen, clique) for clique in cliques if len(clique) > 1]
    return np.stack(keys, axis=1) if keys else np.zeros((len(chosen), 0), dtype=np.bool_)
