"""The initial content of a simulated cluster: definitions, a cloud that sells machines, and one small node group.

The definitions are updated at every start. The rest is created once, for a cluster without a cloud: later changes and
deletions by users stay.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value
from plimsoll.kube.errors import AlreadyExists, NotFound
from plimsoll.local.volumes.storage_classes import build_default_storage_class
from plimsoll.objects.api.apiextensions import CustomResourceDefinition
from plimsoll.objects.api.simulated_cloud import CLOUD_GROUP, THE_CLOUD, Cloud, Machine, NodeGroup
from plimsoll.objects.api.storage import StorageClass
from plimsoll.objects.validation import list_shipped_definitions

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.meta import WireObject
    from plimsoll.objects.codec.manifests import Manifest

FIRST_GROUP: Final = "workers"
FIRST_MACHINE_TYPE: Final = "n1-standard-4"
FIRST_NODES: Final = 3

_LARGEST_GROUP: Final = 100
_SERVED_WITHIN_S: Final = 30.0
_LOOK_EVERY_S: Final = 0.2


class InitialCloud(Value, frozen=True):
    """Where the cluster is, and which machines can be had there. `boot_s`: of groups that say nothing else."""

    region: str = "local"
    zones: tuple[str, ...] = ("local-a", "local-b", "local-c")
    catalogues: tuple[str, ...] = ("gce-n1", "aws-m6i-c6i-r6i", "aws-graviton", "aws-gpu")
    boot_s: float = 10.0


class InitialGroup(Value, frozen=True):
    """The first node group. `boot_s`: long enough to be seen, short enough to wait for."""

    name: str = FIRST_GROUP
    machine_type: str = FIRST_MACHINE_TYPE
    nodes: int = FIRST_NODES
    boot_s: float = 3.0


class InitialCluster(Value, frozen=True):
    """`nodes` None: as many as there were, and those of the group in a new cluster. `group` None: none is made."""

    nodes: int | None = None
    group: InitialGroup | None = InitialGroup()
    cloud: InitialCloud = InitialCloud()


async def prepare_cluster(client: Client, wanted: InitialCluster) -> None:
    """Make what is missing. The cloud comes last: a start that ends half-way is gone through again."""
    for manifest in list_shipped_definitions():
        await _define(client, manifest)
    is_new = await _is_new(client)
    if is_new:
        await _make(client, StorageClass, build_default_storage_class())
    if wanted.group is not None and (is_new or wanted.nodes is not None):
        await _resize_group(client, wanted.group, wanted.group.nodes if wanted.nodes is None else wanted.nodes)
    if is_new:
        await _make(client, Cloud, _build_cloud(wanted.cloud))


async def prepare_cloud(client: Client, *, boot_s: float, clock: Clock) -> None:
    """What the simulated cloud needs in an existing cluster: its definitions, and machine types."""
    for manifest in list_shipped_definitions():
        if manifest.body["spec"]["group"] == CLOUD_GROUP:
            await _define(client, manifest)
    await _wait_until_served(client, clock=clock)
    if await _is_new(client):
        await _make(client, Cloud, _build_cloud(InitialCloud(boot_s=boot_s)))


async def _wait_until_served(client: Client, *, clock: Clock) -> None:
    """A real server takes a moment from a definition to serving it. Raises `NotFound` if it does not come about."""
    until_s = clock.monotonic_s() + _SERVED_WITHIN_S
    for kind in (Cloud, NodeGroup, Machine):
        while True:
            try:
                await client.list(kind)
                break
            except NotFound:
                if clock.monotonic_s() > until_s:
                    raise
            await clock.sleep(_LOOK_EVERY_S)


async def _define(client: Client, manifest: Manifest) -> None:
    await client.apply(CustomResourceDefinition, manifest.ref.name, manifest.body, force=True)


async def _is_new(client: Client) -> bool:
    try:
        await client.get(Cloud, THE_CLOUD)
    except NotFound:
        return True
    return False


async def _resize_group(client: Client, group: InitialGroup, nodes: int) -> None:
    manifest = {
        "metadata": {"name": group.name},
        "spec": {
            "machineType": group.machine_type,
            # An autoscaler that finds nothing to do must not take away what a newcomer is looking at.
            "min": nodes,
            "max": max(_LARGEST_GROUP, nodes),
            "target": nodes,
            "bootSeconds": group.boot_s,
        },
    }
    try:
        await client.create(NodeGroup, manifest)
    except AlreadyExists:
        found = await client.get(NodeGroup, group.name)
        sizes = {"target": nodes, "min": nodes}
        if nodes > found.spec.max:
            sizes["max"] = nodes
        await client.merge_patch(NodeGroup, group.name, {"spec": sizes})


async def _make(client: Client, kind: type[WireObject], body: Mapping[str, Any]) -> None:
    try:
        await client.create(kind, body)
    except AlreadyExists:
        return


def _build_cloud(cloud: InitialCloud) -> dict[str, Any]:
    return {
        "metadata": {"name": THE_CLOUD},
        "spec": {
            "region": cloud.region,
            "zones": list(cloud.zones),
            "catalogues": list(cloud.catalogues),
            "bootSeconds": cloud.boot_s,
        },
    }
