"""Why empty nodes of groups and machine types would not take a pod: one reason per rule, with the facts. Pure.

The words are those of kube-scheduler. After them follows what they leave out: the request against the largest machine
on offer, the label that no node has, the taint.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from plimsoll.core.formatting import format_amount
from plimsoll.core.plans import Reason
from plimsoll.core.resources import PODS
from plimsoll.nodes.model.node_templates import MachineTemplate
from plimsoll.nodes.planning.explain.daemon_overhead import name_daemons
from plimsoll.nodes.planning.explain.offered_labels import describe_unmet_labels, find_similar
from plimsoll.nodes.planning.explain.rejected_types import find_rejected_types
from plimsoll.scheduling.rules.node_affinity import NODE_AFFINITY
from plimsoll.scheduling.rules.resources_fit import RESOURCES_FIT
from plimsoll.scheduling.rules.taints import TAINT_TOLERATION, Tolerations

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from plimsoll.core.resources import ResourceVector
    from plimsoll.nodes.planning.explain.offered_labels import OfferedLabels
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.objects.api.nodes import Taint
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.verdicts import Refusal

NAMED: Final = 3
LISTED: Final = 40
"""The number of names in the facts; every pod of a journal carries them."""
_MERGED: Final = frozenset({NODE_AFFINITY, RESOURCES_FIT, TAINT_TOLERATION})
"""Rules whose rejections are reported as one reason, because the facts after it distinguish them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rejection:
    """A group or a machine type, and the first rule by which its empty node rejects the pod."""

    name: str
    is_group: bool
    refusal: Refusal
    labels: tuple[Mapping[str, str], ...]
    taints: Sequence[Taint]
    free: ResourceVector

    @property
    def key(self) -> tuple[str, str]:
        """Rejections with the same key share a reason. A message with a colon names DaemonSets, which differ."""
        words = ", ".join(self.refusal.messages)
        return (self.refusal.plugin, "" if self.refusal.plugin in _MERGED and ": " not in words else words)


def explain_rejections(problem: ScaleUpProblem, number: int, offered: OfferedLabels) -> list[Reason]:
    """The reasons of existing groups, and of machine types unless a new group of one of them would take the pod."""
    by_rule: dict[tuple[str, str], list[_Rejection]] = {}
    for rejection in (*_find_rejecting_groups(problem, number), *_find_rejecting_types(problem, number)):
        by_rule.setdefault(rejection.key, []).append(rejection)
    pod, demand = problem.table.classes[number].pod, problem.table.classes[number].demand
    return [_build_reason(found, pod, demand, offered) for found in by_rule.values()]


def _find_rejecting_groups(problem: ScaleUpProblem, number: int) -> Iterator[_Rejection]:
    rules = problem.option_rules
    codes = rules.node_predicates.find_codes(number, rules.arrays.free, {})
    demand = problem.table.classes[number].demand
    for index in np.flatnonzero(codes).tolist():
        option = problem.options[index]
        if option.exists:
            [refusal] = name_daemons([rules.get_refusal(int(codes[index]))], demand, option.free, option.daemons)
            yield _Rejection(
                name=option.group,
                is_group=True,
                refusal=refusal,
                labels=(option.node.metadata.labels,),
                taints=option.node.spec.taints,
                free=option.free,
            )


def _find_rejecting_types(problem: ScaleUpProblem, number: int) -> Iterator[_Rejection]:
    if any(not problem.options[index].exists for index in np.flatnonzero(problem.allowed[:, number]).tolist()):
        return
    for kind, refusals in find_rejected_types(problem, number):
        template = MachineTemplate(kind, problem.option_set.regions)
        yield _Rejection(
            name=kind.name,
            is_group=False,
            refusal=refusals[0],
            labels=tuple(template.build_system_labels(zone) for zone in kind.zones or ("",)),
            taints=kind.taints,
            free=kind.allocatable,
        )


def _build_reason(found: Sequence[_Rejection], pod: Pod, demand: ResourceVector, offered: OfferedLabels) -> Reason:
    counts: dict[str, int] = {}
    for rejection in found:
        for message in rejection.refusal.messages:
            counts[message] = counts.get(message, 0) + 1
    facts: dict[str, Any] = {"groups": len(found), "counts": counts}
    groups = [rejection.name for rejection in found if rejection.is_group]
    if len(groups) > NAMED:
        facts |= {"names": groups[:LISTED], "machineTypes": len(found) - len(groups)}
    match found[0].refusal.plugin:
        case "NodeResourcesFit":
            detail = _describe_shortage(found, demand, [*counts], facts)
        case "NodeAffinity":
            detail = describe_unmet_labels(pod, [labels for rejection in found for labels in rejection.labels], offered)
        case "TaintToleration":
            detail = _describe_taints(found, Tolerations(pod.spec.tolerations))
        case _:
            detail = ""
    names = _shorten(found)
    message = f"{', '.join(counts)} ({names}): {detail}" if detail else f"{', '.join(counts)} ({names})"
    return Reason(code=found[0].refusal.code, message=message, facts=facts)


def _shorten(found: Iterable[_Rejection]) -> str:
    """The first groups by name; machine types are counted if there are many."""
    groups = [rejection.name for rejection in found if rejection.is_group]
    types = [rejection.name for rejection in found if not rejection.is_group]
    parts = [shorten_names(groups)] if groups else []
    if types:
        parts.append(", ".join(types) if len(types) <= NAMED else f"{len(types)} machine types")
    return ", ".join(parts)


def _describe_shortage(
    found: Sequence[_Rejection], demand: ResourceVector, messages: Sequence[str], facts: dict[str, Any]
) -> str:
    """The requests against the most that one node offers; `facts` gets the same."""
    short = [name for name in demand if name != PODS and f"Insufficient {name}" in messages]
    parts: list[str] = []
    shortages: dict[str, dict[str, str]] = {}
    is_never_enough = False
    for name in short:
        largest = max(found, key=lambda rejection: (rejection.free[name], rejection.name))
        requested, offered = format_amount(name, demand[name]), format_amount(name, largest.free[name])
        shortages[name] = {"requested": requested, "largest": largest.name, "offered": offered}
        is_never_enough |= largest.free[name] < demand[name]
        if largest.free[name] <= 0:
            resources = {resource for rejection in found for resource in rejection.free}
            near = find_similar(name, resources)
            parts.append(f"none has {name}" + (f"; did you mean {near[0]}?" if near else ""))
        elif len(found) == 1:
            parts.append(f"{name} {requested} requested, {largest.name} has {offered}")
        else:
            parts.append(f"{name} {requested} requested, the largest is {largest.name} with {offered}")
    if shortages:
        facts["shortages"] = shortages
    both = "" if is_never_enough or len(short) < 2 else "each is offered, but not on one machine: "
    return both + "; ".join(parts)


def _describe_taints(found: Iterable[_Rejection], tolerations: Tolerations) -> str:
    taints = [
        f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
        for rejection in found
        if (taint := tolerations.find_untolerated(rejection.taints)) is not None
    ]
    named = list(dict.fromkeys(taints))
    return f"{shorten_names(named)} {'is' if len(named) == 1 else 'are'} not tolerated" if named else ""


def shorten_names(names: Sequence[str]) -> str:
    """The first names, and the number of further ones."""
    shown = ", ".join(names[:NAMED])
    return f"{shown} and {len(names) - NAMED} more" if len(names) > NAMED else shown
