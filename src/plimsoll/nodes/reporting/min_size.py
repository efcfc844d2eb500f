"""Groups that a turn raised to their minimum (`--enforce-node-group-min-size`): growth that no pod asked for. Pure.

The loop keeps them among what it repaired, because no plan holds them; Events, metrics, the journal and the entries of
a scenario all tell them as growth.
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
    """One group. `failure` None: the provider took it."""

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


def raised_groups(turn: LoopResult) -> tuple[Raised, ...]:
    """In the order in which they were raised."""
    return tuple(_raised(repaired, turn) for repaired in turn.repaired if is_raised(repaired))


def _raised(one: GroupRepair, turn: LoopResult) -> Raised:
    standing = None if turn.health is None else turn.health.groups.get(one.group)
    groups = () if turn.snapshot is None else turn.snapshot.groups
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
