"""What a node object says of itself that bears on its removal: ready, leaving, not there yet, to be left alone.

Read once for each node object (`homes` keeps it); what the controller knows beside it is in `removal_candidates.Known`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.nodes.planning.limits import BEING_DELETED
from plimsoll.nodes.planning.node_templates import TEMPLATE_LABEL

if TYPE_CHECKING:
    from plimsoll.objects.nodes import Node

SCALE_DOWN_DISABLED: Final = "cluster-autoscaler.kubernetes.io/scale-down-disabled"


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """Of one node."""

    ready: bool
    """A node that says nothing of it is taken for ready: files leave conditions out."""
    leaving: bool
    upcoming: bool
    """It stands for a machine that has not joined yet."""
    disabled: bool
    """Annotated not to be removed."""

    @property
    def is_plain(self) -> bool:
        return self.ready and not (self.leaving or self.upcoming or self.disabled)

    @classmethod
    def of(cls, node: Node) -> Standing:
        meta = node.metadata
        tainted = any(taint.key == BEING_DELETED for taint in node.spec.taints)
        return cls(
            ready=all(one.status == "True" for one in node.status.conditions if one.type == "Ready"),
            leaving=tainted or meta.deletion_timestamp is not None,
            upcoming=meta.labels.get(TEMPLATE_LABEL) == "true",
            disabled=meta.annotations.get(SCALE_DOWN_DISABLED) == "true",
        )
