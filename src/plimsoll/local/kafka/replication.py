"""How fast replicas catch up: network and throttles, shared evenly among the fetches under them. Pure.

A fetch is throttled at its source if the topic's leader list names the source's replica and the source has a rate;
likewise at its destination, by the follower list.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.local.kafka.partitions import SimulatedPartition

NETWORK: Final = "network"
THROTTLE: Final = "throttle"
DISK: Final = "disk"


@dataclass(frozen=True, slots=True)
class Fetch:
    """A replica that catches up, from another broker or within its own (`is_local`)."""

    partition: SimulatedPartition
    source: int
    destination: int
    limits: tuple[tuple[str, float], ...]
    """The limits that it shares: a name, and bytes per second."""
    is_local: bool = False


def share_rates(fetches: Iterable[Fetch]) -> list[tuple[Fetch, float]]:
    """The rate of each fetch: the least of its shares. What one limit leaves unused is not given to others."""
    known = list(fetches)
    users = Counter(name for fetch in known for name, _ in fetch.limits)
    return [(fetch, min((rate / users[name] for name, rate in fetch.limits), default=0.0)) for fetch in known]
