"""Deprecated names of node labels, which pods still select by and real clusters still set.

The controller manager sets architecture and operating system of every node under both names; clouds do so with machine
type, zone and region. The value of a deprecated label equals that of its successor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Mapping

OLD_SYSTEM_LABELS: Final = {
    "beta.kubernetes.io/os": "kubernetes.io/os",
    "beta.kubernetes.io/arch": "kubernetes.io/arch",
}
"""Labels that every node has; old name to new name."""
OLD_LABELS: Final = {
    **OLD_SYSTEM_LABELS,
    "beta.kubernetes.io/instance-type": "node.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
"""The deprecated labels that clouds set."""


def add_old_labels(labels: Mapping[str, str], names: Mapping[str, str] = OLD_LABELS) -> dict[str, str]:
    """The labels with their deprecated names added; a deprecated label that is present keeps its value."""
    return {**{old: labels[new] for old, new in names.items() if new in labels}, **labels}
