"""What is scaled, and how groups and resource types of it are called.

Every other module of the planner and the controller take these names from here; nowhere else is one spelled out.
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
    """What has instances. TiDB comes first wherever both are handled."""

    TIDB = "tidb"
    TIKV = "tikv"

    @property
    def homogeneous_type(self) -> str:
        """The reserved resource type that stands for instances of the cluster itself."""
        return f"default_homogeneous_{self}"

    @property
    def default_type(self) -> str:
        """The ordinary type, sized like the cluster's own instances, of who names none."""
        return f"default_{self}"


RESERVED_TYPES: Final = frozenset(component.homogeneous_type for component in Component)


def group_name(component: Component, resource_type: str, suffix: str = "") -> str:
    """The value of the label `group`. A suffix tells groups apart whose type changed its size."""
    end = f"-{suffix}" if suffix else ""
    room = LONGEST_LABEL_VALUE - len(GROUP_PREFIX) - len(component) - len(end) - 2
    return f"{GROUP_PREFIX}-{component}-{resource_type[:room]}{end}"


def group_labels(component: Component, resource_type: str, *, group: str) -> dict[str, str]:
    """Labels of a group's instances. PD balances nothing onto TiKV stores of a special use but hot regions."""
    labels = {GROUP_LABEL: group, RESOURCE_TYPE_LABEL: resource_type}
    return {**labels, SPECIAL_USE_LABEL: HOT_REGION} if component is Component.TIKV else labels
