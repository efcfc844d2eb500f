"""Why pods are unschedulable: the obstacles, grouped by node group, in few sentences. Pure.

Obstacles set by other pods (affinity, anti-affinity, spread) are found with the reference rules: they check one more
pod in the cluster after the placement, on one more empty node of some options and on some planned nodes. A large
placement is checked in part: one node per batch, with one pod per class, which suffices for affinity and anti-affinity.
Only messages depend on this, and whether a later loop may help; no pod is placed by it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.node_templates import build_planned_node
from plimsoll.nodes.model.reasons import MAX_SIZE_REACHED
from plimsoll.nodes.planning.explain.missing_zones import MissingZones
from plimsoll.nodes.planning.explain.next_machines import explain_next_machines
from plimsoll.nodes.planning.explain.rejections import LISTED, NAMED, explain_rejections, shorten_names
from plimsoll.scheduling import DEFAULT_PROFILE
from plimsoll.scheduling.cluster_view import NodeState, PlacedPod
from plimsoll.scheduling.feasibility import prepare_pod
from plimsoll.scheduling.rules.inter_pod_affinity import INTER_POD_AFFINITY
from plimsoll.scheduling.rules.topology_spread import TOPOLOGY_SPREAD

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from plimsoll.nodes.planning.explain.offered_labels import OfferedLabels
    from plimsoll.nodes.planning.problem.placement import Placement
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.nodes.planning.state.resource_limits import ResourceLimit
    from plimsoll.scheduling.cluster_view import ClusterView
    from plimsoll.scheduling.verdicts import Refusal
    from plimsoll.solver.problem import Flags


MOST_EXPLAINED: Final = 8
"""The number of options, and of planned nodes, that are checked."""
_WHOLE: Final = 1_000
"""Placements up to this number of pods are checked in full."""


def may_interact(problem: ScaleUpProblem, number: int) -> bool:
    """Whether other pods can keep such a pod off a node."""
    table = problem.table
    return (
        not table.classes[number].is_simple
        or problem.snapshot.view.has_anti_affinity
        or any(pod_class.has_anti_affinity for pod_class in table)
    )


def find_rejections_on_new_nodes(
    problem: ScaleUpProblem, placement: Placement, number: int, options: Sequence[int]
) -> Iterator[tuple[int, tuple[Refusal, ...]]]:
    """(option, refusals) for one more empty node of each of the first options; no refusals if the pod fits."""
    filled = _Filled.from_placement(problem, placement)
    for option in options[:MOST_EXPLAINED]:
        yield option, filled.find_refusals(number, filled.build_empty_node(option))


def find_rejections_on_planned_nodes(
    problem: ScaleUpProblem, placement: Placement, number: int
) -> Iterator[tuple[int, tuple[Refusal, ...]]]:
    """(option, refusals) for planned nodes that only other pods keep the pod off."""
    filled = _Filled.from_placement(problem, placement)
    for option, place in filled.planned[:MOST_EXPLAINED]:
        refusals = filled.find_refusals(number, place)
        if refusals and all(refusal.plugin in {INTER_POD_AFFINITY, TOPOLOGY_SPREAD} for refusal in refusals):
            yield option, refusals


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filled:
    """The cluster after the placement."""

    problem: ScaleUpProblem
    view: ClusterView
    planned: tuple[tuple[int, NodeState], ...]
    """One node per batch, with its option."""
    is_whole: bool

    @classmethod
    def from_placement(cls, problem: ScaleUpProblem, placement: Placement) -> _Filled:
        placements = sum(1 + sum(batch.content.values()) * batch.nodes + batch.nodes for batch in placement.batches)
        placements += sum(1 + sum(content.values()) for content in placement.existing.values())
        whole = placements <= _WHOLE
        samples = {number: PlacedPod(problem.table.classes[number].pod) for number in _collect_classes(placement)}
        states: list[NodeState] = []
        for row, content in list(placement.existing.items())[:_WHOLE]:
            state = problem.snapshot.view.nodes[problem.arrays.names[row]]
            states.append(state.with_pods(_iterate_pods(samples, content, state.name, whole=whole)))
        planned: list[tuple[int, NodeState]] = []
        for number, batch in enumerate(placement.batches[:_WHOLE]):
            for index in range(batch.nodes if whole else 1):
                node = build_planned_node(problem.options[batch.option], number * _WHOLE + index)
                empty = NodeState(node).with_pods(PlacedPod(pod) for pod in problem.options[batch.option].daemons)
                states.append(empty.with_pods(_iterate_pods(samples, batch.content, empty.name, whole=whole)))
                if not index:
                    planned.append((batch.option, states[-1]))
        return cls(
            problem=problem, view=problem.snapshot.view.with_states(states), planned=tuple(planned), is_whole=whole
        )

    def build_empty_node(self, option: int) -> NodeState:
        chosen = self.problem.options[option]
        return NodeState(build_planned_node(chosen, -1)).with_pods(PlacedPod(daemon) for daemon in chosen.daemons)

    def find_refusals(self, number: int, place: NodeState) -> tuple[Refusal, ...]:
        """The refusals of a node. Topology spread is skipped if the cluster is only shown in part."""
        context = self.view if self.view.find_node(place.name) is not None else self.view.with_states((place,))
        found = prepare_pod(self.problem.table.classes[number].pod, context, profile=DEFAULT_PROFILE).find_refusals(
            place
        )
        return tuple(refusal for refusal in found if self.is_whole or refusal.plugin != TOPOLOGY_SPREAD)


def _collect_classes(placement: Placement) -> set[int]:
    contents = (*placement.existing.values(), *(batch.content for batch in placement.batches))
    return {number for content in contents for number in content}


def _iterate_pods(
    samples: Mapping[int, PlacedPod], content: Mapping[int, int], node: str, *, whole: bool
) -> Iterable[PlacedPod]:
    for number, pods in content.items():
        for index in range(pods if whole else 1):
            yield samples[number].rename(f"{node}#{number}#{index}")


NO_GROUPS: Final = "NoNodeGroups"
NO_ROOM: Final = "NoRoom"
MAX_NEW_GROUPS: Final = "MaxAutoprovisionedNodeGroupCount"


def explain_unschedulable(
    problem: ScaleUpProblem, placement: Placement, number: int, usable: Flags, offered: OfferedLabels
) -> tuple[Reason, ...]:
    """The reasons, the most specific first: the pods, the plan, the groups, the limits of the cluster."""
    pod_class = problem.table.classes[number]
    if pod_class.problem is not None:
        return (Reason(code=pod_class.problem.code, message=str(pod_class.problem)),)
    found = [
        *_explain_impossible(problem, number),
        *placement.refused.get(number, ()),
        *MissingZones(problem, placement).explain(number),
        *explain_next_machines(problem, number),
        *explain_rejections(problem, number, offered),
        *_explain_full(problem, placement, number, usable),
        *_explain_skipped_groups(problem),
    ]
    if not placement.refused.get(number) and may_interact(problem, number):
        found += _explain_other_pods(problem, placement, number, usable)
    if not found and _lacks_a_group(problem, number):
        # A group could be created for them if other groups were not created first.
        return (Reason(code=MAX_NEW_GROUPS, message="no more node groups may be created now"),)
    if not found:
        message = (
            "no node group can be scaled up and no machine type may be used"
            if not problem.options
            else "no room is left"
        )
        found = [Reason(code=NO_GROUPS if not problem.options else NO_ROOM, message=message)]
    return tuple({(reason.code, reason.message): reason for reason in found}.values())


def _lacks_a_group(problem: ScaleUpProblem, number: int) -> bool:
    """Whether auto-provisioning is on and no option of it is allowed for this class."""
    return (
        problem.policy.nap.enabled and bool(problem.option_set.new_groups_left) and not problem.allowed[:, number].any()
    )


def _explain_impossible(problem: ScaleUpProblem, number: int) -> list[Reason]:
    keys = [problem.table.pending[member.pending].key for member in problem.table.classes[number].members]
    return [problem.option_set.impossible[key] for key in keys if key in problem.option_set.impossible]


def _explain_full(problem: ScaleUpProblem, placement: Placement, number: int, usable: Flags) -> list[Reason]:
    """The reasons of groups that would take such a pod but cannot be scaled up further in this plan."""
    nodes = placement.count_new_nodes(len(problem.options))
    left = placement.compute_room_left(problem)
    full: list[str] = []
    capped: list[str] = []
    limits: dict[int, list[str]] = {}
    for option in np.flatnonzero(problem.allowed[:, number]).tolist():
        if not usable[option]:
            capped.append(_format_name(problem, option))
        for limit in np.flatnonzero(problem.limits.use[option] > left).tolist():
            limits.setdefault(limit, []).append(_format_name(problem, option))
        if nodes[option] >= problem.options[option].max_size - problem.options[option].size:
            full.append(_format_name(problem, option))
    found = [
        Reason(code=ceiling.code, message=_explain_used_up(ceiling, problem, placement, limit))
        for limit in sorted(limits)
        for ceiling in [problem.limits.resource_limits[limit]]
    ]
    if full:
        found.append(_build_reason(MAX_SIZE_REACHED, "max size reached", full))
    if capped:
        found.append(_build_reason(MAX_NEW_GROUPS, "no more node groups may be created", capped))
    return found


def _explain_other_pods(problem: ScaleUpProblem, placement: Placement, number: int, usable: Flags) -> list[Reason]:
    """The reasons of groups that could be scaled up, but whose next node rejects the pod because of other pods."""
    nodes = placement.count_new_nodes(len(problem.options))
    left = placement.compute_room_left(problem)
    rules = problem.option_rules
    suited = (
        rules.node_predicates.find_fitting(number, rules.arrays.free, {})
        & usable
        & (problem.limits.use <= left[None, :]).all(axis=1)
    )
    growing = [
        option
        for option in np.flatnonzero(suited).tolist()
        if nodes[option] < problem.options[option].max_size - problem.options[option].size
    ]
    groups: dict[tuple[str, str], list[str]] = {}
    rejected = (
        *find_rejections_on_new_nodes(problem, placement, number, growing),
        *find_rejections_on_planned_nodes(problem, placement, number),
    )
    for option, refusals in rejected:
        for refusal in refusals:
            groups.setdefault((refusal.code, ", ".join(refusal.messages)), []).append(_format_name(problem, option))
    return [_build_reason(code, message, names) for (code, message), names in groups.items()]


def _explain_used_up(ceiling: ResourceLimit, problem: ScaleUpProblem, placement: Placement, limit: int) -> str:
    planned = int(placement.count_new_nodes(len(problem.options)) @ problem.limits.use[:, limit])
    return f"{ceiling}" if not planned else f"{ceiling.add_use(planned)}"


def _explain_skipped_groups(problem: ScaleUpProblem) -> list[Reason]:
    groups: dict[tuple[str, str], list[str]] = {}
    for skipped_groups in problem.option_set.skipped_groups:
        groups.setdefault((skipped_groups.code, skipped_groups.reason), []).append(
            skipped_groups.group or skipped_groups.machine_type
        )
    return [_build_reason(code, message, names) for (code, message), names in groups.items()]


def _format_name(problem: ScaleUpProblem, option: int) -> str:
    chosen = problem.options[option]
    return chosen.group if chosen.exists else chosen.machine_type


def _build_reason(code: str, text: str, names: Iterable[str]) -> Reason:
    listed = [name for name in dict.fromkeys(names) if name]
    message = f"{text} ({shorten_names(listed)})" if listed else text
    facts: dict[str, object] = {"groups": len(listed)}
    if len(listed) > NAMED:
        facts["names"] = listed[:LISTED]
    return Reason(code=code, message=message, facts=facts)
