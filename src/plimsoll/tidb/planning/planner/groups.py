"""Instance counts per group while a plan is made.

The module also defines the order in which groups lose instances, and which group of a type gains new ones.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from plimsoll.core.values import Value
from plimsoll.tidb.model.components import LARGEST_COUNT, make_group_labels
from plimsoll.tidb.model.scaling_plan import ScalingPlan

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.tidb.model.strategy import Strategy
    from plimsoll.tidb.planning.planner.instances import Instance


class GroupKey(Value, frozen=True, order=True):
    """A group. The sort order is that of removal: smallest cpu first (0 for an unknown type), then by name.

    Among several groups of one type, the group that gains new instances is the last to lose some.
    """

    cpu_milli: int
    resource_type: str
    is_current: bool
    name: str


class GroupCounts:
    """Desired counts per group, initially the existing and pending instances. Mutable; used for one plan."""

    def __init__(self, strategy: Strategy, instances: Iterable[Instance]) -> None:
        self._strategy = strategy
        existing = Counter((instance.resource_type, instance.group) for instance in instances if instance.group)
        self._current = {
            resource_type: self._find_current_group(resource_type, existing) for resource_type, _ in existing
        }
        self._desired = Counter(
            {self._get_key(resource_type, name): number for (resource_type, name), number in existing.items()}
        )
        for resource_type, number in strategy.pending.items():
            if number and resource_type != strategy.component.homogeneous_type:
                self.add(resource_type, number)

    @property
    def total(self) -> int:
        return self._desired.total()

    @property
    def first_to_shrink(self) -> GroupKey | None:
        return min((group for group, number in self._desired.items() if number), default=None)

    def count_of_type(self, resource_type: str) -> int:
        return sum(number for group, number in self._desired.items() if group.resource_type == resource_type)

    def add(self, resource_type: str, number: int) -> None:
        self._desired[
            self._get_key(
                resource_type, self._current.setdefault(resource_type, self._strategy.get_group(resource_type))
            )
        ] += number

    def remove(self, number: int) -> dict[str, int]:
        """Remove a number of instances, or all there are. Returns how many each group lost."""
        taken: dict[str, int] = {}
        for group in sorted(self._desired):
            taken_here = min(number, self._desired[group])
            if taken_here:
                self._desired[group] -= taken_here
                taken[group.name] = taken_here
                number -= taken_here
        return taken

    def cut_to_counts(self) -> dict[str, int]:
        """Limit every type to its count. Returns how many instances each group lost."""
        cut: dict[str, int] = {}
        over = {
            name: self.count_of_type(name) - resource_type.count
            for name, resource_type in self._strategy.types.items()
            if resource_type.count is not None
        }
        for group in sorted(self._desired):
            taken_here = min(over.get(group.resource_type, 0), self._desired[group])
            if taken_here > 0:
                self._desired[group] -= taken_here
                over[group.resource_type] -= taken_here
                cut[group.name] = taken_here
        return cut

    def build_plans(self) -> tuple[ScalingPlan, ...]:
        """Plans of the groups that should exist, sorted by type."""
        component = self._strategy.component
        ordered = sorted((group.resource_type, group.name, number) for group, number in self._desired.items() if number)
        return tuple(
            ScalingPlan(
                component=component,
                count=min(number, LARGEST_COUNT),
                resource_type=resource_type,
                labels=make_group_labels(component, resource_type, group=name),
            )
            for resource_type, name, number in ordered
        )

    def _get_key(self, resource_type: str, name: str) -> GroupKey:
        known_type = self._strategy.types.get(resource_type)
        return GroupKey(
            cpu_milli=known_type.cpu_milli if known_type else 0,
            resource_type=resource_type,
            is_current=name == self._current.get(resource_type),
            name=name,
        )

    def _find_current_group(self, resource_type: str, existing: Iterable[tuple[str, str]]) -> str:
        """The group that gains new instances of a type.

        A group that an older planner named differently is as good as ours, unless its size differs, in which case the
        strategy has a suffix.
        """
        usual_name = self._strategy.get_group(resource_type)
        known_type = self._strategy.types.get(resource_type)
        names = sorted(name for of, name in existing if of == resource_type)
        return usual_name if usual_name in names or (known_type and known_type.group_suffix) else names[0]
