"""The scale of the controllers of some pods: the total of which a disruption budget is a part.

Deployments, replica sets, stateful sets and replication controllers come from caches; for any other kind the scale
subresource is read, as custom workloads have one. A controller that is not found or has no scale is a result, not an
error: the budget then allows nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.core.values import Value
from plimsoll.kube.discovery import fetch_resources
from plimsoll.kube.errors import NotFound
from plimsoll.objects.api.workloads import Deployment, ReplicaSet, ReplicationController, StatefulSet
from plimsoll.objects.owners import find_controller

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.local.components import Component
    from plimsoll.objects.api.meta import OwnerReference
    from plimsoll.objects.api.pods import Pod


class Scale(Value):
    """The total of desired pods, and the pods without a controller."""

    wanted: int
    unmanaged: tuple[str, ...] = ()


class NoScale(Value):
    """The scale is unknown, with the reason."""

    why: str


class PodScales:
    """Asks caches first; its informers are shared with the controllers of these kinds."""

    def __init__(self, component: Component) -> None:
        informers = component.informers
        self._client = component.client
        self._deployments = informers.get_raw_informer(Deployment)
        self._replica_sets = informers.get_raw_informer(ReplicaSet)
        self._stateful_sets = informers.get_raw_informer(StatefulSet)
        self._replication_controllers = informers.get_informer(ReplicationController)
        self.sources = (
            self._deployments,
            self._replica_sets,
            self._stateful_sets,
            self._replication_controllers,
        )

    async def find_scale(self, pods: Sequence[Pod]) -> Scale | NoScale:
        wanted: dict[str, int] = {}
        unmanaged: list[str] = []
        seen: set[str] = set()
        for pod in pods:
            owner = find_controller(pod.metadata)
            if owner is None:
                unmanaged.append(pod.metadata.name)
            elif owner.uid not in seen:
                seen.add(owner.uid)
                found = await self._scale(owner, pod.metadata.namespace)
                if isinstance(found, NoScale):
                    return found
                wanted[found[0]] = found[1]
        return Scale(wanted=sum(wanted.values()), unmanaged=tuple(unmanaged))

    async def _scale(self, owner: OwnerReference, namespace: str) -> tuple[str, int] | NoScale:
        """Whose scale counts, by uid, and how much it is."""
        known = self._find_known_scale(owner, namespace)
        if known is not None:
            return known
        return await self._fetch_scale(owner, namespace)

    def _find_known_scale(self, owner: OwnerReference, namespace: str) -> tuple[str, int] | None:
        found: Any = None
        match owner.api_version, owner.kind:
            case "apps/v1", "ReplicaSet":
                found = self._replica_sets.cache.get(owner.name, namespace)
            case "apps/v1", "StatefulSet":
                found = self._stateful_sets.cache.get(owner.name, namespace)
            case "apps/v1", "Deployment":
                found = self._deployments.cache.get(owner.name, namespace)
            case "v1", "ReplicationController":
                replication = self._replication_controllers.cache.get(owner.name, namespace)
                is_it = replication is not None and replication.metadata.uid == owner.uid
                return (owner.uid, _read_replicas(replication.spec)) if replication is not None and is_it else None
            case _:
                return None
        if found is None or found.view.metadata.uid != owner.uid:
            return None
        above = find_controller(found.view.metadata)
        if above is not None and above.kind == "Deployment":
            return self._find_known_scale(above, namespace) or (owner.uid, _read_replicas(found.view.spec))
        return owner.uid, _read_replicas(found.view.spec)

    async def _fetch_scale(self, owner: OwnerReference, namespace: str) -> tuple[str, int] | NoScale:
        version = owner.api_version
        served = await fetch_resources(self._client, version)
        plural = next(
            (resource.name for resource in served if resource.kind == owner.kind and "/" not in resource.name), ""
        )
        group = version.rpartition("/")[0]
        full_name = f"{plural or owner.kind.lower()}.{group}" if group else plural or owner.kind.lower()
        if not any(resource.name == f"{plural}/scale" for resource in served):
            return NoScale(why=f"{full_name} does not implement the scale subresource")
        prefix = f"/apis/{version}" if group else f"/api/{version}"
        try:
            scale = await self._client.get_json(f"{prefix}/namespaces/{namespace}/{plural}/{owner.name}/scale")
        except NotFound as error:
            return NoScale(why=str(error))
        replicas = (scale.get("spec") or {}).get("replicas") if isinstance(scale, dict) else None
        return owner.uid, replicas if isinstance(replicas, int) else 0


def _read_replicas(spec: Any) -> int:
    return 1 if spec.replicas is None else int(spec.replicas)
