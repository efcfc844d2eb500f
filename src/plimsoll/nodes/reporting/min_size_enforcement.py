"""Groups raised to their minimum size (`--enforce-node-group-min-size`): scale-ups without pods. Pure.

The loop records them as repairs, because they are in no plan; Events, metrics, the journal and scenarios report them as
scale-ups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.nodes.model.reasons import MIN_SIZE_ENFORCED

if TYPE_CHECKING:
    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.model.call_outcomes import CallFailed
    from plimsoll.nodes.model.results import GroupRepair
    from plimsoll.objects.api.nodes import Node


@dataclass(frozen=True, slots=True, kw_only=True)
class RaisedGroup:
    """A group that was raised. `failure` None: the provider accepted it."""

    group: str
    before: int
    after: int
    max_size: int
    machine_type: str
    zone: str
    template: Node | None
    failure: CallFailed | None


def is_min_size_repair(repair: GroupRepair) -> bool:
    """Whether a repair raises a group to its minimum size."""
    return repair.reason.code == MIN_SIZE_ENFORCED


def find_raised_groups(loop: LoopResult) -> tuple[RaisedGroup, ...]:
    """The groups in the order in which they were raised."""
    return tuple(_build_raised_group(repair, loop) for repair in loop.repairs if is_min_size_repair(repair))


def _build_raised_group(repair: GroupRepair, loop: LoopResult) -> RaisedGroup:
    health = None if loop.health is None else loop.health.groups.get(repair.group)
    groups = () if loop.snapshot is None else loop.snapshot.groups
    before, after = repair.before or 0, repair.after or 0
    return RaisedGroup(
        group=repair.group,
        before=before,
        after=after,
        max_size=after if health is None else health.group.max_size,
        machine_type="" if health is None else health.group.machine_type,
        zone="" if health is None else health.group.zone,
        template=next((group.template for group in groups if group.id == repair.group), None),
        failure=repair.failure,
    )
