"""The workers `deprovisioning_clusters` and `cleanup_clusters` (docs/design/fleet.md 9).

A marked cluster is looked at a second time, for emptiness and for capacity. `delete_requested_at` is written before the
first call: from then on the cluster never comes back, and the next process with the lease goes on deleting.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from plimsoll.core.formatting import format_count
from plimsoll.fleet.model.provided import DeletionState
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.planning.capacity import build_capacity
from plimsoll.fleet.planning.deprovisioning import RESTORE, evaluate_deprovisioning
from plimsoll.fleet.workers.clusters.decisions import build_action, build_backing_off, build_waiting, guard_step
from plimsoll.fleet.workers.passes import Step, Work, build_work

if TYPE_CHECKING:
    from plimsoll.core.plans import NotDone
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.planning.deprovisioning import DeprovisioningDecision
    from plimsoll.fleet.ports import ClusterChanges
    from plimsoll.fleet.workers.clusters.provider_calls import ProviderCalls
    from plimsoll.fleet.workers.leased_store import LeasedStore

_HOUR: Final = timedelta(hours=1)


class DeprovisioningWorker:
    """Brings marked clusters back, or deletes them. `removals_per_hour` None: no limit."""

    name: Final = Worker.DEPROVISIONING_CLUSTERS

    def __init__(self, policy: FleetPolicy, calls: ProviderCalls, *, removals_per_hour: int | None = None) -> None:
        self._policy = policy
        self._calls = calls
        self._removals_per_hour = removals_per_hour

    async def plan_pass(self, store: LeasedStore, *, number: int, now: datetime) -> Work:
        self._calls.begin_pass()
        rows = await store.list_heard_clusters()
        capacity = build_capacity(rows, await store.count_kafkas(self._policy), self._policy, now)
        left = await self._count_left(store, now)
        by_id = {row.id: row for row in rows}
        parts: list[Step | NotDone] = []
        for decision in evaluate_deprovisioning(rows, capacity, self._policy, now):
            cluster = by_id[decision.id]
            is_first = cluster.delete_requested_at is None
            if decision.decision == RESTORE:
                parts.append(_build_restoration(store, cluster, decision))
            elif is_first and left is not None and left <= 0:
                message = f"{format_count(self._removals_per_hour or 0, 'cluster')} may be removed per hour"
                parts.append(build_waiting(cluster, "removal_limit", message, what="kept for now"))
            else:
                parts.append(self._build_deletion(store, cluster, decision))
                left = left - 1 if is_first and left is not None else left
        return build_work(self.name, parts, number=number, now=now, follow=Worker.CLEANUP_CLUSTERS)

    async def _count_left(self, store: LeasedStore, now: datetime) -> int | None:
        """How many deletions may begin. A limit counts those of all processes, by the rows."""
        if self._removals_per_hour is None:
            return None
        return self._removals_per_hour - await store.count_deletions(now - _HOUR)

    def _build_deletion(self, store: LeasedStore, cluster: Cluster, decision: DeprovisioningDecision) -> Step | NotDone:
        if self._calls.find_provider(cluster) is None:
            return build_waiting(cluster, "no_provider", f"no provider {cluster.provider_type} is configured")
        if not self._calls.is_due(cluster):
            return build_backing_off(cluster)

        async def delete() -> bool:
            requested = await store.request_deletion(cluster.id)
            if requested is None:
                return False
            state = await self._calls.change(requested, lambda provider: provider.delete_cluster(requested), store)
            if state is DeletionState.GOING:
                return True
            await self._calls.confirm_gone(requested, store)
            changes: ClusterChanges = {"status": ClusterStatus.CLEANUP, "status_details": ""}
            return await store.change_cluster(cluster.id, changes, statuses={cluster.status}) is not None

        action = build_action("delete", cluster, decision.reason, decision.message)
        return Step(action=action, run=guard_step(store, cluster, delete))


class CleanupWorker:
    """Removes the rows of clusters that are gone, with the accounts of their agents."""

    name: Final = Worker.CLEANUP_CLUSTERS

    async def plan_pass(self, store: LeasedStore, *, number: int, now: datetime) -> Work:
        gone = [
            cluster
            for cluster in await store.list_clusters({ClusterStatus.CLEANUP})
            if cluster.cluster_type is ClusterType.MANAGED
        ]
        return build_work(self.name, [_build_cleanup(store, cluster) for cluster in gone], number=number, now=now)


def _build_restoration(store: LeasedStore, cluster: Cluster, decision: DeprovisioningDecision) -> Step:
    async def restore() -> bool:
        return await store.restore_cluster(cluster.id) is not None

    arguments = {"status": ClusterStatus.READY.value}
    action = build_action("restore", cluster, decision.reason, decision.message, arguments=arguments)
    return Step(action=action, run=restore)


def _build_cleanup(store: LeasedStore, cluster: Cluster) -> Step:
    async def remove() -> bool:
        return await store.remove_cluster(cluster.id, statuses={ClusterStatus.CLEANUP})

    message = "its provider has it no more; the account of its agent ends with its row"
    return Step(action=build_action("clean_up", cluster, "cluster_gone", message), run=remove)
