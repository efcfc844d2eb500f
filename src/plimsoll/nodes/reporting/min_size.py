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
class Raised:
    """A group that was raised. `failure` None: the provider accepted it."""

    group: str
    before: int
    after: int
    max_size: int
    machine_type: str
    zone: str
    template: Node | None
    failure: CallFailed | None


def is_raised(one: GroupRepair) -> bool:
    return one.reason.code == MIN_SIZE_ENFORCED


def raised_groups(loop: LoopResult) -> tuple[Raised, ...]:
    """The groups in the order in which they were raised."""
    return tuple(_raised(repaired, loop) for repaired in loop.repairs if is_raised(repaired))


def _raised(one: GroupRepair, loop: LoopResult) -> Raised:
    standing = None if loop.health is None else loop.health.groups.get(one.group)
    groups = () if loop.snapshot is None else loop.snapshot.groups
    before, after = one.before or 0, one.after or 0
    return Raised(
        group=one.group,
        before=before,
        after=after,
        max_size=after if standing is None else standing.group.max_size,
        machine_type="" if standing is None else standing.group.machine_type,
        zone="" if standing is None else standing.group.zone,
        template=next((group.template for group in groups if group.id == one.group), None),
        failure=one.failure,
    )
