"""The port of the simulated provider to the cloud, and the outcomes of its calls.

A `CloudPort` raises the errors of `objects.api.simulated_cloud_errors` and of `kube`; `to_outcome` converts them to
outcomes. `NotAllowed` is not converted: this process must not act, and the loop iteration ends.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.errors import AnswerLost, ServerFailed, ServerTrouble, UnreadableAnswer
from plimsoll.nodes.model.call_outcomes import CallFailed, Done, FailureKind, NotImplementedByProvider, Outcome
from plimsoll.nodes.providers.values import ProviderFailed
from plimsoll.objects.api.simulated_cloud_errors import (
    CloudError,
    CloudOutOfResources,
    CloudRefused,
    CloudTimedOut,
    NoSuchGroup,
    NotSupported,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping, Sequence
    from typing import TypeVar

    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.simulated_cloud import Cloud, Machine, MachineType, NodeGroup, NodeGroupSpec

    T = TypeVar("T")

# `NotAllowed`, our own guard, is none of them: it ends the loop iteration.
_CALL_FAILED: Final = (CloudError, ServerTrouble, InvalidInput)
# The first that fits decides.
_KINDS: Final = (
    (CloudOutOfResources, FailureKind.OUT_OF_RESOURCES),
    (CloudRefused, FailureKind.REFUSED),
    (NoSuchGroup, FailureKind.NO_SUCH_GROUP),
    ((CloudTimedOut, AnswerLost, ServerFailed, UnreadableAnswer), FailureKind.UNKNOWN),
)


class CloudPort(Protocol):
    """One caller's access to the simulated cloud. `expected` is the target that a change starts from."""

    async def node_groups(self) -> tuple[NodeGroup, ...]: ...

    async def get_node_group(self, group: str) -> NodeGroup: ...

    async def list_machines(self, group: str = "") -> tuple[Machine, ...]: ...

    async def get_cloud(self) -> Cloud: ...

    def forecast_zones(
        self, cloud: Cloud, groups: Sequence[NodeGroup], machines: Sequence[Machine]
    ) -> Mapping[str, tuple[str, ...]]:
        """By group: the zones of its machines that have no node yet, then the zone that its next machine comes from."""
        ...

    async def list_machine_types(self) -> tuple[MachineType, ...]: ...

    async def build_template_node(self, group: str) -> Node: ...

    async def increase_size(self, group: str, delta: int, *, expected: int | None = None) -> None: ...

    async def atomic_increase_size(self, group: str, delta: int, *, expected: int | None = None) -> None: ...

    async def decrease_target_size(self, group: str, delta: int, *, expected: int | None = None) -> None: ...

    async def delete_nodes(self, group: str, names: Sequence[str]) -> None: ...

    async def force_delete_nodes(self, group: str, names: Sequence[str]) -> None: ...

    async def create_group(self, group: str, spec: NodeGroupSpec) -> None: ...

    async def delete_group(self, group: str) -> None: ...


async def to_outcome(call: str, changing: Awaitable[None]) -> Outcome:
    """Make the call, and return its outcome."""
    try:
        await changing
    except NotSupported:
        return NotImplementedByProvider(call=call)
    except _CALL_FAILED as error:
        kind = next((kind for kinds, kind in _KINDS if isinstance(error, kinds)), FailureKind.FAILED)
        return CallFailed(kind=kind, message=str(error))
    return Done()


async def read(reading: Awaitable[T]) -> T:
    """The answer. Raises `ProviderFailed`."""
    try:
        return await reading
    except _CALL_FAILED as error:
        raise ProviderFailed(f"the simulated cloud: {error}") from error
