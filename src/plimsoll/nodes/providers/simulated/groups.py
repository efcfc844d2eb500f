"""Node groups of the simulated cloud, and groups that could be created.

A `SimulatedGroup` has its bounds as of the last refresh and reads the rest from `SimulatedCloudCache`. A
`TheoreticalSimulatedGroup` is a blueprint until `create`; afterwards the provider lists the group as an existing one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from msgspec import structs

from plimsoll.core.formatting import format_limit
from plimsoll.nodes.model.call_outcomes import CallFailed, Done, FailureKind, NotImplementedByProvider, Outcome
from plimsoll.nodes.model.group_names import hash_profile
from plimsoll.nodes.model.node_templates import AUTOPROVISIONED_LABEL, PROFILE_LABEL
from plimsoll.nodes.providers.ports import Created
from plimsoll.nodes.providers.simulated.cache import UnknownTemplate, build_instance
from plimsoll.nodes.providers.simulated.cloud_ports import read, to_outcome
from plimsoll.nodes.providers.theoretical import Theoretical, build_expected_node
from plimsoll.nodes.providers.values import ProviderFailed
from plimsoll.objects.api.simulated_cloud import GROUP_ID_ANNOTATION, NodeGroupSpec, NodeTemplate

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from plimsoll.nodes.model.snapshot import MachineType
    from plimsoll.nodes.providers.simulated.cache import SimulatedCloudCache
    from plimsoll.nodes.providers.simulated.cloud_ports import CloudPort
    from plimsoll.nodes.providers.values import Blueprint, GroupOptions, Instance, NodeRef
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.simulated_cloud import NodeGroup

log = structlog.get_logger(__name__)


class SimulatedGroup:
    """A NodeGroup object."""

    exists = True

    def __init__(self, group: NodeGroup, *, cloud: CloudPort, cache: SimulatedCloudCache) -> None:
        self._cloud = cloud
        self._cache = cache
        self._name = group.metadata.name
        self.id = group.metadata.annotations.get(GROUP_ID_ANNOTATION) or self._name
        self.min_size = group.spec.min
        self.max_size = group.spec.max
        self.autoprovisioned: bool | None = group.spec.autoprovisioned
        self.autoscaled = group.spec.autoscaled

    @property
    def debug(self) -> str:
        return f"{self.id} ({self.min_size}:{format_limit(self.max_size)})"

    # ---- reading

    async def target_size(self) -> int:
        return (await self._get_current()).spec.target

    async def can_increase_atomically(self) -> bool:
        return (await self._get_current()).spec.atomic

    async def get_zones(self) -> tuple[str, ...]:
        spec = (await self._get_current()).spec
        return spec.zones or await self._cache.get_zones_of_type(spec.machine_type)

    async def forecast_zones(self) -> tuple[str, ...]:
        return await self._cache.forecast_zones(self._name)

    async def nodes(self) -> tuple[Instance, ...]:
        return tuple(build_instance(machine) for machine in await self._cache.list_machines(self._name))

    async def template_node_info(self) -> Node | NotImplementedByProvider:
        """Not implemented for a group whose machine type the cloud does not sell; other groups are not affected."""
        template = await self._cache.get_template(await self._get_current())
        if not isinstance(template, UnknownTemplate):
            return template
        log.warning("provider.no_template", group=self.id, problem=template.problem)
        return NotImplementedByProvider(call="TemplateNodeInfo")

    async def get_options(self, defaults: GroupOptions) -> GroupOptions | NotImplementedByProvider:
        return structs.replace(defaults, zero_or_max=(await self._get_current()).spec.zero_or_max)

    # ---- changing

    async def increase_size(self, delta: int, *, expected: int) -> Outcome:
        return await self._change("IncreaseSize", self._cloud.increase_size(self._name, delta, expected=expected))

    async def atomic_increase_size(self, delta: int, *, expected: int) -> Outcome:
        growing = self._cloud.atomic_increase_size(self._name, delta, expected=expected)
        return await self._change("AtomicIncreaseSize", growing)

    async def decrease_target_size(self, delta: int, *, expected: int) -> Outcome:
        shrinking = self._cloud.decrease_target_size(self._name, delta, expected=expected)
        return await self._change("DecreaseTargetSize", shrinking)

    async def delete_nodes(self, nodes: Sequence[NodeRef]) -> Outcome:
        names = await self._find_remaining(nodes)
        return await self._change("DeleteNodes", self._cloud.delete_nodes(self._name, names)) if names else Done()

    async def force_delete_nodes(self, nodes: Sequence[NodeRef]) -> Outcome:
        names = await self._find_remaining(nodes)
        if not names:
            return Done()
        return await self._change("ForceDeleteNodes", self._cloud.force_delete_nodes(self._name, names))

    async def create(self) -> Created | CallFailed | NotImplementedByProvider:
        return CallFailed(kind=FailureKind.REFUSED, message=f"node group {self.id} exists already")

    async def delete(self) -> Outcome:
        """A group that is gone already was deleted by an earlier call."""
        outcome = await self._change("Delete", self._cloud.delete_group(self._name))
        gone = isinstance(outcome, CallFailed) and outcome.kind is FailureKind.NO_SUCH_GROUP
        return Done() if gone else outcome

    # ---- inside

    async def _get_current(self) -> NodeGroup:
        group = await self._cache.get_group(self._name)
        if group is None:
            raise ProviderFailed(f"there is no node group {self.id} any more")
        return group

    async def _change(self, call: str, changing: Awaitable[None]) -> Outcome:
        try:
            return await to_outcome(call, changing)
        finally:
            self._cache.invalidate(self._name)

    async def _find_remaining(self, nodes: Sequence[NodeRef]) -> list[str]:
        """The machines to delete. Machines that no longer exist are skipped; those of other groups are refused."""
        machines = await read(self._cloud.list_machines())
        known = {machine.spec.provider_id for machine in machines} | {machine.metadata.name for machine in machines}
        return [node.name if node.name in known else node.provider_id for node in nodes if _list_names(node) & known]


def _list_names(node: NodeRef) -> set[str]:
    return {node.name, node.provider_id} - {""}


class TheoreticalSimulatedGroup(Theoretical):
    """A group that auto-provisioning could create from a machine type."""

    def __init__(
        self, blueprint: Blueprint, kind: MachineType, *, cloud: CloudPort, cache: SimulatedCloudCache
    ) -> None:
        super().__init__(blueprint.id, min_size=0, max_size=blueprint.max_size)
        self._blueprint = blueprint
        self._kind = kind
        self._cloud = cloud
        self._cache = cache

    async def template_node_info(self) -> Node | NotImplementedByProvider:
        """The expected template; once the group is created, the group has the real one."""
        return build_expected_node(self._blueprint, self._kind, group=self.id)

    async def create(self) -> Created | CallFailed | NotImplementedByProvider:
        """Succeeds if a group of this id equals the blueprint: an earlier call created it."""
        spec = _build_spec(self._blueprint)
        outcome = await to_outcome("Create", self._cloud.create_group(self.id, spec))
        self._cache.invalidate(self.id)
        if isinstance(outcome, CallFailed) and outcome.kind is FailureKind.REFUSED:
            there = await self._cache.get_group(self.id)
            if there is not None and _is_same(there.spec, spec):
                outcome = Done()
        if not isinstance(outcome, Done):
            return outcome
        self.exists = True
        return Created(id=self.id)


def _build_spec(wanted: Blueprint) -> NodeGroupSpec:
    marks = {AUTOPROVISIONED_LABEL: "true", PROFILE_LABEL: hash_profile(wanted.labels, wanted.taints)}
    return NodeGroupSpec(
        max=wanted.max_size,
        machine_type=wanted.machine_type,
        template=NodeTemplate(
            capacity={**wanted.extra_resources}, labels={**marks, **wanted.labels}, taints=wanted.taints
        ),
        zones=wanted.zones,
        autoprovisioned=True,
        autoscaled=False,
    )


def _is_same(there: NodeGroupSpec, wanted: NodeGroupSpec) -> bool:
    """Whether the specs describe the same group; sizes and boot times may differ."""
    return there.autoprovisioned and (there.machine_type, there.template, there.zones) == (
        wanted.machine_type,
        wanted.template,
        wanted.zones,
    )
