"""What requests do to the clusters of the simulated OCM: checks and changes, without HTTP.

A change is kept, and wakes the life of its cluster, before the request is answered.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from plimsoll.core.formatting import format_count
from plimsoll.local.ocm.ports import DEFAULT_POOL, ClusterSpec, PoolSpec
from plimsoll.local.ocm.requests import (
    AddonBody,
    Autoscaling,
    CallRefused,
    ClusterBody,
    IdentityProviderBody,
    PoolBody,
    SyncSetBody,
)
from plimsoll.local.ocm.state import AddonInstallation, ClusterState, OcmCluster

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.local.ocm.settings import OcmSettings

ZONES: Final = ("a", "b", "c")
LATEST_VERSION: Final = "openshift-v4.11.36"
_ID_CHARACTERS: Final = 32
_NO_CLUSTER: Final = "there is no cluster with the id {id!r}"


class OcmClusters:
    """All clusters that are not gone. `on_change` hears of every cluster whose state was replaced."""

    def __init__(self, settings: OcmSettings, *, clock: Clock, entropy: Entropy) -> None:
        self._settings = settings
        self._clock = clock
        self._entropy = entropy
        self._clusters: dict[str, OcmCluster] = {}
        self._failures: list[str] = []
        self.created: Counter[str] = Counter()
        """How many clusters were ever created, by name."""
        self.on_change: Callable[[str], None] = lambda _cluster_id: None

    # ---- the table of the lifecycle

    def find(self, cluster_id: str) -> OcmCluster | None:
        return self._clusters.get(cluster_id)

    def keep(self, cluster: OcmCluster) -> None:
        if cluster.id in self._clusters:
            self._clusters[cluster.id] = cluster
            self.on_change(cluster.id)

    def remove(self, cluster_id: str) -> None:
        if self._clusters.pop(cluster_id, None) is not None:
            self.on_change(cluster_id)

    # ---- reads

    def list_clusters(self) -> tuple[OcmCluster, ...]:
        """In order of their creation, then of their ids."""
        return tuple(sorted(self._clusters.values(), key=lambda cluster: (cluster.created_at, cluster.id)))

    def get(self, cluster_id: str) -> OcmCluster:
        cluster = self._clusters.get(cluster_id)
        if cluster is None:
            raise CallRefused(404, _NO_CLUSTER.format(id=cluster_id[:50]))
        return cluster

    def fail_creations(self, times: int = 1, message: str = "the account has no quota left") -> None:
        """The next creations end in `error`."""
        self._failures += [message] * times

    def restore(self, clusters: tuple[OcmCluster, ...]) -> None:
        """After a restart."""
        self._clusters = {cluster.id: cluster for cluster in clusters}

    # ---- changes

    def create(self, body: ClusterBody) -> OcmCluster:
        is_taken = any(cluster.spec.name == body.name for cluster in self._clusters.values())
        if is_taken and self._settings.has_unique_names:
            raise CallRefused(400, f"Cluster name '{body.name}' already exists")
        most = self._settings.most_clusters
        if len(self._clusters) >= most:
            raise CallRefused(400, f"the account may have at most {format_count(most, 'cluster')}, and has them")
        bounds = body.nodes.autoscale_compute
        bounds.check(zones=1)
        zones = tuple(f"{body.region.id}{zone}" for zone in (ZONES if body.multi_az else ZONES[:1]))
        pool = PoolSpec(
            id=DEFAULT_POOL,
            machine_type=body.nodes.compute_machine_type.id,
            min_replicas=bounds.min_replicas,
            max_replicas=bounds.max_replicas,
            zones=zones,
        )
        cluster_id = self._entropy.generate_suffix(_ID_CHARACTERS)
        spec = ClusterSpec(
            id=cluster_id,
            name=body.name,
            cloud_provider=body.cloud_provider.id,
            region=body.region.id,
            zones=zones,
            version=LATEST_VERSION if body.version is None else body.version.id,
            dns=f"apps.{body.name}.{self._settings.base_domain}",
            default_pool=pool,
        )
        now = self._clock.now()
        cluster = OcmCluster(
            spec=spec,
            external_id=self._entropy.generate_uid(),
            created_at=now,
            since=now,
            multi_az=body.multi_az,
            fails=self._draw_failure(),
        )
        self._check_workers(cluster)
        self._clusters[cluster_id] = cluster
        self.created[body.name] += 1
        self.on_change(cluster_id)
        return cluster

    def delete(self, cluster_id: str) -> None:
        cluster = self.get(cluster_id)
        if cluster.state is not ClusterState.UNINSTALLING:
            self.keep(cluster.enter(ClusterState.UNINSTALLING, self._clock.now()))

    def add_pool(self, cluster_id: str, body: PoolBody) -> PoolSpec:
        cluster = self._get_usable(cluster_id)
        if body.id in cluster.pools or body.id == DEFAULT_POOL:
            raise CallRefused(409, f"machine pool '{body.id}' already exists")
        body.autoscaling.check(zones=len(cluster.spec.zones))
        pool = PoolSpec(
            id=body.id,
            machine_type=body.instance_type,
            min_replicas=body.autoscaling.min_replicas,
            max_replicas=body.autoscaling.max_replicas,
            zones=cluster.spec.zones,
            labels=body.labels,
            taints=body.taints,
        )
        self._keep_pools(cluster, {**cluster.pools, pool.id: pool})
        return pool

    def bound_pool(self, cluster_id: str, pool_id: str, bounds: Autoscaling) -> PoolSpec:
        cluster = self._get_usable(cluster_id)
        known = get_pool(cluster, pool_id)
        bounds.check(zones=len(cluster.spec.zones))
        pool = structs.replace(known, min_replicas=bounds.min_replicas, max_replicas=bounds.max_replicas)
        self._keep_pools(cluster, {**cluster.pools, pool.id: pool})
        return pool

    def remove_pool(self, cluster_id: str, pool_id: str) -> None:
        """Only users of OCM do this: the fleet manager removes no pool."""
        cluster = self._get_usable(cluster_id)
        get_pool(cluster, pool_id)
        self._keep_pools(cluster, {key: pool for key, pool in cluster.pools.items() if key != pool_id})

    def install(self, cluster_id: str, body: AddonBody) -> AddonInstallation:
        cluster = self._get_usable(cluster_id)
        if body.addon is None:
            raise CallRefused(400, "addon.id is missing")
        if body.addon.id in cluster.addons:
            raise CallRefused(409, f"add-on '{body.addon.id}' is installed already")
        if self._settings.addon_ids and body.addon.id not in self._settings.addon_ids:
            raise CallRefused(404, f"there is no add-on '{body.addon.id}'")
        return self._keep_addon(cluster, body.addon.id, body.parameters.to_dict())

    def update_addon(self, cluster_id: str, addon_id: str, body: AddonBody) -> AddonInstallation:
        cluster = self._get_usable(cluster_id)
        known = get_addon(cluster, addon_id)
        if known.state == "installing":
            raise CallRefused(409, f"add-on '{addon_id}' is being installed")
        return self._keep_addon(cluster, addon_id, known.parameters | body.parameters.to_dict())

    def apply_sync_set(self, cluster_id: str, name: str, body: SyncSetBody, *, is_new: bool) -> None:
        cluster = self._get_usable(cluster_id)
        if is_new and name in cluster.sync_sets:
            raise CallRefused(409, f"sync set '{name}' already exists")
        if not is_new:
            get_sync_set(cluster, name)
        self.keep(structs.replace(cluster, sync_sets={**cluster.sync_sets, name: body.resources}))

    def remove_sync_set(self, cluster_id: str, name: str) -> None:
        cluster = self._get_usable(cluster_id)
        get_sync_set(cluster, name)
        left = {key: resources for key, resources in cluster.sync_sets.items() if key != name}
        self.keep(structs.replace(cluster, sync_sets=left))

    def add_identity_provider(self, cluster_id: str, body: IdentityProviderBody) -> dict[str, Any]:
        cluster = self._get_usable(cluster_id)
        if any(known["name"] == body.name for known in cluster.identity_providers.values()):
            raise CallRefused(400, f"identity provider '{body.name}' already exists")
        provider = {"kind": "IdentityProvider", "id": self._entropy.generate_uid(), "name": body.name}
        provider |= {"type": body.type, "mapping_method": "claim"}
        providers = {**cluster.identity_providers, provider["id"]: provider}
        self.keep(structs.replace(cluster, identity_providers=providers))
        return provider

    def _get_usable(self, cluster_id: str) -> OcmCluster:
        cluster = self.get(cluster_id)
        if cluster.state is not ClusterState.READY:
            raise CallRefused(400, f"the cluster is {cluster.state.value}, and has to be ready")
        return cluster

    def _keep_pools(self, cluster: OcmCluster, pools: dict[str, PoolSpec]) -> None:
        changed = structs.replace(cluster, pools=pools, pools_applied=False)
        self._check_workers(changed)
        self.keep(changed)

    def _check_workers(self, cluster: OcmCluster) -> None:
        most = self._settings.most_workers
        if cluster.most_nodes > most:
            wanted = format_count(cluster.most_nodes, "worker")
            raise CallRefused(400, f"a cluster may have at most {most} workers, and its pools allow {wanted}")

    def _keep_addon(self, cluster: OcmCluster, addon_id: str, parameters: dict[str, str]) -> AddonInstallation:
        addon = AddonInstallation(id=addon_id, parameters=parameters, installed_at=self._clock.now())
        self.keep(structs.replace(cluster, addons={**cluster.addons, addon_id: addon}))
        return addon

    def _draw_failure(self) -> str:
        if self._failures:
            return self._failures.pop(0)
        share = self._settings.failing_share
        fails = share > 0 and self._entropy.draw_uniform(0.0, 1.0) < share
        return "the cloud gave no machines for the control plane" if fails else ""


def get_pool(cluster: OcmCluster, pool_id: str) -> PoolSpec:
    pool = cluster.spec.default_pool if pool_id == DEFAULT_POOL else cluster.pools.get(pool_id)
    if pool is None:
        raise CallRefused(404, f"there is no machine pool '{pool_id[:50]}'")
    return pool


def get_addon(cluster: OcmCluster, addon_id: str) -> AddonInstallation:
    addon = cluster.addons.get(addon_id)
    if addon is None:
        raise CallRefused(404, f"there is no add-on installation '{addon_id[:50]}'")
    return addon


def get_sync_set(cluster: OcmCluster, name: str) -> list[Any]:
    resources = cluster.sync_sets.get(name)
    if resources is None:
        raise CallRefused(404, f"there is no sync set '{name[:50]}'")
    return resources
