"""Groups whose nodes and target size disagree, and since when. Pure.

A group is right when its nodes are at most its target, and at least the target without machines that have yet to
register. The time counts while both numbers stay the same: a group that moves is at work.
"""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import replace as changed
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import datetime, timedelta

    from plimsoll.nodes.cluster_state.readiness import Readiness


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeMismatch:
    """So many nodes where so many are wanted, since then."""

    nodes: int
    target: int
    since: datetime


class SizeMismatches:
    """What differed at the last look."""

    def __init__(self) -> None:
        self._differences: dict[str, SizeMismatch] = {}

    def observe(self, group: str, readiness: Readiness, target: int, now: datetime) -> SizeMismatch | None:
        nodes = readiness.registered
        if target - readiness.all_unregistered <= nodes <= target:
            self._differences.pop(group, None)
            return None
        before = self._differences.get(group)
        if before is None or (before.nodes, before.target) != (nodes, target):
            before = self._differences[group] = SizeMismatch(nodes=nodes, target=target, since=now)
        return before

    def postpone(self, by: timedelta) -> None:
        self._differences = {
            group: changed(difference, since=difference.since + by) for group, difference in self._differences.items()
        }

    def keep_only(self, groups: Collection[str]) -> None:
        self._differences = {group: difference for group, difference in self._differences.items() if group in groups}
