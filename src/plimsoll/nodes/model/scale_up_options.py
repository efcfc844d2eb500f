"""What could be added: one more node of an existing group, or of one that could be created. Data only."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from plimsoll.nodes.model.snapshot import CapacityType

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.resources import ResourceVector
    from plimsoll.objects.api.nodes import Node, Taint
    from plimsoll.objects.api.pods import Pod


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """What the nodes of a group that does not exist yet would carry for the pods they are made for."""

    labels: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    hash: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleUpOption:
    """Nodes of one kind in one place: `room` more of them may be added to `group`."""

    group: str
    """Its id; for a group to be made, the id it would get."""
    node: Node
    """A template: planned nodes get names and hostnames of their own."""
    daemons: tuple[Pod, ...]
    free: ResourceVector
    """What an empty node gives to pods: allocatable without the daemons."""
    capacity: ResourceVector
    """What it counts for towards the limits of the cluster."""
    price_per_hour: float
    """Real money, for reports."""
    planning_price: float
    """With the preferences of docs/design/nodes.md 8.4, for choosing."""
    size: int
    max_size: int
    room: int
    machine_type: str = ""
    zone: str = ""
    exists: bool = True
    profile: Profile | None = None
    """For a group to be made."""
    tier: int = 0
    """From the priority expander: lower tiers are used first, whatever the money."""
    zero_or_max: bool = False
    capacity_type: CapacityType = CapacityType.ON_DEMAND


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedGroup:
    """A group or machine type that was looked at and left out, for all pods: "max size reached", "in backoff"."""

    group: str
    machine_type: str
    reason: str
    code: str
    """CamelCase: MaxSizeReached, InBackoff, NotReady, CpuResourceLimit, MemoryResourceLimit, MaxNodeGroups, ..."""
