"""The plan for one group: how many instances it should have."""

from __future__ import annotations

from plimsoll.core.values import Value
from plimsoll.tidb.model.components import GROUP_LABEL, Component


class ScalingPlan(Value, rename={}):
    """The desired number of instances of one group or, without labels, of the base cluster."""

    component: Component
    count: int
    resource_type: str
    labels: dict[str, str] = {}

    @property
    def is_homogeneous(self) -> bool:
        return self.resource_type == self.component.homogeneous_type

    @property
    def group(self) -> str:
        """The key of the plan: the group, or the reserved type for instances of the base cluster."""
        return self.resource_type if self.is_homogeneous else self.labels.get(GROUP_LABEL, "")
