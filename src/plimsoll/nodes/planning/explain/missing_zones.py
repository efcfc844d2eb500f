"""Zones that pods should be spread over but that cannot be had, each with the cause. Pure.

A zone can be had if a group or machine type that takes the pods can be scaled up there. A zone that no group offers now
(its group is backed off, full or over a limit), or that the plan leaves without nodes, is not a domain: the pods are
spread over the other zones, and the reason names the zone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.node_labels import HOSTNAME, ZONE_KEYS
from plimsoll.nodes.model.reasons import ZONE_NOT_AVAILABLE
from plimsoll.nodes.planning.autoprovisioning.requirements import NodeMatcher

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator

    from plimsoll.nodes.model.scale_up_plan import SkippedGroup
    from plimsoll.nodes.planning.problem.placement import Placement
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem


class MissingZones:
    """The zones that a placement does without; what suits several classes is found once."""

    def __init__(self, problem: ScaleUpProblem, placement: Placement) -> None:
        self._problem = problem
        self._placement = placement
        self._has_spread = any(pod_class.has_spread for pod_class in problem.table)
        self._known: dict[tuple[Hashable, ...], tuple[Reason, ...]] = {}

    def explain_scale_up(self, option: int) -> tuple[Reason, ...]:
        """The missing zones of all classes with pods on the new nodes of one option."""
        if not self._has_spread:
            return ()
        classes = {number for batch in self._placement.batches if batch.option == option for number in batch.content}
        found = [reason for number in sorted(classes) for reason in self.explain(number)]
        return tuple({reason.message: reason for reason in found}.values())

    def explain(self, number: int) -> tuple[Reason, ...]:
        """One reason per zone without nodes, existing or planned, that suitable groups offer."""
        problem, pod_class = self._problem, self._problem.table.classes[number]
        if not pod_class.has_spread:
            return ()
        form = pod_class.scheduling_key
        keys = tuple(sorted({spread.key for spread in problem.rules.get_spreads(number)} - {HOSTNAME}))
        suits = (keys, problem.allowed[:, number].tobytes(), form.node_constraints, form.tolerations)
        if suits not in self._known:
            self._known[suits] = tuple(reason for key in keys for reason in self._explain_key(number, key))
        return self._known[suits]

    def _explain_key(self, number: int, key: str) -> Iterator[Reason]:
        problem = self._problem
        ids, values = problem.option_arrays.get_label_ids(key), problem.option_arrays.get_label_values(key)
        offered = {values[index] for index in np.unique(ids[problem.allowed[:, number]]).tolist() if index >= 0}
        planned = {values[ids[batch.option]] for batch in self._placement.batches if ids[batch.option] >= 0}
        has_nodes = planned | {*problem.arrays.get_label_values(key)}
        refused = _find_refused_zones(problem, number, key)
        for zone in sorted({*refused, *offered} - has_nodes):
            if zone not in offered:
                causes = "; ".join(dict.fromkeys(refused[zone]))
                message = f"{key} {zone} cannot be had: {causes}"
            elif planned:
                message = f"{key} {zone} gets no nodes: it can take too few of the pods and would hold the others back"
            else:
                continue
            yield Reason(code=ZONE_NOT_AVAILABLE, message=message, facts={"zone": zone})


def _find_refused_zones(problem: ScaleUpProblem, number: int, key: str) -> dict[str, list[str]]:
    """By zone: why groups and machine types that suit the class are not options there."""
    matcher = NodeMatcher(problem.table.classes[number].pod)
    groups = {group.id: group for group in problem.snapshot.groups}
    found: dict[str, list[str]] = {}
    for skipped in problem.option_set.skipped_groups:
        group = groups.get(skipped.group)
        if group is not None:
            labels = {**dict.fromkeys(ZONE_KEYS, group.zone), **group.template.metadata.labels}
            zone = labels.get(key, "")
            suits = group.autoscaled and matcher.allows(labels) and matcher.tolerates(group.template.spec.taints)
        else:
            zone, suits = (skipped.zone if key in ZONE_KEYS else ""), True
        if zone and suits:
            found.setdefault(zone, []).append(_describe(skipped))
    return found


def _describe(skipped: SkippedGroup) -> str:
    return f"{skipped.reason} ({skipped.group})" if skipped.group else skipped.reason
