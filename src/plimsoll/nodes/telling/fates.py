"""What a turn came to for every pod that waits: a place already, nodes on their way, or nothing and why. Pure.

A plan counts pods by entry, because those of one entry are alike. Here they get their names back: the first of an entry
are those with a place, the next are helped by growth, the last are left. Events and the journal both read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from plimsoll.core.plans import Reason
    from plimsoll.nodes.planning.world import Pending
    from plimsoll.nodes.turns import Grown, Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """Of one entry, by names of pods; pods that are no objects have none."""

    pending: Pending
    housed: tuple[str, ...]
    """There is room for them on nodes that are there, or on their way already."""
    helped: tuple[str, ...]
    growths: tuple[str, ...]
    """What was grown for them, as Cluster Autoscaler prints it; empty where none of it was done."""
    left: tuple[str, ...]
    reasons: tuple[Reason, ...]


def fates_of(turn: Turn) -> Iterator[Fate]:
    """Nothing where nobody planned."""
    plan = turn.scale_up.plan
    if turn.snapshot is None or not (plan.growths or plan.existing or plan.remaining):
        return
    housed = _counts(plan.existing.values())
    planned = _counts(
        {key: pods * pattern.nodes for key, pods in pattern.pods.items()}
        for growth in plan.growths
        for pattern in growth.patterns
    )
    growths = _growths_by_key(turn.scale_up.grown)
    why = {key: one.reasons for one in plan.remaining for key in one.keys}
    for one in turn.snapshot.pending:
        first = housed.get(one.key, 0)
        after = first + planned.get(one.key, 0)
        done = growths.get(one.key, {})
        yield Fate(
            pending=one,
            housed=one.names[:first],
            helped=one.names[first:after] if done else (),
            growths=tuple(done),
            left=one.names[after:] if one.key in why else (),
            reasons=why.get(one.key, ()),
        )


def _growths_by_key(grown: Iterable[Grown]) -> dict[str, dict[str, None]]:
    """By entry, the growths that were done for it, in the order of the plan."""
    found: dict[str, dict[str, None]] = {}
    for one in grown:
        if one.is_done:
            printed = f"{{{one.group} {one.before}->{one.after} (max: {one.growth.offer.max_size})}}"
            for pattern in one.growth.patterns:
                for key in pattern.pods:
                    found.setdefault(key, {})[printed] = None
    return found


def _counts(parts: Iterable[Mapping[str, int]]) -> dict[str, int]:
    found: dict[str, int] = {}
    for part in parts:
        for key, pods in part.items():
            found[key] = found.get(key, 0) + pods
    return found
