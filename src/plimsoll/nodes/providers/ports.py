"""The provider protocol between the node autoscaler and a cloud: `Provider` and `Group`.

The names are those of Cluster Autoscaler's provider interface, in Python spelling. Three rules hold for every
implementation:

* Reads raise `ProviderFailed` when the provider does not answer. A call that a provider does not implement returns
  `NotImplementedByProvider`, and the caller does without.
* Changes do not raise for failures of the cloud: they return an `Outcome`. Changes are idempotent: size changes name
  the size that they start from, and deleting what no longer exists succeeds.
* Between two `refresh` calls reads may come from a cache, but a group shows changes that were made through it.
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
    """A created group, possibly with another id than requested, and further groups created with it (per zone)."""

    id: str
    extra_ids: tuple[str, ...] = ()


class NodeOwner(Value):
    """The group of a node, and whether its instance exists; None if the provider does not know."""

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
        """A description for logs."""
        ...

    @property
    def exists(self) -> bool:
        """False for a theoretical group, until `create`."""
        ...

    @property
    def autoprovisioned(self) -> bool | None:
        """None if the provider does not know; then the prefix of the id decides."""
        ...

    @property
    def autoscaled(self) -> bool:
        """Whether the provider's discovery selects the group for autoscaling."""
        ...

    async def target_size(self) -> int: ...

    async def can_increase_atomically(self) -> bool:
        """Whether the group supports `atomic_increase_size`."""
        ...

    async def increase_size(self, delta: int, *, expected: int) -> Outcome:
        """Set the target to `expected + delta` if it is `expected`; done if it has that value already, else refused."""
        ...

    async def atomic_increase_size(self, delta: int, *, expected: int) -> Outcome:
        """The same, for all nodes or none. Does not wait for the instances."""
        ...

    async def delete_nodes(self, nodes: Sequence[NodeRef]) -> Outcome:
        """Delete these nodes and lower the target accordingly; all or none, and never below the minimum."""
        ...

    async def force_delete_nodes(self, nodes: Sequence[NodeRef]) -> Outcome:
        """Delete nodes even below the minimum size."""
        ...

    async def decrease_target_size(self, delta: int, *, expected: int) -> Outcome:
        """Give up instances that do not exist yet; `delta` is negative. Existing nodes are not deleted."""
        ...

    async def nodes(self) -> tuple[Instance, ...]:
        """All instances, including those being created or deleted, and those that failed."""
        ...

    async def template_node_info(self) -> Node | NotImplementedByProvider:
        """A node as the group would create it, ready and empty."""
        ...

    async def create(self) -> Created | CallFailed | NotImplementedByProvider: ...

    async def delete(self) -> Outcome:
        """Delete the group, which must be empty with target 0."""
        ...

    async def get_options(self, defaults: GroupOptions) -> GroupOptions | NotImplementedByProvider: ...


class Provider(Protocol):
    """A cloud provider. `refresh` precedes all other calls of a loop iteration."""

    @property
    def name(self) -> str: ...

    @property
    def naming(self) -> Naming:
        """The rules for ids of new groups."""
        ...

    async def refresh(self) -> None: ...

    async def cleanup(self) -> None:
        """Release connections; called once, when the process exits."""
        ...

    async def node_groups(self) -> tuple[Group, ...]:
        """All groups that exist, by id."""
        ...

    async def node_group_for_node(self, node: NodeRef) -> Group | None:
        """The group of a node; None if the node does not belong to this provider."""
        ...

    async def has_instance(self, node: NodeRef) -> bool | NotImplementedByProvider:
        """Whether the instance of a node exists."""
        ...

    async def node_price(self, node: NodeRef, span: Span) -> float | NotImplementedByProvider | None:
        """The price of a node for a time; None if the provider has prices, but not this one."""
        ...

    async def pod_price(self, pod: Pod, span: Span) -> float | NotImplementedByProvider:
        """The share of a pod's requests in the price of a node; for clients of the externalgrpc protocol."""
        ...

    async def get_machine_types(self) -> tuple[MachineType, ...] | NotImplementedByProvider:
        """The machine types that groups can be created of."""
        ...

    async def new_node_group(self, blueprint: Blueprint) -> Group | CallFailed | NotImplementedByProvider:
        """A theoretical group: nothing is created before its `create`."""
        ...

    async def gpu_label(self) -> str: ...

    async def get_available_gpu_types(self) -> tuple[str, ...]: ...


@runtime_checkable
class ZonedGroup(Protocol):
    """An optional part of a group: the zones that its machines may be in."""

    async def get_zones(self) -> tuple[str, ...]:
        """In the order in which equally filled zones are used."""
        ...


@runtime_checkable
class ZoneForecastingGroup(ZonedGroup, Protocol):
    """An optional part of a group over several zones, for a provider that knows where the next machine comes from."""

    async def forecast_zones(self) -> tuple[str, ...]:
        """The zones of machines that have no node yet, then the zone of the next machine; empty: not known now."""
        ...


@runtime_checkable
class NodeOwners(Protocol):
    """An optional part of a provider: the owners of all nodes by one call."""

    async def find_owners(self, nodes: Sequence[NodeRef]) -> Mapping[str, NodeOwner]:
        """The owners by node name, as `node_group_for_node` and `has_instance` would return; others are missing."""
        ...
