"""The groups while a plan is made: how many instances each has, and how many it should have.

Used by the rules of the planner, which take and add; it knows the order in which groups give up instances, and which
group of a type takes new ones.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from plimsoll.core.values import Value
from plimsoll.tidb.model.components import LARGEST_COUNT, group_labels
from plimsoll.tidb.model.scaling_plan import ScalingPlan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.tidb.model.strategy import Strategy
    from plimsoll.tidb.planning.planner.instances import Instance


class Group(Value, frozen=True, order=True):
    """Ordered as instances are taken: smallest cpu first (0 if its type is no longer known), then by name.

    Of several groups of one type, the one that takes new instances is the last to lose some.
    """

    cpu_milli: int
    resource_type: str
    is_current: bool
    name: str


class GroupCounts:
    """Starts with what stands and what is pending; mutable, and of one plan only."""

    def __init__(self, strategy: Strategy, instances: Iterable[Instance]) -> None:
        self._strategy = strategy
        standing = Counter((instance.resource_type, instance.group) for instance in instances if instance.group)
        self._current = {kind: self._current_group(kind, standing) for kind, _ in standing}
        self._desired = Counter({self._group(kind, name): number for (kind, name), number in standing.items()})
        for kind, number in strategy.pending.items():
            if number and kind != strategy.component.homogeneous_type:
                self.add(kind, number)

    @property
    def total(self) -> int:
        return self._desired.total()

    @property
    def first_to_shrink(self) -> Group | None:
        return min((group for group, number in self._desired.items() if number), default=None)

    def of_type(self, kind: str) -> int:
        return sum(number for group, number in self._desired.items() if group.resource_type == kind)

    def add(self, kind: str, number: int) -> None:
        self._desired[self._group(kind, self._current.setdefault(kind, self._strategy.group_of(kind)))] += number

    def take(self, number: int) -> dict[str, int]:
        """Give up so many instances, or all there are; how many of each group."""
        taken: dict[str, int] = {}
        for group in sorted(self._desired):
            part = min(number, self._desired[group])
            if part:
                self._desired[group] -= part
                taken[group.name] = part
                number -= part
        return taken

    def cut_to_counts(self) -> dict[str, int]:
        """Nothing beyond the ceiling of its type; how many each group lost."""
        cut: dict[str, int] = {}
        over = {
            kind: self.of_type(kind) - resource_type.count
            for kind, resource_type in self._strategy.types.items()
            if resource_type.count is not None
        }
        for group in sorted(self._desired):
            part = min(over.get(group.resource_type, 0), self._desired[group])
            if part > 0:
                self._desired[group] -= part
                over[group.resource_type] -= part
                cut[group.name] = part
        return cut

    def plans(self) -> tuple[ScalingPlan, ...]:
        """Of groups that should exist, sorted by type."""
        component = self._strategy.component
        wanted = sorted((group.resource_type, group.name, number) for group, number in self._desired.items() if number)
        return tuple(
            ScalingPlan(
                component=component,
                count=min(number, LARGEST_COUNT),
                resource_type=kind,
                labels=group_labels(component, kind, group=name),
            )
            for kind, name, number in wanted
        )

    def _group(self, kind: str, name: str) -> Group:
        known = self._strategy.types.get(kind)
        return Group(
            cpu_milli=known.cpu_milli if known else 0,
            resource_type=kind,
            is_current=name == self._current.get(kind),
            name=name,
        )

    def _current_group(self, kind: str, standing: Iterable[tuple[str, str]]) -> str:
        """Where new instances of a type go: groups that an older planner called otherwise are as good as ours.

        Unless their size is another, which is when the strategy has a suffix.
        """
        usual = self._strategy.group_of(kind)
        known = self._strategy.types.get(kind)
        names = sorted(name for of, name in standing if of == kind)
        return usual if usual in names or (known and known.group_suffix) else names[0]
