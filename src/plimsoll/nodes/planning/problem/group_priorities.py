"""The configuration of the priority expander: which groups are used first (docs/design/nodes.md 6.7, 8.4). Pure.

A ConfigMap maps numbers to patterns of group ids. The highest number with a matching group wins; groups that match no
pattern are left out. Without a valid configuration all groups are equal.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, Protocol

from plimsoll.core.errors import InvalidInput
from plimsoll.nodes.model.reasons import NO_PRIORITY
from plimsoll.nodes.model.scale_up_options import NotOffered

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.model.scale_up_options import ScaleUpOption


CONFIG_MAP: Final = "cluster-autoscaler-priority-expander"
KEY: Final = "priorities"


class Pattern(Protocol):
    """A compiled regular expression."""

    def search(self, text: str) -> object | None: ...


def compiled_pattern(text: str) -> Pattern:
    """Patterns come from users, so they are compiled by RE2, whose matching time is linear."""
    import re2  # noqa: PLC0415 -- a tenth of a second that only the priority expander needs

    try:
        pattern: Pattern = re2.compile(text)
    except re2.error as error:
        raise InvalidInput(f"{text!r} is no pattern: {error}") from error
    return pattern


def read_priorities(document: Any) -> dict[int, tuple[str, ...]]:
    """The parsed YAML of the ConfigMap's key; raises `InvalidInput` with the path of the mistake."""
    if not isinstance(document, dict):
        raise InvalidInput("must map numbers to lists of patterns", path=KEY)
    found: dict[int, tuple[str, ...]] = {}
    for written, patterns in document.items():
        # A YAML reader may have turned keys into strings, as JSON has them.
        if isinstance(written, bool) or not str(written).lstrip("-").isdecimal():
            raise InvalidInput(f"{written!r} is no whole number", path=KEY)
        number = int(written)
        if not isinstance(patterns, list) or not all(isinstance(pattern, str) for pattern in patterns):
            raise InvalidInput("must be a list of patterns", path=f"{KEY}[{number}]")
        for pattern in patterns:
            compiled_pattern(pattern)
        found[number] = tuple(patterns)
    return found


def in_tiers(
    offers: Sequence[ScaleUpOption], priorities: Mapping[int, tuple[str, ...]]
) -> tuple[tuple[ScaleUpOption, ...], tuple[NotOffered, ...]]:
    """The options with their tiers, highest number first, and those that match no pattern."""
    ordered = [[compiled_pattern(text) for text in priorities[number]] for number in sorted(priorities, reverse=True)]
    kept: list[ScaleUpOption] = []
    left_out: list[NotOffered] = []
    for offer in offers:
        tier = next(
            (rank for rank, texts in enumerate(ordered) if any(pattern.search(offer.group) for pattern in texts)), None
        )
        if tier is None:
            told = f"no pattern of {CONFIG_MAP} meets it"
            left_out.append(
                NotOffered(group=offer.group, machine_type=offer.machine_type, code=NO_PRIORITY, reason=told)
            )
        else:
            kept.append(replace(offer, tier=tier))
    return (tuple(kept), tuple(left_out)) if kept else (tuple(offers), ())
