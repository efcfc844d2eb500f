"""Implements `fleet.providers.port.ClusterProvider` over the API of OCM."""

from __future__ import annotations

import builtins  # noqa: TC003 - `type` is a property here
from typing import TYPE_CHECKING, Any, Final, TypeVar

from plimsoll.fleet.model.provided import (
    NAME_PREFIX,
    Absent,
    AddonState,
    CallFailed,
    ClusterSetup,
    DeletionState,
    FailureKind,
    ProvidedCluster,
    bound_text,
    build_failure,
    name_cluster,
)
from plimsoll.fleet.model.statuses import ProviderType
from plimsoll.fleet.providers.ocm.calls import OcmCalls, decode_document
from plimsoll.fleet.providers.ocm.documents import (
    AddonAnswer,
    AddonListAnswer,
    ClusterAnswer,
    ClusterListAnswer,
    IngressListAnswer,
    MachinePoolAnswer,
    PoolListAnswer,
    SyncSetAnswer,
    build_addon_body,
    build_bounds_patch,
    build_cluster_body,
    build_pool_body,
    is_usable_id,
    read_cluster,
)
from plimsoll.fleet.providers.ocm.settings import SYNC_SET

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.pools import PoolBounds
    from plimsoll.fleet.model.provided import AddonOrder, ClusterOrder, SetupOrder
    from plimsoll.fleet.providers.ocm.settings import OcmClientSettings
    from plimsoll.web.client import HttpClient

W = TypeVar("W")
_PAGE_SIZE: Final = 100
_MOST_PAGES: Final = 50
_CLUSTERS: Final = "/clusters"
_SYNC_SETS: Final = "/external_configuration/syncsets"
_TAKEN: Final = "already exists"


class OcmProvider:
    """Clusters of one account."""

    type: Final = ProviderType.OCM

    def __init__(self, settings: OcmClientSettings, *, web: HttpClient, clock: Clock) -> None:
        self._settings = settings
        self._calls = OcmCalls(settings, web, clock)

    # ---- reads

    async def find_cluster(self, name: str, *, region: str) -> ProvidedCluster | Absent | CallFailed:
        found = await self._list(f"name = '{name}'")
        if isinstance(found, CallFailed):
            return found
        named = [cluster for cluster in found if cluster.name == name]
        if not named:
            return Absent()
        cluster = named[0]
        if cluster.region and cluster.region != region:
            return build_failure(FailureKind.REFUSED, f"OCM has {name} in {cluster.region}, and not in {region}")
        return cluster

    async def read_cluster(self, cluster: Cluster) -> ProvidedCluster | Absent | CallFailed:
        path = _build_path(cluster)
        content = path if isinstance(path, CallFailed) else await self._calls.send("GET", path)
        if not isinstance(content, bytes):
            return content
        answer = decode_document(content, ClusterAnswer)
        found = answer if isinstance(answer, CallFailed) else read_cluster(answer)
        return found if isinstance(found, CallFailed) else _check_cluster(found, cluster)

    async def read_setup(self, cluster: Cluster, order: SetupOrder) -> ClusterSetup | CallFailed:
        pools = await self._list_pools(cluster)
        if isinstance(pools, CallFailed):
            return pools
        dns = await self._read_dns(cluster)
        if isinstance(dns, CallFailed):
            return dns
        resources = await self._read_resources(cluster)
        if isinstance(resources, CallFailed):
            return resources
        addons = await self._list_addons(cluster)
        if isinstance(addons, CallFailed):
            return addons
        ours = sorted((pool for pool in pools if pool.bounds.instance_type), key=lambda pool: pool.id)
        return ClusterSetup(
            pools=tuple(pool.bounds for pool in ours),
            dns=dns,
            has_resources=resources == list(order.resources) or not order.resources,
            addons=self._read_addon_states(addons, order),
            problems=tuple(
                bound_text(f"pool {pool.id} lacks its label or its taint") for pool in ours if not pool.has_marks
            ),
        )

    async def list_clusters(self) -> tuple[ProvidedCluster, ...] | CallFailed:
        found = await self._list(f"name like '{NAME_PREFIX}%'")
        if isinstance(found, CallFailed):
            return found
        ours = (cluster for cluster in found if cluster.name.startswith(NAME_PREFIX))
        return tuple(sorted(ours, key=lambda cluster: cluster.cluster_id))

    # ---- changes

    async def create_cluster(self, order: ClusterOrder) -> ProvidedCluster | CallFailed:
        known = await self.find_cluster(order.name, region=order.region)
        if not isinstance(known, Absent):
            return known
        account = self._settings.cloud_accounts.get(order.cloud_provider)
        content = await self._calls.send("POST", _CLUSTERS, build_cluster_body(order, account))
        if isinstance(content, Absent):
            return build_failure(FailureKind.REFUSED, "OCM does not know the path of clusters")
        if isinstance(content, CallFailed):
            return await self._find_taken(order, content)
        answer = decode_document(content, ClusterAnswer)
        found = answer if isinstance(answer, CallFailed) else read_cluster(answer)
        if isinstance(found, CallFailed) or found.name == order.name:
            return found
        return build_failure(FailureKind.RETRY, f"OCM answers about {found.name!r} to the creation of {order.name}")

    async def ensure_pools(
        self, cluster: Cluster, pools: tuple[PoolBounds, ...]
    ) -> tuple[PoolBounds, ...] | CallFailed:
        held: list[PoolBounds] = []
        for pool in pools:
            made = await self._ensure_pool(cluster, pool)
            if isinstance(made, CallFailed):
                return made
            held.append(made)
        return tuple(held)

    async def ensure_resources(self, cluster: Cluster, order: SetupOrder) -> CallFailed | None:
        known = await self._read_resources(cluster)
        if isinstance(known, CallFailed):
            return known
        resources = list(order.resources)
        if known == resources:
            return None
        if known is None:
            body = {"kind": "Syncset", "id": SYNC_SET, "resources": resources}
            return await self._change(cluster, "POST", _SYNC_SETS, body)
        return await self._change(cluster, "PATCH", f"{_SYNC_SETS}/{SYNC_SET}", {"resources": resources})

    async def ensure_addons(self, cluster: Cluster, addons: tuple[AddonOrder, ...]) -> CallFailed | None:
        known = await self._list_addons(cluster)
        if isinstance(known, CallFailed):
            return known
        installed = {addon.addon_id: addon for addon in known}
        for order in addons:
            addon_id = self._settings.get_addon_id(order.kind)
            if not addon_id:
                continue
            failed = await self._ensure_addon(cluster, addon_id, order, installed.get(addon_id))
            if failed is not None:
                return failed
        return None

    async def delete_cluster(self, cluster: Cluster) -> DeletionState | CallFailed:
        target = cluster.cluster_id
        if not target:
            found = await self.find_cluster(name_cluster(cluster.id), region=cluster.region)
            if isinstance(found, CallFailed):
                return found
            if isinstance(found, Absent):
                return DeletionState.GONE
            target = found.cluster_id
        if not is_usable_id(target):
            return _refuse_id(target)
        content = await self._calls.send("DELETE", f"{_CLUSTERS}/{target}")
        if isinstance(content, CallFailed):
            return content
        return DeletionState.GONE if isinstance(content, Absent) else DeletionState.GOING

    # ---- parts

    async def _list(self, search: str) -> tuple[ProvidedCluster, ...] | CallFailed:
        """All pages, in order of creation; a list that is cut off is a failed call."""
        found: dict[str, ProvidedCluster] = {}
        for page in range(1, _MOST_PAGES + 1):
            query = {"search": search, "page": str(page), "size": str(_PAGE_SIZE), "order": "creation_timestamp asc"}
            content = await self._calls.send("GET", _CLUSTERS, query=query)
            if isinstance(content, Absent):
                return build_failure(FailureKind.REFUSED, "OCM does not know the path of clusters")
            answer = content if isinstance(content, CallFailed) else decode_document(content, ClusterListAnswer)
            if isinstance(answer, CallFailed):
                return answer
            for item in answer.items:
                cluster = read_cluster(item)
                if isinstance(cluster, CallFailed):
                    return cluster
                found[cluster.cluster_id] = cluster
            if not answer.items or len(found) >= answer.total:
                break
        else:
            return build_failure(FailureKind.RETRY, f"OCM lists more than {_MOST_PAGES * _PAGE_SIZE} clusters")
        if len(found) < answer.total:
            return build_failure(FailureKind.RETRY, f"OCM lists {len(found)} clusters of {answer.total}")
        return tuple(found.values())

    async def _find_taken(self, order: ClusterOrder, failed: CallFailed) -> ProvidedCluster | CallFailed:
        """A name that is taken was taken by an earlier call of ours, whose answer was lost."""
        if failed.kind is not FailureKind.REFUSED or _TAKEN not in failed.problem:
            return failed
        found = await self.find_cluster(order.name, region=order.region)
        return failed if isinstance(found, Absent) else found

    async def _list_pools(self, cluster: Cluster) -> tuple[MachinePoolAnswer, ...] | CallFailed:
        answer = await self._read(cluster, f"/machine_pools?size={_PAGE_SIZE}", PoolListAnswer)
        if isinstance(answer, CallFailed):
            return answer
        if len(answer.items) < answer.total:
            return build_failure(FailureKind.RETRY, f"OCM lists {len(answer.items)} pools of {answer.total}")
        return answer.items

    async def _read_dns(self, cluster: Cluster) -> str | CallFailed:
        answer = await self._read(cluster, "/ingresses", IngressListAnswer)
        if isinstance(answer, CallFailed):
            return answer
        return next((bound_text(ingress.dns_name) for ingress in answer.items if ingress.default), "")

    async def _read_resources(self, cluster: Cluster) -> list[Any] | CallFailed | None:
        """None: there is no sync set."""
        path = _build_path(cluster, f"{_SYNC_SETS}/{SYNC_SET}")
        content = path if isinstance(path, CallFailed) else await self._calls.send("GET", path)
        if isinstance(content, Absent):
            return None
        answer = content if isinstance(content, CallFailed) else decode_document(content, SyncSetAnswer)
        return answer if isinstance(answer, CallFailed) else answer.resources

    async def _list_addons(self, cluster: Cluster) -> tuple[AddonAnswer, ...] | CallFailed:
        answer = await self._read(cluster, f"/addons?size={_PAGE_SIZE}", AddonListAnswer)
        if isinstance(answer, CallFailed):
            return answer
        if len(answer.items) < answer.total:
            return build_failure(FailureKind.RETRY, f"OCM lists {len(answer.items)} add-ons of {answer.total}")
        return answer.items

    def _read_addon_states(self, addons: tuple[AddonAnswer, ...], order: SetupOrder) -> tuple[AddonState, ...]:
        """Read the states of the ordered add-ons. One without an id is not for this provider, and counts as ready."""
        installed = {addon.addon_id: addon for addon in addons}
        states: list[AddonState] = []
        for wanted in order.addons:
            addon_id = self._settings.get_addon_id(wanted.kind)
            found = installed.get(addon_id)
            if not addon_id:
                states.append(AddonState(kind=wanted.kind, is_ready=True, is_current=True))
            elif found is not None:
                states.append(
                    AddonState(
                        kind=wanted.kind,
                        is_ready=found.state == "ready",
                        is_current=_has_parameters(found, wanted),
                        details=bound_text(f"{found.state} {found.state_description}"),
                    )
                )
        return tuple(states)

    async def _ensure_pool(self, cluster: Cluster, pool: PoolBounds) -> PoolBounds | CallFailed:
        path = _build_path(cluster, f"/machine_pools/{pool.id}")
        if isinstance(path, CallFailed):
            return path
        content = await self._calls.send("GET", path)
        if isinstance(content, Absent):
            created = await self._calls.send("POST", path.rpartition("/")[0], build_pool_body(pool))
            is_taken = isinstance(created, CallFailed) and _TAKEN in created.problem
            content = await self._calls.send("GET", path) if is_taken else created
        held = _read_pool(content, pool)
        if isinstance(held, CallFailed):
            return held
        if (held.min_replicas, held.max_replicas) == (pool.min_replicas, pool.max_replicas):
            return held
        return _read_pool(await self._calls.send("PATCH", path, build_bounds_patch(pool)), pool)

    async def _ensure_addon(
        self, cluster: Cluster, addon_id: str, order: AddonOrder, known: AddonAnswer | None
    ) -> CallFailed | None:
        body = build_addon_body(addon_id, order.parameters)
        if known is None:
            return await self._change(cluster, "POST", "/addons", body)
        if known.state == "ready" and not _has_parameters(known, order):
            return await self._change(cluster, "PATCH", f"/addons/{addon_id}", body)
        return None

    async def _read(self, cluster: Cluster, below: str, kind: builtins.type[W]) -> W | CallFailed:
        """A document below the path of a cluster, which is there."""
        path = _build_path(cluster, below)
        content = path if isinstance(path, CallFailed) else await self._calls.send("GET", path)
        if isinstance(content, Absent):
            return build_failure(FailureKind.RETRY, f"OCM has no cluster {cluster.cluster_id}, or not this part of it")
        return content if isinstance(content, CallFailed) else decode_document(content, kind)

    async def _change(self, cluster: Cluster, method: Any, below: str, body: dict[str, Any]) -> CallFailed | None:
        path = _build_path(cluster, below)
        content = path if isinstance(path, CallFailed) else await self._calls.send(method, path, body)
        if isinstance(content, Absent):
            return build_failure(FailureKind.REFUSED, f"OCM does not know {below} of cluster {cluster.cluster_id}")
        return content if isinstance(content, CallFailed) else None


def _build_path(cluster: Cluster, below: str = "") -> str | CallFailed:
    if not is_usable_id(cluster.cluster_id):
        return _refuse_id(cluster.cluster_id)
    return f"{_CLUSTERS}/{cluster.cluster_id}{below}"


def _refuse_id(cluster_id: str) -> CallFailed:
    return build_failure(FailureKind.REFUSED, f"{cluster_id[:50]!r} is not an id of OCM")


def _check_cluster(found: ProvidedCluster, cluster: Cluster) -> ProvidedCluster | CallFailed:
    """An answer about another cluster than the one of the row is no answer."""
    for what, given, known in (
        ("id", found.cluster_id, cluster.cluster_id),
        ("region", found.region, cluster.region),
        ("provider", found.cloud_provider, cluster.cloud_provider),
    ):
        if given and given != known:
            problem = f"OCM answers with the {what} {given!r} about cluster {cluster.cluster_id}, which has {known!r}"
            return build_failure(FailureKind.RETRY, problem)
    return found


def _read_pool(content: bytes | Absent | CallFailed, pool: PoolBounds) -> PoolBounds | CallFailed:
    if isinstance(content, Absent):
        return build_failure(FailureKind.RETRY, f"OCM has no pool {pool.id} after it was made")
    answer = content if isinstance(content, CallFailed) else decode_document(content, MachinePoolAnswer)
    if isinstance(answer, CallFailed):
        return answer
    if answer.id != pool.id:
        return build_failure(FailureKind.RETRY, f"OCM answers about pool {answer.id[:50]!r} instead of {pool.id}")
    return answer.bounds


def _has_parameters(known: AddonAnswer, order: AddonOrder) -> bool:
    return known.values == order.parameters
