"""What a data-plane cluster has of an order, and how the rest gets there: objects, add-ons, nodes of pools."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from plimsoll.fleet.model.pools import TAINT_EFFECT, TYPE_KEY
from plimsoll.fleet.model.provided import AddonState, bound_text
from plimsoll.fleet.providers.data_planes.applying import ManifestApplier
from plimsoll.kube.errors import NotFound
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.workloads import Deployment

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.fleet.model.provided import AddonOrder
    from plimsoll.fleet.providers.data_planes.manifests import AddonManifests
    from plimsoll.kube.client import Client

POOL_LABEL: Final = "node.cluster.x-k8s.io/plimsoll-pool"
"""Cluster API copies labels of this domain from a machine deployment to its nodes; the value is the id of the pool."""


class DataPlaneSetup:
    """One cluster. `places` fills the manifests of add-ons. Calls raise `ServerTrouble` and `InvalidInput`."""

    def __init__(self, client: Client, manifests: AddonManifests, places: Mapping[str, str]) -> None:
        self._client = client
        self._manifests = manifests
        self._places = places
        self._applier = ManifestApplier(client)

    async def apply_resources(self, resources: Iterable[dict[str, Any]]) -> None:
        await self._applier.apply_all(resources)

    async def has_resources(self, resources: Iterable[dict[str, Any]]) -> bool:
        return await self._applier.are_applied(resources)

    async def install(self, addon: AddonOrder) -> None:
        await self._applier.apply_all(self._manifests.build(addon, self._places))

    async def read_addon(self, addon: AddonOrder) -> AddonState | None:
        """None: nothing of it is there."""
        objects = self._manifests.build(addon, self._places)
        is_current = await self._applier.are_applied(objects)
        waiting: list[str] = []
        missing: list[str] = []
        for namespace, name in self._manifests.list_deployments(addon.kind):
            try:
                deployment = await self._client.get(Deployment, name, namespace=namespace)
            except NotFound:
                missing.append(f"{namespace}/{name}")
                continue
            if not _is_available(deployment):
                waiting.append(f"{namespace}/{name}")
        if missing and not waiting and not is_current:
            return None
        return AddonState(
            kind=addon.kind,
            is_ready=is_current and not waiting and not missing,
            is_current=is_current,
            details=bound_text(_describe(waiting, missing)),
        )

    async def find_unmarked_nodes(self) -> tuple[str, ...]:
        """Pools with nodes without label or taint of their type: Kafkas would not run there, or other pods would."""
        unlabelled: Counter[str] = Counter()
        untainted: Counter[str] = Counter()
        async for page in self._client.iterate_pages(Node, Selection(labels=POOL_LABEL)):
            for node in page.items:
                pool = node.metadata.labels[POOL_LABEL]
                instance_type = pool.removeprefix("kafka-")
                if instance_type == pool:
                    continue
                unlabelled[pool] += node.metadata.labels.get(TYPE_KEY) != instance_type
                untainted[pool] += not any(
                    (taint.key, taint.value, taint.effect) == (TYPE_KEY, instance_type, TAINT_EFFECT)
                    for taint in node.spec.taints
                )
        return tuple(
            f"{nodes} node{'s' * (nodes != 1)} of pool {pool} without its {what} {TYPE_KEY}"
            for what, counts in (("label", unlabelled), ("taint", untainted))
            for pool, nodes in sorted(counts.items())
            if nodes
        )


def _is_available(deployment: Deployment) -> bool:
    return any(
        condition.type == "Available" and condition.status == "True" for condition in deployment.status.conditions
    )


def _describe(waiting: list[str], missing: list[str]) -> str:
    parts = [f"not available: {', '.join(waiting)}"] if waiting else []
    parts += [f"missing: {', '.join(missing)}"] if missing else []
    return "; ".join(parts)
