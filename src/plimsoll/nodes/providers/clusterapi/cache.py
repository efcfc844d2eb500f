"""A cache of Cluster API's objects between two refreshes, and the group of each node.

A refresh lists every kind once, however many groups there are. Changes that this provider made since are recorded, so
that a group shows them before the next refresh. The cache itself changes no objects.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final, TypeVar

import structlog
from msgspec import structs

from plimsoll.kube.requests.options import Selection
from plimsoll.nodes.providers.clusterapi.annotations import SizeLimits, get_group_id, is_nap_template, read_sizes
from plimsoll.nodes.providers.clusterapi.client import look_up_served, read, read_if_there
from plimsoll.nodes.providers.clusterapi.machines import MachineIndex
from plimsoll.objects.api.cluster_api import ClusterMachine

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.kube.client import Client
    from plimsoll.nodes.providers.clusterapi.client import ServedApi
    from plimsoll.nodes.providers.clusterapi.machines import MachineKey
    from plimsoll.nodes.providers.clusterapi.settings import ClusterApiSettings
    from plimsoll.nodes.providers.values import NodeRef
    from plimsoll.objects.api.cluster_api import Scalable
    from plimsoll.objects.api.meta import WireObject
    from plimsoll.objects.codec.decoding import DecodedList

log = structlog.get_logger(__name__)
T = TypeVar("T", bound="WireObject")

PAGE_SIZE: Final = 5_000
"""Calls are rate-limited, and a machine is small."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupObject:
    """An object that is a node group."""

    id: str
    object: Scalable
    sizes: SizeLimits

    @property
    def replicas(self) -> int:
        return self.object.spec.replicas or 0


class ClusterApiCache:
    """A copy of the objects; `refresh` replaces it."""

    def __init__(self, client: Client, settings: ClusterApiSettings) -> None:
        self.client = client
        self.settings = settings
        self._served: ServedApi | None = None
        self._is_there = False
        self._groups: dict[str, GroupObject] = {}
        self._templates: dict[str, Scalable] = {}
        self._members = MachineIndex.build((), (), keys=settings.keys)
        self.deleting: set[MachineKey] = set()
        """Machines that this provider deleted since the last refresh."""
        self._logged: dict[str, str] = {}

    async def refresh(self) -> None:
        """Read all objects. If that fails, neither the old copy nor the served version is used again."""
        self._is_there = False
        served = self._served or await look_up_served(self.client, self.settings)
        self._served = None
        scalables = [scalable for struct in served.scalable for scalable in await self._list(served, struct)]
        machines = await self._list(served, ClusterMachine)
        self._served = served
        self._set_groups(scalables)
        self._members = MachineIndex.build(scalables, machines, keys=self.settings.keys)
        self.deleting.clear()
        self._is_there = True

    # ---- reading

    async def get_served(self) -> ServedApi:
        await self._ensure_loaded()
        assert self._served is not None
        return self._served

    async def get_groups(self) -> dict[str, GroupObject]:
        await self._ensure_loaded()
        return self._groups

    async def get_group(self, name: str) -> GroupObject | None:
        return (await self.get_groups()).get(name)

    async def get_nap_templates(self) -> dict[str, Scalable]:
        """MachineDeployments that are machine types, by name."""
        await self._ensure_loaded()
        return self._templates

    async def get_machine_index(self) -> MachineIndex:
        await self._ensure_loaded()
        return self._members

    async def find_group(self, node: NodeRef) -> GroupObject | None:
        await self._ensure_loaded()
        return self._groups.get(self._members.find_group(node))

    # ---- recording changes

    def record_replicas(self, group: GroupObject, replicas: int) -> None:
        current = self._groups.get(group.id, group)
        spec = structs.replace(current.object.spec, replicas=replicas)
        self._groups[group.id] = replace(current, object=structs.replace(current.object, spec=spec))

    async def reread_group(self, name: str) -> None:
        """Read one group that was created, deleted or changed; its machines are as of the last refresh."""
        served = await self.get_served()
        kind, namespace, plain = name.split("/")
        struct = next(cls for cls in served.scalable if cls.get_kind_name() == kind)
        found: Scalable | None = await read_if_there(
            self.client.get(served.get_resource(struct), plain, namespace=namespace)
        )
        others = [group_object.object for group_object in self._groups.values() if group_object.id != name]
        self._set_groups([*others, *self._templates.values(), *([found] if found is not None else [])])

    # ---- inside

    async def _ensure_loaded(self) -> None:
        if not self._is_there:
            await self.refresh()

    async def _list(self, served: ServedApi, struct: type[T]) -> tuple[T, ...]:
        selection = Selection(namespace=self.settings.namespace, page_size=PAGE_SIZE)
        listed: DecodedList[T] = await read(self.client.list(served.get_resource(struct), selection))
        for bad in listed.bad:
            self._log_once(f"{bad.kind}/{bad.namespace}/{bad.name}", bad.problem)
        return listed.items

    def _set_groups(self, scalables: Iterable[Scalable]) -> None:
        groups: dict[str, GroupObject] = {}
        templates: dict[str, Scalable] = {}
        for found in scalables:
            if not self.settings.allows(found):
                continue
            name = get_group_id(found)
            if is_nap_template(found) and not found.spec.replicas:
                templates[found.metadata.name] = found
            sizes = read_sizes(found, self.settings.keys)
            if isinstance(sizes, SizeLimits):
                groups[name] = GroupObject(id=name, object=found, sizes=sizes)
            elif sizes.problem:
                self._log_once(name, sizes.problem)
        self._groups = dict(sorted(groups.items()))
        self._templates = dict(sorted(templates.items()))

    def _log_once(self, name: str, problem: str) -> None:
        """Log a problem once, not at every refresh."""
        if self._logged.get(name) != problem:
            self._logged[name] = problem
            log.warning("provider.not_a_group", object=name, problem=problem)
