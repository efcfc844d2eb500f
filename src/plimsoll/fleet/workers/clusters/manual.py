"""Clusters of the manual file: rows are made for those that are new, and unused rows that it dropped are removed.

docs/design/fleet.md 1.2. Only in the scaling type `manual`. Only rows that came from the file are removed: a cluster
that was created automatically, imported or registered is not the file's to delete, whatever the scaling type is now.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.plans import Action
from plimsoll.fleet.model.clusters import Cluster
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType, ScalingType
from plimsoll.fleet.planning.plan_parts import build_reason, refer_to_cluster
from plimsoll.fleet.workers.clusters.decisions import build_action
from plimsoll.fleet.workers.passes import Step

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from plimsoll.fleet.model.policy import FleetPolicy, ManualCluster
    from plimsoll.fleet.ports import ClusterChanges
    from plimsoll.fleet.workers.leased_store import LeasedStore

_FROM_FILE: Final = "manual"
_REMOVABLE: Final = frozenset(set(ClusterStatus) - {ClusterStatus.CLEANUP, ClusterStatus.DEPROVISIONING})


def list_manual_parts(
    store: LeasedStore, rows: tuple[Cluster, ...], policy: FleetPolicy, now: datetime
) -> Iterator[Step]:
    """Steps for the differences between the file and the rows."""
    if policy.scaling_type is not ScalingType.MANUAL:
        return
    listed = {manual.cluster_id for manual in policy.manual_clusters}
    known = {row.cluster_id for row in rows}
    for manual in policy.manual_clusters:
        if manual.cluster_id not in known:
            yield _build_registration(store, build_manual_cluster(manual, now))
    for row in rows:
        is_ours = row.cluster_type is ClusterType.MANAGED and row.provider_spec.get(_FROM_FILE) is True
        if is_ours and row.cluster_id not in listed and row.status in _REMOVABLE:
            yield _build_removal(store, row, policy)


def build_manual_cluster(manual: ManualCluster, now: datetime) -> Cluster:
    """The row of a cluster of the file. Its id is made from that of the provider: it has no other name."""
    return Cluster(
        id=manual.cluster_id,
        created_at=now,
        updated_at=now,
        cluster_id=manual.cluster_id,
        cloud_provider=manual.cloud_provider,
        region=manual.region,
        multi_az=manual.multi_az,
        status=ClusterStatus(manual.status),
        provider_type=manual.provider_type,
        provider_spec={_FROM_FILE: True, **({"name": manual.name} if manual.name else {})},
        cluster_dns=manual.cluster_dns,
        supported_instance_type=manual.supported_instance_type,
        schedulable=manual.schedulable,
    )


def _build_registration(store: LeasedStore, cluster: Cluster) -> Step:
    async def run() -> bool:
        return await store.insert_cluster(cluster, max_parallel=1)

    reason = build_reason("manual", "the manual file lists it, and no row has it", {})
    return Step(action=Action(verb="register", target=refer_to_cluster(cluster.id), reason=reason), run=run)


def _build_removal(store: LeasedStore, cluster: Cluster, policy: FleetPolicy) -> Step:
    """Marked only: the second look and the transaction of the first delete call find Kafkas that are on it."""

    async def run() -> bool:
        kafkas = await store.count_kafkas(policy)
        if any(count.cluster_id == cluster.cluster_id and count.consuming for count in kafkas):
            return False
        changes: ClusterChanges = {"status": ClusterStatus.DEPROVISIONING}
        return await store.change_cluster(cluster.id, changes, statuses={cluster.status}) is not None

    action = build_action("deprovision", cluster, "not_in_manual_file", "the manual file does not list it")
    return Step(action=action, run=run)
