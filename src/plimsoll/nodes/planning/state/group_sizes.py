"""Between which sizes a node group may be scaled, and how many more groups auto-provisioning may create. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from plimsoll.nodes.model.group_names import is_ours

if TYPE_CHECKING:
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.snapshot import NodeGroup, Snapshot


LARGEST_GROUP: Final = (1 << 31) - 1
"""The maximum size of a group without a limit of its own: the largest number in the protocols of providers."""
MAX_NODE_GROUPS: Final = "MaxNodeGroups"


MAX_OWN_GROUPS: Final = "MaxAutoprovisionedNodeGroupCount"


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeBounds:
    """The size limits of a managed group."""

    least: int
    most: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupRoom:
    """The number of groups that may still be created; if it is 0, `cap` and `code` name the limit."""

    left: int
    cap: str = ""
    code: str = ""


def find_size_bounds(group: NodeGroup, policy: Policy) -> SizeBounds | None:
    """The size limits of a group; None if it is not managed. Nodes of such a group still count and may hold pods."""
    explicit = policy.groups.list_explicit_bounds().get(group.id)
    if explicit is not None:
        return SizeBounds(least=explicit.least, most=group.max_size if explicit.most is None else explicit.most)
    if group.autoprovisioned:
        if not is_autoprovisioned(group, policy):
            return None
        return SizeBounds(least=0, most=policy.nap.max_group_size or LARGEST_GROUP)
    return SizeBounds(least=group.min_size, most=group.max_size) if group.autoscaled else None


def is_autoprovisioned(group: NodeGroup, policy: Policy) -> bool:
    """Whether auto-provisioning created the group and manages it: both its id and the provider say so."""
    return policy.nap.enabled and group.autoprovisioned and is_ours(group.id, policy.nap.prefix)


def compute_group_room(snapshot: Snapshot, policy: Policy) -> GroupRoom:
    """The room under both limits: on all node groups, and on auto-provisioned ones."""
    nap = policy.nap
    there = len(snapshot.groups)
    ours = sum(1 for group in snapshot.groups if group.autoprovisioned)
    if there >= nap.max_node_groups:
        return GroupRoom(
            left=0, code=MAX_NODE_GROUPS, cap=f"max-node-groups reached ({there} of {nap.max_node_groups})"
        )
    if ours >= nap.max_own_groups:
        cap = f"max-autoprovisioned-node-group-count reached ({ours} of {nap.max_own_groups})"
        return GroupRoom(left=0, code=MAX_OWN_GROUPS, cap=cap)
    return GroupRoom(left=min(nap.max_node_groups - there, nap.max_own_groups - ours))
