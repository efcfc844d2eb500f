"""Why a group is created although others exist: what every existing group lacks, in few words. Pure.

Where rules reject the pods, the reason says what would help: a larger machine type, accelerators, labels. Otherwise it
says why suitable groups cannot be used, or that the new one is cheaper.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.core.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from plimsoll.nodes.model.reasons import NEW_LABEL
from plimsoll.nodes.planning.autoprovisioning.requirements import RequirementReader
from plimsoll.nodes.planning.explain.rejections import shorten_names
from plimsoll.scheduling.rules.node_affinity import NODE_AFFINITY
from plimsoll.scheduling.rules.resources_fit import RESOURCES_FIT
from plimsoll.scheduling.rules.taints import TAINT_TOLERATION

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.nodes.model.scale_up_plan import ScaleUpOption
    from plimsoll.nodes.planning.problem.placement import Placement
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.scheduling.verdicts import Refusal


NEW_GROUP: Final = "NewGroupNeeded"
_CLASSES: Final = 8
"""The number of classes on the new nodes that are explained, those with the most pods first."""
_ORDINARY: Final = frozenset({CPU, MEMORY, EPHEMERAL_STORAGE, PODS})


def explain_new_group(problem: ScaleUpProblem, placement: Placement, option: int) -> tuple[Reason, ...]:
    """Causes for the pods on the new nodes of one option; none if no existing group could be scaled up instead."""
    found: dict[str, list[str]] = {}
    any_exists = any(candidate.exists for candidate in problem.options)
    for number in _find_largest_classes(placement, option) if any_exists else ():
        for cause, groups in (
            *_explain_excluded_groups(problem, number),
            *_explain_unused_groups(problem, placement, option, number),
        ):
            found[cause] = [*dict.fromkeys([*found.get(cause, ()), *groups])]
    for other in problem.option_set.skipped_groups:
        if other.group:
            found[other.reason] = [*dict.fromkeys([*found.get(other.reason, ()), other.group])]
    return tuple(
        Reason(code=NEW_GROUP, message=f"{cause} ({shorten_names(groups)})") for cause, groups in found.items()
    )


def explain_new_labels(problem: ScaleUpProblem, option: int) -> tuple[Reason, ...]:
    """The labels of a new group that no node and no other group carries yet: they may be misspelt."""
    profile = problem.options[option].profile
    labels = {} if profile is None else profile.labels
    unknown = [
        f"{key}={value}"
        for key, value in sorted(labels.items())
        if value not in problem.arrays.get_label_values(key)
        and not any(group.template.metadata.labels.get(key) == value for group in problem.snapshot.groups)
    ]
    if not unknown:
        return ()
    message = f"no node carries {', '.join(unknown)} yet: the new node group is the first"
    return (Reason(code=NEW_LABEL, message=message, facts={"labels": unknown}),)


def _find_largest_classes(placement: Placement, option: int) -> list[int]:
    """The classes with the most pods on the nodes of the option."""
    pods: dict[int, int] = {}
    for batch in placement.batches:
        if batch.option == option:
            for number, pods_per_node in batch.content.items():
                pods[number] = pods.get(number, 0) + pods_per_node * batch.nodes
    return sorted(pods, key=lambda number: (-pods[number], number))[:_CLASSES]


def _explain_excluded_groups(problem: ScaleUpProblem, number: int) -> Iterator[tuple[str, list[str]]]:
    """Causes by which nodes of existing groups reject the class, grouped by message."""
    there = [index for index, option in enumerate(problem.options) if option.exists]
    if not there:
        return
    rules = problem.option_rules
    codes = rules.node_predicates.find_codes(number, rules.arrays.free, {})
    for code in np.unique(codes[there]).tolist():
        if code:
            refused = [problem.options[index] for index in there if codes[index] == code]
            message = _describe_lack(problem, number, refused[0], rules.get_refusal(code))
            yield message, [option.group for option in refused]


def _describe_lack(problem: ScaleUpProblem, number: int, option: ScaleUpOption, refusal: Refusal) -> str:
    words = ", ".join(refusal.messages)
    if refusal.plugin == NODE_AFFINITY:
        wanted = RequirementReader.from_snapshot(problem.snapshot, problem.policy).read(
            problem.table.classes[number].pod
        )
        there = option.node.metadata.labels
        labels = [f"{key}={value}" for key, value in wanted.pinned.items() if there.get(key) != value]
        return f"nodes labelled {', '.join(labels)} are needed" if labels else words
    if refusal.plugin == TAINT_TOLERATION:
        taints = [f"{taint.key}={taint.value}:{taint.effect}" for taint in option.node.spec.taints]
        return f"nodes without the taint {', '.join(taints)} are needed"
    if refusal.plugin == RESOURCES_FIT:
        demand = problem.table.classes[number].demand
        devices = [name for name in demand if name not in _ORDINARY and not option.capacity[name]]
        if devices:
            return f"nodes with {', '.join(devices)} are needed"
        return f"a larger machine type is needed: {words}"
    return words


def _explain_unused_groups(
    problem: ScaleUpProblem, placement: Placement, option: int, number: int
) -> Iterator[tuple[str, list[str]]]:
    """Groups that accept such a pod, and why they were not scaled up."""
    exists = np.array([candidate.exists for candidate in problem.options], dtype=np.bool_)
    accepting = np.flatnonzero(problem.allowed[:, number] & exists).tolist()
    if not accepting:
        return
    nodes = placement.count_new_nodes(len(problem.options))
    left = placement.compute_room_left(problem)
    for index in accepting:
        candidate = problem.options[index]
        broken = np.flatnonzero(problem.limits.use[index] > left).tolist()
        if nodes[index] >= candidate.max_size - candidate.size:
            yield "max size reached", [candidate.group]
        elif broken:
            yield str(problem.limits.resource_limits[broken[0]]), [candidate.group]
        elif candidate.tier == problem.options[option].tier:
            yield "a new group is cheaper", [candidate.group]
        else:
            yield "a new group has a higher priority", [candidate.group]
