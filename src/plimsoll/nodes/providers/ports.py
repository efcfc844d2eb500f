"""The protocol between the node autoscaler and a cloud: `Provider`, `Group`, and what making a group gives.

Declared by its user, the autoscaler. The names are those of Cluster Autoscaler's provider interface in our spelling.
Three things hold for every implementation:

* Reads raise `ProviderFailed` when the provider cannot be asked. What a provider does not have at all is an answer
  (`NotImplementedByProvider`), and the caller does without.
* Changes never raise for what a cloud does: they return an `Outcome`. A repeated call does no more than one: growth
  and shrinking name the size they start from, removals of what is gone are done.
* Between two `refresh` calls reads may come from a cache, but a group shows the changes that were made through it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.model.call_outcomes import CallFailed, NotImplementedByProvider, Outcome
    from plimsoll.nodes.model.group_names import Naming
    from plimsoll.nodes.model.snapshot import MachineType
    from plimsoll.nodes.providers.values import Blueprint, GroupOptions, Instance, NodeRef, Span
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod


class Created(Value):
    """A group that exists now, maybe under another id than was asked for, and further ones made with it (by zone)."""

    id: str
    extra_ids: tuple[str, ...] = ()


class NodeOwner(Value):
    """Whose a node is: the id of its group, and whether a machine is behind it; None: the provider cannot tell."""

    group: str
    has_instance: bool | None


class Group(Protocol):
    """A node group. Its properties are as of the last `refresh`; the methods ask or act."""

    @property
    def id(self) -> str: ...

    @property
    def min_size(self) -> int: ...

    @property
    def max_size(self) -> int: ...

    @property
    def debug(self) -> str:
        """For people."""
        ...

    @property
    def exists(self) -> bool:
        """False for a theoretical group, until `create`."""
        ...

    @property
    def autoprovisioned(self) -> bool | None:
        """None: the provider cannot tell, and the prefix of the id decides."""
        ...

    @property
    def autoscaled(self) -> bool:
        """Whether the provider's own discovery says that the group is to be autoscaled."""
        ...

    async def target_size(self) -> int: ...

    async def grows_atomically(self) -> bool:
        """Whether `atomic_increase_size` is there for this group."""
        ...

    async def increase_size(self, delta: int, *, expected: int) -> Outcome:
        """Make the target `expected + delta` if it is `expected`; done if it is that already, refused otherwise."""
        ...

    async def atomic_increase_size(self, delta: int, *, expected: int) -> Outcome:
        """The same, if the cloud has room for all of it. Does not wait for the machines."""
        ...

    async def delete_nodes(self, nodes: Sequence[NodeRef]) -> Outcome:
        """Remove these, and want as many fewer; all or none. Never below the minimum."""
        ...

    async def force_delete_nodes(self, nodes: Sequence[NodeRef]) -> Outcome:
        """Without regard to the minimum."""
        ...

    async def decrease_target_size(self, delta: int, *, expected: int) -> Outcome:
        """Give up on machines that are not there yet; `delta` is negative. Existing nodes are never touched."""
        ...

    async def nodes(self) -> tuple[Instance, ...]:
        """All its instances: also those being created or deleted, and those that failed."""
        ...

    async def template_node_info(self) -> Node | NotImplementedByProvider:
        """A node as the group would give it, ready and empty."""
        ...

    async def create(self) -> Created | CallFailed | NotImplementedByProvider: ...

    async def delete(self) -> Outcome:
        """Only of an empty group that wants nothing."""
        ...

    async def get_options(self, defaults: GroupOptions) -> GroupOptions | NotImplementedByProvider: ...


class Provider(Protocol):
    """A cloud. `refresh` comes before every other call of a turn."""

    @property
    def name(self) -> str: ...

    @property
    def naming(self) -> Naming:
        """What ids new groups may have."""
        ...

    async def refresh(self) -> None: ...

    async def cleanup(self) -> None: ...

    async def node_groups(self) -> tuple[Group, ...]:
        """All groups that exist, by id."""
        ...

    async def node_group_for_node(self, node: NodeRef) -> Group | None:
        """None: not one of this provider's."""
        ...

    async def has_instance(self, node: NodeRef) -> bool | NotImplementedByProvider:
        """Whether a machine is behind the node."""
        ...

    async def node_price(self, node: NodeRef, span: Span) -> float | NotImplementedByProvider | None:
        """None: there are prices, but nobody knows this one."""
        ...

    async def pod_price(self, pod: Pod, span: Span) -> float | NotImplementedByProvider:
        """What its requests would cost on a machine that they fill."""
        ...

    async def machine_types(self) -> tuple[MachineType, ...] | NotImplementedByProvider:
        """What groups can be made of, described in one answer (`GetAvailableMachineTypes`, `DescribeMachineType`)."""
        ...

    async def new_node_group(self, blueprint: Blueprint) -> Group | CallFailed | NotImplementedByProvider:
        """A theoretical group: nothing is made before its `create`."""
        ...

    async def gpu_label(self) -> str: ...

    async def get_available_gpu_types(self) -> tuple[str, ...]: ...


@runtime_checkable
class NodeOwners(Protocol):
    """What a provider may have besides: it says at once of all nodes what it would say of each."""

    async def owners(self, nodes: Sequence[NodeRef]) -> Mapping[str, NodeOwner]:
        """By the names of nodes; those of no group are missing (`node_group_for_node`, `has_instance`)."""
        ...
