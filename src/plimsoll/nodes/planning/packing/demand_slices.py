"""What constraints between pods are lowered to: slices of demand, many of which can be packed at once. Data only.

A slice is a number of pods of a class, where they may go, and how many of them a node takes. `Feedback` holds what
earlier attempts have shown.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.solver.problem import UNBOUNDED

if TYPE_CHECKING:
    from plimsoll.nodes.planning.packing.placement_view import Places
    from plimsoll.solver.problem import Ints


NO_AFFINITY_TARGET: Final = "NoCompany"


SPREAD_HELD: Final = "SpreadHeld"


ONE_PER_DOMAIN: Final = "OnePerDomain"


ONE_POD_ONLY: Final = "OnePodOnly"


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandSlice:
    """Pods of one class that are packed as one kind of item; `pods_per_item` of them stay together on a node."""

    number: int
    pods: int
    places: Places
    pods_per_item: int = 1
    per_node: int = UNBOUNDED
    caps: Ints | None = None
    """[N + B]: at most so many on each node that stands or is planned."""
    keys: tuple[str, ...] = ()
    """A node takes one pod of all that share a key."""
    domain: str = ""
    even: bool = False
    """One of the shares that fill nodes evenly."""
    rises: bool = False
    """Its caps hope that existing nodes all rise together; `per_node` is for new ones."""

    @property
    def items(self) -> int:
        return self.pods // self.pods_per_item


@dataclass(slots=True, kw_only=True)
class LoweredConstraints:
    """A layer as shares; `refused` says why pods of a class are in none; `complex` classes are for the estimator."""

    slices: list[DemandSlice] = field(default_factory=list)
    refused: dict[int, tuple[Reason, ...]] = field(default_factory=dict)
    complex: list[int] = field(default_factory=list)
    shared_domains: dict[tuple[int, ...], list[str]] = field(default_factory=dict)
    """Families that need a home, and where it could be, the most likely first."""
    shifted: bool = False
    """Quotas are uneven for the sake of prices, as far as the skew allows."""

    def refuse(self, number: int, code: str, message: str) -> None:
        self.refused[number] = (*self.refused.get(number, ()), Reason(code=code, message=message))


@dataclass(slots=True, kw_only=True)
class Feedback:
    """What earlier tries of a layer have shown."""

    most: dict[tuple[int, str], int] = field(default_factory=dict)
    """What a domain turned out to take of a class."""
    shared_domains: dict[tuple[int, ...], str] = field(default_factory=dict)
    """The domain to be tried for a family."""
    heights: dict[int, int] = field(default_factory=dict)
    """Of a class spread over nodes: so many pods on each new one."""
    uneven: set[int] = field(default_factory=set)
    """Classes spread over nodes that did not come out even."""
    evenly: bool = False
    """Quotas over domains are even, whatever these cost."""
    held_down: bool = False
    """Others open nodes, too: of classes spread over nodes, no new one may hold more than the skew."""
    present: dict[int, set[str]] = field(default_factory=dict)
    """By class: domains that others bring into being, and that so hold its minimum down."""
