"""The priority expander's word: which groups come first, whatever the money (specs/nodes.md 6.7, 8.4). Pure.

A ConfigMap holds numbers with patterns of group ids; the highest number that meets any group wins, groups that no
pattern meets are left out. Where there is no such configuration, or it cannot be read, all groups are equal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.nodes.planning.expanders import compiled_pattern
from plimsoll.nodes.planning.offers import NotOffered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.planning.offers import Offer

CONFIG_MAP: Final = "cluster-autoscaler-priority-expander"
KEY: Final = "priorities"
NO_PRIORITY: Final = "NoPriority"


def read_priorities(document: Any) -> dict[int, tuple[str, ...]]:
    """What the ConfigMap's key holds, parsed as YAML; raises `InvalidInput` with the place of what is wrong."""
    if not isinstance(document, dict):
        raise InvalidInput("must map numbers to lists of patterns", path=KEY)
    found: dict[int, tuple[str, ...]] = {}
    for written, patterns in document.items():
        # Whoever read the YAML may have made keys texts, as JSON has them.
        if isinstance(written, bool) or not str(written).lstrip("-").isdecimal():
            raise InvalidInput(f"{written!r} is no whole number", path=KEY)
        number = int(written)
        if not isinstance(patterns, list) or not all(isinstance(one, str) for one in patterns):
            raise InvalidInput("must be a list of patterns", path=f"{KEY}[{number}]")
        for pattern in patterns:
            compiled_pattern(pattern)
        found[number] = tuple(patterns)
    return found


def in_tiers(
    offers: Sequence[Offer], priorities: Mapping[int, tuple[str, ...]]
) -> tuple[tuple[Offer, ...], tuple[NotOffered, ...]]:
    """Offers with their tier, highest number first, and those that no pattern meets."""
    ordered = [[compiled_pattern(text) for text in priorities[number]] for number in sorted(priorities, reverse=True)]
    kept: list[Offer] = []
    left_out: list[NotOffered] = []
    for offer in offers:
        tier = next((rank for rank, texts in enumerate(ordered) if any(one.search(offer.group) for one in texts)), None)
        if tier is None:
            told = f"no pattern of {CONFIG_MAP} meets it"
            left_out.append(
                NotOffered(group=offer.group, machine_type=offer.machine_type, code=NO_PRIORITY, reason=told)
            )
        else:
            kept.append(replace(offer, tier=tier))
    return (tuple(kept), tuple(left_out)) if kept else (tuple(offers), ())
