"""The worker `cluster`: creates registered clusters, sets them up, and keeps them as they should be.

docs/design/fleet.md 1.2, 8 and 12. A pass asks the providers what is there, and decides by that; only its steps change
anything, at the provider first and then in the row. A process that ends in between leaves what the next pass finds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from plimsoll.fleet.model.provided import (
    Absent,
    CallFailed,
    FailureKind,
    ProvidedCluster,
    ProviderState,
    build_failure,
)
from plimsoll.fleet.model.statuses import ClusterStatus, ClusterType
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.planning.terraforming import build_cluster_order, build_setup_order
from plimsoll.fleet.workers.clusters.decisions import (
    build_action,
    build_backing_off,
    build_change_step,
    build_waiting,
    guard_step,
    list_detail_steps,
)
from plimsoll.fleet.workers.clusters.manual import list_manual_parts
from plimsoll.fleet.workers.clusters.orphans import OrphanSearch
from plimsoll.fleet.workers.clusters.provider_calls import STILL_LISTED, is_listed
from plimsoll.fleet.workers.clusters.setup import ClusterSetups
from plimsoll.fleet.workers.passes import Step, Work, build_work

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime

    from plimsoll.core.entropy import Entropy
    from plimsoll.core.plans import NotDone
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.model.provided import ClusterSetup
    from plimsoll.fleet.model.statuses import ProviderType
    from plimsoll.fleet.planning.terraforming import SetupSettings
    from plimsoll.fleet.ports import ClusterChanges
    from plimsoll.fleet.workers.clusters.provider_calls import ProviderCalls
    from plimsoll.fleet.workers.leased_store import LeasedStore

    Listed = Mapping[ProviderType, tuple[ProvidedCluster, ...] | CallFailed]
    """What each provider lists, or why it does not."""

_NEXT: Final = {
    ClusterStatus.ACCEPTED: ClusterStatus.PROVISIONING,
    ClusterStatus.PROVISIONING: ClusterStatus.PROVISIONED,
    ClusterStatus.PROVISIONED: ClusterStatus.WAITING,
}
"""The ways of a cluster that is being made."""


@dataclass(frozen=True, slots=True)
class Observed:
    """What the providers answered, by the id of the row. A cluster whose calls failed lately is missing."""

    clusters: Mapping[str, ProvidedCluster | Absent | CallFailed] = field(default_factory=dict)
    setups: Mapping[str, ClusterSetup | CallFailed] = field(default_factory=dict)


class ClusterWorker:
    """One step of its life per cluster and pass."""

    name: Final = Worker.CLUSTER

    def __init__(
        self,
        policy: FleetPolicy,
        calls: ProviderCalls,
        settings: SetupSettings,
        *,
        entropy: Entropy,
        keeps_ready: bool = True,
    ) -> None:
        self._policy = policy
        self._calls = calls
        self._settings = settings
        self._setups = ClusterSetups(policy, calls, settings, entropy=entropy)
        self._orphans = OrphanSearch(calls)
        self._statuses = {*_NEXT, ClusterStatus.WAITING, *({ClusterStatus.READY} if keeps_ready else ())}

    async def plan_pass(self, store: LeasedStore, *, number: int, now: datetime) -> Work:
        self._calls.begin_pass()
        # The providers first: a cluster that is made or deleted meanwhile must not look like an orphan.
        listed = await self._orphans.list_provided()
        rows = await store.list_clusters()
        observed = await self._observe(rows, listed)
        parts: list[Step | NotDone] = list(list_manual_parts(store, rows, self._policy, now))
        errors: list[str] = []
        for cluster in rows:
            if cluster.status in self._statuses:
                parts += self._decide(store, cluster, observed, errors)
        parts += await self._orphans.compare(store, rows, listed, errors)
        advances = any(isinstance(part, Step) and "status" in part.action.arguments for part in parts)
        work = build_work(self.name, parts, number=number, now=now, follow=Worker.CLUSTER if advances else None)
        return Work(plan=work.plan, steps=work.steps, errors=tuple(errors), follow=work.follow)

    async def _observe(self, rows: tuple[Cluster, ...], listed: Listed) -> Observed:
        managed = [cluster for cluster in rows if cluster.cluster_type is ClusterType.MANAGED and cluster.cluster_id]
        made = [cluster for cluster in managed if cluster.status is ClusterStatus.PROVISIONING]
        set_up = [
            cluster
            for cluster in managed
            if cluster.status in self._statuses - {ClusterStatus.ACCEPTED, ClusterStatus.PROVISIONING}
        ]
        found: Mapping[str, ProvidedCluster | Absent | CallFailed] = await self._calls.call_all(
            made, lambda provider, cluster: provider.read_cluster(cluster)
        )
        by_id = {cluster.id: cluster for cluster in made}
        return Observed(
            clusters={row_id: _check_absence(by_id[row_id], answer, listed) for row_id, answer in found.items()},
            setups=await self._calls.call_all(
                set_up,
                lambda provider, cluster: provider.read_setup(
                    cluster, build_setup_order(cluster, self._policy, self._settings)
                ),
            ),
        )

    def _decide(
        self, store: LeasedStore, cluster: Cluster, observed: Observed, errors: list[str]
    ) -> list[Step | NotDone]:
        if cluster.cluster_type is ClusterType.ENTERPRISE:
            return _decide_enterprise(store, cluster)
        if self._calls.find_provider(cluster) is None:
            problem = f"no provider {cluster.provider_type} is configured"
            return [build_waiting(cluster, "no_provider", problem)]
        if not self._calls.is_due(cluster) and cluster.id not in {*observed.clusters, *observed.setups}:
            return [build_backing_off(cluster)]
        if cluster.status is ClusterStatus.ACCEPTED:
            return self._decide_accepted(store, cluster, errors)
        found = observed.clusters.get(cluster.id) or observed.setups.get(cluster.id)
        if found is None:
            return [build_waiting(cluster, "not_observed", "the provider was not asked about it in this pass")]
        if isinstance(found, CallFailed):
            errors.append(f"cluster/{cluster.id}: {found.problem}")
            waiting = build_waiting(cluster, f"provider_{found.kind.value}", found.problem)
            return [waiting, *list_detail_steps(store, cluster, found.problem)]
        if isinstance(found, Absent | ProvidedCluster):
            return _decide_provisioning(store, cluster, found)
        return self._setups.decide(store, cluster, found)

    def _decide_accepted(self, store: LeasedStore, cluster: Cluster, errors: list[str]) -> list[Step | NotDone]:
        if cluster.cluster_id:
            return [_advance(store, cluster, "registered", "it exists already at its provider", {})]
        order = build_cluster_order(cluster, self._policy)
        if isinstance(order, str):
            errors.append(f"cluster/{cluster.id}: {order}")
            return [build_waiting(cluster, "not_configured", order), *list_detail_steps(store, cluster, order)]

        async def create() -> bool:
            made = await self._calls.change(cluster, lambda provider: provider.create_cluster(order), store)
            changes: ClusterChanges = {
                "status": ClusterStatus.PROVISIONING,
                "cluster_id": made.cluster_id,
                "external_id": made.external_id,
                "status_details": "",
            }
            return await store.change_cluster(cluster.id, changes, statuses={cluster.status}) is not None

        pool = order.default_pool
        message = f"it is registered; its provider makes {order.name} with {pool.min_replicas}..{pool.max_replicas}"
        arguments = {"name": order.name, "status": ClusterStatus.PROVISIONING.value}
        action = build_action("create", cluster, "registered", f"{message} {pool.machine_type}", arguments=arguments)
        return [Step(action=action, run=guard_step(store, cluster, create))]


def _check_absence(
    cluster: Cluster, found: ProvidedCluster | Absent | CallFailed, listed: Listed
) -> ProvidedCluster | Absent | CallFailed:
    """One answer alone makes no cluster gone: the list of this pass must lack it too."""
    if not isinstance(found, Absent):
        return found
    clusters = listed.get(cluster.provider_type, ())
    if isinstance(clusters, CallFailed):
        return clusters
    return build_failure(FailureKind.RETRY, STILL_LISTED) if is_listed(cluster, clusters) else found


def _decide_enterprise(store: LeasedStore, cluster: Cluster) -> list[Step | NotDone]:
    """A cluster of a customer exists already, and its provider is not called."""
    if cluster.status not in _NEXT:
        return []
    return [_advance(store, cluster, "enterprise", "it is a customer's cluster and needs nothing of a provider", {})]


def _decide_provisioning(store: LeasedStore, cluster: Cluster, found: ProvidedCluster | Absent) -> list[Step | NotDone]:
    if isinstance(found, Absent):
        return [_fail(store, cluster, "cluster_gone", "its provider has it no more")]
    match found.state:
        case ProviderState.READY:
            changes: ClusterChanges = {"status_details": ""}
            if found.external_id and not cluster.external_id:
                changes["external_id"] = found.external_id
            return [_advance(store, cluster, "provisioned", "its provider says that it is ready", changes)]
        case ProviderState.FAILED:
            return [_fail(store, cluster, "creation_failed", found.details or "its provider says that it failed")]
        case ProviderState.DELETING:
            return [_fail(store, cluster, "cluster_deleted", "its provider is deleting it")]
        case ProviderState.PROVISIONING:
            details = f": {found.details}" if found.details else ""
            waiting = build_waiting(cluster, "provisioning", f"its provider is making it{details}")
            return [waiting, *list_detail_steps(store, cluster, found.details)]


def _advance(store: LeasedStore, cluster: Cluster, code: str, message: str, changes: ClusterChanges) -> Step:
    status = _NEXT[cluster.status]
    action = build_action("advance", cluster, code, message, arguments={"status": status.value})
    return build_change_step(store, cluster, action, {**changes, "status": status})


def _fail(store: LeasedStore, cluster: Cluster, code: str, details: str) -> Step:
    status = ClusterStatus.FAILED
    action = build_action("fail", cluster, code, details, arguments={"status": status.value})
    return build_change_step(store, cluster, action, {"status": status, "status_details": details})
