"""`ClusterApiProvider`: MachineDeployments, MachineSets and MachinePools behind the autoscaler's protocol.

The provider of `--cloud-provider=clusterapi`. The objects are in the management cluster, the nodes in the workload
cluster; the two may be the same. All state is in the objects, so nothing is lost in a crash.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.nodes.model.call_outcomes import CallFailed, FailureKind, NotImplementedByProvider
from plimsoll.nodes.model.group_names import Naming
from plimsoll.nodes.providers.clusterapi.cache import ClusterApiCache
from plimsoll.nodes.providers.clusterapi.delete_nodes import MachineDeleter
from plimsoll.nodes.providers.clusterapi.groups import ClusterApiGroup, TheoreticalClusterApiGroup
from plimsoll.nodes.providers.clusterapi.machine_types import build_machine_type, find_blueprint_problem
from plimsoll.nodes.providers.clusterapi.node_templates import InfrastructureTemplates, TemplateProblem
from plimsoll.nodes.providers.clusterapi.settings import ClusterApiSettings

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.nodes.model.snapshot import MachineType
    from plimsoll.nodes.providers.clusterapi.cache import GroupObject
    from plimsoll.nodes.providers.ports import Group
    from plimsoll.nodes.providers.values import Blueprint, NodeRef, Span
    from plimsoll.objects.api.cluster_api import Scalable
    from plimsoll.objects.api.pods import Pod

log = structlog.get_logger(__name__)

GPU_LABEL: Final = "cluster-api/accelerator"
# Machines are called like their deployment with two hashes behind it, and become hostnames of at most 63 characters.
_NAMING: Final = Naming(underscores=False, longest=46)
_PLAIN: Final = ClusterApiSettings()


class ClusterApiProvider:
    """The provider. Reads are as of the last `refresh`, plus the changes that it made since."""

    name = "clusterapi"
    naming = _NAMING

    def __init__(self, management: Client, workload: Client, settings: ClusterApiSettings = _PLAIN) -> None:
        self._cache = ClusterApiCache(management, settings)
        self._infrastructure_templates = InfrastructureTemplates(management, workload)
        self._deleter = MachineDeleter(self._cache)

    async def refresh(self) -> None:
        self._infrastructure_templates.forget()
        await self._cache.refresh()

    async def cleanup(self) -> None:
        """Nothing to close: the clients belong to the caller."""

    async def node_groups(self) -> tuple[Group, ...]:
        return tuple(self._build_group(group_object) for group_object in (await self._cache.get_groups()).values())

    async def node_group_for_node(self, node: NodeRef) -> Group | None:
        group = await self._cache.find_group(node)
        return None if group is None else self._build_group(group)

    async def has_instance(self, node: NodeRef) -> bool | NotImplementedByProvider:
        members = await self._cache.get_machine_index()
        return members.find_machine(node) is not None or bool(members.find_group(node))

    # ---- prices: Cluster API has none

    async def node_price(self, node: NodeRef, span: Span) -> float | NotImplementedByProvider | None:  # noqa: ARG002 - the port's names
        return NotImplementedByProvider(call="Pricing")

    async def pod_price(self, pod: Pod, span: Span) -> float | NotImplementedByProvider:  # noqa: ARG002 - the port's names
        return NotImplementedByProvider(call="Pricing")

    # ---- groups that could be created

    async def get_machine_types(self) -> tuple[MachineType, ...] | NotImplementedByProvider:
        found = [
            await self._build_machine_type(scalable) for scalable in (await self._cache.get_nap_templates()).values()
        ]
        return tuple(machine_type for machine_type in found if not isinstance(machine_type, TemplateProblem))

    async def new_node_group(self, blueprint: Blueprint) -> Group | CallFailed | NotImplementedByProvider:
        template = (await self._cache.get_nap_templates()).get(blueprint.machine_type)
        if template is None:
            return _build_refusal(f"there is no MachineDeployment {blueprint.machine_type} that is a machine type")
        kind = await self._build_machine_type(template)
        if isinstance(kind, TemplateProblem):
            return _build_refusal(kind.problem)
        if problem := find_blueprint_problem(blueprint, template, kind):
            return _build_refusal(problem)
        if "_" in blueprint.id or len(blueprint.id) > _NAMING.longest:
            return _build_refusal(f"{blueprint.id} cannot be the name of a MachineDeployment")
        return TheoreticalClusterApiGroup(blueprint, template, kind=kind, cache=self._cache)

    # ---- accelerators

    async def gpu_label(self) -> str:
        return GPU_LABEL

    async def get_available_gpu_types(self) -> tuple[str, ...]:
        return ()

    # ---- inside

    def _build_group(self, group: GroupObject) -> ClusterApiGroup:
        return ClusterApiGroup(
            group, cache=self._cache, infrastructure_templates=self._infrastructure_templates, deleter=self._deleter
        )

    async def _build_machine_type(self, template: Scalable) -> MachineType | TemplateProblem:
        infrastructure = await self._infrastructure_templates.find_infrastructure(template)
        kind = build_machine_type(template, infrastructure, architecture=self._cache.settings.architecture)
        if isinstance(kind, TemplateProblem):
            log.info("provider.no_machine_type", template=template.metadata.name, problem=kind.problem)
        return kind


def _build_refusal(why: str) -> CallFailed:
    return CallFailed(kind=FailureKind.REFUSED, message=f"illegal configuration: {why}")
