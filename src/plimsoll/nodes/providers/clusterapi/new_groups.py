"""Groups that auto-provisioning could make of a template, and their making."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from plimsoll.kube.errors import AlreadyExists, NotFound
from plimsoll.nodes.providers.clusterapi.asking import TROUBLE, failure_of, read_if_there, refused
from plimsoll.nodes.providers.clusterapi.group_annotations import is_nap_template
from plimsoll.nodes.providers.clusterapi.machine_types import copy_of, is_copy_for, lost_taints
from plimsoll.nodes.providers.ports import Created
from plimsoll.nodes.providers.theoretical import Theoretical, node_of
from plimsoll.nodes.providers.values import CallFailed, FailureKind, ProviderFailed
from plimsoll.objects.cluster_api import MachineDeployment

if TYPE_CHECKING:
    from plimsoll.nodes.planning.world import MachineType
    from plimsoll.nodes.providers.clusterapi.holdings import Holdings
    from plimsoll.nodes.providers.values import Blueprint, NotImplementedByProvider
    from plimsoll.objects.cluster_api import Scalable
    from plimsoll.objects.decoding import RawObject
    from plimsoll.objects.nodes import Node


class TheoreticalGroup(Theoretical):
    """A copy of a template that nobody has made yet."""

    def __init__(self, blueprint: Blueprint, template: Scalable, *, kind: MachineType, holdings: Holdings) -> None:
        self._namespace = template.metadata.namespace
        name = f"{MachineDeployment.kind_name()}/{self._namespace}/{blueprint.id}"
        super().__init__(name, min_size=0, max_size=blueprint.max_size)
        self._blueprint = blueprint
        self._template = template
        self._kind = kind
        self._holdings = holdings

    async def template_node_info(self) -> Node | NotImplementedByProvider:
        return node_of(self._blueprint, self._kind, group=self.id)

    async def create(self) -> Created | CallFailed | NotImplementedByProvider:
        try:
            problem = await self._make()
            if problem is None:
                await self._holdings.look_again(self.id)
        except ProviderFailed as failed:
            return CallFailed(kind=FailureKind.UNKNOWN, message=str(failed))
        if problem is not None:
            return problem
        self.exists = True
        return Created(id=self.id)

    async def _make(self) -> CallFailed | None:
        """The template is read anew, whole: it may have been changed or taken away since the last refresh."""
        resource = (await self._holdings.served()).resource(MachineDeployment)
        client, name = self._holdings.client, self._template.metadata.name
        try:
            found: RawObject[MachineDeployment] = await client.get_with_raw(resource, name, namespace=self._namespace)
            if not is_nap_template(found.view) or found.view.spec.replicas:
                return refused(f"MachineDeployment {name} is no machine type any more")
            body = copy_of(found, self._blueprint, self._holdings.settings.keys)
            made: MachineDeployment = await client.create(
                resource, msgspec.json.encode(body), namespace=self._namespace
            )
            if lost := lost_taints(made, self._blueprint):
                await client.delete(resource, made.metadata.name, namespace=self._namespace)
                return refused(f"this Cluster API gives nodes no taints: {', '.join(lost)} would be missing")
        except NotFound:
            return refused(f"machine type {name} is gone")
        except AlreadyExists as error:
            there: MachineDeployment | None = await read_if_there(
                client.get(resource, self._blueprint.id, namespace=self._namespace)
            )
            return None if there and is_copy_for(there, self._blueprint) else refused(str(error))
        except TROUBLE as error:
            return failure_of(error)
        return None
