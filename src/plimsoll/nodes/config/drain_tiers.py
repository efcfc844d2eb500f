"""The tiers of a drain: pods of a node in the order in which they are evicted. Pure.

`--drain-priority-config=PRIORITY:SECONDS,...` makes tiers, drained from the lowest priority up, each with its own
longest grace period. Without it all pods are evicted at once, under `--max-graceful-termination-sec`.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.nodes.config.policy import ScaleDown
    from plimsoll.objects.api.pods import Pod


_PAIR: Final = re.compile(r"\s*(-?[0-9]{1,10})\s*:\s*([0-9]{1,10})\s*")


_DEFAULT_GRACE_S: Final = 30


@dataclass(frozen=True, slots=True, order=True)
class DrainTier:
    """Pods of this priority or more, up to the next tier. A grace period of 0 seconds means no limit."""

    priority: int
    grace_s: int

    def get_grace_s(self, pod: Pod) -> int:
        own = pod.spec.termination_grace_period_seconds
        wanted = _DEFAULT_GRACE_S if own is None else own
        return min(wanted, self.grace_s) if self.grace_s else wanted


def build_drain_tiers(options: ScaleDown) -> tuple[DrainTier, ...]:
    """At least one, the lowest first."""
    if not options.drain_priority_config:
        return (DrainTier(0, options.graceful_termination_s),)
    return parse_drain_tiers(options.drain_priority_config)


def parse_drain_tiers(text: str) -> tuple[DrainTier, ...]:
    tiers = []
    for item in text.split(","):
        pair = _PAIR.fullmatch(item)
        if pair is None:
            raise InvalidInput(f"{item[:40]!r} is not PRIORITY:SECONDS", path="drain-priority-config")
        tiers.append(DrainTier(int(pair[1]), int(pair[2])))
    twice = len({drain_tier.priority for drain_tier in tiers}) < len(tiers)
    if twice:
        raise InvalidInput("names a priority more than once", path="drain-priority-config")
    return tuple(sorted(tiers))


def group_by_tier(pods: Iterable[Pod], tiers: Sequence[DrainTier]) -> list[tuple[DrainTier, list[Pod]]]:
    """Every tier with its pods; a priority below the lowest counts as the lowest."""
    bounds = [tier.priority for tier in tiers]
    found: list[list[Pod]] = [[] for _ in tiers]
    for pod in pods:
        found[max(bisect_right(bounds, pod.spec.priority or 0) - 1, 0)].append(pod)
    return list(zip(tiers, found, strict=True))
