"""What a day was like, in numbers: clusters, hours, requests that waited, and creations that were undone."""

from __future__ import annotations

from datetime import datetime, timedelta
from statistics import median
from typing import TYPE_CHECKING, Final

from plimsoll.core.values import Value
from plimsoll.simulation.fleet.demand import Request  # noqa: TC001 - msgspec reads annotations at run time

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.simulation.fleet.lives import Life, Lives

SOON: Final = timedelta(hours=2)
_DIGITS: Final = 1
_SHORTEST_WAIT_S: Final = 60.0
"""The shortest wait of a request that waited for a cluster, and not only for the next pass."""


class RequestFate(Value):
    """What became of a request. Without a time of placement it was refused, failed, or waits at the end."""

    request: Request
    placed_at: datetime | None = None
    is_refused: bool = False
    has_failed: bool = False

    @property
    def waited_s(self) -> float:
        return 0.0 if self.placed_at is None else (self.placed_at - self.request.at).total_seconds()


class ClusterHistory(Value):
    """The life of one cluster."""

    id: str
    locator: str
    created_at: datetime
    ready_at: datetime | None
    deletion_at: datetime | None
    gone_at: datetime | None
    failed: bool
    restored: int


class DayOutcome(Value):
    """The numbers of a variant. Waits are of requests that no ready cluster had room for when they came."""

    variant: str
    created: int
    failed: int
    deleted: int
    restored: int
    undone: int
    """Created clusters whose delete call came within two hours of their becoming ready."""
    undone_share: float
    cluster_hours: float
    node_hours: float
    """At least: with the smallest sizes of all pools."""
    requests: int
    placed: int
    waited: int
    median_wait_s: float
    longest_wait_s: float
    refused: int
    """By the limit of the region."""
    gave_up: int
    """Failed after an hour without a place."""
    waiting: int
    """At the end of the day."""
    histories: tuple[ClusterHistory, ...]


def build_outcome(
    variant: str, lives: Lives, fates: Sequence[RequestFate], policy: FleetPolicy, *, end: datetime
) -> DayOutcome:
    found = list(lives.lives.values())
    undone = sum(_is_undone(life) for life in found)
    waits = [fate.waited_s for fate in fates if fate.waited_s >= _SHORTEST_WAIT_S]
    return DayOutcome(
        variant=variant,
        created=len(found),
        failed=sum(life.fails for life in found),
        deleted=sum(life.deletion_at is not None and not life.fails for life in found),
        restored=sum(life.restored for life in found),
        undone=undone,
        undone_share=round(undone / len(found), 4) if found else 0.0,
        cluster_hours=round(sum(life.count_hours(end) for life in found), _DIGITS),
        node_hours=round(sum(life.count_hours(end) * _count_fewest_nodes(life.row, policy) for life in found), _DIGITS),
        requests=len(fates),
        placed=sum(fate.placed_at is not None for fate in fates),
        waited=len(waits),
        median_wait_s=round(median(waits), _DIGITS) if waits else 0.0,
        longest_wait_s=round(max(waits, default=0.0), _DIGITS),
        refused=sum(fate.is_refused for fate in fates),
        gave_up=sum(fate.has_failed for fate in fates),
        waiting=sum(fate.placed_at is None and not (fate.is_refused or fate.has_failed) for fate in fates),
        histories=tuple(_build_history(life) for life in found),
    )


def _is_undone(life: Life) -> bool:
    return life.ready_at is not None and life.deletion_at is not None and life.deletion_at - life.ready_at < SOON


def _count_fewest_nodes(row: Cluster, policy: FleetPolicy) -> int:
    machines = policy.machines.get(row.cloud_provider)
    if machines is None:
        return 0
    pools = [machines.per_type[name].min_nodes for name in row.instance_types if name in machines.per_type]
    return machines.cluster_wide.min_nodes + sum(pools)


def _build_history(life: Life) -> ClusterHistory:
    return ClusterHistory(
        id=life.row.id,
        locator=str(life.row.locators[0]),
        created_at=life.row.created_at,
        ready_at=life.ready_at,
        deletion_at=life.deletion_at,
        gone_at=life.gone_at,
        failed=life.fails,
        restored=life.restored,
    )
