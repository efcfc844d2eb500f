"""Labels of nodes under the names they had before: pods still select by them, and real clusters still keep them.

The controller manager keeps architecture and system of every node under both names; clouds do so with the machine type
and the place. Nobody asks for nodes to be labelled so: the old name says what the new one says. Pure.
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
"""Those of a machine of a cloud."""


def with_old_labels(labels: Mapping[str, str], names: Mapping[str, str] = OLD_LABELS) -> dict[str, str]:
    """The labels, and what they say under old names too; an old name that is there already keeps its value."""
    return {**{old: labels[new] for old, new in names.items() if new in labels}, **labels}
