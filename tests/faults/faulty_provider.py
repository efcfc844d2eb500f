"""A cloud provider whose reads can be falsified, and whose deletions are audited.

Every deletion, lower target size and group deletion that is requested is given to `audit` before it happens, whatever
the provider makes of it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from msgspec.structs import replace

from plimsoll.nodes.model.instances import InstanceState
from plimsoll.nodes.providers.values import ProviderFailed
from tests.faults.lies import STATUS_CODES, Lie, change_items

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.core.clock import Clock
    from plimsoll.nodes.model.call_outcomes import Outcome
    from plimsoll.nodes.providers.ports import Group, NodeOwner, NodeOwners, Provider
    from plimsoll.nodes.providers.values import Instance, NodeRef
    from tests.faults.faulty_transport import TransportFaults

    class AuditedProvider(Provider, NodeOwners, Protocol):
        """A provider that also knows the owners of all nodes at once."""


T = TypeVar("T")

PROVIDER_READS = ("refresh", "node_groups", "target_size", "nodes", "owners", "machine_types", "template_node_info")
_STALL_S = 45.0


class Audit(Protocol):
    """Judges requests by the true state of the cluster."""

    async def deletes(self, group: str, nodes: Sequence[NodeRef]) -> None: ...

    async def lowers(self, group: str, after: int) -> None: ...

    async def deletes_group(self, group: str) -> None: ...


class FaultyProvider:
    """`provider` as `faults` let it appear."""

    def __init__(self, provider: AuditedProvider, faults: TransportFaults, audit: Audit, *, clock: Clock) -> None:
        self._provider = provider
        self._faults = faults
        self._audit = audit
        self._clock = clock
        self._recorded: dict[str, Any] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._provider, name)

    async def refresh(self) -> None:
        if (lie := await self._find_lie("refresh")) is not None and lie is not Lie.DUPLICATED:
            return  # What the provider knew before stays.
        await self._provider.refresh()

    async def node_groups(self) -> tuple[Group, ...]:
        found: tuple[Any, ...] = tuple(self._wrap(group) for group in await self._provider.node_groups())
        return await self.falsify("node_groups", "", found)

    async def node_group_for_node(self, node: NodeRef) -> Group | None:
        found = await self._provider.node_group_for_node(node)
        if found is None or await self._find_lie("owners") in {Lie.EMPTY, Lie.HALF, Lie.OTHER_HALF, Lie.UNDECODABLE}:
            return None
        return self._wrap(found)

    async def find_owners(self, nodes: Sequence[NodeRef]) -> Mapping[str, NodeOwner]:
        owners = await self._provider.find_owners(nodes)
        reported = await self.falsify("owners", "", tuple(owners.items()))
        return dict(reported)

    async def get_machine_types(self) -> Any:
        found = await self._provider.get_machine_types()
        assert isinstance(found, tuple)
        return await self.falsify("machine_types", "", found)

    def _wrap(self, group: Group) -> Any:
        return FaultyGroup(group, self, self._audit)

    async def _find_lie(self, call: str) -> Lie | None:
        lie = self._faults.lie_about("provider", call)
        if lie is None:
            return None
        self._faults.struck += 1
        if lie in STATUS_CODES or lie is Lie.TRUNCATED:
            raise ProviderFailed(f"{call}: {lie}")
        if lie is Lie.STALLED:
            await self._clock.sleep(_STALL_S)
            raise ProviderFailed(f"{call}: no answer in time")
        return lie

    def has_undecodable(self, call: str) -> bool:
        return self._faults.lie_about("provider", call) is Lie.UNDECODABLE

    async def falsify(self, call: str, key: str, found: tuple[T, ...]) -> tuple[T, ...]:
        """A list as the fault shows it."""
        lie = await self._find_lie(call)
        if lie is None:
            self._recorded.setdefault(call + key, found)
            return found
        if lie is Lie.STALE:
            recorded: tuple[T, ...] = self._recorded.get(call + key, ())
            return recorded
        return found[1:] if lie is Lie.UNDECODABLE else tuple(change_items(lie, found))

    async def falsify_size(self, size: int) -> int:
        lie = await self._find_lie("target_size")
        if lie is None:
            return size
        wrong = {
            Lie.EMPTY: 0,
            Lie.HALF: size // 2,
            Lie.OTHER_HALF: size - size // 2,
            Lie.DUPLICATED: 2 * size,
            Lie.STALE: 1,
        }
        return wrong.get(lie, -1)


class FaultyGroup:
    """A group of a faulty provider."""

    def __init__(self, group: Group, provider: FaultyProvider, audit: Audit) -> None:
        self._group = group
        self._provider = provider
        self._audit = audit

    def __getattr__(self, name: str) -> Any:
        return getattr(self._group, name)

    async def target_size(self) -> int:
        return await self._provider.falsify_size(await self._group.target_size())

    async def nodes(self) -> tuple[Instance, ...]:
        found = await self._group.nodes()
        reported = await self._provider.falsify("nodes", self._group.id, found)
        if found and self._provider.has_undecodable("nodes"):
            # The one that cannot be decoded: it is there, in no known state.
            return (replace(found[0], state=InstanceState.UNSPECIFIED), *reported)
        return reported

    async def template_node_info(self) -> Any:
        reported = await self._provider.falsify(
            "template_node_info", self._group.id, (await self._group.template_node_info(),)
        )
        if not reported:
            raise ProviderFailed("template_node_info: no answer")
        return reported[0]

    async def delete_nodes(self, nodes: Sequence[NodeRef]) -> Outcome:
        await self._audit.deletes(self._group.id, nodes)
        return await self._group.delete_nodes(nodes)

    async def force_delete_nodes(self, nodes: Sequence[NodeRef]) -> Outcome:
        await self._audit.deletes(self._group.id, nodes)
        return await self._group.force_delete_nodes(nodes)

    async def decrease_target_size(self, delta: int, *, expected: int) -> Outcome:
        await self._audit.lowers(self._group.id, expected + delta)
        return await self._group.decrease_target_size(delta, expected=expected)

    async def delete(self) -> Outcome:
        await self._audit.deletes_group(self._group.id)
        return await self._group.delete()
