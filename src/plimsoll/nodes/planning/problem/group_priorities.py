"""The configuration of the priority expander: which groups are used first (docs/design/nodes.md 6.7, 8.4). Pure.

A ConfigMap maps numbers to patterns of group ids. The highest number with a matching group wins; groups that match no
pattern are left out. Without a valid configuration all groups are equal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from plimsoll.nodes.config.expander_priorities import CONFIG_MAP, compile_pattern
from plimsoll.nodes.model.reasons import NO_PRIORITY
from plimsoll.nodes.model.scale_up_plan import SkippedGroup

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.model.scale_up_plan import ScaleUpOption


def assign_tiers(
    options: Sequence[ScaleUpOption], priorities: Mapping[int, tuple[str, ...]]
) -> tuple[tuple[ScaleUpOption, ...], tuple[SkippedGroup, ...]]:
    """The options with their tiers, highest number first, and those that match no pattern."""
    ordered = [[compile_pattern(text) for text in priorities[number]] for number in sorted(priorities, reverse=True)]
    kept: list[ScaleUpOption] = []
    left_out: list[SkippedGroup] = []
    for option in options:
        tier = next(
            (rank for rank, texts in enumerate(ordered) if any(pattern.search(option.group) for pattern in texts)), None
        )
        if tier is None:
            message = f"no pattern of {CONFIG_MAP} meets it"
            left_out.append(
                SkippedGroup(group=option.group, machine_type=option.machine_type, code=NO_PRIORITY, reason=message)
            )
        else:
            kept.append(replace(option, tier=tier))
    return (tuple(kept), tuple(left_out)) if kept else (tuple(options), ())
