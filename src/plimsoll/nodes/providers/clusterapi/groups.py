"""Node groups that are objects of Cluster API.

A group knows its bounds as of the last refresh and asks `Holdings` for the rest. Growth goes through `resizing`,
removal of certain nodes through `removing`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import structlog
from msgspec import structs

from plimsoll.kube.errors import NotFound
from plimsoll.kube.selections import DeleteOptions
from plimsoll.nodes.providers.clusterapi.asking import TROUBLE, failure_of, refused
from plimsoll.nodes.providers.clusterapi.group_annotations import options_of
from plimsoll.nodes.providers.clusterapi.machine_states import instance_of, is_real, key_of
from plimsoll.nodes.providers.clusterapi.node_templates import NoTemplate, template_of
from plimsoll.nodes.providers.clusterapi.resizing import from_expected, resize
from plimsoll.nodes.providers.values import (
    CallFailed,
    Done,
    FailureKind,
    Instance,
    InstanceState,
    NotImplementedByProvider,
    ProviderFailed,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from plimsoll.nodes.providers.clusterapi.holdings import GroupObject, Holdings
    from plimsoll.nodes.providers.clusterapi.removing import Remover
    from plimsoll.nodes.providers.clusterapi.surroundings import Surroundings
    from plimsoll.nodes.providers.ports import Created
    from plimsoll.nodes.providers.values import GroupOptions, NodeRef, Outcome
    from plimsoll.objects.nodes import Node

log = structlog.get_logger(__name__)


class ExistingGroup:
    """A MachineDeployment, a MachineSet without one above it, or a MachinePool."""

    exists = True

    def __init__(self, group: GroupObject, *, holdings: Holdings, surroundings: Surroundings, remover: Remover) -> None:
        self._holdings = holdings
        self._surroundings = surroundings
        self._remover = remover
        self._group = group
        self.id = group.id
        self.min_size = group.sizes.least
        self.max_size = group.sizes.most
        self.autoprovisioned: bool | None = group.sizes.autoprovisioned
        self.autoscaled = not group.sizes.autoprovisioned

    @property
    def debug(self) -> str:
        return f"{self.id} (min: {self.min_size}, max: {self.max_size}, replicas: {self._group.replicas})"

    # ---- reading

    async def target_size(self) -> int:
        return (await self._current()).replicas

    async def grows_atomically(self) -> bool:
        return False

    async def nodes(self) -> tuple[Instance, ...]:
        """By machines; a pool also has instances that no machine stands for."""
        found = {one.id: one for one in await self._instances_of_machines()}
        for provider_id in (await self._current()).object.spec.provider_id_list:
            found.setdefault(provider_id, Instance(id=provider_id))
        return tuple(found.values())

    async def template_node_info(self) -> Node | NotImplementedByProvider:
        found = (await self._current()).object
        infrastructure = await self._surroundings.infrastructure(found)
        architecture = self._holdings.settings.architecture
        template = template_of(found, infrastructure, architecture=architecture, like=await self._labels_of_a_node())
        if not isinstance(template, NoTemplate):
            return template
        log.info("provider.no_template", group=self.id, problem=template.problem)
        return NotImplementedByProvider(call="TemplateNodeInfo")

    async def get_options(self, defaults: GroupOptions) -> GroupOptions | NotImplementedByProvider:
        options, problems = options_of((await self._current()).object, defaults, self._holdings.settings.keys)
        for problem in problems:
            log.warning("provider.unreadable_option", group=self.id, problem=problem)
        return options

    # ---- changing

    async def increase_size(self, delta: int, *, expected: int) -> Outcome:
        if delta <= 0:
            return refused(f"growth must be positive, is {delta}")
        if expected + delta > self.max_size:
            return refused(f"node group {self.id} would have {expected + delta}, and may have {self.max_size}")
        return await self._changed(self._resize(delta, expected))

    async def atomic_increase_size(self, delta: int, *, expected: int) -> Outcome:  # noqa: ARG002 - the port's names
        return NotImplementedByProvider(call="AtomicIncreaseSize")

    async def decrease_target_size(self, delta: int, *, expected: int) -> Outcome:
        if delta >= 0:
            return refused(f"what is given up must be negative, is {delta}")
        return await self._changed(self._decrease(delta, expected))

    async def delete_nodes(self, nodes: Sequence[NodeRef]) -> Outcome:
        return await self._changed(self._remover.remove(self._group, nodes, floor=self.min_size))

    async def force_delete_nodes(self, nodes: Sequence[NodeRef]) -> Outcome:
        return await self._changed(self._remover.remove(self._group, nodes, floor=0))

    async def create(self) -> Created | CallFailed | NotImplementedByProvider:
        return refused(f"node group {self.id} exists already")

    async def delete(self) -> Outcome:
        """Only what auto-provisioning made, and only if nothing has changed since it was seen to be empty."""
        if not self.autoprovisioned:
            return refused(f"node group {self.id} was not made by auto-provisioning")
        return await self._changed(self._delete())

    # ---- inside

    async def _current(self) -> GroupObject:
        group = await self._holdings.group(self.id)
        if group is None:
            raise ProviderFailed(f"there is no node group {self.id} any more")
        return group

    async def _changed(self, changing: Awaitable[Done | CallFailed]) -> Outcome:
        try:
            return await changing
        except ProviderFailed as failed:
            # Only reads end so, before anything is changed.
            return CallFailed(kind=FailureKind.FAILED, message=str(failed))

    async def _resize(self, delta: int, expected: int) -> Done | CallFailed:
        return await resize(self._holdings, self._group, from_expected(self._group, delta, expected=expected))

    async def _decrease(self, delta: int, expected: int) -> Done | CallFailed:
        real = sum(1 for one in await self.nodes() if is_real(one))
        if expected + delta < real:
            return refused(f"node group {self.id} has {real} nodes, and is not to be less than that")
        return await self._resize(delta, expected)

    async def _delete(self) -> Done | CallFailed:
        await self._holdings.look_again(self.id)
        group = await self._holdings.group(self.id)
        if group is None:
            return Done()
        if group.replicas or (await self._holdings.members()).of_group(self.id):
            return refused(f"node group {self.id} is not empty")
        meta = group.object.metadata
        resource = (await self._holdings.served()).resource(type(group.object))
        unchanged = DeleteOptions(uid=meta.uid, resource_version=meta.resource_version)
        try:
            await self._holdings.client.delete(resource, meta.name, namespace=meta.namespace, options=unchanged)
        except NotFound:
            pass
        except TROUBLE as error:
            return failure_of(error)
        await self._holdings.look_again(self.id)
        return Done()

    async def _instances_of_machines(self) -> list[Instance]:
        found: list[Instance] = []
        for machine in (await self._holdings.members()).of_group(self.id):
            reference = machine.status.node_ref
            node_id = ""
            if reference is not None and not machine.spec.provider_id:
                node = await self._surroundings.node(reference.name)
                node_id = node.spec.provider_id if node is not None else ""
            one = instance_of(machine, node_provider_id=node_id)
            if key_of(machine) in self._holdings.going:
                one = structs.replace(one, state=InstanceState.DELETING)
            found.append(one)
        return found

    async def _labels_of_a_node(self) -> dict[str, str]:
        for machine in (await self._holdings.members()).of_group(self.id):
            if machine.status.node_ref is not None:
                node = await self._surroundings.node(machine.status.node_ref.name)
                return node.metadata.labels if node is not None else {}
        return {}
