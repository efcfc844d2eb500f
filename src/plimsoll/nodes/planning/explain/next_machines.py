"""Pods that only another zone of a group over several zones would take. Pure.

A provider adds machines to such a group in an order of its own, and no call can choose the zone. The template is that
of the next machine, so a pod that is bound to another zone (node selector, affinity, volume) finds no group, although
later machines of the group could take it. The reason says so, and what helps.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.core.plans import Reason
from plimsoll.nodes.model.node_labels import ZONE_KEYS
from plimsoll.nodes.model.node_templates import build_planned_node
from plimsoll.scheduling import DEFAULT_PROFILE
from plimsoll.scheduling.cluster_view import NodeState
from plimsoll.scheduling.feasibility import prepare_pod

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.nodes.model.scale_up_plan import ScaleUpOption
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem

NEXT_MACHINE_ELSEWHERE: Final = "NextMachineElsewhere"
"""A group has machines in the zone that a pod needs, and the next one comes in another zone."""
_MOST_GROUPS: Final = 8
"""The number of groups that are checked."""


def explain_next_machines(problem: ScaleUpProblem, number: int) -> Iterator[Reason]:
    """One reason per group whose next machine does not take such a pod, and whose machines in other zones would."""
    zones_of = {group.id: group.zones for group in problem.snapshot.groups if len(group.zones) > 1}
    options = [
        option
        for index, option in enumerate(problem.options)
        if zones_of.get(option.group) and not problem.allowed[index, number]
    ]
    for option in options[:_MOST_GROUPS]:
        others = [zone for zone in zones_of[option.group] if zone != option.zone]
        suited = [zone for zone in others if _takes(problem, number, option, zone)]
        if suited:
            needed = f"zone {suited[0]}" if len(suited) == 1 else f"zones {', '.join(suited)}"
            message = (
                f"the next machine of {option.group} is expected in {option.zone}, and its machines in {needed} would "
                "take the pod: no zone can be chosen in a group over several zones; a group of its own per zone can "
                "be scaled up where the pod needs it"
            )
            facts = {"group": option.group, "next": option.zone, "zones": suited}
            yield Reason(code=NEXT_MACHINE_ELSEWHERE, message=message, facts=facts)


def _takes(problem: ScaleUpProblem, number: int, option: ScaleUpOption, zone: str) -> bool:
    """Whether an empty node of the group in that zone would take the pod."""
    template = option.node
    labels = {**template.metadata.labels, **{key: zone for key in ZONE_KEYS if key in template.metadata.labels}}
    moved = structs.replace(template, metadata=structs.replace(template.metadata, labels=labels))
    place = NodeState(build_planned_node(replace(option, node=moved), -1))
    view = problem.snapshot.view.with_states((place,))
    pod = problem.table.classes[number].pod
    return not any(prepare_pod(pod, view, profile=DEFAULT_PROFILE).find_refusals(place))
