"""Which nodes may be looked at for removal at all, and why the others stay (specs/nodes.md 5.2, 6.8). Pure.

Reasons are Cluster Autoscaler's words for unremovable nodes. Nothing here looks at pods but through their share of the
node; whether the pods can go elsewhere is for `removals`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.nodes.planning.candidates import NOT_AUTOSCALED, sizes_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from plimsoll.nodes.planning.drains import Controller, ControllerKey
    from plimsoll.nodes.planning.homes import Home, Homes
    from plimsoll.nodes.planning.utilisation import Utilisation
    from plimsoll.nodes.planning.world import Group, Snapshot
    from plimsoll.nodes.policy import Policy
    from plimsoll.scheduling.view import PodKey

CURRENTLY_BEING_DELETED: Final = "CurrentlyBeingDeleted"
DISABLED_ANNOTATION: Final = "ScaleDownDisabledAnnotation"
UNREADY_DISABLED: Final = "ScaleDownUnreadyDisabled"
MIN_SIZE_REACHED: Final = "NodeGroupMinSizeReached"
NOT_UNDERUTILIZED: Final = "NotUnderutilized"
RECENTLY_UNREMOVABLE: Final = "RecentlyUnremovable"
NOT_STARTED: Final = "NotStarted"
BOOKED: Final = "BookedCapacity"
UNREADABLE: Final = "UnexpectedError"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What the controller remembers between turns, and what it looked up; all of it may be missing."""

    unneeded_since: Mapping[str, datetime] = field(default_factory=dict)
    """Node to when it was first found unneeded, without a break since."""
    unremovable_until: Mapping[str, datetime] = field(default_factory=dict)
    """Node to when a fruitless look at it is tried again."""
    controllers: Mapping[ControllerKey, Controller] = field(default_factory=dict)
    hints: Mapping[PodKey, str] = field(default_factory=dict)
    """Pod to the node a place was found on last time."""
    leaving: frozenset[str] = frozenset()
    """Nodes being deleted that may not be tainted yet."""
    deletions: Mapping[str, int] | None = None
    """Group to deletions that its target size does not know of; None: all its leaving nodes."""
    unready: frozenset[str] = frozenset()
    """Nodes that count as unready whatever they say: startup taints, devices still missing."""
    booked: frozenset[str] = frozenset()
    """Nodes held for a provisioning request."""
    removals_under_way: int = 0
    drains_under_way: int = 0
    """Of these."""


def with_bookings(known: Known, homes: Homes) -> Known:
    """With nodes that hold booked pods in this very snapshot: room that was given away a moment ago, too."""
    rows = homes.booked_rows().tolist()
    return replace(known, booked=known.booked | {homes.states[row].name for row in rows}) if rows else known


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """A group, and how many of its nodes may go."""

    group: Group
    spare: int


def group_rooms(snapshot: Snapshot, policy: Policy, known: Known, homes: Homes) -> dict[str, Room]:
    """Groups that may shrink, by id. What is not autoscaled is missing."""
    leaving = Counter(
        snapshot.group_of.get(one.state.name, "")
        for one in homes.homes
        if one.standing.leaving or one.state.name in known.leaving
    )
    found: dict[str, Room] = {}
    for group in snapshot.groups:
        sizes = sizes_of(group, policy)
        if sizes is not None:
            going = leaving[group.id] if known.deletions is None else known.deletions.get(group.id, 0)
            found[group.id] = Room(group=group, spare=max(group.target_size - going - sizes.least, 0))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Screening:
    """The questions about a node, asked in order."""

    snapshot: Snapshot
    policy: Policy
    known: Known
    rooms: Mapping[str, Room]
    now: datetime

    def refusals(self, homes: Sequence[Home]) -> list[Reason | None]:
        """For each node why it is no candidate. Nodes of which there is nothing to say are not asked one by one."""
        known, group_of = self.known, self.snapshot.group_of
        noted = known.leaving | known.unready | known.booked
        shrinking = {name for name, room in self.rooms.items() if room.spare > 0}
        return [
            None
            if (
                home.standing.is_plain
                and group_of.get(home.state.name, "") in shrinking
                and home.state.name not in noted
                and not home.state.problem
            )
            else self.refusal(home)
            for home in homes
        ]

    def refusal(self, home: Home) -> Reason | None:
        """Why the node is no candidate whatever its pods do; None when it may be one."""
        state, standing = home.state, home.standing
        if standing.leaving or state.name in self.known.leaving:
            return Reason(code=CURRENTLY_BEING_DELETED, message="it is being deleted")
        if standing.upcoming:
            return Reason(code=NOT_STARTED, message="it has not joined yet")
        if standing.disabled:
            return Reason(code=DISABLED_ANNOTATION, message="annotated scale-down-disabled")
        room = self.rooms.get(self.snapshot.group_of.get(state.name, ""))
        if room is None:
            return Reason(code=NOT_AUTOSCALED, message="its group is not autoscaled")
        if room.spare <= 0:
            message = f"group {room.group.id} is at its minimum size"
            return Reason(code=MIN_SIZE_REACHED, message=message, facts={"group": room.group.id})
        if state.problem:
            return Reason(code=UNREADABLE, message=state.problem)
        if not self.policy.scale_down.unready_enabled and not self.is_ready(home):
            return Reason(code=UNREADY_DISABLED, message="it is not ready, and unready nodes are left alone")
        if state.name in self.known.booked:
            return Reason(code=BOOKED, message="it is held for a provisioning request")
        return None

    def is_ready(self, home: Home) -> bool:
        return home.standing.ready and home.state.name not in self.known.unready

    def held(self, row: int, utilisation: Utilisation) -> Reason:
        """Of a booked node: what is used, and apart from that what is only booked."""
        used, booked = float(utilisation.share[row]), float(utilisation.booked[row])
        told = "it is held for a provisioning request"
        if booked:
            told += f": of {utilisation.resource[row]} {booked:.1%} is booked and {used:.1%} used"
        return Reason(code=BOOKED, message=told, facts={"utilization": used, "booked": booked})

    def too_full(self, row: int, utilisation: Utilisation) -> Reason | None:
        if utilisation.is_low[row]:
            return None
        share, limit = float(utilisation.share[row]), float(utilisation.threshold[row])
        message = f"{utilisation.resource[row]} is used to {share:.1%}, more than {limit:.1%}"
        return Reason(code=NOT_UNDERUTILIZED, message=message, facts={"utilization": share, "threshold": limit})

    def tried_lately(self, name: str) -> Reason | None:
        until = self.known.unremovable_until.get(name)
        if until is None or until <= self.now:
            return None
        return Reason(code=RECENTLY_UNREMOVABLE, message="no place was found for its pods a short while ago")
