"""Clusters that a provider has under our names and that no row knows (docs/design/fleet.md 15.4). None is deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.plans import Action, NotDone
from plimsoll.fleet.model.provided import CallFailed, Orphan, ProvidedCluster, ProviderState, name_cluster
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.planning.plan_parts import build_reason, refer_to_cluster
from plimsoll.fleet.workers.passes import Step, build_worker_ref

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.statuses import ProviderType
    from plimsoll.fleet.workers.clusters.provider_calls import ProviderCalls
    from plimsoll.fleet.workers.leased_store import LeasedStore


class OrphanSearch:
    """Compares what the providers list with the rows."""

    def __init__(self, calls: ProviderCalls) -> None:
        self._calls = calls

    async def list_provided(self) -> dict[ProviderType, tuple[ProvidedCluster, ...] | CallFailed]:
        """Read before the rows: a cluster without a row has then none, unless it is being deleted."""
        return await self._calls.list_all()

    async def compare(
        self,
        store: LeasedStore,
        rows: tuple[Cluster, ...],
        listed: Mapping[ProviderType, tuple[ProvidedCluster, ...] | CallFailed],
        errors: list[str],
    ) -> list[Step | NotDone]:
        """Reports the orphans. Of a provider that did not answer those of before are kept."""
        known = await store.list_orphans()
        found: list[Orphan] = []
        for provider, clusters in listed.items():
            if isinstance(clusters, CallFailed):
                errors.append(f"clusters of provider {provider} cannot be listed: {clusters.problem}")
                found += [orphan for orphan in known if orphan.provider == provider]
            else:
                found += find_orphans(provider, clusters, rows)
        parts: list[Step | NotDone] = [_report(orphan) for orphan in found]
        if tuple(found) != known:
            parts.append(_build_record(store, tuple(found)))
        return parts


def find_orphans(
    provider: ProviderType, clusters: tuple[ProvidedCluster, ...], rows: tuple[Cluster, ...]
) -> list[Orphan]:
    """A cluster is known by its id, or by its name while its row has no id yet."""
    ours = [row for row in rows if row.provider_type is provider]
    ids = {row.cluster_id for row in ours if row.cluster_id}
    names = {name_cluster(row.id) for row in ours if not row.cluster_id}
    return [
        Orphan(
            provider=provider.value,
            cluster_id=cluster.cluster_id,
            name=cluster.name,
            state=cluster.state.value,
            region=cluster.region,
        )
        for cluster in clusters
        if cluster.cluster_id not in ids and cluster.name not in names and cluster.state is not ProviderState.DELETING
    ]


def _report(orphan: Orphan) -> NotDone:
    reason = build_reason("orphan", f"{orphan}; it is never deleted unasked", {})
    return NotDone(what="left alone", about=(refer_to_cluster(orphan.name),), reason=reason)


def _build_record(store: LeasedStore, orphans: tuple[Orphan, ...]) -> Step:
    async def run() -> bool:
        await store.keep_orphans(orphans)
        return True

    message = f"{len(orphans)} clusters at providers have no row"
    reason = build_reason("orphans", message, {"orphans": [orphan.name for orphan in orphans]})
    return Step(action=Action(verb="record", target=build_worker_ref(Worker.CLUSTER), reason=reason), run=run)
