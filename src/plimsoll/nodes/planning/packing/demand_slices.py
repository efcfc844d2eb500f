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
    """[N + B]: the cap of each existing and planned node."""
    keys: tuple[str, ...] = ()
    """A node takes one pod of all classes that share a key."""
    domain: str = ""
    even: bool = False
    """Whether it is one of the slices that fill nodes evenly."""
    rises: bool = False
    """Whether its caps assume that all existing nodes rise together; `per_node` applies to new nodes."""

    @property
    def items(self) -> int:
        return self.pods // self.pods_per_item


@dataclass(slots=True, kw_only=True)
class LoweredConstraints:
    """A layer as slices. `refused`: why pods of a class are in none. `complex` classes are placed pod by pod."""

    slices: list[DemandSlice] = field(default_factory=list)
    refused: dict[int, tuple[Reason, ...]] = field(default_factory=dict)
    complex: list[int] = field(default_factory=list)
    shared_domains: dict[tuple[int, ...], list[str]] = field(default_factory=dict)
    """Mutual groups that must share a domain, and the candidate domains, the most likely first."""
    shifted: bool = False
    """Whether quotas are uneven because of prices, as far as the skew allows."""

    def refuse(self, number: int, code: str, message: str) -> None:
        self.refused[number] = (*self.refused.get(number, ()), Reason(code=code, message=message))


@dataclass(slots=True, kw_only=True)
class Feedback:
    """Results of earlier attempts at a layer."""

    most: dict[tuple[int, str], int] = field(default_factory=dict)
    """The number of pods of a class that a domain took in an earlier attempt."""
    shared_domains: dict[tuple[int, ...], str] = field(default_factory=dict)
    """The domain to try for a mutual group."""
    heights: dict[int, int] = field(default_factory=dict)
    """Pods per new node, for classes spread over nodes."""
    uneven: set[int] = field(default_factory=set)
    """Classes spread over nodes whose result was not even."""
    evenly: bool = False
    """Whether quotas over domains are even regardless of prices."""
    held_down: bool = False
    """Whether other classes add nodes too: then a new node holds at most maxSkew pods of a class spread over nodes."""
    present: dict[int, set[str]] = field(default_factory=dict)
    """By class: domains that other classes open and that therefore lower its minimum."""
