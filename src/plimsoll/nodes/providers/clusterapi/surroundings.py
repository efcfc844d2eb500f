"""What is looked up only when somebody asks for a template: the infrastructure's word, and a node of the group."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.kube.errors import ApiError, UnreadableAnswer
from plimsoll.nodes.providers.clusterapi.asking import preferred_version, read, read_if_there
from plimsoll.nodes.providers.clusterapi.node_templates import NOTHING_TOLD, Infrastructure
from plimsoll.nodes.providers.values import ProviderFailed
from plimsoll.objects.nodes import Node

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.objects.cluster_api import InfrastructureReference, Scalable

log = structlog.get_logger(__name__)


# Refreshes that an object which tells nothing is not asked again: there may be dozens, and calls are rationed.
_PATIENCE: Final = 6


class Surroundings:
    """Of the workload cluster's nodes it is known until the next refresh what they are.

    Machine templates never change, so what one has told stays; one that told nothing is asked again now and then.
    """

    def __init__(self, management: Client, workload: Client) -> None:
        self._management = management
        self._workload = workload
        self._told: dict[str, Infrastructure] = {}
        self._asked_in: dict[str, int] = {}
        self._versions: dict[str, str] = {}
        self._nodes: dict[str, Node | None] = {}
        self._refreshes = 0

    def forget(self) -> None:
        self._refreshes += 1
        self._nodes.clear()

    async def infrastructure(self, found: Scalable) -> Infrastructure:
        """Nothing, where there is no such object or it may not be read: annotations may tell enough."""
        reference = found.spec.template.spec.infrastructure_ref
        if reference is None or not reference.kind or not reference.name:
            return NOTHING_TOLD
        api_version = await self._api_version(reference)
        if not api_version:
            return NOTHING_TOLD
        namespace = found.metadata.namespace
        path = f"/apis/{api_version}/namespaces/{namespace}/{reference.kind.lower()}s/{reference.name}"
        if self._is_worth_asking(path):
            self._told[path] = await self._told_at(path)
            self._asked_in[path] = self._refreshes
        return self._told[path]

    async def node(self, name: str) -> Node | None:
        if name not in self._nodes:
            self._nodes[name] = await read_if_there(self._workload.get(Node, name))
        return self._nodes[name]

    def _is_worth_asking(self, path: str) -> bool:
        known = self._told.get(path)
        if known is None:
            return True
        return not known.capacity and self._refreshes - self._asked_in[path] >= _PATIENCE

    async def _api_version(self, reference: InfrastructureReference) -> str:
        group = reference.api_group
        if not group:
            return reference.api_version if "/" in reference.api_version else ""
        if not self._versions.get(group):
            self._versions[group] = await preferred_version(self._management, group)
        version = self._versions[group]
        return f"{group}/{version}" if version else ""

    async def _told_at(self, path: str) -> Infrastructure:
        try:
            return Infrastructure.told_by(await read(self._management.get_json(path)))
        except ProviderFailed as failed:
            if not isinstance(failed.__cause__, ApiError | UnreadableAnswer):
                raise
            log.info("provider.no_infrastructure_template", path=path, problem=str(failed))
            return NOTHING_TOLD
