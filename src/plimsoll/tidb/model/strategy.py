"""The planner's input: thresholds, sizes and limits of one component. A `Strategy` cannot be invalid."""

from __future__ import annotations

from fractions import Fraction
from typing import Final

from plimsoll.core.values import Value
from plimsoll.tidb.model.components import Component, make_group_name

DEFAULT_MIN_THRESHOLD: Final = 0.1


class ResourceType(Value):
    """An instance size and the maximum number of such instances (None: no maximum).

    `group_suffix` is set when the size was changed while instances of the old size still exist: new instances then
    form a second group.
    """

    name: str
    cpu_milli: int = 0
    memory_bytes: int = 0
    storage_bytes: int = 0
    count: int | None = None
    group_suffix: str = ""

    @property
    def cores(self) -> Fraction:
        return Fraction(self.cpu_milli, 1000)


class Rule(Value):
    """Thresholds of one resource, `0 <= low < high < 1`, and the types that may be added, sorted by name."""

    high: Fraction
    low: Fraction
    types: tuple[str, ...] = ()

    @property
    def target(self) -> Fraction:
        """The usage to aim for: midway between the thresholds, so that neither is near."""
        return (self.high + self.low) / 2


class Strategy(Value):
    """Rules and limits of a component.

    `types` are the types of groups, `homogeneous` is the size of the base cluster's own instances. `pending` counts
    instances per type that were created and have not registered yet.
    """

    component: Component
    cpu: Rule | None = None
    storage: Rule | None = None
    types: dict[str, ResourceType] = {}
    homogeneous: ResourceType | None = None
    node_count: int | None = None
    pending: dict[str, int] = {}
    registered: dict[str, int] = {}
    """Instances per type that registered, says their TidbCluster. If PD lists fewer, data is missing."""
    falls_back: bool = False
    """Scale out groups where the base cluster may not grow. Not on the wire: the operator of the planner chooses."""

    def get_group(self, resource_type: str) -> str:
        """The group that new instances of a type join."""
        known = self.types.get(resource_type)
        return make_group_name(self.component, resource_type, known.group_suffix if known else "")
