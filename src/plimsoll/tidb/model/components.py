"""The components that are scaled, and the names and labels of their groups and resource types.

No other module spells out these names.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Final

GROUP_LABEL: Final = "group"
RESOURCE_TYPE_LABEL: Final = "resource-type"
SPECIAL_USE_LABEL: Final = "specialUse"
HOT_REGION: Final = "hotRegion"
GROUP_PREFIX: Final = "pd-auto-scaling"
LONGEST_LABEL_VALUE: Final = 63
LARGEST_COUNT: Final = 2**31 - 1


class Component(StrEnum):
    """A scaled component. TiDB comes first wherever both are handled."""

    TIDB = "tidb"
    TIKV = "tikv"

    @property
    def homogeneous_type(self) -> str:
        """The reserved resource type of the base cluster's own instances."""
        return f"default_homogeneous_{self}"

    @property
    def default_type(self) -> str:
        """The resource type that applies when an autoscaler names none: sized like the cluster's own instances."""
        return f"default_{self}"


RESERVED_TYPES: Final = frozenset(component.homogeneous_type for component in Component)


def make_group_name(component: Component, resource_type: str, suffix: str = "") -> str:
    """The value of the label `group`. A suffix separates groups of one type whose size was changed."""
    end = f"-{suffix}" if suffix else ""
    room = LONGEST_LABEL_VALUE - len(GROUP_PREFIX) - len(component) - len(end) - 2
    return f"{GROUP_PREFIX}-{component}-{resource_type[:room]}{end}"


def make_group_labels(component: Component, resource_type: str, *, group: str) -> dict[str, str]:
    """Labels of a group's instances. PD places only hot regions on TiKV stores with a special use."""
    labels = {GROUP_LABEL: group, RESOURCE_TYPE_LABEL: resource_type}
    return {**labels, SPECIAL_USE_LABEL: HOT_REGION} if component is Component.TIKV else labels
