"""The base class of node groups that could be created.

A theoretical group has no nodes and accepts no change except `create`; afterwards the provider lists the created group.
Providers add the template and the creation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.formatting import format_limit
from plimsoll.nodes.model.call_outcomes import CallFailed, FailureKind
from plimsoll.nodes.model.group_names import hash_profile
from plimsoll.nodes.model.node_templates import MachineTemplate
from plimsoll.nodes.model.scale_up_plan import GroupProfile

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.model.call_outcomes import NotImplementedByProvider, Outcome
    from plimsoll.nodes.model.snapshot import MachineType
    from plimsoll.nodes.providers.values import Blueprint, GroupOptions, Instance, NodeRef
    from plimsoll.objects.api.nodes import Node


class Theoretical:
    """A group before `create`. It is not marked as autoscaled: that marks groups that people created."""

    autoprovisioned: bool | None = True
    autoscaled = False

    def __init__(self, name: str, *, min_size: int, max_size: int) -> None:
        self.id = name
        self.min_size = min_size
        self.max_size = max_size
        self.exists = False

    @property
    def debug(self) -> str:
        return f"{self.id} ({self.min_size}:{format_limit(self.max_size)}, {'made' if self.exists else 'not made'})"

    async def target_size(self) -> int:
        return 0

    async def can_increase_atomically(self) -> bool:
        return False

    async def nodes(self) -> tuple[Instance, ...]:
        return ()

    async def get_options(self, defaults: GroupOptions) -> GroupOptions | NotImplementedByProvider:
        return defaults

    async def increase_size(self, delta: int, *, expected: int) -> Outcome:
        return self._build_refusal(f"grow by {delta} from {expected}")

    async def atomic_increase_size(self, delta: int, *, expected: int) -> Outcome:
        return self._build_refusal(f"grow by {delta} from {expected}")

    async def decrease_target_size(self, delta: int, *, expected: int) -> Outcome:
        return self._build_refusal(f"shrink by {-delta} from {expected}")

    async def delete_nodes(self, nodes: Sequence[NodeRef]) -> Outcome:
        return self._build_refusal(f"lose {len(nodes)} nodes")

    async def force_delete_nodes(self, nodes: Sequence[NodeRef]) -> Outcome:
        return self._build_refusal(f"lose {len(nodes)} nodes")

    async def delete(self) -> Outcome:
        return self._build_refusal("be deleted")

    def _build_refusal(self, what: str) -> CallFailed:
        message = f"node group {self.id} is theoretical, it cannot {what}; the provider has the one that was made"
        return CallFailed(kind=FailureKind.REFUSED, message=message)


def build_expected_node(wanted: Blueprint, kind: MachineType, *, group: str) -> Node:
    """The expected node of a group created from this blueprint, in its first zone."""
    zone = (*wanted.zones, *kind.zones, "")[0]
    profile = GroupProfile(labels=wanted.labels, taints=wanted.taints, hash=hash_profile(wanted.labels, wanted.taints))
    return MachineTemplate(kind).build_node(group, zone, profile)
