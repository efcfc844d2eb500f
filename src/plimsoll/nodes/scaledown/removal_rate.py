"""The limit `--max-removals-per-hour`: which of the planned node removals may start now."""

from __future__ import annotations

from collections import Counter
from functools import partial
from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Reason
from plimsoll.operator.action_rate import CountFailed, HourlyActionLimit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import timedelta

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.nodes.model.scale_down_plan import NodeRemoval

CONFIG_MAP: Final = "cluster-autoscaler-removals"
COUNT_FAILED: Final = "RemovalsNotCounted"
TOO_MANY_REMOVALS: Final = "MaxRemovalsPerHour"


class RemovalLimit:
    """Counts node removals in a ConfigMap of the program's namespace."""

    def __init__(self, client: Client, *, clock: Clock, namespace: str) -> None:
        self._limit = HourlyActionLimit(client, clock=clock, namespace=namespace, name=CONFIG_MAP, key="removals")

    async def select_allowed(
        self, removals: Sequence[NodeRemoval], most: int | None
    ) -> tuple[tuple[NodeRemoval, ...], dict[str, Reason]]:
        """The removals that may start, counted from now on, and for each other node why its removal may not."""
        if most is None or not removals:
            return tuple(removals), {}
        chosen = await self._limit.reserve(most, partial(_choose, removals))
        if isinstance(chosen, CountFailed):
            message = f"removals of the last hour could not be counted: {chosen.problem}"
            reason = Reason(code=COUNT_FAILED, message=message)
            return (), dict.fromkeys((removal.node for removal in removals), reason)
        reason = Reason(
            code=TOO_MANY_REMOVALS,
            message=f"max-removals-per-hour is {most}, and so many nodes were removed in the last hour",
            facts={"maxRemovalsPerHour": most},
        )
        return chosen, {removal.node: reason for removal in removals if removal not in chosen}

    def adjust_clock(self, by: timedelta) -> None:
        self._limit.on_clock_set(by)


def _choose(removals: Sequence[NodeRemoval], room: int) -> tuple[NodeRemoval, ...]:
    """At most `room` removals in their order. A group that is scaled as a whole goes completely or not at all."""
    sizes = Counter(removal.group for removal in removals if removal.atomic)
    chosen: list[NodeRemoval] = []
    whole_groups: set[str] = set()
    for removal in removals:
        if removal.atomic and removal.group not in whole_groups and sizes[removal.group] <= room:
            whole_groups.add(removal.group)
            room -= sizes[removal.group]
        if removal.group in whole_groups and removal.atomic:
            chosen.append(removal)
        elif not removal.atomic and room > 0:
            chosen.append(removal)
            room -= 1
    return tuple(chosen)
