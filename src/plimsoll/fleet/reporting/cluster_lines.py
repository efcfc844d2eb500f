"""A line per cluster of a fleet, for the command line and the console: capacity, state, reason of the last decision."""

from __future__ import annotations

from operator import attrgetter
from typing import TYPE_CHECKING

from plimsoll.core.values import Value
from plimsoll.fleet.planning.plan_parts import refer_to_cluster
from plimsoll.journal.decisions import ObjectDecision
from plimsoll.journal.entries import Query

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.journal.ports import Journal


class UnitUse(Value):
    """Streaming units of an instance type."""

    used: int
    maximum: int


class ClusterLine(Value):
    """A cluster as it is shown. `units` and `max_nodes` are by instance type."""

    id: str
    cluster_id: str
    cloud_provider: str
    region: str
    status: str
    units: dict[str, UnitUse]
    max_nodes: dict[str, int]
    reason: str
    nodes: int | None = None
    """The machines that it has now; None: they cannot be seen from here."""
    cost_per_hour: float | None = None
    currency: str = ""


async def list_cluster_lines(clusters: Iterable[Cluster], journal: Journal) -> list[ClusterLine]:
    """The lines by the time of creation."""
    return [await _build_line(cluster, journal) for cluster in sorted(clusters, key=attrgetter("created_at"))]


async def _build_line(cluster: Cluster, journal: Journal) -> ClusterLine:
    return ClusterLine(
        id=cluster.id,
        cluster_id=cluster.cluster_id,
        cloud_provider=cluster.cloud_provider,
        region=cluster.region,
        status=cluster.status.value,
        units={
            name: UnitUse(used=info.max_units - info.remaining_units, maximum=info.max_units)
            for name, info in sorted(cluster.dynamic_capacity_info.items())
        },
        max_nodes={name: info.max_nodes for name, info in sorted(cluster.dynamic_capacity_info.items())},
        reason=cluster.status_details or await _read_reason(cluster, journal),
    )


async def _read_reason(cluster: Cluster, journal: Journal) -> str:
    """Read the reason of the newest decision about it; empty: there is none."""
    ref = refer_to_cluster(cluster.id)
    for entry in await journal.list_entries(Query(ref=ref, limit=1)):
        decision = ObjectDecision.from_entry(entry, ref)
        reasons = [action.reason for action in decision.actions] + [kept.reason for kept in decision.not_done]
        return reasons[0].message if reasons else ""
    return ""
