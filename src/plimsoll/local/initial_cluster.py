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


class InitialCluster(Value, frozen=True):
    """`nodes` None: as many as there were, and `FIRST_NODES` in a new cluster."""

    nodes: int | None = None
    boot_s: float = 3.0
    """Of machines of the first group: long enough to be seen, short enough to wait for."""


async def prepare_cluster(client: Client, wanted: InitialCluster) -> None:
    """Make what is missing. The cloud comes last: a start that ends half-way is gone through again."""
    for manifest in list_shipped_definitions():
        await _define(client, manifest)
    is_new = await _is_new(client)
    if is_new:
        await _make(client, StorageClass, build_default_storage_class())
    if is_new or wanted.nodes is not None:
        await _resize_group(client, wanted)
    if is_new:
        await _make(client, Cloud, _build_cloud())


async def prepare_cloud(client: Client, *, boot_s: float, clock: Clock) -> None:
    """What the simulated cloud needs in an existing cluster: its definitions, and machine types."""
    for manifest in list_shipped_definitions():
        if manifest.body["spec"]["group"] == CLOUD_GROUP:
            await _define(client, manifest)
    await _wait_until_served(client, clock=clock)
    if await _is_new(client):
        await _make(client, Cloud, _build_cloud(boot_s=boot_s))


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


async def _resize_group(client: Client, wanted: InitialCluster) -> None:
    nodes = FIRST_NODES if wanted.nodes is None else wanted.nodes
    group = {
        "metadata": {"name": FIRST_GROUP},
        "spec": {
            "machineType": FIRST_MACHINE_TYPE,
            # An autoscaler that finds nothing to do must not take away what a newcomer is looking at.
            "min": nodes,
            "max": max(_LARGEST_GROUP, nodes),
            "target": nodes,
            "bootSeconds": wanted.boot_s,
        },
    }
    try:
        await client.create(NodeGroup, group)
    except AlreadyExists:
        found = await client.get(NodeGroup, FIRST_GROUP)
        sizes = {"target": nodes, "min": nodes}
        if nodes > found.spec.max:
            sizes["max"] = nodes
        await client.merge_patch(NodeGroup, FIRST_GROUP, {"spec": sizes})


async def _make(client: Client, kind: type[WireObject], body: Mapping[str, Any]) -> None:
    try:
        await client.create(kind, body)
    except AlreadyExists:
        return


def _build_cloud(*, boot_s: float = 10) -> dict[str, Any]:
    return {
        "metadata": {"name": THE_CLOUD},
        "spec": {
            "region": "local",
            "zones": ["local-a", "local-b", "local-c"],
            "catalogues": ["gce-n1", "aws-m6i-c6i-r6i", "aws-graviton", "aws-gpu"],
            "bootSeconds": boot_s,
        },
    }
