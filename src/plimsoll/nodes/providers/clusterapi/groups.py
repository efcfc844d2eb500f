"""Node groups that are objects of Cluster API.

A group has its bounds as of the last refresh and reads the rest from `ClusterApiCache`. `client.resize` increases
sizes, `delete_nodes` deletes chosen nodes. A `TheoreticalClusterApiGroup` is one that auto-provisioning could create
from a template.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
import structlog
from msgspec import structs

from plimsoll.core.formatting import format_limit
from plimsoll.kube.errors import AlreadyExists, NotFound
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.nodes.model.call_outcomes import CallFailed, Done, FailureKind, NotImplementedByProvider
from plimsoll.nodes.model.instances import InstanceState
from plimsoll.nodes.providers.clusterapi.annotations import is_nap_template, read_options
from plimsoll.nodes.providers.clusterapi.client import (
    CALL_FAILED,
    build_refusal,
    from_expected,
    read_if_there,
    resize,
    to_failure,
)
from plimsoll.nodes.providers.clusterapi.machine_types import copy_template, find_lost_taints, is_copy_for
from plimsoll.nodes.providers.clusterapi.machines import build_instance, get_key, is_real
from plimsoll.nodes.providers.clusterapi.node_templates import TemplateProblem, build_template
from plimsoll.nodes.providers.ports import Created
from plimsoll.nodes.providers.theoretical import Theoretical, build_expected_node
from plimsoll.nodes.providers.values import Instance, ProviderFailed
from plimsoll.objects.api.cluster_api import MachineDeployment

if TYPE_CHECKING:
    from collections.abc import Awaitable, Sequence

    from plimsoll.nodes.model.call_outcomes import Outcome
    from plimsoll.nodes.model.snapshot import MachineType
    from plimsoll.nodes.providers.clusterapi.cache import ClusterApiCache, GroupObject
    from plimsoll.nodes.providers.clusterapi.delete_nodes import MachineDeleter
    from plimsoll.nodes.providers.clusterapi.node_templates import InfrastructureTemplates
    from plimsoll.nodes.providers.values import Blueprint, GroupOptions, NodeRef
    from plimsoll.objects.api.cluster_api import Scalable
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.codec.decoding import RawObject


log = structlog.get_logger(__name__)


class ClusterApiGroup:
    """A MachineDeployment, a MachineSet without one above it, or a MachinePool."""

    exists = True

    def __init__(
        self,
        group: GroupObject,
        *,
        cache: ClusterApiCache,
        infrastructure_templates: InfrastructureTemplates,
        deleter: MachineDeleter,
    ) -> None:
        self._cache = cache
        self._infrastructure_templates = infrastructure_templates
        self._deleter = deleter
        self._group = group
        self.id = group.id
        self.min_size = group.sizes.least
        self.max_size = group.sizes.most
        self.autoprovisioned: bool | None = group.sizes.autoprovisioned
        self.autoscaled = not group.sizes.autoprovisioned

    @property
    def debug(self) -> str:
        return f"{self.id} (min: {self.min_size}, max: {format_limit(self.max_size)}, replicas: {self._group.replicas})"

    # ---- reading

    async def target_size(self) -> int:
        return (await self._get_current()).replicas

    async def can_increase_atomically(self) -> bool:
        return False

    async def nodes(self) -> tuple[Instance, ...]:
        """The instances of machines; a pool also has instances without a machine."""
        found = {instance.id: instance for instance in await self._list_instances()}
        for provider_id in (await self._get_current()).object.spec.provider_id_list:
            found.setdefault(provider_id, Instance(id=provider_id))
        return tuple(found.values())

    async def template_node_info(self) -> Node | NotImplementedByProvider:
        found = (await self._get_current()).object
        infrastructure = await self._infrastructure_templates.find_infrastructure(found)
        architecture = self._cache.settings.architecture
        template = build_template(found, infrastructure, architecture=architecture, like=await self._find_node_labels())
        if not isinstance(template, TemplateProblem):
            return template
        log.info("provider.no_template", group=self.id, problem=template.problem)
        return NotImplementedByProvider(call="TemplateNodeInfo")

    async def get_options(self, defaults: GroupOptions) -> GroupOptions | NotImplementedByProvider:
        options, problems = read_options((await self._get_current()).object, defaults, self._cache.settings.keys)
        for problem in problems:
            log.warning("provider.unreadable_option", group=self.id, problem=problem)
        return options

    # ---- changing

    async def increase_size(self, delta: int, *, expected: int) -> Outcome:
        if delta <= 0:
            return build_refusal(f"growth must be positive, is {delta}")
        if expected + delta > self.max_size:
            return build_refusal(f"node group {self.id} would have {expected + delta}, and may have {self.max_size}")
        return await self._guard_reads(self._resize(delta, expected))

    async def atomic_increase_size(self, delta: int, *, expected: int) -> Outcome:  # noqa: ARG002 - the port's names
        return NotImplementedByProvider(call="AtomicIncreaseSize")

    async def decrease_target_size(self, delta: int, *, expected: int) -> Outcome:
        if delta >= 0:
            return build_refusal(f"what is given up must be negative, is {delta}")
        return await self._guard_reads(self._decrease(delta, expected))

    async def delete_nodes(self, nodes: Sequence[NodeRef]) -> Outcome:
        return await self._guard_reads(self._deleter.remove(self._group, nodes, floor=self.min_size))

    async def force_delete_nodes(self, nodes: Sequence[NodeRef]) -> Outcome:
        return await self._guard_reads(self._deleter.remove(self._group, nodes, floor=0))

    async def create(self) -> Created | CallFailed | NotImplementedByProvider:
        return build_refusal(f"node group {self.id} exists already")

    async def delete(self) -> Outcome:
        """Delete a group that auto-provisioning created, if nothing has changed since it was observed to be empty."""
        if not self.autoprovisioned:
            return build_refusal(f"node group {self.id} was not made by auto-provisioning")
        return await self._guard_reads(self._delete())

    # ---- inside

    async def _get_current(self) -> GroupObject:
        group = await self._cache.get_group(self.id)
        if group is None:
            raise ProviderFailed(f"there is no node group {self.id} any more")
        return group

    async def _guard_reads(self, changing: Awaitable[Done | CallFailed]) -> Outcome:
        try:
            return await changing
        except ProviderFailed as failed:
            # Only reads raise this error, before anything is changed.
            return CallFailed(kind=FailureKind.FAILED, message=str(failed))

    async def _resize(self, delta: int, expected: int) -> Done | CallFailed:
        return await resize(self._cache, self._group, from_expected(self._group, delta, expected=expected))

    async def _decrease(self, delta: int, expected: int) -> Done | CallFailed:
        real = sum(1 for instance in await self.nodes() if is_real(instance))
        if expected + delta < real:
            return build_refusal(f"node group {self.id} has {real} nodes, and is not to be less than that")
        return await self._resize(delta, expected)

    async def _delete(self) -> Done | CallFailed:
        await self._cache.reread_group(self.id)
        group = await self._cache.get_group(self.id)
        if group is None:
            return Done()
        if group.replicas or (await self._cache.get_machine_index()).list_machines(self.id):
            return build_refusal(f"node group {self.id} is not empty")
        meta = group.object.metadata
        resource = (await self._cache.get_served()).get_resource(type(group.object))
        unchanged = DeleteOptions(uid=meta.uid, resource_version=meta.resource_version)
        try:
            await self._cache.client.delete(resource, meta.name, namespace=meta.namespace, options=unchanged)
        except NotFound:
            pass
        except CALL_FAILED as error:
            return to_failure(error)
        await self._cache.reread_group(self.id)
        return Done()

    async def _list_instances(self) -> list[Instance]:
        found: list[Instance] = []
        for machine in (await self._cache.get_machine_index()).list_machines(self.id):
            reference = machine.status.node_ref
            node_id = ""
            if reference is not None and not machine.spec.provider_id:
                node = await self._infrastructure_templates.get_node(reference.name)
                node_id = node.spec.provider_id if node is not None else ""
            instance = build_instance(machine, node_provider_id=node_id)
            if get_key(machine) in self._cache.deleting:
                instance = structs.replace(instance, state=InstanceState.DELETING)
            found.append(instance)
        return found

    async def _find_node_labels(self) -> dict[str, str]:
        for machine in (await self._cache.get_machine_index()).list_machines(self.id):
            if machine.status.node_ref is not None:
                node = await self._infrastructure_templates.get_node(machine.status.node_ref.name)
                return node.metadata.labels if node is not None else {}
        return {}


class TheoreticalClusterApiGroup(Theoretical):
    """A copy of a template that is not created yet."""

    def __init__(self, blueprint: Blueprint, template: Scalable, *, kind: MachineType, cache: ClusterApiCache) -> None:
        self._namespace = template.metadata.namespace
        name = f"{MachineDeployment.get_kind_name()}/{self._namespace}/{blueprint.id}"
        super().__init__(name, min_size=0, max_size=blueprint.max_size)
        self._blueprint = blueprint
        self._template = template
        self._kind = kind
        self._cache = cache

    async def template_node_info(self) -> Node | NotImplementedByProvider:
        return build_expected_node(self._blueprint, self._kind, group=self.id)

    async def create(self) -> Created | CallFailed | NotImplementedByProvider:
        try:
            problem = await self._make()
            if problem is None:
                await self._cache.reread_group(self.id)
        except ProviderFailed as failed:
            return CallFailed(kind=FailureKind.UNKNOWN, message=str(failed))
        if problem is not None:
            return problem
        self.exists = True
        return Created(id=self.id)

    async def _make(self) -> CallFailed | None:
        """Create the copy. The template is read again: it may have been changed or deleted since the last refresh."""
        resource = (await self._cache.get_served()).get_resource(MachineDeployment)
        client, name = self._cache.client, self._template.metadata.name
        try:
            found: RawObject[MachineDeployment] = await client.get_with_raw(resource, name, namespace=self._namespace)
            if not is_nap_template(found.view) or found.view.spec.replicas:
                return build_refusal(f"MachineDeployment {name} is not a machine type any more")
            body = copy_template(found, self._blueprint, self._cache.settings.keys)
            made: MachineDeployment = await client.create(
                resource, msgspec.json.encode(body), namespace=self._namespace
            )
            if lost := find_lost_taints(made, self._blueprint):
                await client.delete(resource, made.metadata.name, namespace=self._namespace)
                return build_refusal(f"this Cluster API gives nodes no taints: {', '.join(lost)} would be missing")
        except NotFound:
            return build_refusal(f"machine type {name} is gone")
        except AlreadyExists as error:
            there: MachineDeployment | None = await read_if_there(
                client.get(resource, self._blueprint.id, namespace=self._namespace)
            )
            return None if there and is_copy_for(there, self._blueprint) else build_refusal(str(error))
        except CALL_FAILED as error:
            return to_failure(error)
        return None
